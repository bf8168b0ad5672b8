package handler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestFacts(t *testing.T) {
	t.Run("of all clusters are reported first", func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.handle(events.Fleet{Cluster: "a"})
		require.Len(t, w.report().Facts, 2)
		f := w.fact("b")
		require.Equal(t, rollout.Fact{
			Cluster: "b", Region: region, Account: account, Stack: "arn:b", Labels: map[string]string{"stage": "canary"}, Observed: noon,
			Deployed: r1,
		}, f)
		require.Equal(t, []string{names.Function("rollout")}, w.started)
	})
	t.Run("say why a cluster cannot start", func(t *testing.T) {
		w := newWorld(t, "a")
		for phase, want := range map[status.Phase][2]bool{
			status.Ready: {false, false}, status.Converging: {true, false}, status.Upgrading: {true, false}, status.Failed: {false, true},
			status.Stopped: {false, true},
		} {
			document := status.New("a")
			document.Status.Phase = phase
			w.putDocument(names.Status("a"), document)
			w.handle(events.Fleet{Cluster: "a"})
			f := w.fact("a")
			require.Equal(t, want, [2]bool{f.Busy, f.Unready}, phase)
		}
		w.spec("a", "r1", "  paused: true\n  fleet: {release: Pinned}\n")
		w.handle(events.Fleet{Cluster: "a"})
		f := w.fact("a")
		require.True(t, f.Paused && f.Pinned)
	})
	t.Run("keep what the last usable spec stated", func(t *testing.T) {
		w := newWorld(t, "a")
		w.handle(events.Fleet{})
		w.specs.Upload(names.ClusterSpec("a"), "nonsense")
		w.handle(events.Fleet{Cluster: "a"})
		require.Equal(t, map[string]string{"stage": "canary"}, w.fact("a").Labels)
	})
	t.Run("have the window", func(t *testing.T) {
		w := newWorld(t, "a")
		w.spec("a", "r1", `  upgrade:
    window: {start: "22:00", duration: 2h, timeZone: UTC}
    exclusions: [{from: "2026-11-27T23:00:00Z", until: "2026-11-28T12:00:00Z"}]
`)
		w.handle(events.Fleet{})
		require.Equal(t, &rollout.Opening{Opens: noon.Add(10 * time.Hour), Closes: noon.Add(11 * time.Hour)}, w.fact("a").Opening)
	})
	t.Run("of a deleted cluster are removed", func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.handle(events.Fleet{})
		w.specs.Delete(names.ClusterSpec("a"))
		w.handle(events.Fleet{Cluster: "a"})
		require.Len(t, w.report().Facts, 1)
	})
	t.Run("are not written again if nothing changed", func(t *testing.T) {
		w := newWorld(t, "a")
		w.handle(events.Fleet{})
		written := w.bucket.Written()
		w.started = nil
		for _, in := range []events.Fleet{{}, {Cluster: "a"}, {Audit: true}} {
			w.now = w.now.Add(time.Second)
			w.handle(in)
		}
		require.Equal(t, written, w.bucket.Written())
		require.Empty(t, w.started)
	})
	t.Run("are observed again by the audit, after six hours, or half an hour during a run", func(t *testing.T) {
		for _, test := range []struct {
			claims []string
			age    time.Duration
			audit  bool
			sweep  bool
			again  bool
		}{
			{age: refreshIdle - 1, audit: true}, {age: refreshIdle, audit: true, again: true}, {age: refreshIdle},
			{claims: []string{"a"}, age: refreshActive - time.Second, sweep: true},
			{claims: []string{"a"}, age: refreshActive, sweep: true, again: true},
			{claims: []string{"a"}, age: refreshActive, again: true},
		} {
			w := newWorld(t, "a")
			w.assign(test.claims)
			w.handle(events.Fleet{})
			w.now = noon.Add(test.age)
			w.handle(events.Fleet{Audit: test.audit, Sweep: test.sweep})
			require.Equal(t, test.again, w.report().Full.After(noon), "%+v", test)
		}
	})
	t.Run("of a busy cluster that a run waits for are observed again", func(t *testing.T) {
		for _, claimed := range []bool{true, false} {
			w := newWorld(t, "a", "b")
			if claimed {
				w.assign([]string{"a"})
			}
			w.phase("a", status.Converging)
			w.handle(events.Fleet{Cluster: "a"}) // the notice of Ready was sent, and its status is not written yet
			require.True(t, w.fact("a").Busy)
			w.phase("a", status.Ready)
			w.started = nil
			w.handle(events.Fleet{Sweep: true})
			require.Equal(t, !claimed, w.fact("a").Busy)
			require.Equal(t, claimed, slices.Contains(w.started, names.Function("rollout")))
		}
	})
	t.Run("wait for a status that is written after its notice", func(t *testing.T) {
		for _, writtenAt := range []int{1, rereads, rereads + 1} {
			w := newWorld(t, "a")
			w.assign([]string{"a"})
			w.phase("a", status.Converging)
			w.handle(events.Fleet{})
			pauses := 0
			w.die = func(what string) error {
				if what == "Pause" {
					if pauses++; pauses == writtenAt {
						w.phase("a", status.Ready)
					}
				}
				return nil
			}
			w.handle(events.Fleet{Cluster: "a"})
			require.Equal(t, writtenAt > rereads, w.fact("a").Busy)
			w.later(backoff.SweepPeriod)
			require.Equal(t, writtenAt > rereads, w.fact("a").Busy)
			w.phase("a", status.Ready)
			w.later(backoff.SweepPeriod)
			require.False(t, w.fact("a").Busy)
		}
	})
	t.Run("do not wait for the status of an upgrade in flight, or of a cluster that was idle", func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.assign([]string{"a", "b"}, assignment("a", 1))
		w.handle(events.Fleet{})
		w.record(assignment("a", 1), upgrade.Running)
		w.die = func(what string) error {
			require.NotEqual(t, "Pause", what)
			return nil
		}
		for _, cluster := range []string{"a", "b"} {
			w.phase(cluster, status.Upgrading)
			w.handle(events.Fleet{Cluster: cluster})
			require.True(t, w.fact(cluster).Busy)
		}
		w.handle(events.Fleet{Cluster: "a"})
	})
	t.Run("have the deadline of a rollback", func(t *testing.T) {
		w := newWorld(t, "a")
		w.record(assignment("a", 1), upgrade.Done)
		w.pin("a", r2)
		w.handle(events.Fleet{})
		require.Equal(t, noon.Add(7*24*time.Hour), w.fact("a").RollbackUntil)
	})
	t.Run("name the releases that the cell can use", func(t *testing.T) {
		release := readRelease(t)
		sha := names.SHA256([]byte(release))
		for _, test := range []struct {
			stored  string
			verdict *status.ReleaseStatus
			want    []string
		}{
			{"", nil, nil},
			{"nonsense", nil, nil},
			{release, nil, []string{sha}},
			{release, &status.ReleaseStatus{Usable: true, SHA256: sha}, []string{sha}},
			{release, &status.ReleaseStatus{SHA256: "other"}, []string{sha}},
			{release, &status.ReleaseStatus{SHA256: sha}, nil},
		} {
			w := newWorld(t, "a")
			w.putDocument(names.DesiredState(cell), rollout.DesiredState{Sections: map[string]rollout.Section{"next": {
				Claims: []string{"a"}, Releases: []rollout.ReleaseRef{{Name: "1.36-1", SHA256: sha}},
			}}})
			if test.stored != "" {
				w.bucket.Upload(names.PinnedRelease(sha), test.stored)
			}
			if test.verdict != nil {
				document := status.NewRelease("1.36-1")
				document.Status = *test.verdict
				w.putDocument(names.ReleaseStatus("1.36-1"), document)
			}
			w.handle(events.Fleet{})
			require.Equal(t, test.want, w.report().Usable)
		}
	})
	t.Run("name the release of a new run at once", func(t *testing.T) {
		release := readRelease(t)
		sha := names.SHA256([]byte(release))
		w := newWorld(t, "a")
		w.handle(events.Fleet{})
		w.bucket.Upload(names.PinnedRelease(sha), release)
		w.putDocument(names.DesiredState(cell), rollout.DesiredState{Sections: map[string]rollout.Section{"next": {
			Claims: []string{"a"}, Releases: []rollout.ReleaseRef{{Name: "1.36-1", SHA256: sha}},
		}}})
		w.now, w.started = w.now.Add(time.Second), nil
		w.handle(events.Fleet{})
		require.Equal(t, []string{sha}, w.report().Usable)
		require.Equal(t, []string{names.Function("rollout")}, w.started)
	})
}

