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
	// NotificationMetadata is a JSON object that the pool's template puts into the hook: see HookMetadata.
	NotificationMetadata string `json:"NotificationMetadata,omitempty"`
	// Origin and Destination are EC2, AutoScalingGroup or WarmPool.
	Origin      string `json:"Origin,omitempty"`
	Destination string `json:"Destination,omitempty"`
}

// HookMetadata is what the lifecycle hooks of a pool carry as NotificationMetadata.
type HookMetadata struct {
	Cluster string `json:"cluster"`
	Pool    string `json:"pool"`
	// Drain is how the pool's nodes are drained. The terminate hook carries it.
	Drain *DrainPolicy `json:"drain,omitempty"`
	// Update is how the pool is rolled. Readiness is what its nodes need in addition to Ready. The launch hook carries both.
	Update    *PoolUpdate    `json:"update,omitempty"`
	Readiness *PoolReadiness `json:"readiness,omitempty"`
}

// PoolUpdate is the part of a pool's update strategy that join needs.
type PoolUpdate struct {
	// Strategy is RollingUpdate or InstanceRefresh; "" is RollingUpdate.
	Strategy string `json:"strategy,omitempty"`
	// PauseSeconds is the pause between a new node and the next batch. It is 0 for an instance refresh, where Auto Scaling pauses.
	PauseSeconds int64 `json:"pauseSeconds,omitempty"`
}

// InstanceRefresh is the update strategy that waits for launch hooks instead of signals.
const InstanceRefresh = "InstanceRefresh"

// PoolReadiness is what the nodes of a pool need, in addition to Ready, before they are counted.
type PoolReadiness struct {
	Labels map[string]string `json:"labels,omitempty"`
	// Conditions are the types of conditions that must be True.
	Conditions []string `json:"conditions,omitempty"`
}
