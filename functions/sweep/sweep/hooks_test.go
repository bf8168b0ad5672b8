package sweep

// What a sweep starts at hooks, resumes in Auto Scaling, and ends of upgrades.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/sweeptest"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestSweepStartsWorkAtHooks(t *testing.T) {
	instance := func(id, state string) pool.Instance { return pool.Instance{ID: id, State: state} }
	group := pool.Group{Name: "g", Instances: []pool.Instance{
		instance("i-1", pool.PendingWait), instance("i-2", pool.TerminatingWait), instance("i-3", pool.InService),
		instance("i-4", pool.TerminatingWait),
	}}
	hooks := map[string]events.Lifecycle{
		"g " + pool.LaunchHook: {LifecycleHookName: "launch"}, "g " + pool.TerminateHook: {LifecycleHookName: "terminate"},
	}
	for name, test := range map[string]struct {
		hooks   map[string]events.Lifecycle
		running map[string]events.Lifecycle
		failing map[string]error
		want    []string
	}{
		"of instances that leave, then of those that join": {hooks, nil, nil, []string{"work i-2", "work i-4", "work i-1"}},
		"not of those that an execution has": {
			hooks, map[string]events.Lifecycle{"m:x": {EC2InstanceID: "i-2"}}, nil, []string{"work i-4", "work i-1"},
		},
		"not without a hook":                   {nil, nil, nil, nil},
		"not when executions cannot be listed": {hooks, nil, map[string]error{"list": errThrottled}, nil},
		"not when an execution is unknown": {
			hooks, map[string]events.Lifecycle{"m:x": {}}, map[string]error{"input m:x": errThrottled}, nil,
		},
		"not when its hook cannot be read": {hooks, nil, map[string]error{"hook g": errThrottled}, nil},
		"of each, whatever fails for another": {
			hooks, nil, map[string]error{"work i-2": errThrottled}, []string{"work i-2", "work i-4", "work i-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Failing: test.failing}
			h := depsOf(s)
			h.Groups = sweeptest.Groups{Account: s, Hooks: test.hooks}
			h.DrainNode, h.JoinNode = worker{Account: s, running: test.running}, worker{Account: s, running: test.running}
			err := h.hooks().Run(t.Context(), []pool.Group{group})
			require.Equal(t, test.failing != nil, errors.Is(err, errThrottled))
			require.Equal(t, test.want, s.Calls)
		})
	}
	t.Run("and lists nothing when none waits", func(t *testing.T) {
		s := &sweeptest.Account{Failing: map[string]error{"list": errThrottled}}
		h := depsOf(s)
		h.DrainNode, h.JoinNode = worker{Account: s}, worker{Account: s}
		require.NoError(t, h.hooks().Run(t.Context(), []pool.Group{{Instances: []pool.Instance{instance("i-3", pool.InService)}}}))
	})
}

// worker is a machine whose executions run.
type worker struct {
	Machine
	*sweeptest.Account
	running map[string]events.Lifecycle
}

func (w worker) Running(context.Context) (all []string, err error) {
	for x := range w.running {
		all = append(all, x)
	}
	return all, w.Failing["list"]
}

func (w worker) Input(_ context.Context, x string, into any) error {
	*into.(*events.Lifecycle) = w.running[x]
	return w.Failing["input "+x]
}

func (w worker) Start(_ context.Context, _ string, input any) error {
	return w.Did("work %s", input.(events.Lifecycle).EC2InstanceID)
}

