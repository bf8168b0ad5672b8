package events

import (
	"time"

	"github.com/drover-run/drover/shared/names"
)

// DrainRequest asks the drain function to work on a node for one slice of at most 50 seconds. A terminate hook, a spot or rebalance event,
// or an operator names the node.
type DrainRequest struct {
	*Lifecycle
	// InstanceID is set by EC2's own events. With an InstanceAction, the instance ends within two minutes, whatever drover does.
	InstanceID     string `json:"instance-id,omitempty"`
	InstanceAction string `json:"instance-action,omitempty"`
	// An operator sets Cluster, and either Node by name or Instance by id. drain also accepts an instance id in Node.
	Cluster  string `json:"cluster,omitempty"`
	Node     string `json:"node,omitempty"`
	Instance string `json:"instance,omitempty"`
	// Started is when the execution started. Pauses between calls grow from then, and a spot warning's two minutes begin then.
	Started time.Time `json:"started"`
	// Restore only removes what drover set on a node that is no longer drained, such as the cordon.
	Restore bool `json:"restore,omitempty"`
}

// Target is what the request drains: an instance by id, a node as cluster/name, or "" if it names neither.
func (r DrainRequest) Target() string {
	switch {
	case r.Lifecycle != nil:
		return r.EC2InstanceID
	case r.InstanceID != "":
		return r.InstanceID
	case r.Instance != "":
		return r.Instance
	case r.Node == "" || names.IsInstance(r.Node):
		return r.Node
	}
	return r.Cluster + "/" + r.Node
}

// DrainRefused is the outcome of a request that names no node of drover's clusters.
const DrainRefused DrainOutcome = "Refused"

// DrainResult is the progress of a drain, with the node.
type DrainResult struct {
	DrainReport
	Cluster string `json:"cluster,omitempty"`
	Pool    string `json:"pool,omitempty"`
	Node    string `json:"node,omitempty"`
	// WaitSeconds is the pause before the next slice, if something remains.
	WaitSeconds int64 `json:"waitSeconds,omitempty"`
}

// SpotInstance is the detail of EC2's "EC2 Spot Instance Interruption Warning" and "EC2 Instance Rebalance Recommendation".
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
type SpotInstance struct {
	InstanceID string `json:"instance-id"`
	// InstanceAction is what happens in two minutes: terminate, stop or hibernate. It is "" for a recommendation.
	InstanceAction string `json:"instance-action,omitempty"`
}
