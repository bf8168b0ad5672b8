package plan_test

// Clusters without a node: their add-ons that need one wait.

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// empty is a cluster whose pool may have no node.
func empty(more string) string {
	return strings.Replace(harness.Spec("demo", more), "minSize: 1", "minSize: 0", 1)
}

// awaitConverged waits until a spec is what the cluster is.
func awaitConverged(t *testing.T, a *harness.Account, spec string) *status.Status {
	a.Upload("clusters/demo.yaml", spec)
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	return s
}

func TestAddonsWaitWithoutANode(t *testing.T) {
	poolless, _, _ := strings.Cut(harness.Spec("demo", ""), "  pools:")
	for name, spec := range map[string]string{"no pool": poolless, "a pool that may be empty": empty("")} {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Upload("releases/r1.yaml", harness.Release())
			s := awaitConverged(t, a, spec)
			require.NotContains(t, a.Stacks("demo"), names.NodeAddons)
			waits := s.Condition(status.AddonsDeployed)
			require.Equal(t, "False NoNodes", waits.Status+" "+waits.Reason)
			require.Contains(t, waits.Message, "waits for the first node")

			mark := a.Calls.Mark()
			a.Converge("demo")
			a.Settle()
			require.Empty(t, mutatingCalls(a, mark), "and waiting costs nothing")

			// A spec that requests a node creates both.
			s = awaitConverged(t, a, harness.Spec("demo", ""))
			require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")[names.NodeAddons])
			require.Equal(t, "True", s.Condition(status.AddonsDeployed).Status)
		})
	}
}

func TestAddonsAreCreatedWithTheFirstNode(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	awaitConverged(t, a, empty(""))
	a.Scale("demo", "a", 1)
	a.Settle()
	p, _, _, err := a.Functions.Planner.Preview(context.Background(), "demo")
	require.NoError(t, err)
	require.False(t, p.AddonsWait)
	a.Converge("demo")
	a.Settle()
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")[names.NodeAddons])
	require.Equal(t, status.Ready, a.Status("demo").Phase)
}

func TestAddonsThatAreDeployedStayWhenTheLastNodeGoes(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	awaitConverged(t, a, empty(""))
	a.Scale("demo", "a", 0)
	a.Settle()
	before := a.Stack("demo", names.NodeAddons).Tags[names.TagChecksum]
	other := "  addons: [{name: coredns, version: v1.12.4-eksbuild.1}]\n"
	s := awaitConverged(t, a, empty(other))
	require.Equal(t, before, a.Stack("demo", names.NodeAddons).Tags[names.TagChecksum], "another version waits for a node")
	require.Equal(t, "False", s.Condition(status.AddonsDeployed).Status)
	a.Scale("demo", "a", 1)
	a.Settle()
	a.Converge("demo")
	a.Settle()
	require.NotEqual(t, before, a.Stack("demo", names.NodeAddons).Tags[names.TagChecksum])
	require.Equal(t, "True", a.Status("demo").Condition(status.AddonsDeployed).Status)

	// They can be deleted without a node.
	a.Scale("demo", "a", 0)
	a.Settle()
	without := strings.NewReplacer("name: r1", "name: r2", "    - {name: coredns, version: v1.13.2-eksbuild.1}\n", "").
		Replace(harness.Release())
	a.Upload("releases/r2.yaml", without)
	awaitConverged(t, a, strings.Replace(empty(""), "name: r1", "name: r2", 1))
	require.NotContains(t, a.Stacks("demo"), names.NodeAddons)
}
