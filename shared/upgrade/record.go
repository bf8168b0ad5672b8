// Package upgrade decides which release applies to a cluster, when an upgrade is due, and in which steps it is made. It is pure.
package upgrade

import (
	"fmt"
	"time"
)

// Record is the last upgrade of a cluster, or the one in flight: the object upgrades/<cluster>.json in the state bucket, written with
// conditional writes. Planning reads it to see which release applies, and how far the cluster may go toward it. The status shows the same
// to users. No decision depends on the status.
type Record struct {
	// Number counts the upgrades of a cluster.
	Number int64 `json:"number"`
	// First is the number of the upgrade that this one continues, if that one was stopped. The baseline, taken before the first of them, is
	// stored under this number.
	First int64 `json:"first,omitempty"`
	// Stack is the ARN of the control plane's stack. A record does not apply to a recreated cluster of the same name.
	Stack string `json:"stack"`
	// Execution is the execution of drover-upgrade that works on the upgrade, or the last one that did. Another one may take over after it has
	// ended.
	Execution string `json:"execution,omitempty"`
	// Origin is what requested the upgrade. Key identifies the request, so that each request starts one upgrade: see Start.
	Origin Origin `json:"origin"`
	Key    string `json:"key"`
	// Overridden is what the spec named (see ReleaseText) when something else requested this upgrade. It is empty if the spec requested the
	// upgrade or has named its target since. Target overrides the spec while the spec names Overridden or Before. An example: 1.35-1 is
	// deployed, the spec names 1.37-1, which is absent, and a channel starts 1.36-1. Overridden is 1.37-1, and Before is 1.35-1.
	Overridden string `json:"overridden,omitempty"`
	// Before is the deployed target that the spec named before Overridden. It is empty if Overridden names Target.
	Before Target `json:"before,omitzero"`
	// From is the target that was deployed before, Target the one that the upgrade leads to.
	From   Target `json:"from"`
	Target Target `json:"target"`
	// Steps are in order. Step is the index of the open one: those before it are completed. It is len(Steps) if all are.
	Steps []Step `json:"steps"`
	Step  int    `json:"step"`
	State State  `json:"state"`
	// Try counts the executions of drover-converge for the open step, from 0.
	Try int `json:"try,omitempty"`
	// Answered holds, by origin, the key of the last request that was answered, this upgrade's included. A request is answered once.
	Answered map[Origin]string `json:"answered,omitempty"`
	// Images are those of the pools before the upgrade, by pool. To return a pool to its old image, set the pool's imageID to its value.
	Images map[string]string `json:"images,omitempty"`
	// Alarms are those whose actions this upgrade disabled. They are enabled again on every path.
	Alarms []string `json:"alarms,omitempty"`
	// Insights is when EKS was requested to refresh the cluster's insights, for the checks.
	Insights time.Time `json:"insights,omitzero"`
	// Started is when the first check began, Ended when State became final.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// RollbackTarget is set if this upgrade reverts a stopped rollback: it is the target to which a rollback of this upgrade returns.
	RollbackTarget *Target `json:"rollbackTarget,omitempty"`
	// RollbackUntil is when EKS stops accepting a rollback of the control plane. It is set for a rollback that changes its version, and for an
	// upgrade that reverts one.
	RollbackUntil time.Time `json:"rollbackUntil,omitzero"`
	// Last is the previous upgrade that changed the cluster; nil once this one changes it. It still applies if this one is blocked: it can be
	// continued and rolled back.
	Last *Record `json:"last,omitempty"`
}

// Target is a release by name and content, and the Kubernetes version of the cluster with it. The spec may name another version than the
// release.
type Target struct {
	Release string `json:"release"`
	// SHA256 of the content, in hex: the object names.PinnedRelease(SHA256) of the state bucket.
	SHA256            string `json:"sha256"`
	KubernetesVersion string `json:"kubernetesVersion"`
}

func (t Target) String() string {
	return fmt.Sprintf("release %s (Kubernetes %s)", t.Release, t.KubernetesVersion)
}

// Origin is what requested an upgrade.
type Origin string

// The origins.
const (
	// OriginSpec: the spec names another release or Kubernetes version.
	OriginSpec Origin = "Spec"
	// OriginChannel: the spec's channel moved, and its window is open.
	OriginChannel Origin = "Channel"
	// OriginAt: the time of spec.upgrade.at came.
	OriginAt Origin = "At"
	// OriginRollout: a run of a rollout assigned a release to the cluster.
	OriginRollout Origin = "Rollout"
	// OriginCommand: an operator started drover-upgrade.
	OriginCommand Origin = "Command"
	// OriginRollback: an operator or a run of a rollout requested a rollback of the last upgrade.
	OriginRollback Origin = "Rollback"
)

