package autoscaling

// What the sweep does to groups: hooks that nobody answers, processes that nobody resumed.

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/drover-run/drover/events"
)

// Hook reads a hook of a group as its event would have it, for every instance; false when there is none.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeLifecycleHooks.html
func (g *Groups) Hook(ctx context.Context, group, hook string) (events.Lifecycle, bool, error) {
	out, err := g.client.DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{
		AutoScalingGroupName: &group, LifecycleHookNames: []string{hook},
	})
	if err != nil {
		return events.Lifecycle{}, false, fmt.Errorf("describing hook %s of %s: %w", hook, group, err)
	}
	for _, h := range out.LifecycleHooks {
		return events.Lifecycle{
			AutoScalingGroupName: group, LifecycleHookName: hook, LifecycleTransition: aws.ToString(h.LifecycleTransition),
			NotificationMetadata: aws.ToString(h.NotificationMetadata),
		}, true, nil
	}
	return events.Lifecycle{}, false, nil
}

// Resume processes of a group that are suspended.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_ResumeProcesses.html
func (g *Groups) Resume(ctx context.Context, group string, processes []string) error {
	_, err := g.client.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: &group, ScalingProcesses: processes})
	if err != nil {
		return fmt.Errorf("resuming processes of %s: %w", group, err)
	}
	return nil
}
