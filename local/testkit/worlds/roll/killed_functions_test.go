package roll_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
)

// The nodes of a pool at its maximum size are replaced in three updates: a larger maximum, the nodes, and the old maximum.
// Each function is killed before, and after, each of its calls. The pace that was set before applies to the retry, and
// CloudFormation never takes too many nodes out of service.
func TestKilledFunctionsDuringARollAtMaximum(t *testing.T) {
	lives.KillEachCall(t, []string{"change", "stackevent"}, func(t *testing.T, die func(harness.Call) harness.Death) {
		a := start(t)
		a.Cluster("demo", "")
		a.Scale("demo", "a", 3)
		before := a.Group("demo", "a")
		require.Equal(t, before.Max, before.Desired)
		a.Functions.Kill(die)
		a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", ""), "maxSize: 3", "maxSize: 3, rootVolume: {sizeGiB: 60}", 1))
		a.Settle()
		a.Functions.Kill(nil)
		a.RequireConverged("demo")
		after := a.Group("demo", "a")
		require.Equal(t, []int{1, 3, 3}, []int{after.Min, after.Max, after.Desired})
		require.Len(t, after.Instances, 3)
		for _, i := range after.Instances {
			require.Equal(t, "2", i.TemplateVersion, "replaced, and once")
			require.False(t, slices.ContainsFunc(before.Instances, func(old pool.Instance) bool { return old.ID == i.ID }))
		}
		rolls := a.batches("drover-demo-pool-a")
		require.Len(t, rolls, 1, "a try that died began no other roll")
		require.Contains(t, rolls[0], "in batches of 1, while keeping at least 3 instance(s)")
	})
}

// batches returns CloudFormation's messages about the rolls of a pool.
func (l *life) batches(stackName string) (reasons []string) {
	events, err := l.CloudFormation.DescribeStackEvents(context.Background(), l.Admin(), &cloudformation.StackPageInput{StackName: stackName})
	require.NoError(l.T, err)
	for _, event := range events.StackEvents {
		if event.LogicalResourceId == names.GroupResource && strings.Contains(event.ResourceStatusReason, "in batches of") {
			reasons = append(reasons, event.ResourceStatusReason)
		}
	}
	return reasons
}
