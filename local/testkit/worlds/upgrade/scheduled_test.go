package upgrade_test

// Upgrades of a channel that checks block day after day, and upgrades that are scheduled after another one.

import (
	"fmt"
	"testing"
	"time"

	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// drover reports the blocking check with each attempt. It does not repeat that while the next attempt is scheduled.
func TestChannelUpgradeIsBlockedForDays(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("r1"))
		l.CreateOldCluster("  upgrade: {channel: Stable, alarms: [shop-is-down, nowhere]}\n")
		l.Sweep()
		l.SettleAll()
		l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("r2"))
		l.SettleAll() // the upload and the sweep may both plan, and both report that the upgrade begins
		l.Sweep()
		l.SettleAll()
		for day := 1; day <= 2; day++ {
			require.Equal(t, upgrade.Blocked, l.UpgradeRecord().State)
			require.EqualValues(t, day, l.UpgradeRecord().Number)
			blocked := l.UpgradeRecord().Ended.UTC().Truncate(time.Second)
			for time.Since(blocked) < 16*time.Hour {
				pause := 15 * time.Minute
				if time.Since(blocked) > time.Hour {
					pause = 5 * time.Hour
				}
				time.Sleep(pause)
				l.Sweep()
				_ = l.AuditNow()
				l.SettleAll()
				u := l.Status("demo").Upgrade
				if u.Phase == "Blocked" {
					continue
				}
				require.Equal(t, status.UpgradeScheduled, u.Phase)
				require.Equal(t, preflight.AlarmsQuiet, u.Checks[0].Name, "the status names what blocks")
				require.Equal(t, blocked, u.Checked.UTC())
			}
			require.Equal(t, status.UpgradeScheduled, l.Status("demo").Upgrade.Phase)
			require.Len(t, l.Executions("upgrade"), day, "no execution checks before that")
			require.Equal(t, day, l.noticesOf("Blocked"))
			require.LessOrEqual(t, l.noticesOf(status.UpgradeScheduled), 2*day, "two notices a day: the upgrade begins, and is retried")
			time.Sleep(time.Until(blocked.Add(24*time.Hour)) + time.Minute)
			l.Sweep()
			l.SettleAll()
		}
	})
}

