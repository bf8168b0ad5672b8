package autoscaling_test

// The API through the SDK's client, over HTTP, with simulated work that takes no time.

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
)

// newClient is a client of an account with one subnet and one launch template.
func newClient(t *testing.T) (c *sdk.Client, subnet, template string) {
	t.Helper()
	fast := &clock.Clock{Speed: 1e9}
	identities := iam.New("111122223333", "us-east-1", fast)
	instances := ec2.New(ec2.Config{Account: "111122223333", Region: "us-east-1", Clock: fast, Roles: identities})
	groups := autoscaling.New(autoscaling.Config{
		Account: "111122223333", Region: "us-east-1", Clock: fast, Instances: instances, Roles: identities,
	})
	e := endpoint.New(identities, nil)
	e.Handle(groups.Wire())
	server := httptest.NewServer(e)
	t.Cleanup(func() { server.Close(); groups.Close(); instances.Close() })
	admin, key := identities.Admin()
	made := func(typ string, properties map[string]any) string {
		result, err := instances.Resources()[typ].Create(t.Context(), resource.Request{
			StackID: "s", LogicalID: "It", Properties: properties, Caller: admin,
		})
		require.NoError(t, err)
		return result.PhysicalID
	}
	vpc := made("AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/16"})
	subnet = made("AWS::EC2::Subnet", map[string]any{"VpcId": vpc, "CidrBlock": "10.0.0.0/24"})
	template = made("AWS::EC2::LaunchTemplate", map[string]any{
		"LaunchTemplateData": map[string]any{"ImageId": ec2.ImageID("1.36", "x86_64"), "InstanceType": "m6i.large"},
	})
	return sdk.New(sdk.Options{
		Region: "us-east-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, ""),
	}), subnet, template
}

func requireMessage(t *testing.T, code, message string, err error) {
	t.Helper()
	var known smithy.APIError
	require.True(t, errors.As(err, &known), "%v", err)
	require.Equal(t, code, known.ErrorCode())
	require.Contains(t, known.ErrorMessage(), message)
}

