package events

import "time"

// What drover tells those who listen, on its own event bus: docs/notifications.md is for them. Fields are only ever added.

// Source of drover's events, and their detail-types.
const (
	Source = "drover"
	// ClusterStatusChange: a cluster came to another phase, or its verdict has another reason.
	ClusterStatusChange = "Cluster Status Change"
	// ClusterSpecRejected: the newest upload of a spec cannot be used; the cluster stays what its last good one says.
	ClusterSpecRejected = "Cluster Spec Rejected"
	// ClusterDrift: a cluster is no longer what it was made, in another way than before, or is so again.
	ClusterDrift = "Cluster Drift"
	// ClusterNodeChange: a node keeps people waiting: its drain is blocked, or it did not join.
	ClusterNodeChange = "Cluster Node Change"
	// ReleaseVerdict: a release or the channels were looked at, and what was found is new.
	ReleaseVerdict = "Release Verdict"
	// UploadUnread: an object of the specs bucket looks like a spec, and drover does not read it.
	UploadUnread = "Upload Not Read"
	// ClusterUpgradeChange: an upgrade is scheduled, or to begin at another time, or comes to another phase or step.
	ClusterUpgradeChange = "Cluster Upgrade Change"
)

// StatusChange is the detail of ClusterStatusChange.
type StatusChange struct {
	Cluster string `json:"cluster"`
	// Phase is one of status.Phase; PreviousPhase is empty for a cluster that was not known.
	Phase         string `json:"phase"`
	PreviousPhase string `json:"previousPhase,omitempty"`
	// Reason of the condition Converged: one word, which docs/runbook.md explains.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// SpecVersion is the S3 version of the spec that the phase is the verdict on.
	SpecVersion       string `json:"specVersion,omitempty"`
	Release           string `json:"release,omitempty"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Execution that converges, or converged last: a Step Functions ARN.
	Execution string `json:"execution,omitempty"`
}

// SpecRejected is the detail of ClusterSpecRejected.
type SpecRejected struct {
	Cluster string `json:"cluster"`
	// SpecVersion is the S3 version that cannot be used; empty when the spec was deleted.
	SpecVersion string `json:"specVersion,omitempty"`
	Reason      string `json:"reason"`
	Message     string `json:"message"`
}

// Drift is the detail of ClusterDrift.
type Drift struct {
	Cluster string `json:"cluster"`
	// InSync says that nothing is found any more.
	InSync bool `json:"inSync"`
	// Message lists what the audit found, one a line.
	Message string `json:"message,omitempty"`
}

// UpgradeChange is the detail of ClusterUpgradeChange.
type UpgradeChange struct {
	Cluster string `json:"cluster"`
	// Phase is Scheduled, Delayed, Missed, Cancelled, or one of upgrade.State.
	Phase string `json:"phase"`
	// From and To are releases; Versions are the control plane's.
	From        string `json:"from,omitempty"`
	FromVersion string `json:"fromVersion,omitempty"`
	To          string `json:"to,omitempty"`
	ToVersion   string `json:"toVersion,omitempty"`
	// Origin is who asked: Spec, Channel, At, Hand or Rollback.
	Origin string `json:"origin,omitempty"`
	// At is when it is to begin, of one that is scheduled.
	At *time.Time `json:"at,omitempty"`
	// Step is what is being made, of Running.
	Step string `json:"step,omitempty"`
	// Message says what it waits for, why it stopped, and what is next.
	Message   string `json:"message,omitempty"`
	Execution string `json:"execution,omitempty"`
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
	// Blocked are pods that cannot leave now, with what is in their way; not all when there are many.
	Blocked []BlockedPod `json:"blocked,omitempty"`
}

// Verdict is the detail of ReleaseVerdict.
type Verdict struct {
	// Release by name; "channels" are the channels.
	Release string `json:"release"`
	// Version is the S3 version that was looked at; empty when the object was deleted.
	Version string `json:"version,omitempty"`
	// Usable says that nothing was found that keeps clusters from using it.
	Usable  bool   `json:"usable"`
	Message string `json:"message,omitempty"`
	// Checks that found something, by name: docs/runbook.md explains each.
	Checks []string `json:"checks,omitempty"`
}

// Unread is the detail of UploadUnread.
type Unread struct {
	Key string `json:"key"`
	// DidYouMean is the key that drover would read.
	DidYouMean string `json:"didYouMean,omitempty"`
}
