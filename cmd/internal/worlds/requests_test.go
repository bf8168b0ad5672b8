package worlds

// Commands with the services of the local account in this process. drover's functions run as Go handlers.

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func inProcess(t *testing.T) (*harness.Account, *cli.Cell) {
	t.Helper()
	// The harness's S3 changes the working directory of the process. The shared account of other tests reads its buckets there.
	folder, err := os.Getwd()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.Chdir(folder)) })
	a := harness.Start(t)
	return a, cli.NewCell(a.Config(), "aws", harness.ID)
}

// startsNothing fails if a command calls a mutating action or starts an execution.
func startsNothing(t *testing.T, a *harness.Account, run func()) {
	t.Helper()
	mark, before := a.Calls.Mark(), len(a.StepFunctions.Executions())
	run()
	for _, call := range a.Calls.Since(mark) {
		require.False(t, call.Mutating, "%s %s", call.Service, call.Action)
	}
	require.Len(t, a.StepFunctions.Executions(), before)
}

func TestRoll(t *testing.T) {
	a, c := inProcess(t)
	var out bytes.Buffer
	roll := func(cluster, pool string, watch bool) error {
		out.Reset()
		return cli.StartRoll(t.Context(), &out, c, cluster, pool, watch)
	}
	a.Cluster("demo", "")
	t.Run("is refused for an unknown cluster or pool", func(t *testing.T) {
		startsNothing(t, a, func() {
			require.ErrorContains(t, roll("other", "a", false), "cluster other does not exist in this account and region")
			require.EqualError(t, roll("demo", "b", false), "nothing was rolled: cluster demo has no pool b: its pools are a")
		})
	})
	t.Run("is refused while the cluster is paused", func(t *testing.T) {
		a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  paused: true\n"))
		a.Settle()
		startsNothing(t, a, func() {
			require.EqualError(t, roll("demo", "a", true), "nothing was rolled: cluster demo is paused: spec.paused is true; upload its spec with "+
				"paused: false, then roll again")
		})
		a.Cluster("demo", "")
	})
	t.Run("is watched until every node is replaced", func(t *testing.T) {
		before := a.Group("demo", "a").Instances[0].ID
		require.NoError(t, roll("demo", "a", true), out.String())
		require.NotEqual(t, before, a.Group("demo", "a").Instances[0].ID)
		last := 0
		for _, line := range []string{
			"started the roll of pool a of cluster demo: arn:aws:states:", ": started: roll a\n", "stack       pool-a: UPDATE_IN_PROGRESS",
			"stack       pool-a: UPDATE_COMPLETE\n", "every node of pool a is replaced\n",
		} {
			at := strings.Index(out.String()[last:], line)
			require.GreaterOrEqual(t, at, 0, "%s\n%s", line, out.String())
			last += at
		}
		require.Contains(t, out.String(), "drain-node  "+before+": started: the instance is at its terminate hook")
	})
	t.Run("of a busy cluster is recorded", func(t *testing.T) {
		a.Events.Decide(func(e harness.Event) harness.Fate {
			if e.Source == "aws.cloudformation" {
				return harness.Held
			}
			return harness.Delivered
		})
		a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  tags: {a: b}\n"))
		a.Until("a stack's event is held", func() bool { return len(a.Events.Held()) > 0 })
		require.NoError(t, roll("demo", "a", false))
		require.Contains(t, out.String(), "cluster demo is converging: drover recorded the roll of pool a, and starts it within "+
			"five minutes after that")
		out.Reset()
		require.NoError(t, cli.Converge(t.Context(), &out, c, "demo", false))
		require.Contains(t, out.String(), "cluster demo is already converging: nothing was started; execution arn:")
	})
}

