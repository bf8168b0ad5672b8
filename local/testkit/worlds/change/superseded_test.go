package change_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// duringChange runs do once, while CloudFormation changes a resource of a stack.
func duringChange(a *harness.Account, stack string, do func()) {
	var once sync.Once
	a.OnResource(func(_ string, r resource.Request) error {
		if strings.HasSuffix(r.StackName, "demo-"+stack) {
			once.Do(do)
		}
		return nil
	})
}

// executedChanges are the stacks whose changes were executed since a mark, in order.
func executedChanges(a *harness.Account, mark int) (list []string) {
	for _, call := range a.Calls.Since(mark) {
		if call.Action == "ExecuteChangeSet" {
			list = append(list, strings.TrimPrefix(call.Resource, names.Stack("demo", "")))
		}
	}
	return list
}

func TestNewerSpecSupersedesBetweenStacks(t *testing.T) {
	for _, during := range []string{"network", "control-plane", "addons", "pool-a", "addons-on-nodes"} {
		t.Run(during, func(t *testing.T) {
			a := harness.Start(t)
			a.Upload("releases/r1.yaml", harness.Release())
			var second string
			duringChange(a, during, func() { second = a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {team: b}\n")) })
			first := a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
			a.Settle()
			s := a.Status("demo")
			require.Equal(t, status.Ready, s.Phase, s.Message)
			require.Equal(t, second, s.PlannedVersion)
			order := []string{"network", "control-plane", "addons", "pool-a", "addons-on-nodes"}
			after := false
			for _, stack := range order {
				tags := tagsOf(a, names.Stack("demo", stack))
				require.Equal(t, "b", tags["team"], stack)
				if updated := strings.Contains(a.Stacks("demo")[stack], "UPDATE"); after {
					// Stacks that had not begun changed once, for the newer spec. The control plane has a second change of its own.
					require.Equal(t, stack == "control-plane", updated, stack)
				}
				after = after || stack == during
			}
			require.NotEqual(t, first, second)
			require.Len(t, a.Verdicts(), 1, "the older spec has no verdict: %v", a.Verdicts())
			clean(t, a, "demo")
		})
	}
}

func TestPoolsThatHaveNotBegunAreSuperseded(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	mark := a.Calls.Mark()
	duringChange(a, "addons", func() { a.Upload("clusters/demo.yaml", harness.Spec("demo", "")) })
	// No stack after the pools changes, so the round ends at their stage.
	a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", otherVersion), "maxSize: 3", "maxSize: 4", 1))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Equal(t, []string{"addons", "addons"}, executedChanges(a, mark), "changed, then changed back; the pool never changed")
	clean(t, a, "demo")
}

func TestPausedInTheMiddle(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	duringChange(a, "control-plane", func() { a.Upload("clusters/demo.yaml", harness.Spec("demo", "  paused: true\n")) })
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Stopped, s.Phase, s.Message)
	require.Equal(t, status.ReasonPaused, s.Condition(status.Converged).Reason)
	require.Equal(t, map[string]string{"network": "CREATE_COMPLETE", "control-plane": "CREATE_COMPLETE"}, a.Stacks("demo"))
	clean(t, a, "demo")
	// A manual converge changes nothing either.
	mark := a.Calls.Mark()
	a.Converge("demo")
	a.Settle()
	require.Empty(t, executedChanges(a, mark))
	// The cluster converges after the pause ends.
	a.Cluster("demo", "")
	clean(t, a, "demo")
}

// A newer spec arrives while a pool is rolled and another one waits. The first roll finishes, and the newer spec decides about the second.
func TestNewerSpecDuringARoll(t *testing.T) {
	spec := func(team, more string) string {
		pools := strings.Replace(harness.Spec("demo", "    - {name: b, instanceTypes: [m7i.large], minSize: 1, maxSize: 3, update: {order: 1}, "+
			"labels: {team: "+team+"}}\n"+more),
			"{name: a,", "{name: a, labels: {team: "+team+"},", 1)
		return pools
	}
	tests := map[string]struct {
		newer string
		phase status.Phase
		made  []string
	}{
		"that pauses":            {spec("new", "  paused: true\n"), status.Stopped, []string{"pool-a"}},
		"that reverts it":        {spec("old", ""), status.Ready, []string{"pool-a", "pool-a"}},
		"that wants yet another": {spec("newer", ""), status.Ready, []string{"pool-a", "pool-a", "pool-b"}},
		"that cannot be used":    {"kind: Cluster", status.Ready, []string{"pool-a", "pool-b"}},
		"whose release is absent": {
			strings.Replace(spec("newer", ""), "name: r1", "name: absent", 1), status.Ready, []string{"pool-a", "pool-b"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Upload("releases/r1.yaml", harness.Release())
			a.Upload("clusters/demo.yaml", spec("old", ""))
			a.Settle()
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
			mark := a.Calls.Mark()
			duringChange(a, "pool-a", func() { a.Upload("clusters/demo.yaml", test.newer) })
			a.Upload("clusters/demo.yaml", spec("new", ""))
			a.Settle()
			s := a.Status("demo")
			require.Equal(t, test.phase, s.Phase, s.Message)
			require.Equal(t, test.made, executedChanges(a, mark))
			clean(t, a, "demo")
		})
	}
}

func TestInvalidSpecSupersedesNothing(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	duringChange(a, "network", func() { a.Upload("clusters/demo.yaml", "kind: Cluster") })
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Until("all stacks are there", func() bool { return a.Idle() && len(a.Stacks("demo")) == 5 })
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, "False", s.Condition(status.SpecAccepted).Status)
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["addons-on-nodes"])
	clean(t, a, "demo")
}

func TestSpecIsDeletedDuringAConverge(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	duringChange(a, "network", func() { a.Remove("clusters/demo.yaml", "") })
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	require.Equal(t, status.ReasonSpecAbsent, a.Status("demo").Condition(status.SpecAccepted).Reason)
	require.NotContains(t, a.Stacks("demo"), "control-plane")
	clean(t, a, "demo")
}
