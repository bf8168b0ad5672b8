package work

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

var (
	noon         = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	errThrottled = errors.New("throttled")
)

func lateUpgradesOf(a *sweeptest.Account) LateUpgrades {
	return LateUpgrades{State: sweeptest.State{Account: a}, Now: func() time.Time { return noon }}
}

func enderOf(a *sweeptest.Account) UpgradeEnder {
	sweeptest.Quiet()
	return UpgradeEnder{
		Executions: sweeptest.Executions{Account: a}, Upgrade: sweeptest.Machine{Account: a}, Now: func() time.Time { return noon },
	}
}

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
		"a scheduled upgrade is delayed": {u(status.UpgradeScheduled, &at), nil, status.UpgradeDelayed, ""},
		"a scheduled upgrade behind a running one is delayed": {
			u("Running", nil), u(status.UpgradeScheduled, &at), "Running", status.UpgradeDelayed,
		},
		"a missed upgrade stays missed":              {u(status.UpgradeMissed, &at), nil, status.UpgradeMissed, ""},
		"an upgrade of another time stays scheduled": {u(status.UpgradeScheduled, &other), nil, status.UpgradeScheduled, ""},
		"an upgrade without a time stays scheduled":  {u(status.UpgradeScheduled, nil), nil, status.UpgradeScheduled, ""},
		"an upgrade that began is not late":          {u("Running", &at), nil, "Running", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Recorded: status.Status{Upgrade: test.upgrade, NextUpgrade: test.next}}
			require.NoError(t, lateUpgradesOf(s).Record(t.Context(), "demo", at, "waits"))
			require.Equal(t, test.want, s.Recorded.Upgrade.Phase)
			if test.next != nil {
				require.Equal(t, test.behind, s.Recorded.NextUpgrade.Phase)
			}
			require.Nil(t, s.Recorded.Condition(status.Upgraded))
		})
	}
	t.Run("an upgrade is not late before half an hour", func(t *testing.T) {
		s := &sweeptest.Account{}
		require.NoError(t, lateUpgradesOf(s).Record(t.Context(), "demo", at.Add(1), "waits"))
		require.Empty(t, s.Calls)
	})
	t.Run("an upgrade is ended when its execution is over", func(t *testing.T) {
		for running, calls := range map[bool]int{true: 0, false: 1} {
			s := &sweeptest.Account{Runs: running}
			require.NoError(t, enderOf(s).End(t.Context(), "demo", "x"))
			require.Len(t, s.Calls, calls)
		}
	})
}

func TestUpgradeAfterARemoval(t *testing.T) {
	scheduled := events.Upgrade{Cluster: "demo", Release: "r2", Origin: "At", Key: "k", Due: noon.Add(-time.Hour)}
	for name, test := range map[string]struct {
		requested events.Upgrade
		removed   bool
		failing   map[string]error
		want      events.Upgrade
	}{
		"continues to the release of the operator": {events.Upgrade{Cluster: "demo", Release: "r2"}, true, nil,
			events.Upgrade{Cluster: "demo", Release: "r2", Continues: "x"}},
		"continues to the release of spec.upgrade.at": {
			scheduled, true, nil, events.Upgrade{Cluster: "demo", Release: "r2", Origin: "At", Key: "k", Continues: "x"},
		},
		"continues to the content of a rollout": {
			events.Upgrade{Cluster: "demo", Release: "r2", SHA256: "sha2", Origin: "Rollout", Key: "rollout 1"}, true, nil,
			events.Upgrade{Cluster: "demo", Release: "r2", SHA256: "sha2", Origin: "Rollout", Key: "rollout 1", Continues: "x"},
		},
		"continues a rollback": {events.Upgrade{Cluster: "demo", Rollback: true}, true, nil,
			events.Upgrade{Cluster: "demo", Rollback: true, Continues: "x"}},
		"continues what was continued before": {events.Upgrade{Cluster: "demo", Release: "r2", Continues: "w"}, true, nil,
			events.Upgrade{Cluster: "demo", Release: "r2", Continues: "x"}},
		"ends if its input is forgotten": {scheduled, true, map[string]error{"input x": errThrottled},
			events.Upgrade{Cluster: "demo", Ended: "x"}},
		"ends if an operator stopped it": {scheduled, false, nil, events.Upgrade{Cluster: "demo", Ended: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{WasRemoved: test.removed, Requested: test.requested, Failing: test.failing}
			require.NoError(t, enderOf(s).End(t.Context(), "demo", "x"))
			require.Equal(t, []events.Upgrade{test.want}, s.Upgrades)
		})
	}
	t.Run("the error of a failed read is returned, so that the next sweep tries again", func(t *testing.T) {
		s := &sweeptest.Account{Failing: map[string]error{"running": errThrottled}}
		require.ErrorIs(t, enderOf(s).End(t.Context(), "demo", "x"), errThrottled)
		require.Empty(t, s.Upgrades)
	})
}