// The status keeps a scheduled upgrade of a channel while an operator starts another upgrade. It also keeps it if that one is blocked,
// after which no execution converges the cluster.
func TestScheduledUpgradeAfterAnotherEnds(t *testing.T) {
	opens := func() time.Time { return time.Now().UTC().Truncate(time.Minute).Add(9 * time.Hour) }
	// scheduled creates a cluster whose channel is at r2. The upgrade waits for its window.
	scheduled := func(l *life) (at time.Time) {
		at = opens()
		l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("r1"))
		l.CreateOldCluster(fmt.Sprintf("  upgrade: {channel: Stable, alarms: [shop-is-down], window: {start: %q, duration: 2h}}\n",
			at.Format("15:04")))
		l.Upload(names.ReleaseSpec("r3"), third())
		l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("r2"))
		l.SweepForAnHour()
		s := l.Status("demo")
		require.Equal(t, "Scheduled r2", s.Upgrade.Phase+" "+s.Upgrade.To)
		require.Equal(t, at, s.Upgrade.At.UTC())
		return at
	}
	// quiet asserts that the status reports the scheduled upgrade after the audit, and that a converge writes nothing.
	quiet := func(l *life, at time.Time) {
		time.Sleep(15 * time.Minute)
		l.Audit()
		s := l.Status("demo")
		require.Equal(t, "Scheduled r2", s.Upgrade.Phase+" "+s.Upgrade.To)
		require.Equal(t, at, s.Upgrade.At.UTC())
		require.Nil(t, s.NextUpgrade)
		require.Equal(t, status.Ready, s.Phase)
		l.Audit() // the early checks
		mark := l.Calls.Mark()
		l.Converge("demo")
		l.Audit()
		for _, call := range l.Calls.Since(mark) {
			require.False(t, call.Mutating && (harness.CalledBy(call) == "plan" || harness.CalledBy(call) == "report"), "%s %s", call.Action,
				call.Resource)
		}
		require.Zero(t, l.noticesOf("Cancelled"))
	}
	for name, to := range map[string]string{"another": "r3", "the same": "r2"} {
		t.Run("by hand to "+name+", which is blocked", func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				at := scheduled(l)
				l.alarm(cloudwatchtypes.StateValueAlarm)
				l.StartUpgrade(events.Upgrade{Release: to})
				l.SettleAll()
				s := l.Status("demo")
				require.Equal(t, "Blocked "+to, s.Upgrade.Phase+" "+s.Upgrade.To, "the status shows the requested upgrade")
				require.NotNil(t, s.NextUpgrade)
				require.Equal(t, "Scheduled r2 Channel", s.NextUpgrade.Phase+" "+s.NextUpgrade.To+" "+s.NextUpgrade.Origin)
				require.Equal(t, at, s.NextUpgrade.At.UTC())
				quiet(l, at)
			})
		})
	}
	t.Run("by hand to another, which is blocked, and no execution can be started for most of an hour", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			at := scheduled(l)
			l.alarm(cloudwatchtypes.StateValueAlarm)
			l.StartUpgrade(events.Upgrade{Release: "r3"})
			l.SettleAll()
			require.NotNil(t, l.Status("demo").NextUpgrade)
			l.OnCall(func(call endpoint.Call) error {
				if call.Action == "StartExecution" && harness.CalledBy(call) == "sweep" {
					return &wire.Error{Code: "AccessDeniedException", Message: "not now", Status: 400}
				}
				return nil
			})
			for range 2 { // after 15 minutes and 30
				time.Sleep(15 * time.Minute)
				require.ErrorContains(t, l.AuditNow(), "starting to converge demo")
			}
			l.OnCall(nil)
			quiet(l, at)
		})
	})
	t.Run("by hand to another, while that is in flight", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			at := scheduled(l)
			l.StartUpgrade(events.Upgrade{Release: "r3"})
			time.Sleep(20 * time.Second)
			s := l.Status("demo")
			require.Equal(t, "Checking r3", s.Upgrade.Phase+" "+s.Upgrade.To)
			require.NotNil(t, s.NextUpgrade)
			require.Equal(t, "Scheduled r2", s.NextUpgrade.Phase+" "+s.NextUpgrade.To)
			l.SettleAll()
			require.Equal(t, "Done r3", l.Status("demo").Upgrade.Phase+" "+l.Status("demo").Upgrade.To)
			require.Equal(t, 1, l.noticesOf(status.UpgradeScheduled), "once")
			quiet(l, at)
		})
	})
	t.Run("of the channel, which was blocked", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			at := scheduled(l)
			l.alarm(cloudwatchtypes.StateValueAlarm)
			time.Sleep(time.Until(at) + time.Minute)
			l.Sweep()
			l.SettleAll()
			s := l.Status("demo")
			require.Equal(t, "Blocked r2", s.Upgrade.Phase+" "+s.Upgrade.To)
			require.NotNil(t, s.NextUpgrade)
			require.Equal(t, at.Add(24*time.Hour), s.NextUpgrade.At.UTC())
			require.Equal(t, s.Upgrade.Checks, s.NextUpgrade.Checks, "the status names what blocks")
			quiet(l, at.Add(24*time.Hour))
		})
	})
}

// An upgrade that is impossible is kept in the history like others.
func TestImpossibleUpgradeIsInTheHistory(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("r1"))
		l.CreateOldCluster("  upgrade: {channel: Stable, alarms: [shop-is-down]}\n")
		l.Upload(names.ReleaseSpec("far"), harness.ReleaseOf("1.40", "far"))
		l.Sweep()
		l.SettleAll()
		l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("far"))
		l.SettleAll()
		l.Sweep()
		l.SettleAll()
		l.Sweep() // it did not begin while the cluster converged
		l.SettleAll()
		s := l.Status("demo")
		require.Equal(t, "Blocked r1 1.35 far", s.Upgrade.Phase+" "+s.Upgrade.From+" "+s.Upgrade.FromVersion+" "+s.Upgrade.To, s.Upgrade.Message)
		require.Equal(t, []status.Upgrade{*s.Upgrade}, s.Upgrades)
	})
}
