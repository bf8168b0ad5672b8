package upgrade_test

// Upgrades that were missed because their cluster was busy for too long.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// The request of a spec or a channel stays valid. The upgrade begins when the cluster is idle and a window is open.
// The status has the time.
func TestMissedUpgradeOfSpecOrChannelBegins(t *testing.T) {
	for _, origin := range []upgrade.Origin{upgrade.OriginSpec, upgrade.OriginChannel} {
		for name, lasts := range map[string]time.Duration{"in the window that is open": 6 * time.Hour, "in the next window": 90 * time.Minute} {
			t.Run(fmt.Sprintf("%s, %s", origin, name), func(t *testing.T) {
				runWithFaults(t, func(l *life, _ *faults.Engine) {
					opens := time.Now().UTC().Truncate(time.Minute).Add(3 * time.Hour)
					more := fmt.Sprintf("  upgrade: {channel: Stable, alarms: [shop-is-down], window: {start: %q, duration: %s}}\n",
						opens.Format("15:04"), lasts)
					l.Upload(names.ReleaseSpec("channels"), stableAt("r1"))
					l.CreateOldCluster(more)
					l.Sweep()
					l.SettleAll()
					if origin == upgrade.OriginSpec {
						l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", more), "name: r1", "name: r2", 1))
					} else {
						l.Upload(names.ReleaseSpec("channels"), stableAt("r2"))
						l.SweepForAnHour()
					}
					l.SettleAll()
					s := l.Status("demo")
					require.Equal(t, "Scheduled "+string(origin), s.Upgrade.Phase+" "+s.Upgrade.Origin)
					require.Equal(t, opens, s.Upgrade.At.UTC())

					next := opens.Add(24 * time.Hour).Format(time.RFC3339)
					l.holdStackEvents(func() {
						for time.Since(opens) < 2*time.Hour+15*time.Minute {
							time.Sleep(15 * time.Minute)
							_ = l.AuditNow()
						}
						s := l.Status("demo")
						require.Equal(t, status.UpgradeMissed, s.Upgrade.Phase, s.Upgrade.Message)
						require.Equal(t, status.ReasonUpgradeMissed, s.Condition(status.Upgraded).Reason)
						if lasts > 2*time.Hour {
							require.Contains(t, s.Upgrade.Message, "It begins when the cluster is idle, in the open window or in the next one, at "+next)
						} else {
							require.Contains(t, s.Upgrade.Message, "It begins in the window that opens at "+next)
						}
						require.Equal(t, 1, l.noticesOf(status.UpgradeDelayed))
						require.Equal(t, 1, l.noticesOf(status.UpgradeMissed))
					})
					l.SettleAll()
					if lasts < 2*time.Hour {
						s := l.Status("demo")
						require.Equal(t, status.UpgradeScheduled, s.Upgrade.Phase)
						require.Equal(t, "the window of "+opens.Format(time.RFC3339)+" was missed; it begins within five minutes of "+next+
							": it waits for the window of spec.upgrade", s.Upgrade.Message)
						time.Sleep(time.Until(opens.Add(24*time.Hour)) + time.Second)
						l.SweepForAnHour()
					}
					l.RequireUpgraded()
					require.Equal(t, origin, l.UpgradeRecord().Origin)
					require.EqualValues(t, 1, l.UpgradeRecord().Number, "once")
				})
			})
		}
	}
}
