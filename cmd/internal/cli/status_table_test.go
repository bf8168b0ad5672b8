package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

func TestFleetShowsRejectedSpecs(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for want, c := range map[string]struct{ phase, message, reason, rejected string }{
		"  the cluster matches its spec; SpecInvalid: demo.yaml:3: spec.bogus … (1 more line)\n": {
			phase: "Ready", message: "the cluster matches its spec", reason: "SpecInvalid",
			rejected: "demo.yaml:3: spec.bogus\ndemo.yaml:4: spec.other",
		},
		"  demo.yaml was deleted, but deletion protection is on\n": {
			phase: "Stopped", message: "demo.yaml was deleted, but deletion protection is on", reason: "SpecAbsent",
			rejected: "demo.yaml was deleted",
		},
		"  the cluster is deleted\n": {
			phase: "Deleted", message: "the cluster is deleted", reason: "SpecAbsent", rejected: "demo.yaml was deleted",
		},
		"  the cluster matches its spec\n": {phase: "Ready", message: "the cluster matches its spec"},
	} {
		cluster := &status.Cluster{}
		cluster.Status.Phase, cluster.Status.Message = status.Phase(c.phase), c.message
		condition := status.Condition{Type: status.SpecAccepted, Status: "True", Reason: "Valid"}
		if c.reason != "" {
			condition = status.Condition{Type: status.SpecAccepted, Status: "False", Reason: c.reason, Message: c.rejected}
		}
		cluster.Status.Set(condition, now)
		var out strings.Builder
		(&display{out: &out, now: now}).statuses([]*status.Cluster{cluster}, nil, true)
		require.True(t, strings.HasSuffix(out.String(), want), out.String())
	}
}

// Ready is the result of the last execution. It does not hide drift that was found since then.
func TestViewsShowDriftOfReadyClusters(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	show := func(message string) string {
		c := status.New("demo")
		c.Status.Phase, c.Status.Message = status.Ready, message
		c.Status.Set(status.Condition{Type: status.InSync, Status: "False", Reason: status.ReasonDrifted, Message: status.Missing("pool-a")}, now)
		var out strings.Builder
		d := &display{out: &out, now: now}
		d.cluster(c, nil)
		d.statuses([]*status.Cluster{c}, nil, true)
		return out.String() + phaseLine("demo", c.Status)
	}
	shown := show(status.AsSpecified)
	require.Equal(t, 2, strings.Count(shown, "demo is Ready: not in sync: stack pool-a is missing"), shown)
	require.Contains(t, shown, "  not in sync: stack pool-a is missing\n")
	require.NotContains(t, shown, status.AsSpecified)
	require.Contains(t, show(status.AsSpecified+status.ButDrains+"i-1"), status.ButDrains+"i-1; not in sync: stack pool-a is missing")
}

func TestFleetHidesDeletedClusters(t *testing.T) {
	of := func(name string, phase status.Phase) *status.Cluster {
		c := status.New(name)
		c.Status.Phase = phase
		return c
	}
	show := func(all bool, clusters ...*status.Cluster) string {
		var out strings.Builder
		(&display{out: &out}).statuses(clusters, nil, all)
		return out.String()
	}
	two := []*status.Cluster{of("a", status.Ready), of("b", status.Deleted), of("c", status.Deleted)}
	require.Equal(t, "NAME  PHASE  KUBERNETES  RELEASE  CHANGED  MESSAGE\na     Ready  -           -        -\n"+
		"2 deleted clusters are hidden: `drover status --all` shows them\n", show(false, two...))
	require.Contains(t, show(false, two[:2]...), "1 deleted cluster is hidden")
	require.Contains(t, show(true, two...), "\nc     Deleted")
	require.NotContains(t, show(true, two...), "hidden")
	require.NotContains(t, show(false, two[0]), "hidden")
}
