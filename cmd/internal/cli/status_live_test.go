package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli/live"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

func liveDemo(now time.Time) (*status.Cluster, *live.Cluster) {
	c := status.New("demo")
	c.Status = status.Status{
		Phase: status.Converging, Message: "changing 2 of 3 stacks", KubernetesVersion: "1.36", Release: "1.36-1",
		UpdatedAt:      now.Add(-4 * time.Second),
		PlannedVersion: "01M8BEV27PVPBFSKBWH96Y585K",
		Stacks: []status.Stack{
			{Name: "network", Status: "CREATE_COMPLETE", Since: now.Add(-2 * time.Hour)}, {
				Name: "pool-workers", Status: "UPDATE_COMPLETE", Since: now,
			},
		},
		Plan: []status.Change{{Stack: "pool-workers", Operation: "Update"}, {Stack: "pool-new", Operation: "Create"}},
	}
	observed := &live.Cluster{
		Stacks: map[string]live.Stack{
			"network": {Status: "CREATE_COMPLETE"}, "pool-new": {},
			"pool-workers": {Status: "UPDATE_IN_PROGRESS", Operation: cloudformation.Operation{
				Began: now.Add(-3 * time.Minute), Token: "update-abc", Done: 1, InProgress: []string{"Group"},
			}},
		},
		Groups: map[string]pool.Group{"workers": {Desired: 2, TemplateVersion: "2", Instances: []pool.Instance{
			{ID: "i-1", State: pool.InService, TemplateVersion: "2"}, {ID: "i-2", State: pool.TerminatingWait, TemplateVersion: "1"},
		}}},
		NodesErr: errors.New("no answer"),
	}
	return c, observed
}

func TestLiveCluster(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c, observed := liveDemo(now)
	show := func(d display) string {
		var out strings.Builder
		d.out, d.now = &out, now
		d.cluster(c, observed)
		return out.String()
	}
	t.Run("shows what AWS says now", func(t *testing.T) {
		require.Contains(t, show(display{}), `demo is Converging: changing 2 of 3 stacks
Kubernetes 1.36, release 1.36-1, status last changed 4s ago
the cluster was not read: no answer

STACK         STATUS              AGE  PROGRESS
network       CREATE_COMPLETE     2h
pool-workers  UPDATE_IN_PROGRESS  3m   1 resource done, Group in progress
pool-new      -                   -

POOL     READY  IN SERVICE  DESIRED  PROGRESS
workers  ?      1           2        1 of 2 nodes replaced, 1 draining, 1 missing
`)
	})
	t.Run("shows identifiers with -v only", func(t *testing.T) {
		for _, id := range []string{"01M8BEV27PVPBFSKBWH96Y585K", "token update-abc"} {
			require.NotContains(t, show(display{}), id)
			require.Contains(t, show(display{verbose: true}), id)
		}
	})
	t.Run("fits and is colored", func(t *testing.T) {
		for _, line := range strings.Split(show(display{width: 60}), "\n") {
			require.LessOrEqual(t, len([]rune(line)), 60, line)
		}
		require.Contains(t, show(display{color: true}), "demo is \x1b[33mConverging\x1b[0m")
		require.Contains(t, show(display{color: true}), "\x1b[33mUPDATE_IN_PROGRESS\x1b[0m")
	})
	t.Run("names a stack that was deleted outside drover", func(t *testing.T) {
		observed.Stacks["network"] = live.Stack{}
		require.Regexp(t, `(?m)^network +absent`, show(display{}))
	})
}

func TestLiveFleet(t *testing.T) {
	observed := &live.Fleet{
		Stacks: map[string]stack.Deployed{
			names.Stack("demo", "network"): {Status: "CREATE_COMPLETE"}, names.Stack("demo", "pool-a"): {Status: "UPDATE_IN_PROGRESS"},
			names.Stack("bad", "network"): {Status: "ROLLBACK_COMPLETE"}, names.Stack("demo-2", "network"): {Status: "CREATE_COMPLETE"},
		},
		GroupsErr: errors.New("denied"),
	}
	require.Equal(t, "1 of 2 in progress", stackCell(observed, "demo").Text)
	require.Equal(t, "1 of 1 failed", stackCell(observed, "bad").Text)
	require.Equal(t, "1", stackCell(observed, "demo-2").Text)
	require.Equal(t, "?", nodeCell(observed, "demo").Text)
	var out strings.Builder
	(&display{out: &out}).statuses([]*status.Cluster{status.New("demo")}, observed, false)
	require.Contains(t, out.String(), "Auto Scaling was not read: denied\n")
}

func TestMayColor(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	require.True(t, mayColor(env("TERM", "xterm")))
	require.False(t, mayColor(env("NO_COLOR", "1")))
	require.True(t, mayColor(env("NO_COLOR", "")), "no-color.org: when present and not an empty string")
	require.False(t, mayColor(env("TERM", "dumb")))
}