// State of an upgrade.
type State string

// The states.
const (
	// Checking: the checks run; the cluster is unchanged.
	Checking State = "Checking"
	// Running: the steps are in progress.
	Running State = "Running"
	// Blocked: the checks found something to fix first; nothing was changed.
	Blocked State = "Blocked"
	// Stopped: the upgrade ended before its target. Completed steps stay, and the cluster is at a safe point: see Step.
	Stopped State = "Stopped"
	// Done: the cluster is at the target, and passed the final checks.
	Done State = "Done"
)

// Final reports whether a state is final.
func (s State) Final() bool { return s == Blocked || s == Stopped || s == Done }

// Step is one step of an upgrade: the desired state of the cluster while the step is open. Planning and drover-converge apply it like every
// other change.
type Step struct {
	Kind StepKind `json:"kind"`
	// KubernetesVersion of the control plane during this step.
	KubernetesVersion string `json:"kubernetesVersion"`
	// Addons are versions by name that apply during this step, whatever the spec and the release name. Other add-ons have the old release's
	// version before the step of kind Addons, and the new release's from that step on.
	Addons map[string]string `json:"addons,omitempty"`
	// NodesRolledBack is true in steps of a rollback: the nodes already have the images of its target, because a rollback replaces them first.
	NodesRolledBack bool `json:"nodesRolledBack,omitempty"`
	// Started is when the step first began, Opened when the current execution opened it. Converged is when nothing was
	// left to change, though old nodes may still be drained. Ended is when it was completed.
	Started   time.Time `json:"started,omitzero"`
	Opened    time.Time `json:"opened,omitzero"`
	Converged time.Time `json:"converged,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
}

// AppliesRelease reports whether all of the new release applies during this step, and not only what the step updates.
// The cluster is then pinned to that release. In an upgrade this is the step of the nodes, which comes last. In a
// rollback it starts with the control plane: from then on the images of the release that the cluster leaves are newer
// than the control plane, and a new pool must not get them.
func (s Step) AppliesRelease() bool {
	return s.Kind == StepNodes || s.NodesRolledBack && (s.Kind == StepControlPlane || s.Kind == StepAddons)
}

// StepKind is what a step updates.
type StepKind string

// The kinds.
const (
	// StepAddonsFirst updates add-ons to versions that the next Kubernetes version needs and the current one supports.
	StepAddonsFirst StepKind = "AddonsFirst"
	// StepControlPlane updates the control plane by one minor version.
	StepControlPlane StepKind = "ControlPlane"
	// StepAddons updates every add-on to its version, including those on nodes.
	StepAddons StepKind = "Addons"
	// StepNodes replaces the nodes, and applies the rest of the new release, such as templates.
	StepNodes StepKind = "Nodes"
	// StepNodesBack rolls the nodes back to the old images: the first step of a rollback.
	StepNodesBack StepKind = "NodesBack"
)

// Limit is how long a step of this kind may take, from when an execution opens it. It includes the time that stacks have to converge, and
// unrelated changes of the spec. Nodes may take as long as an execution of drover-converge.
func (k StepKind) Limit() time.Duration {
	switch k {
	case StepControlPlane:
		return 4 * time.Hour
	case StepNodes, StepNodesBack:
		return 5 * 24 * time.Hour
	}
	return 3 * time.Hour
}

// Start is an upgrade that planning requests from drover-upgrade.
type Start struct {
	Origin Origin `json:"origin"`
	// Key is the same for every repetition of one request: "spec <version id>", "channel Stable 1.37-1", "at <time>", or that of a
	// RolloutRequest.
	Key string `json:"key"`
	// Release by name. KubernetesVersion is empty if it is the release's. SHA256 is its content; empty if it is that of the specs bucket.
	Release           string `json:"release"`
	SHA256            string `json:"sha256,omitempty"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Rollback reports that the upgrade returns to the release before the last upgrade. Then Release is that release.
	Rollback bool `json:"rollback,omitempty"`
	// Due is when it should begin, if it has a time. Its lateness counts from then.
	Due time.Time `json:"due,omitzero"`
}