func TestAssignments(t *testing.T) {
	t.Run("are copied, and their clusters planned once", func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.handle(events.Fleet{})
		w.assign([]string{"a", "b"}, assignment("a", 1))
		w.started = nil
		w.later(time.Minute)
		require.Equal(t, rollout.AttemptOpen, w.attempt("a"))
		require.Equal(t, []string{"a"}, w.open())
		due := noon.Add(time.Minute)
		require.Equal(t, []string{names.DueExecution("a", due), names.Function("rollout")}, w.started)
		require.Contains(t, w.bucket.Keys(), names.Due(due, "a"), "the sweep is the safety net")
		w.started = nil
		w.later(repeatEvery - time.Second)
		require.NotContains(t, w.started, names.DueExecution("a", due))
		w.later(time.Second)
		require.Contains(t, w.started, names.DueExecution("a", due.Add(repeatEvery)))
	})
	t.Run("leave a busy cluster to the sweep", func(t *testing.T) {
		w := newWorld(t, "a")
		w.putDocument(names.Lease("a"), map[string]any{"execution": "arn:of-an-execution"})
		w.running = []string{"arn:of-an-execution"}
		w.assign([]string{"a"}, assignment("a", 1))
		w.handle(events.Fleet{})
		require.Contains(t, w.bucket.Keys(), names.Due(noon, "a"))
		require.Equal(t, []string{names.Function("rollout")}, w.started)
	})
	t.Run("follow the upgrade to its end", func(t *testing.T) {
		w := newWorld(t, "a")
		a := assignment("a", 1)
		w.assign([]string{"a"}, a)
		w.handle(events.Fleet{})
		begun := w.copyOf("a")
		begun.Begun = true
		w.putDocument(names.Assignment("a"), begun)
		w.later(time.Minute)
		require.Equal(t, rollout.AttemptBegun, w.attempt("a"))
		w.record(a, upgrade.Running)
		w.later(time.Minute)
		require.Equal(t, rollout.AttemptBegun, w.attempt("a"))
		w.pin("a", r2)
		w.record(a, upgrade.Done)
		w.later(time.Minute)
		require.Equal(t, rollout.AttemptBegun, w.attempt("a"), "nothing has observed the cluster since")
		require.Equal(t, []string{"a"}, w.open())
		seen := w.now.Add(time.Second)
		w.putDocument(names.CellLooks, rollout.Looks{Clusters: map[string]rollout.Look{"a": {At: seen, Nodes: 3, NotReady: 1}}})
		w.later(time.Minute)
		f := w.fact("a")
		require.Equal(t, []any{rollout.AttemptDone, seen, 3, 1, r2}, []any{f.Attempt.State, f.Observed, f.Nodes, f.NotReady, f.Deployed})
		require.Empty(t, w.open())
		written := w.bucket.Written()
		w.later(time.Minute)
		require.Equal(t, written, w.bucket.Written(), "the look is known")
		w.spec("a", "r1", "  upgrade: {alarms: [errors, latency]}\n")
		w.alarms = []preflight.Alarm{{Name: "errors", State: "OK"}}
		w.putDocument(names.CellLooks, rollout.Looks{Clusters: map[string]rollout.Look{"a": {At: w.now, Nodes: 3}}})
		w.later(time.Second)
		require.Equal(t, []string{"latency"}, w.fact("a").Alarms)
	})
	t.Run("name the check that blocked the upgrade", func(t *testing.T) {
		w := newWorld(t, "a")
		a := assignment("a", 1)
		w.assign([]string{"a"}, a)
		w.handle(events.Fleet{})
		w.record(a, upgrade.Blocked)
		document := status.New("a")
		document.Status.Phase = status.Ready
		document.Status.Upgrade = &status.Upgrade{Execution: "upgrade", Checks: []status.Check{{Name: "Warned"}, {Name: "Quota", Blocks: true}}}
		w.putDocument(names.Status("a"), document)
		w.later(time.Minute)
		f := w.fact("a")
		require.Equal(t, rollout.Attempt{Rollout: "next", Run: 1, Number: 1, State: rollout.AttemptBlocked, Check: "Quota"}, *f.Attempt)
	})
	t.Run("are withdrawn before the upgrade begins", func(t *testing.T) {
		w := newWorld(t, "a")
		a := assignment("a", 1)
		w.assign([]string{"a"}, a)
		w.handle(events.Fleet{})
		a.Withdrawn = true
		w.assign([]string{"a"}, a)
		w.later(time.Minute)
		require.True(t, w.copyOf("a").Withdrawn)
		require.Equal(t, rollout.AttemptWithdrawn, w.attempt("a"))
		require.Empty(t, w.open())
	})
	t.Run("are withdrawn before they were copied", func(t *testing.T) {
		w := newWorld(t, "a")
		a := assignment("a", 1)
		a.Withdrawn = true
		w.assign([]string{"a"}, a)
		w.handle(events.Fleet{})
		require.Equal(t, rollout.AttemptWithdrawn, w.attempt("a"))
		require.Equal(t, []string{names.Function("rollout")}, w.started)
	})
	t.Run("are withdrawn when the run no longer has them", func(t *testing.T) {
		w := newWorld(t, "a")
		w.assign([]string{"a"}, assignment("a", 1))
		w.handle(events.Fleet{})
		w.assign(nil)
		w.later(time.Minute)
		require.True(t, w.copyOf("a").Withdrawn)
	})
	t.Run("lose against an upgrade that begins at the same time", func(t *testing.T) {
		w := newWorld(t, "a")
		a := assignment("a", 1)
		w.assign([]string{"a"}, a)
		w.handle(events.Fleet{})
		a.Withdrawn = true
		w.assign([]string{"a"}, a)
		w.die = func(what string) error {
			if what != "Put "+names.Assignment("a") {
				return nil
			}
			w.die = nil
			begun := w.copyOf("a")
			begun.Begun = true
			w.putDocument(names.Assignment("a"), begun)
			return nil
		}
		w.later(time.Minute)
		require.Equal(t, rollout.AttemptBegun, w.attempt("a"))
		require.False(t, w.copyOf("a").Withdrawn)
	})
	t.Run("of the next attempt wait for the end of the last one", func(t *testing.T) {
		w := newWorld(t, "a")
		a := assignment("a", 1)
		w.assign([]string{"a"}, a)
		w.handle(events.Fleet{})
		w.record(a, upgrade.Running)
		w.assign([]string{"a"}, assignment("a", 2))
		w.later(time.Minute)
		require.Equal(t, 1, w.copyOf("a").Attempt)
		w.record(a, upgrade.Stopped)
		w.later(time.Minute)
		require.Equal(t, 2, w.copyOf("a").Attempt)
		require.Equal(t, []string{"a"}, w.open())
	})
	t.Run("never replace a later attempt", func(t *testing.T) {
		w := newWorld(t, "a")
		w.assign([]string{"a"}, assignment("a", 2))
		w.handle(events.Fleet{})
		w.record(assignment("a", 2), upgrade.Stopped)
		w.assign([]string{"a"}, assignment("a", 1))
		w.later(time.Minute)
		require.Equal(t, 2, w.copyOf("a").Attempt)
	})
	t.Run("are copied again for a recreated cluster", func(t *testing.T) {
		w := newWorld(t, "a")
		w.assign([]string{"a"}, assignment("a", 1))
		w.handle(events.Fleet{})
		recreated := w.stacks[names.Stack("a", names.ControlPlane)]
		recreated.ID = "arn:a-2"
		w.stacks[names.Stack("a", names.ControlPlane)] = recreated
		w.assign([]string{"a"})
		w.later(time.Minute)
		require.Empty(t, w.attempt("a"), "it has no assignment")
	})
	t.Run("stay within the limit of the cell", func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.limit = 2
		all := []string{"a", "b", "c"}
		w.assign(all, assignment("a", 1), assignment("b", 1), assignment("c", 1))
		w.handle(events.Fleet{})
		require.Equal(t, []string{"a", "b"}, w.open())
		require.Equal(t, 2, w.report().Limit)
		require.Nil(t, w.copyOf("c"))
		w.record(assignment("a", 1), upgrade.Stopped)
		w.later(time.Minute)
		w.later(time.Minute)
		require.Equal(t, []string{"b", "c"}, w.open())
		require.NotNil(t, w.copyOf("c"))
	})
	t.Run("stay on the list of open clusters that another call wrote after this one observed the cluster", func(t *testing.T) {
		w := newWorld(t, "a")
		w.handle(events.Fleet{})
		reads := 0
		w.die = func(what string) error {
			if what == "Get "+names.CellReport(cell) {
				if reads++; reads == 2 { // to merge its facts
					w.assign([]string{"a"}, assignment("a", 1))
					w.handle(events.Fleet{})
				}
			}
			return nil
		}
		w.handle(events.Fleet{Cluster: "a"})
		require.NotNil(t, w.copyOf("a"))
		require.Equal(t, []string{"a"}, w.open())
	})
	t.Run("stay on the list of open clusters on which another call relied after this one observed the cluster", func(t *testing.T) {
		w := newWorld(t, "a")
		w.assign([]string{"a"}, assignment("a", 1))
		w.handle(events.Fleet{})
		w.record(assignment("a", 1), upgrade.Stopped)
		reads := 0
		w.die = func(what string) error {
			if what == "Get "+names.CellReport(cell) {
				if reads++; reads == 2 { // to merge its facts
					w.assign([]string{"a"}, assignment("a", 2))
					w.handle(events.Fleet{})
				}
			}
			return nil
		}
		w.handle(events.Fleet{Cluster: "a"})
		require.Equal(t, 2, w.copyOf("a").Attempt)
		require.Equal(t, []string{"a"}, w.open())
	})
	t.Run("are not copied after another call removed the cluster from the list", func(t *testing.T) {
		w := newWorld(t, "a")
		w.assign([]string{"a"}, assignment("a", 1))
		w.handle(events.Fleet{})
		w.record(assignment("a", 1), upgrade.Stopped)
		w.assign([]string{"a"}, assignment("a", 2))
		w.die = func(what string) error {
			if what == "Put "+names.CellReport(cell) { // for attempt 2
				w.die = nil
				w.assign([]string{"a"})
				w.handle(events.Fleet{Cluster: "a"})
				require.Empty(t, w.open())
			}
			return nil
		}
		w.handle(events.Fleet{})
		require.Equal(t, 1, w.copyOf("a").Attempt)
		require.Empty(t, w.open())
	})
	t.Run("have a limit of a tenth by default", func(t *testing.T) {
		for clusters, want := range map[int]int{1: minLimit, 39: minLimit, 40: 4} {
			c := &call{Handler: &Handler{}, report: &rollout.Report{Facts: make([]rollout.Fact, clusters)}}
			require.Equal(t, want, c.limit())
		}
	})
	t.Run("give planning the freezes and claims", func(t *testing.T) {
		w := newWorld(t, "a")
		sale := api.Freeze{Metadata: api.Metadata{Name: "sale"}}
		w.putDocument(names.DesiredState(cell), rollout.DesiredState{
			Sections: map[string]rollout.Section{"next": {Claims: []string{"a"}}}, Freezes: []api.Freeze{sale},
		})
		w.handle(events.Fleet{})
		freezes, _, err := w.state.CellFreezes(t.Context())
		require.NoError(t, err)
		require.Equal(t, &rollout.CellFreezes{Freezes: []api.Freeze{sale}, Claims: []string{"a"}}, freezes)
		w.putDocument(names.DesiredState(cell), rollout.DesiredState{})
		w.handle(events.Fleet{})
		freezes, _, err = w.state.CellFreezes(t.Context())
		require.NoError(t, err)
		require.Empty(t, freezes)
	})
}

