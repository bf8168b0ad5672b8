package aws_test

import (
	"encoding/json"
	"testing"
	"time"

	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/pool"
)

// The instance waits at its launch hook until its lifecycle action is completed, once.
func TestHooks(t *testing.T) {
	a := harness.Start(t)
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.autoscaling" {
			return harness.Held
		}
		return harness.Delivered
	})
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  deletionProtection: false\n"))
	a.Until("an instance waits", func() bool { return len(a.Events.Held()) > 0 })
	var hook events.Lifecycle
	require.NoError(t, json.Unmarshal(a.Events.Held()[0].Detail, &hook))
	require.Equal(t, "drover-demo-pool-a", hook.AutoScalingGroupName)
	client, ctx := autoscalingapi.NewFromConfig(a.Config()), t.Context()
	g := autoscaling.New(client)

	state := func(instance string) string {
		t.Helper()
		current, err := g.State(ctx, instance)
		require.NoError(t, err)
		return current
	}
	require.Equal(t, pool.PendingWait, state(hook.EC2InstanceID))
	require.Empty(t, state("i-0123456789abcdef0"), "no group has it")
	tagged, err := g.PoolOfGroup(ctx, hook.AutoScalingGroupName)
	require.NoError(t, err)
	require.Equal(t, "demo", tagged.Cluster)
	require.Equal(t, "a", tagged.Pool)
	owner, err := g.PoolOfInstance(ctx, hook.EC2InstanceID)
	require.NoError(t, err)
	require.Equal(t, tagged, owner)
	owner, err = g.PoolOfInstance(ctx, "i-0123456789abcdef0")
	require.NoError(t, err)
	require.Zero(t, owner)
	tagged, err = g.PoolOfGroup(ctx, "no-such-group")
	require.NoError(t, err)
	require.Zero(t, tagged)

	described, found, err := g.Describe(ctx, hook.AutoScalingGroupName)
	require.NoError(t, err)
	require.True(t, found)
	require.Len(t, described.Instances, 1)
	require.NotEmpty(t, described.Instances[0].Zone)
	require.Len(t, described.Subnets, 2)
	require.Contains(t, described.Zones, described.Instances[0].Zone)
	require.Contains(t, described.Types, described.Instances[0].Type)
	require.Empty(t, described.ToRefresh())
	described.Instances[0].Zone, described.Instances[0].Type, described.Subnets, described.Zones, described.Types = "", "", nil, nil, nil
	require.Equal(t, pool.Group{
		Name: hook.AutoScalingGroupName, Min: 1, Max: 3, Desired: 1,
		Instances:       []pool.Instance{{ID: hook.EC2InstanceID, State: pool.PendingWait, TemplateVersion: "1"}},
		TemplateVersion: "1",
	}, described)
	_, err = client.SuspendProcesses(ctx, &autoscalingapi.SuspendProcessesInput{
		AutoScalingGroupName: &hook.AutoScalingGroupName, ScalingProcesses: []string{"AZRebalance"},
	})
	require.NoError(t, err)
	described, _, err = g.Describe(ctx, hook.AutoScalingGroupName)
	require.NoError(t, err)
	require.Equal(t, []string{"AZRebalance"}, described.Suspended)
	require.WithinDuration(t, time.Now(), described.SuspendedAt["AZRebalance"], time.Minute)
	_, found, err = g.Describe(ctx, "no-such-group")
	require.NoError(t, err)
	require.False(t, found)

	waited, err := g.Heartbeat(ctx, hook)
	require.NoError(t, err)
	require.True(t, waited)
	for attempt, want := range []bool{true, false, false} {
		waited, err = g.Complete(ctx, hook, pool.Continue)
		require.NoError(t, err)
		require.Equal(t, want, waited, "attempt %d", attempt)
	}
	a.Until("it has left the hook", func() bool { return state(hook.EC2InstanceID) != pool.PendingWait })
	require.Empty(t, described.Draining())
	several := pool.Group{Instances: []pool.Instance{
		{ID: "i-1", State: pool.InService}, {
			ID: "i-2", State: pool.Terminating,
		}, {ID: "i-3", State: pool.TerminatingWait}, {ID: "i-4", State: pool.PendingWait},
		{ID: "i-5", State: pool.TerminatingProceed},
	}}
	require.Equal(t, []string{"i-2", "i-3"}, several.Draining())
	require.Equal(t, []string{"i-2", "i-3", "i-5"}, several.AllTerminating())
	all, err := g.All(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, hook.AutoScalingGroupName, all[0].Name)
	waited, err = g.Heartbeat(ctx, hook)
	require.NoError(t, err)
	require.False(t, waited)

	deleted := hook
	deleted.AutoScalingGroupName = "drover-demo-pool-deleted"
	waited, err = g.Complete(ctx, deleted, pool.Continue)
	require.NoError(t, err, "nothing waits in a deleted group")
	require.False(t, waited)
}

// A failed launch is reported until the next launch succeeds.
func TestLaunchFailure(t *testing.T) {
	a := harness.Start(t)
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.autoscaling" {
			return harness.Held
		}
		return harness.Delivered
	})
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  deletionProtection: false\n"))
	a.Until("an instance waits", func() bool { return len(a.Events.Held()) > 0 })
	g, ctx := autoscaling.New(autoscalingapi.NewFromConfig(a.Config())), t.Context()
	// The terminate hook of the first instance may be reported before or after the launch hook of the second.
	launching := func(except string) (hook events.Lifecycle) {
		for _, held := range a.Events.Held() {
			var h events.Lifecycle
			require.NoError(t, json.Unmarshal(held.Detail, &h))
			if h.LifecycleTransition == "autoscaling:EC2_INSTANCE_LAUNCHING" && h.EC2InstanceID != except {
				hook = h
			}
		}
		return hook
	}
	first := launching("")
	why, _, err := g.LaunchFailure(ctx, first.AutoScalingGroupName)
	require.NoError(t, err)
	require.Empty(t, why, "it is in flight")

	_, err = g.Complete(ctx, first, pool.Abandon)
	require.NoError(t, err)
	a.Until("the failure is reported", func() bool {
		var at time.Time
		why, at, err = g.LaunchFailure(ctx, first.AutoScalingGroupName)
		require.NoError(t, err)
		return why != "" && !at.IsZero()
	})
	a.Until("another waits", func() bool { return launching(first.EC2InstanceID).EC2InstanceID != "" })
	_, err = g.Complete(ctx, launching(first.EC2InstanceID), pool.Continue)
	require.NoError(t, err)
	a.Until("the failure is no longer reported", func() bool {
		why, _, err = g.LaunchFailure(ctx, first.AutoScalingGroupName)
		require.NoError(t, err)
		return why == ""
	})
}
