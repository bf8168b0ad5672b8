package passes

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestUpgradesThatAreLate(t *testing.T) {
	at := noon.Add(-upgrade.DelayedAfter)
	other := noon.Add(-time.Minute)
	u := func(phase string, at *time.Time) *status.Upgrade {
		return &status.Upgrade{Phase: phase, To: "r2", Origin: "At", At: at, Message: "before"}
	}
	for name, test := range map[string]struct {
		upgrade, next *status.Upgrade
		want, behind  string
	}{
		"is delayed":                 {u(status.UpgradeScheduled, &at), nil, status.UpgradeDelayed, ""},
		"is delayed behind another":  {u("Running", nil), u(status.UpgradeScheduled, &at), "Running", status.UpgradeDelayed},
		"stays missed":               {u(status.UpgradeMissed, &at), nil, status.UpgradeMissed, ""},
		"is another of another time": {u(status.UpgradeScheduled, &other), nil, status.UpgradeScheduled, ""},
		"is none without a time":     {u(status.UpgradeScheduled, nil), nil, status.UpgradeScheduled, ""},
		"is none that began":         {u("Running", &at), nil, "Running", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Recorded: status.Status{Upgrade: test.upgrade, NextUpgrade: test.next}}
			require.NoError(t, depsOf(s).late().Record(t.Context(), demo, at, "waits"))
			require.Equal(t, test.want, s.Recorded.Upgrade.Phase)
			if test.next != nil {
				require.Equal(t, test.behind, s.Recorded.NextUpgrade.Phase)
			}
			require.Nil(t, s.Recorded.Condition(status.Upgraded))
		})
	}
	t.Run("is not late before half an hour", func(t *testing.T) {
		s := &sweeptest.Account{}
		require.NoError(t, depsOf(s).late().Record(t.Context(), demo, at.Add(1), "waits"))
		require.Empty(t, s.Calls)
	})
	t.Run("is ended when its execution is over", func(t *testing.T) {
		for running, calls := range map[bool]int{true: 0, false: 1} {
			s := &sweeptest.Account{Runs: running}
			require.NoError(t, depsOf(s).ender().End(t.Context(), demo, "x"))
			require.Len(t, s.Calls, calls)
		}
	})
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

func TestUpgradeAfterARemoval(t *testing.T) {
	scheduled := events.Upgrade{Cluster: demo, Release: "r2", Origin: "Spec", Key: "k"}
	for name, test := range map[string]struct {
		requested events.Upgrade
		removed   bool
		failing   map[string]error
		want      events.Upgrade
	}{
		"continues to the release of the operator": {events.Upgrade{Cluster: demo, Release: "r2"}, true, nil,
			events.Upgrade{Cluster: demo, Release: "r2"}},
		"continues to the release of the spec, outside its window": {scheduled, true, nil, events.Upgrade{Cluster: demo}},
		"continues a rollback": {events.Upgrade{Cluster: demo, Rollback: true}, true, nil, events.Upgrade{Cluster: demo, Rollback: true}},
		"ends if its input is forgotten": {scheduled, true, map[string]error{"input x": errThrottled},
			events.Upgrade{Cluster: demo, Ended: "x"}},
		"ends if an operator stopped it": {scheduled, false, nil, events.Upgrade{Cluster: demo, Ended: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{WasRemoved: test.removed, Requested: test.requested, Failing: test.failing}
			require.NoError(t, depsOf(s).ender().End(t.Context(), demo, "x"))
			require.Equal(t, []events.Upgrade{test.want}, s.Upgrades)
		})
	}
	t.Run("is tried again if the end of its execution is not known", func(t *testing.T) {
		s := &sweeptest.Account{Failing: map[string]error{"running": errThrottled}}
		require.ErrorIs(t, depsOf(s).ender().End(t.Context(), demo, "x"), errThrottled)
		require.Empty(t, s.Upgrades)
	})
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
