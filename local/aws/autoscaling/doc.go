// Package autoscaling simulates Amazon EC2 Auto Scaling in the local account: groups of instances of a launch template that are kept at
// their desired capacity, with lifecycle hooks, and the CloudFormation resource type AWS::AutoScaling::AutoScalingGroup.
//
// Supported:
//   - Groups of one launch template or of a mixed instances policy (instance types in order, on-demand base and percentage), spread
//     over the zones of their subnets.
//   - Launch and termination hooks with heartbeats, default results, and the limit of 48 hours or 100 heartbeats.
//   - Replacement of unhealthy and vanished instances. Scale-in by termination policies and instance protection.
//   - Rebalancing of zones after the subnets of a group changed: one instance at a time is launched, then another terminated.
//   - Suspended processes, instance refresh (rolling), activities, tags, and the events on EventBridge.
//   - IAM with resource ARNs and condition keys.
//
// Launching and terminating are simulated work of local/aws/ec2. Hooks run in real time, because drover acts during them.
//
// CloudFormation:
//   - A new group is complete when its instances are in service, or else fails with "Group did not stabilize". With a
//     CreationPolicy, it is complete when the instances have sent their signals.
//   - AutoScalingRollingUpdate replaces obsolete instances in batches, AutoScalingInstanceRefresh by an instance refresh. AWS does
//     not document whether they wait for termination hooks, and users report both. questions.TerminateHooks selects the
//     behavior, questions.OtherSignals which signals a rolling update counts, questions.OtherInstances which updates replace
//     instances, and questions.RefreshRollback how a cancelled update ends its refresh.
//   - Other subnets replace all instances, if the group has the policy AutoScalingRollingUpdate.
//   - AWS does not document what a cancelled update waits for. Here its refresh ends at once. By default, CancelInstanceRefresh
//     itself waits for launches and terminations in flight.
//   - A rollback uses the previous template's policy and parameters, and replaces only the instances that the update launched. It
//     keeps a desired capacity that the update raised, unless the template sets one:
//     https://github.com/guardian/testing-asg-rolling-update/tree/main/observations
//
// Not supported: rebalancing of zones that are unbalanced for another reason, launch configurations, load balancers, target groups,
// scaling policies, scheduled actions, warm pools, weights and attribute-based instance types, notifications to SNS, standby, zonal
// shift, and the update policies AutoScalingReplacingUpdate and AutoScalingScheduledAction. Cooldowns, the health check grace period,
// the maximum instance lifetime, the maintenance policy, capacity rebalancing and metrics collection are stored and returned without
// effect: groups here do not scale, age or run out of spot capacity by themselves.
package autoscaling
