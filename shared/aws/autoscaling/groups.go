// Package autoscaling adapts Auto Scaling. It reads the groups and hooks of drover's pools and completes lifecycle actions.
package autoscaling

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
)

// Groups are the Auto Scaling groups of one account and region.
type Groups struct {
	client client
}

// New returns the groups of an account.
func New(client *autoscaling.Client) *Groups { return &Groups{newClient(client)} }

// Complete ends an instance's wait at a hook. waited is false if nothing waits there: the action was completed or timed out, or the
// instance no longer exists.
func (g *Groups) Complete(ctx context.Context, hook events.Lifecycle, result pool.HookResult) (waited bool, err error) {
	_, err = g.client.CompleteLifecycleAction(ctx, &autoscaling.CompleteLifecycleActionInput{
		AutoScalingGroupName: &hook.AutoScalingGroupName, LifecycleHookName: &hook.LifecycleHookName,
		InstanceId: &hook.EC2InstanceID, LifecycleActionResult: aws.String(string(result)),
	})
	if inactive(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("completing hook %s of %s for %s: %w", hook.LifecycleHookName, hook.AutoScalingGroupName,
			hook.EC2InstanceID, err)
	}
	return true, nil
}

// State returns the lifecycle state of an instance. It is "" if the instance is in no group.
func (g *Groups) State(ctx context.Context, instance string) (string, error) {
	out, err := g.client.DescribeAutoScalingInstances(ctx, &autoscaling.DescribeAutoScalingInstancesInput{InstanceIds: []string{instance}})
	if err != nil {
		return "", fmt.Errorf("describing instance %s: %w", instance, err)
	}
	for _, i := range out.AutoScalingInstances {
		return aws.ToString(i.LifecycleState), nil
	}
	return "", nil
}

// inactive reports that nothing waits at a hook, or that its group no longer exists. Auto Scaling has no error code of its own for
// either.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CompleteLifecycleAction.html
func inactive(err error) bool {
	return fault.Code(err) == "ValidationError" &&
		(strings.Contains(err.Error(), "No active Lifecycle Action") || strings.Contains(err.Error(), "AutoScalingGroup name not found"))
}

// Heartbeat restarts the timeout of an instance's wait at a hook, up to 48 hours in all. waited is false if nothing waits there.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RecordLifecycleActionHeartbeat.html
func (g *Groups) Heartbeat(ctx context.Context, hook events.Lifecycle) (waited bool, err error) {
	_, err = g.client.RecordLifecycleActionHeartbeat(ctx, &autoscaling.RecordLifecycleActionHeartbeatInput{
		AutoScalingGroupName: &hook.AutoScalingGroupName, LifecycleHookName: &hook.LifecycleHookName, InstanceId: &hook.EC2InstanceID,
	})
	if inactive(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("heartbeat of hook %s of %s for %s: %w", hook.LifecycleHookName, hook.AutoScalingGroupName,
			hook.EC2InstanceID, err)
	}
	return true, nil
}

// PoolOfInstance returns the pool of an instance, as deployed. It is empty if the instance belongs to no pool of drover.
func (g *Groups) PoolOfInstance(ctx context.Context, instance string) (events.HookMetadata, error) {
	group, err := g.groupOf(ctx, instance)
	if err != nil || !strings.HasPrefix(group, names.Prefix) {
		return events.HookMetadata{}, err
	}
	return g.PoolOfGroup(ctx, group)
}

// groupOf returns the group of an instance, or "".
func (g *Groups) groupOf(ctx context.Context, instance string) (string, error) {
	out, err := g.client.DescribeAutoScalingInstances(ctx, &autoscaling.DescribeAutoScalingInstancesInput{InstanceIds: []string{instance}})
	if err != nil {
		return "", fmt.Errorf("describing instance %s: %w", instance, err)
	}
	for _, i := range out.AutoScalingInstances {
		return aws.ToString(i.AutoScalingGroupName), nil
	}
	return "", nil
}

// PoolOfGroup reads a group's pool from its terminate hook, as deployed. It is empty if there is no such hook or group.
func (g *Groups) PoolOfGroup(ctx context.Context, group string) (events.HookMetadata, error) {
	var deployed events.HookMetadata
	out, err := g.client.DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{
		AutoScalingGroupName: &group, LifecycleHookNames: []string{pool.TerminateHook},
	})
	if fault.Code(err) == "ValidationError" { // no such group
		return deployed, nil
	}
	if err != nil {
		return deployed, fmt.Errorf("describing the hooks of %s: %w", group, err)
	}
	for _, hook := range out.LifecycleHooks {
		if err := json.Unmarshal([]byte(aws.ToString(hook.NotificationMetadata)), &deployed); err != nil {
			return events.HookMetadata{}, fmt.Errorf("hook %s of %s does not name its pool: %q", pool.TerminateHook, group,
				aws.ToString(hook.NotificationMetadata))
		}
	}
	return deployed, nil
}
