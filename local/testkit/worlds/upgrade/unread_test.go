package upgrade_test

// Upgrades to releases that are named before they are uploaded.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// A channel, or a scheduled upgrade, names a missing release. drover reports it at once and as late when due. If the release arrives in
// time, the upgrade begins.
func TestReleaseIsUploadedLate(t *testing.T) {
	for origin, ask := range map[upgrade.Origin]func(l *life, at time.Time){
		upgrade.OriginChannel: func(l *life, _ time.Time) {
			l.Upload(names.ReleaseSpec("channels"), stableAt("r3"))
			l.SettleAll() // two concurrent writers of the status may both report it
			l.Sweep()
			l.SettleAll()
			time.Sleep(time.Minute)
			l.Sweep()
			l.SettleAll()
		},
		upgrade.OriginAt: func(l *life, at time.Time) {
			l.Upload(names.ClusterSpec("demo"),
				harness.Spec("demo", fmt.Sprintf("  upgrade: {alarms: [shop-is-down], at: {time: %q, release: r3}}\n",
					at.Format(time.RFC3339))))
			l.SettleAll()
			time.Sleep(time.Until(at) + time.Minute)
			l.Sweep()
			l.SettleAll()
		},
	} {
		for name, comes := range map[string]time.Duration{"within the hour": 50 * time.Minute, "too late": 5 * time.Hour} {
			t.Run(string(origin)+" "+name, func(t *testing.T) {
				runWithFaults(t, func(l *life, _ *faults.Engine) {
					l.Upload(names.ReleaseSpec("channels"), stableAt("r1"))
					l.CreateOldCluster("  upgrade: {channel: Stable, alarms: [shop-is-down]}\n")
					l.Sweep()
					l.SettleAll()
					at := time.Now().UTC().Truncate(time.Minute).Add(time.Hour)
					ask(l, at)
					u := l.Status("demo").Upgrade
					require.NotNil(t, u)
					require.Equal(t, "Scheduled "+string(origin), u.Phase+" "+u.Origin, u.Message)
					require.Equal(t, status.Check{
						Name: preflight.UpgradePossible, Blocks: true, Message: "there is no release releases/r3.yaml: upload it, or name another",
						Next: "The upgrade begins when the release can be used.",
					}, u.Checks[0])
					require.Equal(t, "does not begin yet: "+u.Checks[0].Message, u.Message)
					at = *u.At
					passes := func(until time.Duration) *status.Upgrade {
						for time.Since(at) < until {
							time.Sleep(15 * time.Minute)
							l.Sweep()
							l.SettleAll()
							_ = l.AuditNow()
							l.SettleAll()
						}
						return l.Status("demo").Upgrade
					}
					u = passes(min(comes, 3*time.Hour))
					if comes < upgrade.MissedAfter {
						require.Equal(t, status.UpgradeDelayed, u.Phase, u.Message)
					} else {
						require.Equal(t, status.UpgradeMissed, u.Phase, u.Message)
						require.Equal(t, 1, l.noticesOf(status.UpgradeMissed), "once")
					}
					require.Contains(t, u.Message, "there is no release releases/r3.yaml")
					require.Equal(t, 1, l.noticesOf(status.UpgradeDelayed), "once")
					require.Equal(t, 1, l.noticesOf(status.UpgradeScheduled), "once")
					require.Empty(t, l.Executions("upgrade"), "there is nothing to read")

					l.Upload(names.ReleaseSpec("r3"), third())
					time.Sleep(45 * time.Minute)
					l.Sweep()
					l.SettleAll()
					_ = l.AuditNow()
					l.SettleAll()
					u = l.Status("demo").Upgrade
					if comes > upgrade.MissedAfter && origin == upgrade.OriginAt {
						require.Equal(t, status.UpgradeMissed, u.Phase, "its time is over")
						return
					}
					require.Equal(t, "Done r3 "+string(origin), u.Phase+" "+u.To+" "+u.Origin, u.Message)
				})
			})
		}
	}
}

// The release is uploaded before the time of the upgrade. drover rechecks it every day, and then runs the early checks.
func TestReleaseIsUploadedBeforeItsTime(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster("")
		at := time.Now().UTC().Truncate(time.Minute).Add(72 * time.Hour)
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", fmt.Sprintf("  upgrade: {at: {time: %q, release: r3}}\n",
			at.Format(time.RFC3339))))
		l.SettleAll()
		l.Audit()
		u := l.Status("demo").Upgrade
		require.Equal(t, at, u.At.UTC())
		require.Equal(t, []string{"UpgradePossible true"}, []string{fmt.Sprint(u.Checks[0].Name, " ", u.Checks[0].Blocks)})
		require.Empty(t, l.Executions("upgrade"))
		l.Upload(names.ReleaseSpec("r3"), third())
		time.Sleep(25 * time.Hour)
		l.SweepForAnHour()
		require.Empty(t, l.Status("demo").Upgrade.Checks)
		l.Audit()
		u = l.Status("demo").Upgrade
		require.NotNil(t, u.Checked)
		require.NotContains(t, fmt.Sprint(u.Checks), preflight.UpgradePossible)
		require.Len(t, l.Executions("upgrade"), 1)
		time.Sleep(time.Until(at))
		l.SweepForAnHour()
		require.Equal(t, "Done r3", l.Status("demo").Upgrade.Phase+" "+l.Status("demo").Upgrade.To)
	})
}
