// Package upgrade decides what an upgrade is, when one is due, and in which steps it is made. It is pure.
package upgrade

import (
	"fmt"
	"time"
)

// Record is what drover keeps of a cluster's upgrade while it is scheduled, under way or just over: the object
// upgrades/<cluster>.json in the state bucket, written under S3's conditions. Planning reads it: it says which release counts, and
// how far the cluster may go towards it. The status tells people the same; nothing is decided by the status.
type Record struct {
	// Number counts the upgrades of a cluster.
	Number int64 `json:"number"`
	// First is the number of the upgrade that this one goes on with, if that was stopped on its way: how the cluster was before either
	// is kept under it.
	First int64 `json:"first,omitempty"`
	// Execution of the upgrade machine that works on it, or did last. Another may take it over once that one is over.
	Execution string `json:"execution,omitempty"`
	// Origin is who asked; Key tells one asking from another, so that each fires once: see Start.
	Origin Origin `json:"origin"`
	Key    string `json:"key"`
	// Over is what the spec named (see Named) when this one was asked for by another way than the spec. Until the spec names something
	// else, Target counts instead of it. Before is the Over that counted when this one was asked for: it still does if this is blocked.
	Over   string `json:"over,omitempty"`
	Before string `json:"before,omitempty"`
	// From is what the cluster was, and Target what it is to be.
	From   Target `json:"from"`
	Target Target `json:"target"`
	// Steps in order, and Step is the index of the one that counts: those before it are done. len(Steps) when all are.
	Steps []Step `json:"steps"`
	Step  int    `json:"step"`
	State State  `json:"state"`
	// Try counts from 0 the executions of the converge machine that were to make the open step.
	Try int `json:"try,omitempty"`
	// Answered are the keys that were answered last, by origin, this one's among them: each fires once.
	Answered map[Origin]string `json:"answered,omitempty"`
	// Alarms whose actions this upgrade switched off: they are switched on again on every path.
	Alarms []string `json:"alarms,omitempty"`
	// Started is when the first check began, Ended when it came to State.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
}

// Target is a release by name and content, and the Kubernetes version that the cluster has with it: the spec may state another than
// the release's.
type Target struct {
	Release string `json:"release"`
	// SHA256 is the content's, in hex: the object names.PinnedRelease(SHA256) of the state bucket.
	SHA256            string `json:"sha256"`
	KubernetesVersion string `json:"kubernetesVersion"`
}

func (t Target) String() string {
	return fmt.Sprintf("release %s (Kubernetes %s)", t.Release, t.KubernetesVersion)
}

// Origin is who asked for an upgrade.
type Origin string

// The origins.
const (
	// OriginSpec: the spec names another release or Kubernetes version.
	OriginSpec Origin = "Spec"
	// OriginChannel: the spec's channel moved, and its window is open.
	OriginChannel Origin = "Channel"
	// OriginAt: the time of spec.upgrade.at came.
	OriginAt Origin = "At"
	// OriginHand: somebody started the upgrade machine.
	OriginHand Origin = "Hand"
	// OriginRollback: somebody asked to go back to what was before the last upgrade.
	OriginRollback Origin = "Rollback"
)

// State of an upgrade.
type State string

// The states.
const (
	// Checking: the preflight runs; nothing is changed yet.
	Checking State = "Checking"
	// Running: steps are made.
	Running State = "Running"
	// Blocked: the preflight found what must be mended first; nothing was changed.
	Blocked State = "Blocked"
	// Stopped: something failed on the way. What is done stays, and the cluster is at a safe point: Step says where.
	Stopped State = "Stopped"
	// Done: the cluster is what it was to be, and was checked.
	Done State = "Done"
)

// Over says whether a state is an end.
func (s State) Over() bool { return s == Blocked || s == Stopped || s == Done }

// Step of an upgrade. It is what the cluster should be meanwhile: planning makes it so, by the same machine as every change.
type Step struct {
	Kind StepKind `json:"kind"`
	// KubernetesVersion of the control plane during this step.
	KubernetesVersion string `json:"kubernetesVersion"`
	// Addons are versions by name that count during this step, whatever spec and release say. Those not named are the old release's
	// before the step of kind Addons, and the new one's from it on.
	Addons map[string]string `json:"addons,omitempty"`
	// NodesBack says that the nodes have the new release's images during this step already: in a rollback they go first.
	NodesBack bool `json:"nodesBack,omitempty"`
	// Started and Ended are when, as far as it came. Made is when nothing was left to change: old nodes may still be drained then.
	Started time.Time `json:"started,omitzero"`
	Made    time.Time `json:"made,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
}

// StepKind is what a step moves.
type StepKind string

// The kinds.
const (
	// StepAddonsFirst brings add-ons to versions that the next Kubernetes version needs and the present one can have.
	StepAddonsFirst StepKind = "AddonsFirst"
	// StepControlPlane brings the control plane to the next minor version.
	StepControlPlane StepKind = "ControlPlane"
	// StepAddons brings every add-on to its version, those on nodes too.
	StepAddons StepKind = "Addons"
	// StepNodes replaces the nodes, and with them everything of the new release holds: templates, too.
	StepNodes StepKind = "Nodes"
	// StepNodesBack brings the nodes back to the old images: the first step of a rollback.
	StepNodesBack StepKind = "NodesBack"
)

// Start is an upgrade that is to begin: what planning hands to the upgrade machine.
type Start struct {
	Origin Origin `json:"origin"`
	// Key is the same for the same asking, however often it is heard: "spec <version id>", "channel Stable 1.37-1", "at <time>".
	Key string `json:"key"`
	// Release by name, and KubernetesVersion if it is another than the release's.
	Release           string `json:"release"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
}