func TestThroughTheSDK(t *testing.T) {
	c, subnet, template := newClient(t)
	ctx := t.Context()
	pool := aws.String("pool")
	_, err := c.CreateAutoScalingGroup(ctx, &sdk.CreateAutoScalingGroupInput{
		AutoScalingGroupName: pool, MinSize: aws.Int32(1), MaxSize: aws.Int32(3), VPCZoneIdentifier: &subnet,
		MixedInstancesPolicy: &types.MixedInstancesPolicy{
			LaunchTemplate: &types.LaunchTemplate{
				LaunchTemplateSpecification: &types.LaunchTemplateSpecification{LaunchTemplateId: &template, Version: aws.String("$Latest")},
				Overrides:                   []types.LaunchTemplateOverrides{{InstanceType: aws.String("m7i.large")}},
			},
			InstancesDistribution: &types.InstancesDistribution{
				OnDemandBaseCapacity: aws.Int32(1), OnDemandPercentageAboveBaseCapacity: aws.Int32(0),
			},
		},
		LifecycleHookSpecificationList: []types.LifecycleHookSpecification{
			{LifecycleHookName: aws.String("launch"), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"),
				HeartbeatTimeout: aws.Int32(60)},
		},
		Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("shop"), PropagateAtLaunch: aws.Bool(true)}},
	})
	require.NoError(t, err)
	describe := func() types.AutoScalingGroup {
		out, err := c.DescribeAutoScalingGroups(ctx, &sdk.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{"pool"}})
		require.NoError(t, err)
		require.Len(t, out.AutoScalingGroups, 1)
		return out.AutoScalingGroups[0]
	}
	state := func(want types.LifecycleState) func() bool {
		return func() bool { g := describe(); return len(g.Instances) == 1 && g.Instances[0].LifecycleState == want }
	}
	eventually(t, state(types.LifecycleStatePendingWait))
	g := describe()
	id := g.Instances[0].InstanceId
	require.Equal(t, "m7i.large", *g.Instances[0].InstanceType)
	require.Equal(t, "1", *g.Instances[0].LaunchTemplate.Version)
	require.Equal(t, "$Latest", *g.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.Version)
	require.Equal(t, []string{"us-east-1a"}, g.AvailabilityZones)
	require.Equal(t, "shop", *g.Tags[0].Value)

	_, err = c.RecordLifecycleActionHeartbeat(ctx, &sdk.RecordLifecycleActionHeartbeatInput{
		AutoScalingGroupName: pool, LifecycleHookName: aws.String("launch"), InstanceId: id,
	})
	require.NoError(t, err)
	complete := &sdk.CompleteLifecycleActionInput{
		AutoScalingGroupName: pool, LifecycleHookName: aws.String("launch"), InstanceId: id, LifecycleActionResult: aws.String("CONTINUE"),
	}
	_, err = c.CompleteLifecycleAction(ctx, complete)
	require.NoError(t, err)
	eventually(t, state(types.LifecycleStateInService))
	_, err = c.CompleteLifecycleAction(ctx, complete)
	requireMessage(t, "ValidationError", "No active Lifecycle Action found with instance ID "+*id, err)

	hooks, err := c.DescribeLifecycleHooks(ctx, &sdk.DescribeLifecycleHooksInput{AutoScalingGroupName: pool})
	require.NoError(t, err)
	require.EqualValues(t, 6000, *hooks.LifecycleHooks[0].GlobalTimeout)
	_, err = c.PutLifecycleHook(ctx, &sdk.PutLifecycleHookInput{
		AutoScalingGroupName: pool, LifecycleHookName: aws.String("launch"), HeartbeatTimeout: aws.Int32(90),
	})
	require.NoError(t, err)
	_, err = c.DeleteLifecycleHook(ctx, &sdk.DeleteLifecycleHookInput{AutoScalingGroupName: pool, LifecycleHookName: aws.String("launch")})
	require.NoError(t, err)
	_, err = c.SuspendProcesses(ctx, &sdk.SuspendProcessesInput{AutoScalingGroupName: pool, ScalingProcesses: []string{"AZRebalance"}})
	require.NoError(t, err)
	_, err = c.EnableMetricsCollection(ctx, &sdk.EnableMetricsCollectionInput{AutoScalingGroupName: pool, Granularity: aws.String("1Minute")})
	require.NoError(t, err)
	_, err = c.CreateOrUpdateTags(ctx, &sdk.CreateOrUpdateTagsInput{
		Tags: []types.Tag{{ResourceId: pool, ResourceType: aws.String("auto-scaling-group"), Key: aws.String("a"), Value: aws.String("b")}},
	})
	require.NoError(t, err)
	tags, err := c.DescribeTags(ctx, &sdk.DescribeTagsInput{Filters: []types.Filter{{Name: aws.String("key"), Values: []string{"a"}}}})
	require.NoError(t, err)
	require.Len(t, tags.Tags, 1)
	g = describe()
	require.Equal(t, "AZRebalance", *g.SuspendedProcesses[0].ProcessName)
	require.NotEmpty(t, g.EnabledMetrics)

	one, err := c.DescribeAutoScalingInstances(ctx, &sdk.DescribeAutoScalingInstancesInput{InstanceIds: []string{*id}})
	require.NoError(t, err)
	require.Equal(t, "pool", *one.AutoScalingInstances[0].AutoScalingGroupName)
	require.Equal(t, "HEALTHY", *one.AutoScalingInstances[0].HealthStatus)

	_, err = c.SetDesiredCapacity(ctx, &sdk.SetDesiredCapacityInput{AutoScalingGroupName: pool, DesiredCapacity: aws.Int32(2)})
	require.NoError(t, err)
	ended, err := c.TerminateInstanceInAutoScalingGroup(ctx, &sdk.TerminateInstanceInAutoScalingGroupInput{
		InstanceId: id, ShouldDecrementDesiredCapacity: aws.Bool(true),
	})
	require.NoError(t, err)
	require.Equal(t, "Terminating EC2 instance: "+*id, *ended.Activity.Description)
	eventually(t, func() bool { g := describe(); return len(g.Instances) == 1 && *g.Instances[0].InstanceId != *id })

	refresh, err := c.StartInstanceRefresh(ctx, &sdk.StartInstanceRefreshInput{
		AutoScalingGroupName: pool, Preferences: &types.RefreshPreferences{MinHealthyPercentage: aws.Int32(0)},
	})
	require.NoError(t, err)
	eventually(t, func() bool {
		out, err := c.DescribeInstanceRefreshes(ctx, &sdk.DescribeInstanceRefreshesInput{
			AutoScalingGroupName: pool, InstanceRefreshIds: []string{*refresh.InstanceRefreshId},
		})
		require.NoError(t, err)
		return out.InstanceRefreshes[0].Status == types.InstanceRefreshStatusSuccessful
	})
	pages := sdk.NewDescribeScalingActivitiesPaginator(c, &sdk.DescribeScalingActivitiesInput{
		AutoScalingGroupName: pool, MaxRecords: aws.Int32(1),
	})
	activities := 0
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		require.NoError(t, err)
		activities += len(out.Activities)
	}
	require.GreaterOrEqual(t, activities, 5)

	_, err = c.DeleteAutoScalingGroup(ctx, &sdk.DeleteAutoScalingGroupInput{AutoScalingGroupName: pool})
	requireMessage(t, "ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances", err)
	_, err = c.DeleteAutoScalingGroup(ctx, &sdk.DeleteAutoScalingGroupInput{AutoScalingGroupName: pool, ForceDelete: aws.Bool(true)})
	require.NoError(t, err)
	eventually(t, func() bool {
		out, err := c.DescribeAutoScalingGroups(ctx, &sdk.DescribeAutoScalingGroupsInput{})
		require.NoError(t, err)
		return len(out.AutoScalingGroups) == 0
	})
}

