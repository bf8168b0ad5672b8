package interruption_test

// Executions that an operator stops before their first write. They leave no trace in the account.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

const stoppedAtOnce = `kill machine=converge state="Plan" count=1`

// loseEnds loses the events about executions that end. Then the audit starts the requested work within a quarter of an hour.
func (l *life) loseEnds() { l.Events.Decide(lives.LoseEvents("aws.states", "")) }

// The requested work is started within minutes, or by the audit if the event is lost: a deletion,
func TestDeletionAfterItsExecutionStopped(t *testing.T) {
	for name, again := range map[string]func(*life){
		"the event arrives": func(l *life) {
			time.Sleep(backoff.QuickRetries[0])
			l.Sweep()
			l.SettleAll()
		},
		"the event is lost": func(l *life) {
			time.Sleep(15 * time.Minute)
			l.Audit()
		},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				l.CreateCluster(lives.Unprotected)
				end := lives.AddFault(t, bad, stoppedAtOnce)
				if name == "the event is lost" {
					l.loseEnds()
				}
				l.Remove(names.ClusterSpec("demo"), "")
				l.SettleAll()
				end()
				l.RequirePhase(status.Ready)
				again(l)
				l.RequirePhase(status.Deleted)
				require.Empty(t, l.Stacks("demo"))
			})
		})
	}
}

// The execution of a roll is stopped. The roll that is not made is drift only when it is late.
func TestRollAfterItsExecutionStopped(t *testing.T) {
	t.Run("just now", func(t *testing.T) {
		rollIsStopped(t, (*life).Sweep, func(in *status.Condition) { require.Nil(t, in, "a roll that is not late is no drift") })
	})
	t.Run("for an hour", func(t *testing.T) {
		rollIsStopped(t, (*life).SweepForAnHour, func(in *status.Condition) { require.Contains(t, in.Message, "spec.pools[a].rollAt is") })
	})
}

func rollIsStopped(t *testing.T, sweep func(*life), checkInSync func(*status.Condition)) {
	runWithFaults(t, func(l *life, bad *faults.Engine) {
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		at := time.Now().Add(2 * time.Hour)
		l.ChangePool(fmt.Sprintf("minSize: 1, maxSize: 3, rollAt: %q", at.UTC().Format(time.RFC3339)))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		before := l.Group("demo", "a").Instances[0].ID
		l.loseEnds()
		end := lives.AddFault(t, bad, stoppedAtOnce)
		time.Sleep(time.Until(at))
		sweep(l)
		end()
		require.Equal(t, before, l.Group("demo", "a").Instances[0].ID)
		require.NoError(t, l.AuditNow())
		checkInSync(l.Status("demo").Condition(status.InSync))
		l.SettleAll()
		require.NotEqual(t, before, l.Group("demo", "a").Instances[0].ID)
		l.RequirePhase(status.Ready)
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
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				more := "  upgrade: {channel: Stable" + c.more + "}\n"
				l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("r1"))
				l.Upload(names.ReleaseSpec("r0"), harness.ReleaseOf("1.34", "r0"))
				l.CreateOldCluster(more)
				l.Sweep()
				l.SettleAll()
				if c.paused != "" {
					l.ChangeSpec(more + c.paused)
				}
				l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf(c.to))
				l.SettleAll()
				l.loseEnds()
				end := lives.AddFault(t, bad, stoppedAtOnce)
				l.Sweep()
				l.SettleAll()
				end()
				require.Nil(t, l.Status("demo").Upgrade, "the upgrade is not recorded yet")

				before := len(l.Executions("converge"))
				time.Sleep(15 * time.Minute)
				l.Audit()
				if c.phase == "" {
					require.Nil(t, l.Status("demo").Upgrade)
					require.Len(t, l.Executions("converge"), before)
					return
				}
				u := l.Status("demo").Upgrade
				require.NotNil(t, u, "it is made up for")
				require.Equal(t, c.phase+" Channel "+c.to, u.Phase+" "+u.Origin+" "+u.To)
				before = len(l.Executions("converge"))
				for range 3 {
					time.Sleep(time.Minute)
					l.Audit()
				}
				require.Len(t, l.Executions("converge"), before, "once")
				require.Equal(t, u.Phase, l.Status("demo").Upgrade.Phase)
			})
		})
	}
}
