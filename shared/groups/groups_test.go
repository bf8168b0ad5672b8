package groups_test

import (
	"encoding/json"
	"testing"

	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/harness"
	"github.com/drover-run/drover/shared/groups"
)

// An instance of a pool waits at its launch hook until somebody answers, once.
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
	g, ctx := groups.New(autoscalingapi.NewFromConfig(a.Config())), t.Context()

	state := func(instance string) string {
		t.Helper()
		is, err := g.State(ctx, instance)
		require.NoError(t, err)
		return is
	}
	require.Equal(t, groups.PendingWait, state(hook.EC2InstanceID))
	require.Empty(t, state("i-0123456789abcdef0"), "nobody knows it")
	group, err := g.GroupOf(ctx, hook.EC2InstanceID)
	require.NoError(t, err)
	require.Equal(t, hook.AutoScalingGroupName, group)
	group, err = g.GroupOf(ctx, "i-0123456789abcdef0")
	require.NoError(t, err)
	require.Empty(t, group)
	pool, err := g.Pool(ctx, hook.AutoScalingGroupName)
	require.NoError(t, err)
	require.Equal(t, "demo", pool.Cluster)
	require.Equal(t, "a", pool.Pool)
	pool, err = g.Pool(ctx, "no-such-group")
	require.NoError(t, err)
	require.Zero(t, pool)

	waited, err := g.Heartbeat(ctx, hook)
	require.NoError(t, err)
	require.True(t, waited)
	for attempt, want := range []bool{true, false, false} {
		waited, err = g.Complete(ctx, hook, groups.Continue)
		require.NoError(t, err)
		require.Equal(t, want, waited, "attempt %d", attempt)
	}
	require.NotEqual(t, groups.PendingWait, state(hook.EC2InstanceID))
	leaving, err := g.Leaving(ctx, hook.AutoScalingGroupName)
	require.NoError(t, err)
	require.Empty(t, leaving)
	waited, err = g.Heartbeat(ctx, hook)
	require.NoError(t, err)
	require.False(t, waited)

	gone := hook
	gone.AutoScalingGroupName = "drover-demo-pool-gone"
	waited, err = g.Complete(ctx, gone, groups.Continue)
	require.NoError(t, err, "nothing waits in a group that is gone")
	require.False(t, waited)
}
