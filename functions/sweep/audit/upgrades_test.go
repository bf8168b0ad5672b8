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

func (a *auditFixture) Start(context.Context, string, any) error { return a.did("end its upgrade") }

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
		"ends one whose execution is over": {phase: status.Upgrading, upgrade: running, want: "Running", calls: []string{"end its upgrade"}},
		"leaves one alone that runs":       {phase: status.Upgrading, upgrade: running, running: true, want: "Running"},
		"fails when its execution is unknown": {
			phase: status.Upgrading, upgrade: running, failing: map[string]error{"running": errThrottled}, want: "Running",
		},
		"records that the next one is late": {
			phase: status.Upgrading, upgrade: running, next: next("", &overdue), running: true, want: "Running", behind: status.UpgradeDelayed,
			message: "it waits for the upgrade to r2", calls: []string{"write"},
		},
		"leaves that to an execution that waits": {
			phase: status.Upgrading, upgrade: running, next: next("y", &overdue), running: true, want: "Running", behind: status.UpgradeScheduled,
		},
		"fails when that cannot be recorded": {
			phase: status.Upgrading, upgrade: running, next: next("", &overdue), failing: map[string]error{"write": errThrottled}, want: "Running",
			behind: status.UpgradeDelayed, message: "waits", calls: []string{"write"},
		},
		"fails when who waits is unknown": {
			phase: status.Upgrading, upgrade: running, next: next("y", &overdue), failing: map[string]error{"running": errThrottled},
			want: "Running", behind: status.UpgradeScheduled,
		},
		"starts the next one when one is over": {
			phase: status.Ready, upgrade: over, next: next("", nil), want: "Blocked", behind: status.UpgradeScheduled,
			calls: []string{"start: next-upgrade" + again},
		},
		"not when an execution begins it": {
			phase: status.Ready, upgrade: over, next: next("y", nil), want: "Blocked", behind: status.UpgradeScheduled,
		},
		"not while the cluster is not ready": {
			phase: status.Stopped, upgrade: over, next: next("", nil), want: "Blocked", behind: status.UpgradeScheduled,
		},
		"not when it is not over": {
			phase: status.Ready, upgrade: &status.Upgrade{Phase: "Blocked"}, next: next("", nil), want: "Blocked", behind: status.UpgradeScheduled,
		},
		"has the cluster judged when its upgrade is over": {
			phase: status.Upgrading, upgrade: over, want: "Blocked", calls: []string{"start: after-upgrade" + again},
		},
		"not one that is ready": {phase: status.Ready, upgrade: over, want: "Blocked"},
		"not one whose upgrade is not over": {
			phase: status.Upgrading, upgrade: &status.Upgrade{Phase: "Blocked"}, want: "Blocked",
		},
		"nothing without an upgrade": {
			phase: status.Ready, next: next("", &overdue), behind: status.UpgradeScheduled,
		},
		"records why one is late": {
			phase: status.Stopped, upgrade: next("", &overdue), want: status.UpgradeDelayed, message: ": the cluster is Stopped: paused",
			calls: []string{"write"},
		},
		"records what is missing for it": {
			phase: status.Stopped, upgrade: blocked, want: status.UpgradeDelayed, message: "a check blocks it: there is no release r3",
			calls: []string{"write"},
		},
		"starts none that an execution waits to begin": {
			phase: status.Ready, upgrade: next("y", &overdue), running: true, want: status.UpgradeScheduled,
		},
		"starts none when that is unknown": {
			phase: status.Ready, upgrade: next("y", &overdue), failing: map[string]error{"running": errThrottled}, want: status.UpgradeScheduled,
		},
		"starts none whose lateness cannot be recorded": {
			phase: status.Ready, upgrade: next("", &overdue), failing: map[string]error{"write": errThrottled}, want: status.UpgradeDelayed,
			calls: []string{"write"},
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
			a := &auditFixture{running: test.running, failing: test.failing}
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
		a := &auditFixture{status: &status.Status{Phase: status.Stopped, Upgrade: next("", &overdue)}}
		_, err := a.run().checkUpgrades(t.Context(), demo, a.status)
		require.NoError(t, err)
		require.Regexp(t, "the cluster is Stopped$", a.status.Upgrade.Message)
	})
}

