// Package autoscaling is the local account's EC2 Auto Scaling: groups of instances of a launch template that are kept at
// their desired capacity, with lifecycle hooks, and the CloudFormation resource type AWS::AutoScaling::AutoScalingGroup.
//
// What is there: groups of one launch template or a mixed instances policy (instance types in order, on-demand base and
// percentage), spread over the zones of their subnets; launch and termination hooks with heartbeats, default results and
// the cap of 48 hours or 100 heartbeats; replacement of unhealthy and vanished instances; scale-in by termination
// policies and instance protection; suspended processes; instance refresh (rolling); activities; tags; the events on
// EventBridge; IAM with resource ARNs and condition keys. Launching and terminating are simulated work of local/aws/ec2;
// hooks run in real time, because drover acts within them.
//
// What CloudFormation does with a group: it is complete once its instances are in service ("Group did not stabilize"
// otherwise) or, with a CreationPolicy, once they have signalled; AutoScalingRollingUpdate replaces obsolete instances
// in batches, AutoScalingInstanceRefresh by an instance refresh. Whether either waits for termination hooks is not
// documented and reported both ways: Config.WaitForTerminateHooks plays either. Nor is it documented what an update that is
// cancelled waits for: here its refresh ends at once, and CancelInstanceRefresh itself waits for launches and terminations
// in flight unless it is told not to. A rollback goes by the previous template's
// policy and parameters, replaces only what the update had launched, and leaves a desired capacity that the update had
// raised as it is, unless the template has one: https://github.com/guardian/testing-asg-rolling-update/tree/main/observations
//
// What is not: launch configurations, load balancers, target groups, scaling policies, scheduled actions, warm pools,
// weights and attribute-based instance types, notifications to SNS, standby, zonal shift, and the update policies
// AutoScalingReplacingUpdate and AutoScalingScheduledAction. Cooldowns, the health check grace period, the maximum
// instance lifetime, the maintenance policy, capacity rebalancing and metrics collection are kept and shown, and have no
// effect: nothing here scales, ages or runs out of spot capacity on its own.
package autoscaling
