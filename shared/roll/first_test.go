package roll

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// group has an instance i-0, i-1 and so on for each state.
func group(desired int, states ...string) pool.Group {
	g := pool.Group{Desired: desired, Min: desired, TemplateVersion: "2"}
	for n, state := range states {
		g.Instances = append(g.Instances, pool.Instance{ID: fmt.Sprint("i-", n), State: state, TemplateVersion: "2"})
	}
	return g
}

func TestFirstBatch(t *testing.T) {
	for name, test := range map[string]struct {
		group     pool.Group
		instances []string
		until     string
		longest   time.Duration
	}{
		"is free when all serve": {group(2, pool.InService, pool.InService), nil, "", 0},
		"waits for instances that are being drained": {
			group(2, pool.InService, pool.TerminatingWait), []string{"i-1"}, "i-1 has been drained", time.Hour + backoff.DrainGrace,
		},
		"waits for instances that terminate": {
			group(2, pool.InService, pool.TerminatingProceed), []string{"i-1"}, "i-1 has been drained", time.Hour + backoff.DrainGrace,
		},
		"waits for drains before joins": {
			group(2, pool.InService, pool.PendingWait, pool.TerminatingWait), []string{"i-2"}, "i-2 has been drained",
			time.Hour + backoff.DrainGrace,
		},
		"waits for instances that launch": {
			group(2, pool.InService, pool.PendingWait), []string{"i-1"}, "i-1 has joined", maxJoinWait,
		},
		"waits for no launch when nothing serves":    {group(2, pool.PendingWait, pool.PendingWait), nil, "", 0},
		"waits for no launch beyond what is desired": {group(1, pool.InService, pool.PendingWait), nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := FirstBatch(test.group, time.Hour)
			require.Equal(t, test.instances, b.Instances)
			require.Equal(t, test.until, b.Awaited())
			require.Equal(t, test.longest, b.Max)
			require.Equal(t, strings.HasSuffix(test.until, " drained"), b.Draining)
		})
	}
}

func TestBlockerWaits(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	for name, test := range map[string]struct {
		began     map[string]time.Time
		waited    time.Duration
		instances []string
		left      time.Duration
	}{
		"for the youngest": {
			map[string]time.Time{"a": ago(time.Minute), "b": ago(5 * time.Minute)}, 0, []string{"a", "b"}, 9 * time.Minute,
		},
		"for those whose time is left": {map[string]time.Time{"a": ago(time.Minute), "b": ago(time.Hour)}, 0, []string{"a"}, 9 * time.Minute},
		"no longer than Max in all":    {map[string]time.Time{"a": ago(0), "b": ago(0)}, 4 * time.Minute, []string{"a", "b"}, 6 * time.Minute},
		"from its own start when none is known": {
			nil, 4 * time.Minute, []string{"a", "b"}, 6 * time.Minute,
		},
		"not once all have had their time": {
			map[string]time.Time{"a": ago(time.Hour), "b": ago(time.Hour)}, 0, []string{"a", "b"}, 0,
		},
		"rounded up to seconds": {
			map[string]time.Time{
				"a": ago(9*time.Minute + 59*time.Second + 500*time.Millisecond), "b": ago(time.Hour),
			}, 0, []string{"a"}, time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := Blocker{Instances: []string{"a", "b"}, Max: 10 * time.Minute}
			b.SetTimes(test.began, test.waited, noon)
			require.Equal(t, test.instances, b.Instances)
			require.Equal(t, test.left, max(0, b.Left(test.waited, noon)))
		})
	}
}

func TestBlockerTimes(t *testing.T) {
	for name, test := range map[string]struct {
		began           map[string]time.Time
		waited          time.Duration
		since, deadline time.Time
	}{
		"are of the oldest and of the youngest": {
			map[string]time.Time{"a": noon.Add(-time.Minute), "b": noon.Add(-5 * time.Minute), "c": noon.Add(-3 * time.Minute)}, 0,
			noon.Add(-5 * time.Minute), noon.Add(9 * time.Minute),
		},
		"are of the wait when no start is known": {nil, 4 * time.Minute, noon.Add(-4 * time.Minute), noon.Add(6 * time.Minute)},
		"are of the wait when it began before the others": {
			map[string]time.Time{"a": noon.Add(-time.Minute), "b": noon.Add(-2 * time.Minute)}, 4 * time.Minute,
			noon.Add(-4 * time.Minute), noon.Add(9 * time.Minute),
		},
		"have no deadline when the time of all is over": {
			map[string]time.Time{"a": noon.Add(-10 * time.Minute), "b": noon.Add(-time.Hour), "c": noon.Add(-time.Hour)}, 0,
			noon.Add(-time.Hour), time.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := Blocker{Instances: []string{"a", "b", "c"}, Max: 10 * time.Minute}
			b.SetTimes(test.began, test.waited, noon)
			require.Equal(t, test.since, b.Began)
			require.Equal(t, test.deadline, b.Deadline)
		})
	}
}

func TestPassingDrains(t *testing.T) {
	full, short := group(1, pool.InService, pool.TerminatingWait), group(2, pool.InService, pool.TerminatingWait)
	require.True(t, (&Blocker{Draining: true}).MayPassDrains(full))
	require.False(t, (&Blocker{Draining: true}).MayPassDrains(short), "the group launches a node for the drained one already")
	require.False(t, (&Blocker{}).MayPassDrains(full), "launching instances are no drains")

	pending := []events.PendingPod{{Pod: "shop/web", Why: "no node has room"}}
	nodes := []status.Node{{Instance: "i-1", State: status.NodeBlocked, Pending: pending}}
	require.Equal(t, "shop/web: no node has room", PendingReason(nodes, []string{"i-1"}))
	require.Empty(t, PendingReason(nodes, []string{"i-2"}), "another node")
	nodes[0].State = status.NodeDraining
	require.Empty(t, PendingReason(nodes, []string{"i-1"}), "its pods leave")
	require.Empty(t, PendingReason([]status.Node{{Instance: "i-1", State: status.NodeBlocked}}, []string{"i-1"}), "no replacement is pending")
}

func TestAddsFirst(t *testing.T) {
	for name, test := range map[string]struct {
		parameters map[string]string
		want       bool
	}{
		"a refresh that keeps all":       {map[string]string{render.MinHealthyPercentage: "100", render.MaxHealthyPercentage: "110"}, true},
		"no refresh that terminates":     {map[string]string{render.MinHealthyPercentage: "90", render.MaxHealthyPercentage: "110"}, false},
		"no refresh without room":        {map[string]string{render.MinHealthyPercentage: "100", render.MaxHealthyPercentage: "100"}, false},
		"a rolling update that grows":    {map[string]string{render.MinInstancesInService: "2", render.MaxBatchSize: "1"}, true},
		"no rolling update that shrinks": {map[string]string{render.MinInstancesInService: "1", render.MaxBatchSize: "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, AddsFirst(group(2, pool.InService, pool.InService), test.parameters))
		})
	}
}
