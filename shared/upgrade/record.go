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
	// Stack is the control plane's, by its ARN: a record is not about a cluster that was made anew under the same name.
	Stack string `json:"stack"`
	// Execution of the upgrade machine that works on it, or did last. Another may take it over once that one is over.
	Execution string `json:"execution,omitempty"`
	// Origin is who asked; Key tells one asking from another, so that each fires once: see Start.
	Origin Origin `json:"origin"`
	Key    string `json:"key"`
	// Over is what the spec named (see Named) when this one was asked for by another way than the spec. Until the spec names something
	// else, Target counts instead of it. It is empty when the spec asks for this one, or came to name what this one leads to.
	Over string `json:"over,omitempty"`
	// Before is what it named before Over, if it came to something: Over may name a release that is not there, or one that waits for its
	// window. Target counts instead of that, too, when the spec is put back to it. It is empty when Over names the target.
	Before Target `json:"before,omitzero"`
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
	// Images of the pools before, by pool: with one in its imageID, a pool is what it was.
	Images map[string]string `json:"images,omitempty"`
	// Alarms whose actions this upgrade switched off: they are switched on again on every path.
	Alarms []string `json:"alarms,omitempty"`
	// Insights is when EKS was asked to look at the cluster anew, for the checks.
	Insights time.Time `json:"insights,omitzero"`
	// Started is when the first check began, Ended when it came to State.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// Back is what a rollback of this upgrade leads to, where that is not From: this one takes back a rollback that stopped on its way.
	Back *Target `json:"back,omitempty"`
	// BackUntil is until when EKS takes the control plane back: of a rollback that moves it, and of what takes that back.
	BackUntil time.Time `json:"backUntil,omitzero"`
	// Last is the upgrade that changed the cluster last, until this one does. It still counts if this one is blocked: it can be gone on
	// with, and rolled back.
	Last *Record `json:"last,omitempty"`
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
	// Started and Ended are when, as far as it came; Opened is when the present execution did, which may be another than the one that
	// started it. Made is when nothing was left to change: old nodes may still be drained then.
	Started time.Time `json:"started,omitzero"`
	Opened  time.Time `json:"opened,omitzero"`
	Made    time.Time `json:"made,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
}

// Moved says whether the new release counts during this step, and not only what the step moves of it: the cluster is pinned to it then.
// Forwards that is with the nodes, which come last. In a rollback it is from the control plane on: the images of the release that it leaves
// are newer than the control plane by then, and a pool that is added must not have them.
func (s Step) Moved() bool {
	return s.Kind == StepNodes || s.NodesBack && (s.Kind == StepControlPlane || s.Kind == StepAddons)
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

// Limit is how long a step of this kind may take, from when an execution opens it. It leaves the stacks within the
// time that converging gives them; unrelated changes of the spec are made within it, too. Nodes may take as long as
// an execution of the converge machine may.
func (k StepKind) Limit() time.Duration {
	switch k {
	case StepControlPlane:
		return 4 * time.Hour
	case StepNodes, StepNodesBack:
		return 5 * 24 * time.Hour
	}
	return 3 * time.Hour
}

// Start is an upgrade that is to begin: what planning hands to the upgrade machine.
type Start struct {
	Origin Origin `json:"origin"`
	// Key is the same for the same asking, however often it is heard: "spec <version id>", "channel Stable 1.37-1", "at <time>".
	Key string `json:"key"`
	// Release by name, and KubernetesVersion if it is another than the release's.
	Release           string `json:"release"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Due is when it was to begin, for one of a time: how late it is counts from then.
	Due time.Time `json:"due,omitzero"`
}
