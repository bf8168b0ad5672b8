package autoscaling

// Current groups: their sizes, which others than the stacks also change, and their instances.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
)

// Describe returns a group by name.
func (g *Groups) Describe(ctx context.Context, name string) (group pool.Group, found bool, err error) {
	groups, err := g.DescribeNamed(ctx, name)
	if err != nil || len(groups) == 0 {
		return pool.Group{}, false, err
	}
	return groups[0], true, nil
}

// DescribeNamed returns groups by name, in one call for each 50. Groups that do not exist are left out.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeAutoScalingGroups.html
func (g *Groups) DescribeNamed(ctx context.Context, groupNames ...string) ([]pool.Group, error) {
	var found []pool.Group
	for chunk := range slices.Chunk(groupNames, maxNames) {
		out, err := g.client.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: chunk})
		if err != nil {
			return nil, fmt.Errorf("describing group %s: %w", strings.Join(chunk, ", "), err)
		}
		for _, group := range out.AutoScalingGroups {
			found = append(found, read(group))
		}
	}
	return found, nil
}

// maxNames is how many groups one call describes: the default of MaxRecords.
const maxNames = 50

// LaunchFailure returns why and when the newest launch of a group failed. why is "" if the newest launch succeeded, or none has ended.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeScalingActivities.html (sorted by start, newest first)
func (g *Groups) LaunchFailure(ctx context.Context, name string) (why string, at time.Time, err error) {
	out, err := g.client.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{
		AutoScalingGroupName: &name, MaxRecords: aws.Int32(20),
	})
	if err != nil {
		return "", at, fmt.Errorf("describing the activities of group %s: %w", name, err)
	}
	for _, activity := range out.Activities {
		if !strings.HasPrefix(aws.ToString(activity.Description), launchPrefix) {
			continue
		}
		switch activity.StatusCode {
		case types.ScalingActivityStatusCodeFailed, types.ScalingActivityStatusCodeCancelled:
			return aws.ToString(activity.StatusMessage), aws.ToTime(activity.EndTime), nil
		case types.ScalingActivityStatusCodeSuccessful:
			return "", at, nil
		}
	}
	return "", at, nil
}

// LaunchFailureReason returns AWS's reason why the newest launch of a group in a period failed. The period includes since and
// excludes until. A zero until means no limit. The reason is "" if that launch succeeded or is in flight, or if there
// was none. An instance that was abandoned at its launch hook does not count: drover did that and records it. The
// group may have been deleted.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html
func (g *Groups) LaunchFailureReason(ctx context.Context, name string, since, until time.Time) (string, error) {
	pages := autoscaling.NewDescribeScalingActivitiesPaginator(g.client.DescribeScalingActivities, &autoscaling.DescribeScalingActivitiesInput{
		AutoScalingGroupName: &name, IncludeDeletedGroups: aws.Bool(true), MaxRecords: aws.Int32(100),
	})
	var newest types.Activity
	for done := false; pages.HasMorePages() && !done; {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", fmt.Errorf("describing the activities of group %s: %w", name, err)
		}
		for _, activity := range page.Activities { // those in flight first, then the newest first
			began, ended := aws.ToTime(activity.StartTime), activity.EndTime != nil
			within := !began.Before(since) && (until.IsZero() || began.Before(until))
			if done = ended && began.Before(since); done {
				break
			}
			if !within || !strings.HasPrefix(aws.ToString(activity.Description), launchPrefix) {
				continue
			}
			if newest.StartTime == nil || began.After(*newest.StartTime) {
				newest = activity
			}
			if done = ended; done {
				break
			}
		}
	}
	why := aws.ToString(newest.StatusMessage)
	failed := newest.StatusCode == types.ScalingActivityStatusCodeFailed || newest.StatusCode == types.ScalingActivityStatusCodeCancelled
	if !failed || strings.Contains(why, "Lifecycle Action") {
		return "", nil
	}
	return why, nil
}

// Unchanged reports whether a group has launched and terminated no instance since a time. An activity that is in flight counts, whenever it
// began. The group may have been deleted.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeScalingActivities.html
func (g *Groups) Unchanged(ctx context.Context, name string, since time.Time) (bool, error) {
	out, err := g.client.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{
		AutoScalingGroupName: &name, IncludeDeletedGroups: aws.Bool(true), MaxRecords: aws.Int32(100),
	})
	if err != nil {
		return false, fmt.Errorf("describing the activities of group %s: %w", name, err)
	}
	return !slices.ContainsFunc(out.Activities, func(a types.Activity) bool { // those in flight first, then the newest first
		return a.EndTime == nil || !aws.ToTime(a.StartTime).Before(since.Truncate(time.Second))
	}), nil
}

