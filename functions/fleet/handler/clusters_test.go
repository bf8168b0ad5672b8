package handler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// TestLostEvents changes clusters and drops every event. The next call of the sweep reports what a call for each event would have reported.
func TestLostEvents(t *testing.T) {
	begin := func(w *world, cluster string) {
		begun := w.copyOf(cluster)
		begun.Begun = true
		w.putDocument(names.Assignment(cluster), begun)
	}
	for name, test := range map[string]struct {
		lost func(*world)
		want func(*world) bool
	}{
		"an upgrade begins": {
			func(w *world) { begin(w, "a") }, func(w *world) bool { return w.attempt("a") == rollout.AttemptBegun },
		},
		"an upgrade stops": {
			func(w *world) { w.record(assignment("a", 1), upgrade.Stopped) },
			func(w *world) bool { return w.attempt("a") == rollout.AttemptStopped },
		},
		"an upgrade is done, and the sweep observed its nodes": {
			func(w *world) {
				w.record(assignment("a", 1), upgrade.Done)
				w.pin("a", r2)
				w.putDocument(names.CellLooks, rollout.Looks{Clusters: map[string]rollout.Look{"a": {At: w.now, Nodes: 3}}})
			},
			func(w *world) bool {
				return w.attempt("a") == rollout.AttemptDone && w.fact("a").Nodes == 3 && w.fact("a").Deployed == r2
			},
		},
		"a start is withdrawn": {
			func(w *world) { w.assign([]string{"a", "b", "c"}) },
			func(w *world) bool { return w.attempt("a") == rollout.AttemptWithdrawn },
		},
		"another start is assigned": {
			func(w *world) { w.assign([]string{"a", "b", "c"}, assignment("a", 1), assignment("b", 1)) },
			func(w *world) bool { return w.attempt("b") == rollout.AttemptOpen },
		},
		"a busy cluster is idle": {
			func(w *world) { w.phase("c", status.Ready) }, func(w *world) bool { return !w.fact("c").Busy },
		},
		"a waiting cluster is busy": {
			func(w *world) { w.phase("b", status.Converging) }, func(w *world) bool { return w.fact("b").Busy },
		},
		"a waiting cluster is paused": {
			func(w *world) { w.spec("b", "r1", "  paused: true\n") }, func(w *world) bool { return w.fact("b").Paused },
		},
		"a cluster is created": {
			func(w *world) { w.create("d") }, func(w *world) bool { return w.has("d") },
		},
		"a waiting cluster is deleted": {
			func(w *world) { w.specs.Delete(names.ClusterSpec("b")) }, func(w *world) bool { return !w.has("b") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a", "b", "c")
			w.phase("c", status.Converging)
			w.assign([]string{"a", "b", "c"}, assignment("a", 1))
			w.handle(events.Fleet{})
			w.now, w.started = w.now.Add(time.Minute), nil
			test.lost(w)
			require.False(t, test.want(w))
			w.later(backoff.SweepPeriod)
			require.True(t, test.want(w), "%+v", w.report().Facts)
			require.Contains(t, w.started, names.Function("rollout"))
		})
	}
	t.Run("any other change of a cluster is found within half an hour", func(t *testing.T) {
		w := newWorld(t, "a")
		w.assign([]string{"a"})
		w.handle(events.Fleet{})
		w.pin("a", r2)
		w.later(refreshActive)
		require.Equal(t, r2, w.fact("a").Deployed)
	})
	t.Run("an attempt of an ended run is found by the audit", func(t *testing.T) {
		w := newWorld(t, "a")
		w.assign([]string{"a"}, assignment("a", 1))
		w.handle(events.Fleet{})
		begin(w, "a")
		w.assign(nil)
		w.record(assignment("a", 1), upgrade.Stopped)
		w.now = w.now.Add(backoff.AuditPeriod)
		w.handle(events.Fleet{Audit: true})
		require.Equal(t, rollout.AttemptStopped, w.attempt("a"))
		require.Empty(t, w.open())
	})
}

// TestObservedPhases finds a phase that changes facts, and whose notices the rule of the bus would not deliver.
func TestObservedPhases(t *testing.T) {
	var want []string
	for _, phase := range []status.Phase{
		status.Pending, status.Converging, status.Upgrading, status.Ready, status.Stopped, status.Failed, status.Deleting, status.Deleted,
	} {
		want = append(want, string(phase))
	}
	for _, state := range []upgrade.State{upgrade.Checking, upgrade.Running, upgrade.Blocked, upgrade.Stopped, upgrade.Done} {
		if (state.Final() || state == upgrade.Checking) && !slices.Contains(want, string(state)) {
			want = append(want, string(state))
		}
	}
	require.Equal(t, want, events.ObservedPhases)
}

// TestReadsOfAnEvent counts what an event of one cluster costs while runs work on many.
func TestReadsOfAnEvent(t *testing.T) {
	// reads returns the calls that read something, while as many clusters are in flight and as many wait.
	reads := func(t *testing.T, clusters int, in events.Fleet, given func(*world)) (calls []string) {
		var all []string
		var assignments []rollout.Assignment
		for i := range clusters {
			cluster := fmt.Sprintf("c%02d", i)
			if all = append(all, cluster, "w"+cluster); i > 0 {
				assignments = append(assignments, assignment(cluster, 1))
			}
		}
		w := newWorld(t, all...)
		w.handle(events.Fleet{})
		for i := range clusters { // busy with other work
			w.phase(fmt.Sprintf("wc%02d", i), status.Converging)
		}
		w.assign(all, assignments...)
		w.handle(events.Fleet{Sweep: true})
		for _, a := range assignments {
			w.record(a, upgrade.Running)
			w.phase(a.Cluster, status.Upgrading)
			w.handle(events.Fleet{Cluster: a.Cluster})
			require.Equal(t, rollout.AttemptBegun, w.attempt(a.Cluster))
		}
		w.assign(all, append(assignments, assignment("c00", 1))...)
		w.now = w.now.Add(3 * time.Minute)
		given(w)
		w.die = func(what string) error {
			if what != "Pause" && !strings.HasPrefix(what, "Put ") && !strings.HasPrefix(what, "Start ") && !strings.HasPrefix(what, "Converge ") {
				calls = append(calls, what)
			}
			return nil
		}
		w.handle(in)
		return calls
	}
	for name, test := range map[string]struct {
		in    events.Fleet
		given func(*world)
		most  int
	}{
		"whose status changed":            {events.Fleet{Cluster: "c01"}, func(*world) {}, 9},
		"whose upgrade ended":             {events.Fleet{Cluster: "c01"}, func(w *world) { w.record(assignment("c01", 1), upgrade.Done) }, 9},
		"that waits for other work":       {events.Fleet{Cluster: "wc01"}, func(*world) {}, 9 + 5*rereads},
		"that is idle again":              {events.Fleet{Cluster: "wc01"}, func(w *world) { w.phase("wc01", status.Ready) }, 8},
		"that a run no longer waits for":  {events.Fleet{Cluster: "other"}, func(w *world) { w.create("other") }, 8},
		"or of a run that has started it": {events.Fleet{}, func(*world) {}, 15},
	} {
		t.Run(name, func(t *testing.T) {
			few, many := reads(t, 3, test.in, test.given), reads(t, 30, test.in, test.given)
			require.Equal(t, few, many)
			require.LessOrEqual(t, len(few), test.most, few)
		})
	}
}