// TestKilledBetweenAnyTwoCalls ends the function before each of its calls, once. The next call reaches the state that an uninterrupted one
// would have reached.
func TestKilledBetweenAnyTwoCalls(t *testing.T) {
	// life copies an assignment, and withdraws another one.
	life := func(t *testing.T, kill int) (calls int, state string) {
		w := newWorld(t, "a", "b")
		w.handle(events.Fleet{})
		b := assignment("b", 1)
		w.assign([]string{"a", "b"}, b)
		w.later(time.Minute)
		b.Withdrawn = true
		w.assign([]string{"a", "b"}, assignment("a", 1), b)
		w.now, w.started = w.now.Add(time.Minute), nil
		last := ""
		w.die = func(what string) error {
			if calls++; calls == kill {
				last = what
				return errKilled
			}
			return nil
		}
		_, err := w.handler().Handle(t.Context(), events.Fleet{})
		if kill > 0 {
			require.ErrorIs(t, err, errKilled)
		} else {
			require.NoError(t, err)
		}
		w.die = nil
		w.handle(events.Fleet{})
		if last != "Start "+names.Function("rollout") { // the sweep ticks active runs
			require.Contains(t, w.started, names.Function("rollout"))
		}
		var lines []string
		for _, f := range w.report().Facts {
			lines = append(lines, fmt.Sprintf("%s %+v", f.Cluster, *f.Attempt))
		}
		for _, cluster := range []string{"a", "b"} {
			a := w.copyOf(cluster)
			lines = append(lines, fmt.Sprintf("%s %d withdrawn %t requested %s", a.Cluster, a.Attempt, a.Withdrawn, a.Requested))
		}
		lines = append(lines, w.open()...)
		w.started = slices.DeleteFunc(w.started, func(s string) bool { return s == names.Function("rollout") })
		slices.Sort(w.started)
		lines = append(lines, w.started...)
		for _, key := range w.bucket.Keys() {
			if strings.HasPrefix(key, names.Dues) {
				lines = append(lines, key)
			}
		}
		return calls, strings.Join(lines, "\n")
	}
	calls, want := life(t, 0)
	require.Greater(t, calls, 15)
	for kill := 1; kill <= calls; kill++ {
		if _, got := life(t, kill); got != want {
			t.Errorf("killed at call %d:\n%s\nwant\n%s", kill, got, want)
		}
	}
}

func TestConcurrentCalls(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.handle(events.Fleet{})
	w.assign([]string{"a", "b"}, assignment("a", 1), assignment("b", 1))
	w.limit = 1
	once := true
	w.die = func(what string) error {
		if once && what == "Put "+names.CellReport(cell) { // another call reserves first
			once = false
			w.handle(events.Fleet{})
		}
		return nil
	}
	w.later(time.Minute)
	require.Equal(t, []string{"a"}, w.open())
	require.Nil(t, w.copyOf("b"))
}
