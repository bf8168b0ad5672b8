package audit

// What the audit makes of upgrades that run, ended, or did not begin.

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

func (a *audited) Start(context.Context, string, any) error { return a.did("end its upgrade") }

func TestAuditStartsDueUpgrades(t *testing.T) {
	ended, overdue := noon.Add(-period), noon.Add(-upgrade.DelayedAfter)
	next := func(execution string, at *time.Time) *status.Upgrade {
		return &status.Upgrade{Phase: status.UpgradeScheduled, To: "r3", Origin: "Channel", At: at, Execution: execution}
	}
	running := &status.Upgrade{Phase: "Running", To: "r2", Execution: "x"}
	over := &status.Upgrade{Phase: "Blocked", To: "r2", Execution: "x", Ended: &ended}
	blocked := next("", &overdue)
	blocked.Checks = []status.Check{{Name: preflight.UpgradePossible, Blocks: true, Message: "there is no release r3"}}
	const again = " 2026-11-26T12:00:00Z"
	for name, test := range map[string]struct {
		phase         status.Phase
		upgrade, next *status.Upgrade
		running       bool
		failing       map[string]error
		// phases of the upgrade and the next one afterwards, and the message of the one that is late.
		want, behind, message string
		calls                 []string
	}{
		"ends one whose execution is over": {status.Upgrading, running, nil, false, nil, "Running", "", "", []string{"end its upgrade"}},
		"leaves one alone that runs":       {status.Upgrading, running, nil, true, nil, "Running", "", "", nil},
		"fails when its execution is unknown": {
			status.Upgrading, running, nil, false, map[string]error{"running": errThrottled}, "Running", "", "", nil,
		},
		"records that the next one is late": {
			status.Upgrading, running, next("", &overdue), true, nil, "Running", status.UpgradeDelayed, "it waits for the upgrade to r2",
			[]string{"write"},
		},
		"leaves that to an execution that waits": {
			status.Upgrading, running, next("y", &overdue), true, nil, "Running", status.UpgradeScheduled, "", nil,
		},
		"fails when that cannot be recorded": {
			status.Upgrading, running, next("", &overdue), false, map[string]error{"write": errThrottled}, "Running",
			status.UpgradeDelayed, "waits", []string{"write"},
		},
		"fails when who waits is unknown": {
			status.Upgrading, running, next("y", &overdue), false, map[string]error{"running": errThrottled}, "Running",
			status.UpgradeScheduled, "", nil,
		},
		"starts the next one when one is over": {
			status.Ready, over, next("", nil), false, nil, "Blocked", status.UpgradeScheduled, "",
			[]string{"start: next-upgrade" + again},
		},
		"not when an execution begins it": {
			status.Ready, over, next("y", nil), false, nil, "Blocked", status.UpgradeScheduled, "", nil,
		},
		"not while the cluster is not ready": {
			status.Stopped, over, next("", nil), false, nil, "Blocked", status.UpgradeScheduled, "", nil,
		},
		"not when it is not over": {
			status.Ready, &status.Upgrade{Phase: "Blocked"}, next("", nil), false, nil, "Blocked", status.UpgradeScheduled, "", nil,
		},
		"has the cluster judged when its upgrade is over": {
			status.Upgrading, over, nil, false, nil, "Blocked", "", "", []string{"start: after-upgrade" + again},
		},
		"not one that is ready": {status.Ready, over, nil, false, nil, "Blocked", "", "", nil},
		"not one whose upgrade is not over": {
			status.Upgrading, &status.Upgrade{Phase: "Blocked"}, nil, false, nil, "Blocked", "", "", nil,
		},
		"nothing without an upgrade": {
			status.Ready, nil, next("", &overdue), false, nil, "", status.UpgradeScheduled, "", nil,
		},
		"records why one is late": {
			status.Stopped, next("", &overdue), nil, false, nil, status.UpgradeDelayed, "", ": the cluster is Stopped: paused", []string{"write"},
		},
		"records what is missing for it": {
			status.Stopped, blocked, nil, false, nil, status.UpgradeDelayed, "", "a check blocks it: there is no release r3", []string{"write"},
		},
		"starts none that an execution waits to begin": {
			status.Ready, next("y", &overdue), nil, true, nil, status.UpgradeScheduled, "", "", nil,
		},
		"starts none when that is unknown": {
			status.Ready, next("y", &overdue), nil, false, map[string]error{"running": errThrottled}, status.UpgradeScheduled, "", "", nil,
		},
		"starts none whose lateness cannot be recorded": {
			status.Ready, next("", &overdue), nil, false, map[string]error{"write": errThrottled}, status.UpgradeDelayed, "", "", []string{"write"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			copied := func(u *status.Upgrade) *status.Upgrade {
				if u == nil {
					return nil
				}
				own := *u
				return &own
			}
			a := &audited{running: test.running, failing: test.failing}
			a.status = &status.Status{Phase: test.phase, Message: "paused", Upgrade: copied(test.upgrade), NextUpgrade: copied(test.next)}
			r := a.run()
			r.Upgrade = starter{a}
			_, err := r.checkUpgrades(t.Context(), demo, a.status)
			require.Equal(t, test.failing != nil, err != nil)
			require.Equal(t, test.calls, a.calls)
			late := ""
			if u := a.status.Upgrade; u != nil {
				require.Equal(t, test.want, u.Phase)
				late = u.Message
			}
			if u := a.status.NextUpgrade; u != nil {
				require.Equal(t, test.behind, u.Phase)
				late += u.Message
			}
			require.Contains(t, late, test.message)
		})
	}
	t.Run("names no absent message", func(t *testing.T) {
		a := &audited{status: &status.Status{Phase: status.Stopped, Upgrade: next("", &overdue)}}
		_, err := a.run().checkUpgrades(t.Context(), demo, a.status)
		require.NoError(t, err)
		require.Regexp(t, "the cluster is Stopped$", a.status.Upgrade.Message)
	})
}

