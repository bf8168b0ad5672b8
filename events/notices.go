package events

import "time"

// Notifications that drover sends to its own event bus. docs/notifications.md describes them for their receivers. Fields are only ever
// added.

// Source of drover's events, and their detail-types.
const (
	Source = "drover"
	// ClusterStatusChange: a cluster has another phase, or its verdict has another reason.
	ClusterStatusChange = "Cluster Status Change"
	// ClusterSpecRejected: the newest spec cannot be used. The cluster stays as its last good spec says.
	ClusterSpecRejected = "Cluster Spec Rejected"
	// ClusterDrift: a cluster drifted in a new way, or is in sync again.
	ClusterDrift = "Cluster Drift"
	// ClusterNodeChange: a node needs attention. Its drain is blocked, it is unreachable, or it did not join.
	ClusterNodeChange = "Cluster Node Change"
	// ReleaseVerdict: a release or the channels were checked, with a new result.
	ReleaseVerdict = "Release Verdict"
	// UploadIgnored: an object of the specs bucket looks like a spec, and drover does not read it.
	UploadIgnored = "Upload Ignored"
	// ClusterUpgradeChange: an upgrade is scheduled or rescheduled, or has another phase or step.
	ClusterUpgradeChange = "Cluster Upgrade Change"
	// RolloutChange: a rollout was planned, its run changed, or a gate waits for an approval.
	RolloutChange = "Rollout Change"
)

// StatusChange is the detail of ClusterStatusChange.
type StatusChange struct {
	Cluster string `json:"cluster"`
	// Phase is one of status.Phase. PreviousPhase is empty for a new cluster.
	Phase         string `json:"phase"`
	PreviousPhase string `json:"previousPhase,omitempty"`
	// Reason of the condition Converged, in one word. docs/runbook.md explains each.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// SpecVersion is the S3 version of the spec to which the phase applies.
	SpecVersion       string `json:"specVersion,omitempty"`
	Release           string `json:"release,omitempty"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Execution is the ARN of the current converge execution, or of the last one.
	Execution string `json:"execution,omitempty"`
}

// SpecRejected is the detail of ClusterSpecRejected.
type SpecRejected struct {
	Cluster string `json:"cluster"`
	// SpecVersion is the S3 version of the rejected spec. It is empty if the spec was deleted.
	SpecVersion string `json:"specVersion,omitempty"`
	Reason      string `json:"reason"`
	Message     string `json:"message"`
}

// Drift is the detail of ClusterDrift.
type Drift struct {
	Cluster string `json:"cluster"`
	// InSync reports that the last audit found no drift.
	InSync bool `json:"inSync"`
	// Message lists what the audit found, one finding a line.
	Message string `json:"message,omitempty"`
}

// UpgradeChange is the detail of ClusterUpgradeChange.
type UpgradeChange struct {
	Cluster string `json:"cluster"`
	// Phase is Scheduled, Delayed, Missed, Cancelled, or one of upgrade.State.
	Phase string `json:"phase"`
	// From and To are releases. FromVersion and ToVersion are versions of the control plane.
	From        string `json:"from,omitempty"`
	FromVersion string `json:"fromVersion,omitempty"`
	To          string `json:"to,omitempty"`
	ToVersion   string `json:"toVersion,omitempty"`
	// Origin is what requested the upgrade: Spec, Channel, At, Rollout, Command or Rollback.
	Origin string `json:"origin,omitempty"`
	// At is when a scheduled upgrade begins.
	At *time.Time `json:"at,omitempty"`
	// Step is the step in flight while the phase is Running.
	Step string `json:"step,omitempty"`
	// Message is what the upgrade waits for or why it stopped, and what follows.
	Message   string `json:"message,omitempty"`
	Execution string `json:"execution,omitempty"`
}

// RolloutEvent is the detail of RolloutChange.
type RolloutEvent struct {
	Rollout string `json:"rollout"`
	// Event is one of rollout.Event.
	Event string `json:"event"`
	// Run is the number of the run; 0 if no run is concerned. Plan is the digest of its plan, or of the newest plan.
	Run  int64  `json:"run,omitempty"`
	Plan string `json:"plan,omitempty"`
	// Stage and Cluster are what the change concerns; empty if it is the whole run.
	Stage   string `json:"stage,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// Reason of the member or of the halt, the decision that paused the run, or the state in which it ended.
	Reason string `json:"reason,omitempty"`
	// Message is what happened, and what to do then.
	Message string `json:"message"`
	// Command is what to enter then.
	Command string `json:"command,omitempty"`
}

// NodeChange is the detail of ClusterNodeChange.
type NodeChange struct {
	Cluster  string `json:"cluster"`
	Pool     string `json:"pool,omitempty"`
	Node     string `json:"node,omitempty"`
	Instance string `json:"instance"`
	// State is one of status.NodeState.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Blocked are pods that cannot leave now, with the reasons. The list may be cut short.
	Blocked []BlockedPod `json:"blocked,omitempty"`
}

// Verdict is the detail of ReleaseVerdict.
type Verdict struct {
	// Release is the name of a release, or "channels".
	Release string `json:"release"`
	// Version is the S3 version that was checked. It is empty if the object was deleted.
	Version string `json:"version,omitempty"`
	// Usable reports that clusters can use the release.
	Usable  bool   `json:"usable"`
	Message string `json:"message,omitempty"`
	// Checks are the names of the checks that found something. docs/runbook.md explains each.
	Checks []string `json:"checks,omitempty"`
}

// IgnoredUpload is the detail of UploadIgnored.
type IgnoredUpload struct {
	Key string `json:"key"`
	// DidYouMean is the key that drover would read instead.
	DidYouMean string `json:"didYouMean,omitempty"`
}