func TestSweepResumesProcesses(t *testing.T) {
	at := func(change func(map[string]time.Time)) pool.Group {
		group := pool.Group{Name: "g", SuspendedAt: map[string]time.Time{}}
		for _, process := range suspendedByUpdate {
			group.SuspendedAt[process] = noon
		}
		change(group.SuspendedAt)
		return group
	}
	all := func(map[string]time.Time) {}
	for name, test := range map[string]struct {
		suspended func(map[string]time.Time)
		status    string
		left      bool
		failing   map[string]error
		changing  bool
		want      []string
	}{
		"that an update left suspended":      {all, "UPDATE_COMPLETE", true, nil, false, []string{"resume processes of g: 5"}},
		"not while it runs":                  {all, "UPDATE_IN_PROGRESS", true, nil, true, nil},
		"not those that no update suspended": {all, "UPDATE_COMPLETE", false, nil, false, nil},
		"not when some are not suspended": {
			func(s map[string]time.Time) { delete(s, suspendedByUpdate[4]) }, "UPDATE_COMPLETE", true, nil, false, nil,
		},
		"not one that was suspended before": {
			func(s map[string]time.Time) { s[suspendedByUpdate[1]] = noon.Add(-time.Minute) }, "UPDATE_COMPLETE", true, nil, false,
			[]string{"resume processes of g: 4"},
		},
		"not one that was suspended before the others": {
			func(s map[string]time.Time) { s[suspendedByUpdate[4]] = noon.Add(-time.Minute) }, "UPDATE_COMPLETE", true, nil, false,
			[]string{"resume processes of g: 4"},
		},
		"also within a second": {
			func(s map[string]time.Time) { s[suspendedByUpdate[1]] = noon.Add(-time.Second) }, "UPDATE_COMPLETE", true, nil, false,
			[]string{"resume processes of g: 5"},
		},
		"not when the stack cannot be read": {all, "UPDATE_COMPLETE", true, map[string]error{"describe": errThrottled}, false, nil},
		"not when its events are unknown":   {all, "UPDATE_COMPLETE", true, map[string]error{"changing": errThrottled}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Deployed: stack.Deployed{Status: test.status}, HasBegun: test.left, Failing: test.failing}
			h := depsOf(s)
			h.Groups = sweeptest.Groups{Account: s}
			changing, err := h.instances().resumeProcesses(t.Context(), at(test.suspended))
			require.Equal(t, test.failing != nil, errors.Is(err, errThrottled))
			require.Equal(t, test.changing, changing)
			require.Equal(t, test.want, s.Calls)
		})
	}
}

func TestSweepEndsUpgrades(t *testing.T) {
	for name, test := range map[string]struct {
		record  *upgrade.Record
		running bool
		failing map[string]error
		ends    bool
		// reads of two sweeps.
		reads int
	}{
		"whose execution is over":               {&upgrade.Record{State: upgrade.Running, Execution: "x"}, false, nil, true, 2},
		"not while it runs":                     {&upgrade.Record{State: upgrade.Running, Execution: "x"}, true, nil, false, 2},
		"not one that ended, and reads it once": {&upgrade.Record{State: upgrade.Done, Execution: "x"}, false, nil, false, 1},
		"not one that was blocked":              {&upgrade.Record{State: upgrade.Blocked, Execution: "x"}, false, nil, false, 1},
		"not without a record":                  {nil, false, nil, false, 2},
		"not when it cannot be read": {
			&upgrade.Record{State: upgrade.Running}, false, map[string]error{"record": errThrottled}, false, 2,
		},
		"not when its execution is unknown": {
			&upgrade.Record{State: upgrade.Running}, false, map[string]error{"running": errThrottled}, false, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Runs: test.running, Failing: test.failing}
			h, reads := depsOf(s), 0
			entry := store.Entry{Key: names.Upgrade(demo), ETag: "1"}
			state := recorded{
				sweeptest.Unlisted{State: sweeptest.State{Account: s}, Listed: sweeptest.Listed{names.Upgrades: {entry}}}, test.record, &reads,
			}
			upgrades := Upgrades{State: state, Ender: h.ender(), Cache: &UpgradeCache{}}
			for range 2 {
				s.Calls = nil
				require.Equal(t, test.failing != nil, errors.Is(upgrades.Run(t.Context()), errThrottled))
				require.Equal(t, test.ends, len(s.Calls) == 2, s.Calls)
			}
			require.Equal(t, test.reads, reads)
			entry.ETag = "2"
			state.Listed[names.Upgrades] = []store.Entry{entry}
			_ = upgrades.Run(t.Context()) // its error is that of before
			require.Equal(t, test.reads+1, reads, "a record that was written is read again")
		})
	}
}

type recorded struct {
	sweeptest.Unlisted
	record *upgrade.Record
	reads  *int
}

func (r recorded) Upgrade(context.Context, string) (*upgrade.Record, string, error) {
	*r.reads++
	return r.record, "", r.Failing["record"]
}