// ActivityStarts returns when the newest activity of each of these instances began: since when it has been launching
// or terminating. It leaves out instances that none of the newest hundred activities names. Activities in flight come
// first.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeScalingActivities.html
func (g *Groups) ActivityStarts(ctx context.Context, name string, instances []string) (map[string]time.Time, error) {
	out, err := g.client.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{
		AutoScalingGroupName: &name, MaxRecords: aws.Int32(100),
	})
	if err != nil {
		return nil, fmt.Errorf("describing the activities of group %s: %w", name, err)
	}
	began := map[string]time.Time{}
	for _, activity := range out.Activities {
		words := strings.Fields(aws.ToString(activity.Description)) // such as "Terminating EC2 instance: i-0123456789abcdef0"
		if len(words) == 0 || !slices.Contains(instances, words[len(words)-1]) {
			continue
		}
		instance := words[len(words)-1]
		if start := aws.ToTime(activity.StartTime); start.After(began[instance]) {
			began[instance] = start
		}
	}
	return began, nil
}

// launchPrefix starts the description of an activity that launches an instance.
const launchPrefix = "Launching "

// All returns the groups of drover's pools. One call returns a hundred.
func (g *Groups) All(ctx context.Context) ([]pool.Group, error) {
	var all []pool.Group
	pages := autoscaling.NewDescribeAutoScalingGroupsPaginator(g.client.DescribeAutoScalingGroups, &autoscaling.DescribeAutoScalingGroupsInput{
		MaxRecords: aws.Int32(100),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("describing groups: %w", err)
		}
		for _, group := range page.AutoScalingGroups {
			if strings.HasPrefix(aws.ToString(group.AutoScalingGroupName), names.Prefix) {
				all = append(all, read(group))
			}
		}
	}
	return all, nil
}

// MarkUnhealthy makes Auto Scaling replace an instance, which passes its terminate hook. An instance that no longer exists, or is
// terminating, is no error.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetInstanceHealth.html
func (g *Groups) MarkUnhealthy(ctx context.Context, instance string) error {
	_, err := g.client.SetInstanceHealth(ctx, &autoscaling.SetInstanceHealthInput{
		InstanceId: &instance, HealthStatus: aws.String("Unhealthy"),
	})
	if err != nil && fault.Code(err) != "ValidationError" {
		return fmt.Errorf("marking instance %s as unhealthy: %w", instance, err)
	}
	return nil
}

func read(in types.AutoScalingGroup) pool.Group {
	group := pool.Group{
		Name: aws.ToString(in.AutoScalingGroupName), Min: int(aws.ToInt32(in.MinSize)), Max: int(aws.ToInt32(in.MaxSize)),
		Desired: int(aws.ToInt32(in.DesiredCapacity)), Zones: in.AvailabilityZones,
	}
	template := in.LaunchTemplate
	if in.MixedInstancesPolicy != nil && in.MixedInstancesPolicy.LaunchTemplate != nil {
		template = in.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification
		for _, override := range in.MixedInstancesPolicy.LaunchTemplate.Overrides {
			group.Types = append(group.Types, aws.ToString(override.InstanceType))
		}
	}
	if template != nil {
		group.TemplateVersion = aws.ToString(template.Version)
	}
	for _, i := range in.Instances {
		instance := pool.Instance{
			ID: aws.ToString(i.InstanceId), State: string(i.LifecycleState), Zone: aws.ToString(i.AvailabilityZone),
			Type: aws.ToString(i.InstanceType),
		}
		if i.LaunchTemplate != nil {
			instance.TemplateVersion = aws.ToString(i.LaunchTemplate.Version)
		}
		group.Instances = append(group.Instances, instance)
	}
	if subnets := aws.ToString(in.VPCZoneIdentifier); subnets != "" {
		group.Subnets = strings.Split(subnets, ",")
	}
	for _, p := range in.SuspendedProcesses {
		process := aws.ToString(p.ProcessName)
		group.Suspended = append(group.Suspended, process)
		if at, ok := strings.CutPrefix(aws.ToString(p.SuspensionReason), suspendedAtPrefix); ok {
			if at, err := time.Parse(time.RFC3339, at); err == nil {
				if group.SuspendedAt == nil {
					group.SuspendedAt = map[string]time.Time{}
				}
				group.SuspendedAt[process] = at
			}
		}
	}
	return group
}

// suspendedAtPrefix starts the reason of every suspension. The reason contains only the time. Its form is not
// documented, but other software reads it too.
// https://github.com/Netflix/eureka/blob/master/eureka-core/src/main/java/com/netflix/eureka/aws/AwsAsgUtil.java
const suspendedAtPrefix = "User suspended at "
