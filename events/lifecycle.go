package events

import "github.com/drover-run/drover/shared/drain"

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
	Drain *drain.Policy `json:"drain,omitempty"`
}
