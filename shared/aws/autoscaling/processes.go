package autoscaling

// What sweep needs for missed hooks and for processes that stayed suspended.

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/drover-run/drover/events"
)

// Hook returns a hook of a group in the form of its event, without an instance.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeLifecycleHooks.html
func (g *Groups) Hook(ctx context.Context, group, hook string) (lifecycle events.Lifecycle, found bool, err error) {
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

// Resume resumes suspended processes of a group.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_ResumeProcesses.html
func (g *Groups) Resume(ctx context.Context, group string, processes []string) error {
	_, err := g.client.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: &group, ScalingProcesses: processes})
	if err != nil {
		return fmt.Errorf("resuming processes of %s: %w", group, err)
	}
	return nil
}