func TestConverge(t *testing.T) {
	a, c := inProcess(t)
	var out bytes.Buffer
	run := func(cluster string, watch bool) error {
		out.Reset()
		return cli.Converge(t.Context(), &out, c, cluster, watch)
	}
	t.Run("refuses an unknown cluster", func(t *testing.T) {
		startsNothing(t, a, func() {
			require.ErrorContains(t, run("demo", false), "cluster demo does not exist in this account and region")
		})
	})
	a.Cluster("demo", "")
	t.Run("reports that nothing differs", func(t *testing.T) {
		require.NoError(t, run("demo", true))
		require.Contains(t, out.String(), "nothing differs: cluster demo matches its spec\n")
	})
	t.Run("refuses a paused cluster", func(t *testing.T) {
		a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  paused: true\n"))
		a.Settle()
		startsNothing(t, a, func() {
			require.EqualError(t, run("demo", false), "cluster demo is paused: spec.paused is true; upload its spec with paused: false, "+
				"which converges it, too")
		})
		a.Cluster("demo", "")
	})
	t.Run("repairs drift, and is watched until it ends", func(t *testing.T) {
		a.Events.Decide(func(harness.Event) harness.Fate { return harness.Held })
		require.NoError(t, a.Retag(names.Stack("demo", names.Addons), func(tags map[string]string) { delete(tags, names.TagChecksum) }))
		a.Events.Decide(func(harness.Event) harness.Fate { return harness.Delivered })
		require.NoError(t, run("demo", true), out.String())
		require.Contains(t, out.String(), "changing addons\n")
		require.Contains(t, out.String(), ": state Change add-ons stack, stack addons\n")
		require.Contains(t, out.String(), "demo is Ready: ")
	})
	t.Run("reports that the newest spec is not used", func(t *testing.T) {
		a.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", ""), "r1", "r9", 1))
		a.Settle()
		require.NoError(t, run("demo", false), "the last good spec is in effect")
		require.Contains(t, out.String(), "the newest spec is not used, the last good one is: ")
	})
	t.Run("refuses a deleted cluster", func(t *testing.T) {
		require.NoError(t, c.State.UpdateStatus(t.Context(), "deleted", func(s *status.Status) { s.Phase = status.Deleted }))
		startsNothing(t, a, func() {
			require.EqualError(t, run("deleted", false),
				"cluster deleted is deleted: there is nothing to converge; upload its spec to create it again")
		})
	})
}

func TestUpgradeAnswers(t *testing.T) {
	a, c := inProcess(t)
	a.Cluster("demo", "")
	for name, test := range map[string]struct {
		in   events.Upgrade
		want events.UpgradeResult
	}{
		"the current release by default": {
			events.Upgrade{}, events.UpgradeResult{Outcome: events.UpgradeNothing, Message: "the cluster is at release r1 (Kubernetes 1.36)"},
		},
		"the current release by name": {
			events.Upgrade{
				Release: "r1",
			}, events.UpgradeResult{Outcome: events.UpgradeNothing, Message: "the cluster is at release r1 (Kubernetes 1.36)"},
		},
		"an unknown release": {
			events.Upgrade{
				Release: "r9",
			}, events.UpgradeResult{Outcome: events.UpgradeRefused, Message: "there is no release releases/r9.yaml: upload it, or name another"},
		},
		"a rollback without an upgrade": {
			events.Upgrade{
				Rollback: true,
			}, events.UpgradeResult{Outcome: events.UpgradeRefused, Message: "this cluster has no upgrade that can be rolled back"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Cluster = "demo"
			startsNothing(t, a, func() {
				got, err := cli.UpgradeChecker(c).Answer(t.Context(), test.in)
				require.NoError(t, err)
				require.Equal(t, test.want, got)
			})
			x := a.Upgrade(test.in)
			a.Settle()
			require.Equal(t, "SUCCEEDED", a.Execution(x).Status, "no alarm is in ALARM")
			require.Contains(t, a.Execution(x).Output, test.want.Message)
		})
	}
}

func TestEvents(t *testing.T) {
	a, c := inProcess(t)
	began := time.Now()
	a.Cluster("demo", "  deletionProtection: false\n")
	a.Cluster("demo-two", "") // no execution name of demo has the prefix demo-t: hashes have no t
	h := cli.NewHistory(c, "demo", began.Add(-time.Second))
	found, err := h.Read(t.Context())
	require.NoError(t, err)
	kinds := map[string]int{}
	for i, e := range found {
		kinds[e.Kind]++
		require.NotContains(t, e.String(), "demo-two")
		require.False(t, i > 0 && e.Time.Before(found[i-1].Time), "the oldest first")
	}
	require.Equal(t, 1, kinds["upload"])
	require.Equal(t, 10, kinds["stack"], "five stacks, begun and complete")
	require.Greater(t, kinds["converge"], 8)
	require.Equal(t, 2, kinds["join-node"], "started, succeeded")
	require.Zero(t, kinds["function"])
	again, err := h.Read(t.Context())
	require.NoError(t, err)
	require.Empty(t, again, "each event once")
	require.False(t, h.Drains())
	t.Run("return new events, including a complete deletion", func(t *testing.T) {
		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		found, err := h.Read(t.Context())
		require.NoError(t, err)
		var text strings.Builder
		for _, e := range found {
			text.WriteString(e.String() + "\n")
		}
		require.Contains(t, text.String(), "clusters/demo.yaml: deleted, by delete marker ")
		require.Contains(t, text.String(), "stack       network: DELETE_COMPLETE\n")
		late, err := cli.NewHistory(c, "demo", began.Add(-time.Second)).Read(t.Context())
		require.NoError(t, err)
		text.Reset()
		for _, e := range late {
			text.WriteString(e.String() + "\n")
		}
		require.Contains(t, text.String(), "stack       network: CREATE_COMPLETE\n")
		require.Contains(t, text.String(), "stack       network: DELETE_COMPLETE\n", "a later reader sees the deletion, too")
	})
}
