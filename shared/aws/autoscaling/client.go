package autoscaling

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/drover-run/drover/shared/aws/internal/call"
)

// operation is one operation of Auto Scaling's client.
type operation[In, Out any] = call.Operation[In, Out, autoscaling.Options]

// client has the operations of Auto Scaling that this package needs: see call.Operation.
type client struct {
	CompleteLifecycleAction        operation[autoscaling.CompleteLifecycleActionInput, autoscaling.CompleteLifecycleActionOutput]
	DescribeAutoScalingGroups      describeAutoScalingGroups
	DescribeAutoScalingInstances   operation[autoscaling.DescribeAutoScalingInstancesInput, autoscaling.DescribeAutoScalingInstancesOutput]
	DescribeLifecycleHooks         operation[autoscaling.DescribeLifecycleHooksInput, autoscaling.DescribeLifecycleHooksOutput]
	DescribeScalingActivities      describeScalingActivities
	RecordLifecycleActionHeartbeat operation[
		autoscaling.RecordLifecycleActionHeartbeatInput, autoscaling.RecordLifecycleActionHeartbeatOutput,
	]
	ResumeProcesses   operation[autoscaling.ResumeProcessesInput, autoscaling.ResumeProcessesOutput]
	SetInstanceHealth operation[autoscaling.SetInstanceHealthInput, autoscaling.SetInstanceHealthOutput]
}

func newClient(c *autoscaling.Client) client {
	return client{
		CompleteLifecycleAction: c.CompleteLifecycleAction, DescribeAutoScalingGroups: c.DescribeAutoScalingGroups,
		DescribeAutoScalingInstances: c.DescribeAutoScalingInstances, DescribeLifecycleHooks: c.DescribeLifecycleHooks,
		DescribeScalingActivities: c.DescribeScalingActivities, RecordLifecycleActionHeartbeat: c.RecordLifecycleActionHeartbeat,
		ResumeProcesses: c.ResumeProcesses, SetInstanceHealth: c.SetInstanceHealth,
	}
}

// describeAutoScalingGroups is what the paginator of DescribeAutoScalingGroups needs of a client.
type describeAutoScalingGroups operation[autoscaling.DescribeAutoScalingGroupsInput, autoscaling.DescribeAutoScalingGroupsOutput]

func (d describeAutoScalingGroups) DescribeAutoScalingGroups(
	ctx context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, options ...func(*autoscaling.Options),
) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	return d(ctx, in, options...)
}

// describeScalingActivities is what the paginator of DescribeScalingActivities needs of a client.
type describeScalingActivities operation[autoscaling.DescribeScalingActivitiesInput, autoscaling.DescribeScalingActivitiesOutput]

func (d describeScalingActivities) DescribeScalingActivities(
	ctx context.Context, in *autoscaling.DescribeScalingActivitiesInput, options ...func(*autoscaling.Options),
) (*autoscaling.DescribeScalingActivitiesOutput, error) {
	return d(ctx, in, options...)
}
