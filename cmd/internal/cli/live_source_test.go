package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/status"
)

func TestLiveSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := harness.StartWith(t, harness.Options{Bubble: true})
		a.Cluster("demo", "")
		c := NewCell(a.Config(), "aws", "111122223333")
		source := newLiveSource(c)
		cluster, err := c.State.Status(t.Context(), "demo")
		require.NoError(t, err)
		expected := stackNames(cluster.Status)
		require.Contains(t, expected, names.Network)
		described := func() (n int) {
			mark := a.Calls.Mark()
			read, err := source.readStacks(t.Context(), cluster, expected)
			require.NoError(t, err)
			require.Len(t, read, len(expected))
			for _, deployed := range read {
				require.True(t, stack.Settled(deployed.Status), deployed.Status)
			}
			for _, call := range a.Calls.Since(mark) {
				if strings.HasPrefix(call.Action, "DescribeStack") {
					n++
				}
			}
			return n
		}
		require.Equal(t, len(expected), described())
		require.Zero(t, described(), "stacks without an operation are read again after a while only")
		time.Sleep(idleStackAge)
		require.Equal(t, len(expected), described())

		cluster.Status.Stacks[0].Status = "UPDATE_IN_PROGRESS"
		require.Equal(t, 1, described(), "a stack that drover recorded as another is read at once")

		planned := status.New("new")
		planned.Status.Phase = status.Converging
		for _, name := range []string{"network", "control-plane", "addons", "pool-a", "pool-b"} {
			planned.Status.Plan = append(planned.Status.Plan, status.Change{Stack: name, Operation: "Create"})
		}
		source.cached = map[string]liveStack{}
		for _, want := range []int{5, nextStacks, nextStacks} { // only the stacks that drover changes next are read each time
			mark := a.Calls.Mark()
			_, err := source.readStacks(t.Context(), planned, stackNames(planned.Status))
			require.NoError(t, err)
			require.Len(t, a.Calls.Since(mark), want)
		}

		live := source.fleet(t.Context())
		require.NoError(t, live.stacksErr)
		require.NoError(t, live.groupsErr)
		require.Equal(t, "5", live.stackCell("demo").Text)
		require.Regexp(t, `^\d+/\d+$`, live.nodeCell("demo").Text)
	})
}
