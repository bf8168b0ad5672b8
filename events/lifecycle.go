package events

// Lifecycle is the detail of Auto Scaling's "EC2 Instance-launch Lifecycle Action" and "…-terminate …", and the input
// of the join-node machine.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-event-reference.html
type Lifecycle struct {
	LifecycleActionToken string `json:"LifecycleActionToken,omitempty"`
	AutoScalingGroupName string `json:"AutoScalingGroupName"`
	LifecycleHookName    string `json:"LifecycleHookName"`
	EC2InstanceID        string `json:"EC2InstanceId"`
	LifecycleTransition  string `json:"LifecycleTransition,omitempty"`
	// NotificationMetadata is what the pool's template put into the hook: a JSON object, see Pool.
	NotificationMetadata string `json:"NotificationMetadata,omitempty"`
	// Origin and Destination are EC2, AutoScalingGroup or WarmPool.
	Origin      string `json:"Origin,omitempty"`
	Destination string `json:"Destination,omitempty"`
}

// Pool is what a pool's lifecycle hooks carry as NotificationMetadata.
type Pool struct {
	Cluster string `json:"cluster"`
	Pool    string `json:"pool"`
	// Drain is how the pool's nodes are drained, in the terminate hook.
	Drain *DrainPolicy `json:"drain,omitempty"`
	// Update is how the pool is rolled, and Readiness what its nodes must be beside Ready, both in the launch hook.
	Update    *PoolUpdate    `json:"update,omitempty"`
	Readiness *PoolReadiness `json:"readiness,omitempty"`
}

// PoolUpdate is how a pool is rolled, as far as new nodes have to know.
type PoolUpdate struct {
	// Strategy is RollingUpdate or InstanceRefresh; "" is RollingUpdate.
	Strategy string `json:"strategy,omitempty"`
	// PauseSeconds are between a new node and the next batch; none in an instance refresh, in which Auto Scaling itself pauses.
	PauseSeconds int64 `json:"pauseSeconds,omitempty"`
}

// InstanceRefresh is the update strategy that goes by launch hooks instead of signals.
const InstanceRefresh = "InstanceRefresh"

// PoolReadiness is what the nodes of a pool must be, beside Ready, before they count.
type PoolReadiness struct {
	Labels map[string]string `json:"labels,omitempty"`
	// Conditions are the types of conditions that must be True.
	Conditions []string `json:"conditions,omitempty"`
}