func TestErrorsThroughTheSDK(t *testing.T) {
	c, subnet, template := newClient(t)
	ctx := t.Context()
	nope := aws.String("nope")
	_, err := c.SetDesiredCapacity(ctx, &sdk.SetDesiredCapacityInput{AutoScalingGroupName: nope, DesiredCapacity: aws.Int32(1)})
	requireMessage(t, "ValidationError", "AutoScalingGroup nope not found", err)
	_, err = c.SetInstanceHealth(ctx, &sdk.SetInstanceHealthInput{InstanceId: aws.String("i-0"), HealthStatus: aws.String("Healthy")})
	requireMessage(t, "ValidationError", "No managed instance found", err)
	_, err = c.EnterStandby(ctx, &sdk.EnterStandbyInput{AutoScalingGroupName: nope, ShouldDecrementDesiredCapacity: aws.Bool(true)})
	requireMessage(t, "UnsupportedByLocalAccount", "EnterStandby", err)
	_, err = c.CreateAutoScalingGroup(ctx, &sdk.CreateAutoScalingGroupInput{
		AutoScalingGroupName: nope, MinSize: aws.Int32(1), MaxSize: aws.Int32(1), VPCZoneIdentifier: &subnet, PlacementGroup: aws.String("p"),
		LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateId: &template},
	})
	requireMessage(t, "UnsupportedByLocalAccount", "PlacementGroup", err)
	_, err = c.CreateOrUpdateTags(ctx, &sdk.CreateOrUpdateTagsInput{
		Tags: []types.Tag{{ResourceId: nope, Key: aws.String("aws:x"), Value: aws.String("y")}},
	})
	requireMessage(t, "ValidationError", "reserved", err)
	_, err = c.DescribeAutoScalingGroups(ctx, &sdk.DescribeAutoScalingGroupsInput{NextToken: nope})
	requireMessage(t, "InvalidNextToken", "", err)
	_, err = c.DescribeAutoScalingGroups(ctx, &sdk.DescribeAutoScalingGroupsInput{Filters: []types.Filter{{Name: nope}}})
	requireMessage(t, "ValidationError", "Filter type nope is not correct", err)
}

// eventually polls. Requests are faster than this loop, and simulated work takes no time.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
	}
	t.Fatal("it did not happen")
}
