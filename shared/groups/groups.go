// Package groups is Auto Scaling: lifecycle hooks of drover's pools.
package groups

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
)

// Groups is Auto Scaling in one account and region.
type Groups struct{ client *autoscaling.Client }

// New returns the groups of an account.
func New(client *autoscaling.Client) *Groups { return &Groups{client} }

// Result that completes a lifecycle action.
type Result string

// The results. On launch, ABANDON has the instance replaced.
const (
	Continue Result = "CONTINUE"
	Abandon  Result = "ABANDON"
)

// Complete ends an instance's wait at a hook. It returns false when nothing waits there any more: the action was
// completed already, timed out, or the instance is gone.
func (g *Groups) Complete(ctx context.Context, hook events.Lifecycle, result Result) (bool, error) {
	_, err := g.client.CompleteLifecycleAction(ctx, &autoscaling.CompleteLifecycleActionInput{
		AutoScalingGroupName: &hook.AutoScalingGroupName, LifecycleHookName: &hook.LifecycleHookName,
		InstanceId: &hook.EC2InstanceID, LifecycleActionResult: aws.String(string(result)),
	})
	// Auto Scaling has no code of its own for it.
	// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CompleteLifecycleAction.html
	if fault.Code(err) == "ValidationError" && strings.Contains(err.Error(), "No active Lifecycle Action") {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("completing hook %s of %s for %s: %w", hook.LifecycleHookName, hook.AutoScalingGroupName, hook.EC2InstanceID, err)
	}
	return true, nil
}

// Waiting says whether an instance still waits at a launch hook.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
func (g *Groups) Waiting(ctx context.Context, instance string) (bool, error) {
	out, err := g.client.DescribeAutoScalingInstances(ctx, &autoscaling.DescribeAutoScalingInstancesInput{InstanceIds: []string{instance}})
	if err != nil {
		return false, fmt.Errorf("describing instance %s: %w", instance, err)
	}
	for _, i := range out.AutoScalingInstances {
		if aws.ToString(i.LifecycleState) == "Pending:Wait" {
			return true, nil
		}
	}
	return false, nil
}
