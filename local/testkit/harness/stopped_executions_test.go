package harness

// Executions that an operator stops before their first write. They leave no trace in the account.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

const stoppedAtOnce = `kill machine=converge state="Plan" count=1`

// The audit starts the requested work within a quarter of an hour: a deletion,
func TestDeletionAfterItsExecutionStopped(t *testing.T) {
	upgradeLife(t, func(l *life, bad *faults.Engine) {
		l.create(unprotected)
		end := strike(t, bad, stoppedAtOnce)
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
		end()
		l.phase(status.Ready)
		time.Sleep(15 * time.Minute)
		l.audited()
		l.phase(status.Deleted)
		require.Empty(t, l.Stacks("demo"))
	})
}

// or a roll at a time, which is drift only when it is late.
func TestRollAfterItsExecutionStopped(t *testing.T) {
	t.Run("just now", func(t *testing.T) {
		rollIsStopped(t, (*life).swept, func(in *status.Condition) { require.Nil(t, in, "a roll that is not late is no drift") })
	})
	t.Run("for an hour", func(t *testing.T) {
		rollIsStopped(t, (*life).sweep, func(in *status.Condition) { require.Contains(t, in.Message, "spec.pools[a].rollAt is") })
	})
}

func rollIsStopped(t *testing.T, sweep func(*life), checkInSync func(*status.Condition)) {
	upgradeLife(t, func(l *life, bad *faults.Engine) {
		l.Upload(names.ReleaseSpec("r1"), Release())
		at := time.Now().Add(2 * time.Hour)
		l.pool(fmt.Sprintf("minSize: 1, maxSize: 3, rollAt: %q", at.UTC().Format(time.RFC3339)))
		l.settle()
		l.phase(status.Ready)
		before := l.Group("demo", "a").Instances[0].ID
		end := strike(t, bad, stoppedAtOnce)
		time.Sleep(time.Until(at))
		sweep(l)
		end()
		require.Equal(t, before, l.Group("demo", "a").Instances[0].ID)
		require.NoError(t, l.AuditNow())
		checkInSync(l.Status("demo").Condition(status.InSync))
		l.settle()
		require.NotEqual(t, before, l.Group("demo", "a").Instances[0].ID)
		l.phase(status.Ready)
	})
}

// A channel moves, and the execution that should plan the upgrade is stopped at once. The audit then starts the upgrade, or records it as
// scheduled, exactly once. It leaves a paused cluster unchanged.
func TestChannelUpgradeAfterItsExecutionStopped(t *testing.T) {
	for name, c := range map[string]struct {
		more, paused string
		to           string
		phase        string // of the upgrade
	}{
		"it begins":                      {to: "r2", phase: string(upgrade.Done)},
		"it waits for its window":        {more: `, window: {start: "12:00", duration: 1h}`, to: "r2", phase: status.UpgradeScheduled},
		"it waits for a release to come": {to: "r9", phase: status.UpgradeScheduled},
		"the cluster is paused by then":  {paused: "  paused: true\n", to: "r2"},
		"the channel is at an older one": {to: "r0"},
	} {
		t.Run(name, func(t *testing.T) {
			upgradeLife(t, func(l *life, bad *faults.Engine) {
				more := "  upgrade: {channel: Stable" + c.more + "}\n"
				l.Upload(names.ReleaseSpec("channels"), channelsOf("r1"))
				l.Upload(names.ReleaseSpec("r0"), ReleaseOf("1.34", "r0"))
				l.old(more)
				l.swept()
				l.settle()
				if c.paused != "" {
					l.change(more + c.paused)
				}
				l.Upload(names.ReleaseSpec("channels"), channelsOf(c.to))
				l.settle()
				end := strike(t, bad, stoppedAtOnce)
				l.swept()
				l.settle()
				end()
				require.Nil(t, l.Status("demo").Upgrade, "the upgrade is not recorded yet")

				before := len(l.executions("converge"))
				time.Sleep(15 * time.Minute)
				l.audited()
				if c.phase == "" {
					require.Nil(t, l.Status("demo").Upgrade)
					require.Len(t, l.executions("converge"), before)
					return
				}
				u := l.Status("demo").Upgrade
				require.NotNil(t, u, "it is made up for")
				require.Equal(t, c.phase+" Channel "+c.to, u.Phase+" "+u.Origin+" "+u.To)
				before = len(l.executions("converge"))
				for range 3 {
					time.Sleep(time.Minute)
					l.audited()
				}
				require.Len(t, l.executions("converge"), before, "once")
				require.Equal(t, u.Phase, l.Status("demo").Upgrade.Phase)
			})
		})
	}
}
