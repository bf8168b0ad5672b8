package events

import "time"

// DrainRequest asks the drain function to work on a node for up to a minute. Which node, one of these says: a terminate hook,
// a spot or rebalance event, or somebody by hand.
type DrainRequest struct {
	*Lifecycle
	// InstanceID of EC2's own events. With an InstanceAction the instance ends within two minutes, whatever anybody does.
	InstanceID     string `json:"instance-id,omitempty"`
	InstanceAction string `json:"instance-action,omitempty"`
	// Cluster, and Node by name or Instance by id, by hand. Who says Node may mean its instance.
	Cluster  string `json:"cluster,omitempty"`
	Node     string `json:"node,omitempty"`
	Instance string `json:"instance,omitempty"`
	// Started is when the execution started: waits between calls grow from then, and the two minutes of a spot warning are counted.
	Started time.Time `json:"started"`
	// Release only gives back what a node that is not drained any more should not keep.
	Release bool `json:"release,omitempty"`
}

// DrainRefused is the outcome of a request that names no node of drover's clusters, beside those of DrainOutcome.
const DrainRefused DrainOutcome = "Refused"

// DrainResult says how far the drain is.
type DrainResult struct {
	DrainReport
	Cluster string `json:"cluster,omitempty"`
	Pool    string `json:"pool,omitempty"`
	Node    string `json:"node,omitempty"`
	// WaitSeconds until it is worth going on, when something remains.
	WaitSeconds int64 `json:"waitSeconds,omitempty"`
}

// SpotInstance is the detail of EC2's "EC2 Spot Instance Interruption Warning" and "EC2 Instance Rebalance Recommendation".
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
type SpotInstance struct {
	InstanceID string `json:"instance-id"`
	// InstanceAction is what comes in two minutes (terminate, stop, hibernate); "" for a recommendation.
	InstanceAction string `json:"instance-action,omitempty"`
}