// starter is the upgrade machine of a cluster.
type starter struct{ *auditFixture }

// Input is not read: no test here removes drover.
func (starter) Input(context.Context, string, any) error { return errThrottled }

func TestMissedUpgrade(t *testing.T) {
	at := noon.Add(-upgrade.MissedAfter)
	scheduled := func() *status.Upgrade {
		return &status.Upgrade{Phase: status.UpgradeDelayed, To: "r2", Origin: "At", At: &at}
	}
	t.Run("is remembered, with its condition", func(t *testing.T) {
		a := &auditFixture{status: &status.Status{Upgrade: scheduled()}}
		require.NoError(t, a.run().lateUpgrades().Record(t.Context(), demo, at, "waits"))
		require.Equal(t, status.UpgradeMissed, a.status.Upgrade.Phase)
		require.Equal(t, status.ReasonUpgradeMissed, a.status.Condition(status.Upgraded).Reason)
		require.Len(t, a.status.Upgrades, 1)
	})
	t.Run("is no condition of the upgrade that runs", func(t *testing.T) {
		a := &auditFixture{status: &status.Status{Upgrade: &status.Upgrade{Phase: "Running"}, NextUpgrade: scheduled()}}
		require.NoError(t, a.run().lateUpgrades().Record(t.Context(), demo, at, "waits"))
		require.Equal(t, status.UpgradeMissed, a.status.NextUpgrade.Phase)
		require.Nil(t, a.status.Condition(status.Upgraded))
		require.Len(t, a.status.Upgrades, 1)
	})
	t.Run("is not recorded when its spec cannot be read", func(t *testing.T) {
		a := &auditFixture{status: &status.Status{Upgrade: scheduled()}, failing: map[string]error{"spec": errThrottled}}
		require.ErrorIs(t, a.run().lateUpgrades().Record(t.Context(), demo, at, "waits"), errThrottled)
		require.Empty(t, a.calls)
	})
}

func TestMustPlanUpgrade(t *testing.T) {
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	pending := func(at time.Time) *status.Upgrade {
		return &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", Origin: "Channel", At: &at}
	}
	refused := &status.Upgrade{Phase: string(upgrade.Blocked), To: "r2", Origin: "Channel"}
	for name, test := range map[string]struct {
		phase          status.Phase
		next, recorded *status.Upgrade
		due            bool
		want           bool
	}{
		"of a cluster that is ready":                {phase: status.Ready, next: pending(at), want: true},
		"of a cluster that stopped":                 {phase: status.Stopped, next: pending(at), want: true},
		"not of one that failed":                    {phase: status.Failed, next: pending(at)},
		"not of one that is upgraded":               {phase: status.Upgrading, next: pending(at)},
		"not one that is recorded":                  {phase: status.Ready, next: pending(at), recorded: pending(at)},
		"one whose time is earlier than recorded":   {phase: status.Ready, next: pending(at), recorded: pending(at.Add(1)), want: true},
		"not one whose time is later than recorded": {phase: status.Ready, next: pending(at), recorded: pending(at.Add(-1))},
		"not an earlier one that a sweep starts":    {phase: status.Ready, next: pending(at), recorded: pending(at.Add(1)), due: true},
		"one that was refused":                      {phase: status.Ready, next: pending(at), recorded: refused, want: true},
		"not one that is refused again":             {phase: status.Ready, next: refused, recorded: refused},
		"not one that is refused now":               {phase: status.Ready, next: refused, recorded: pending(at)},
		"not one that a sweep starts":               {phase: status.Ready, next: pending(at), due: true},
		"not when there is none":                    {phase: status.Ready},
	} {
		r := (&auditFixture{}).run()
		r.due = map[string]bool{demo: test.due}
		s := &status.Status{Phase: test.phase, Upgrade: test.recorded}
		require.Equal(t, test.want, r.mustPlanUpgrade(demo, s, test.next), name)
	}
}