// starter is the upgrade machine of a cluster.
type starter struct{ *audited }

// Input is not read: no test here removes drover.
func (starter) Input(context.Context, string, any) error { return errThrottled }

func TestMissedUpgrade(t *testing.T) {
	at := noon.Add(-upgrade.MissedAfter)
	scheduled := func() *status.Upgrade {
		return &status.Upgrade{Phase: status.UpgradeDelayed, To: "r2", Origin: "At", At: &at}
	}
	t.Run("is remembered, with its condition", func(t *testing.T) {
		a := &audited{status: &status.Status{Upgrade: scheduled()}}
		require.NoError(t, a.run().lateUpgrades().Record(t.Context(), demo, at, "waits"))
		require.Equal(t, status.UpgradeMissed, a.status.Upgrade.Phase)
		require.Equal(t, status.ReasonUpgradeMissed, a.status.Condition(status.Upgraded).Reason)
		require.Len(t, a.status.Upgrades, 1)
	})
	t.Run("is no condition of the upgrade that runs", func(t *testing.T) {
		a := &audited{status: &status.Status{Upgrade: &status.Upgrade{Phase: "Running"}, NextUpgrade: scheduled()}}
		require.NoError(t, a.run().lateUpgrades().Record(t.Context(), demo, at, "waits"))
		require.Equal(t, status.UpgradeMissed, a.status.NextUpgrade.Phase)
		require.Nil(t, a.status.Condition(status.Upgraded))
		require.Len(t, a.status.Upgrades, 1)
	})
	t.Run("is not recorded when its spec cannot be read", func(t *testing.T) {
		a := &audited{status: &status.Status{Upgrade: scheduled()}, failing: map[string]error{"spec": errThrottled}}
		require.ErrorIs(t, a.run().lateUpgrades().Record(t.Context(), demo, at, "waits"), errThrottled)
		require.Empty(t, a.calls)
	})
}

func TestUnplannedUpgrade(t *testing.T) {
	next := &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", Origin: "Channel"}
	for name, test := range map[string]struct {
		phase status.Phase
		next  *status.Upgrade
		known bool
		due   bool
		want  bool
	}{
		"of a cluster that is ready":  {status.Ready, next, false, false, true},
		"of a cluster that stopped":   {status.Stopped, next, false, false, true},
		"not of one that failed":      {status.Failed, next, false, false, false},
		"not of one that is upgraded": {status.Upgrading, next, false, false, false},
		"not one that is recorded":    {status.Ready, next, true, false, false},
		"not one that a sweep starts": {status.Ready, next, false, true, false},
		"not when there is none":      {status.Ready, nil, false, false, false},
	} {
		s := &status.Status{Phase: test.phase}
		if test.known {
			known := *next
			s.Upgrade = &known
		}
		r := (&audited{}).run()
		r.due = map[string]bool{demo: test.due}
		require.Equal(t, test.want, r.isUpgradeUnrecorded(demo, s, test.next), name)
	}
}
