package upgrade_test

// Upgrades that are requested or become due during another upgrade of the same cluster.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// noticesOf counts the notices of upgrades in a phase.
func (l *life) noticesOf(phase string) (count int) {
	for _, n := range l.Notices() {
		if strings.HasPrefix(n, "drover: the upgrade of demo is "+phase+"\n") {
			count++
		}
	}
	return count
}

// third is another release of the version of r2.
func third() string {
	return strings.Replace(harness.ReleaseOf("1.36", "r3"), "v1.13.2-eksbuild.1", "v1.14.0-eksbuild.1", 1)
}

// standing starts the upgrade to r2 and stops at its nodes, which may take days. The returned function lets it continue.
func (l *life) standing() (goOn func()) {
	l.T.Helper()
	l.StartUpgrade(events.Upgrade{Release: "r2"})
	l.WaitForUpdate("pool-a")
	deliver := l.withhold()
	l.Until("it stands still", func() bool { return len(l.Events.Held()) > 0 })
	return func() {
		deliver()
		l.SettleAll()
	}
}

// behind runs a test while the upgrade to r2 waits. An operator started an execution for the upgrade to r3 a minute before.
func behind(t *testing.T, then func(l *life, execution string, goOn func())) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		l.Upload(names.ReleaseSpec("r3"), third())
		goOn := l.standing()
		execution := l.StartUpgrade(events.Upgrade{Release: "r3"})
		time.Sleep(time.Minute)
		then(l, execution, goOn)
	})
}

func TestUpgradeByHandWaitsForAnother(t *testing.T) {
	behind(t, func(l *life, arn string, goOn func()) {
		next := func() *status.Upgrade {
			s := l.Status("demo")
			require.Equal(t, "Running r2", s.Upgrade.Phase+" "+s.Upgrade.To, "the running upgrade is still reported")
			require.NotNil(t, s.NextUpgrade)
			require.Equal(t, arn, s.NextUpgrade.Execution)
			return s.NextUpgrade
		}
		require.Equal(t, "Scheduled r3", next().Phase+" "+next().To)
		time.Sleep(40 * time.Minute)
		require.Equal(t, status.UpgradeDelayed, next().Phase)
		require.Contains(t, next().Message, "the upgrade to release r2 (Kubernetes 1.36) is in flight")
		require.Equal(t, 1, l.noticesOf(status.UpgradeDelayed))
		require.Zero(t, l.noticesOf(status.UpgradeMissed))
		l.over(arn)
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: the upgrade did not begin, because the cluster was busy for 2h")
		require.Equal(t, status.UpgradeMissed, next().Phase)
		require.Equal(t, 1, l.noticesOf(status.UpgradeMissed))

		goOn()
		l.RequireUpgraded()
		s := l.Status("demo")
		require.Nil(t, s.NextUpgrade)
		require.Equal(t, "Missed r3", s.Upgrades[1].Phase+" "+s.Upgrades[1].To, "among those that are over")
		require.Equal(t, 1, l.noticesOf(status.UpgradeMissed))
		require.Zero(t, l.noticesOf("Cancelled"))
	})
	t.Run("is not late", func(t *testing.T) {
		behind(t, func(l *life, arn string, goOn func()) {
			require.NotNil(t, l.Status("demo").NextUpgrade)
			goOn()
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			require.Nil(t, l.Status("demo").NextUpgrade)
			require.Equal(t, "Done r3", l.Status("demo").Upgrade.Phase+" "+l.Status("demo").Upgrade.To)
			require.Zero(t, l.noticesOf("Cancelled"))
		})
	})
	t.Run("until its execution is stopped", func(t *testing.T) {
		behind(t, func(l *life, arn string, goOn func()) {
			l.StepFunctions.Stop(arn, "Stopped", "by an operator")
			time.Sleep(20 * time.Minute)
			_ = l.AuditNow()
			goOn()
			l.RequireUpgraded()
			require.Nil(t, l.Status("demo").NextUpgrade)
		})
	})
}

// A time, a channel and a spec request upgrades during another one.
func TestScheduledUpgradeDuringAnother(t *testing.T) {
	for origin, ask := range map[upgrade.Origin]func(l *life, at time.Time){
		upgrade.OriginAt: func(l *life, at time.Time) {
			l.Upload(names.ClusterSpec("demo"),
				harness.Spec("demo", inTurn+fmt.Sprintf("  upgrade: {channel: Stable, alarms: [shop-is-down], at: {time: %q, release: r3}}\n",
					at.Format(time.RFC3339))))
		},
		upgrade.OriginChannel: func(l *life, at time.Time) {
			time.Sleep(time.Until(at))
			l.Upload(names.ReleaseSpec("channels"), stableAt("r3"))
			l.Sweep()
		},
		upgrade.OriginSpec: func(l *life, at time.Time) {
			time.Sleep(time.Until(at))
			l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", following), "name: r1", "name: r3", 1))
		},
	} {
		for name, missed := range map[string]bool{"for an hour": false, "for three": true} {
			t.Run(string(origin)+" "+name, func(t *testing.T) {
				runWithFaults(t, func(l *life, _ *faults.Engine) {
					l.Upload(names.ReleaseSpec("channels"), stableAt("r1"))
					l.CreateOldCluster(following)
					l.Upload(names.ReleaseSpec("r3"), third())
					l.Sweep()
					l.SettleAll()
					goOn := l.standing()
					at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
					ask(l, at)
					passes := func(until time.Duration) *status.Upgrade {
						for time.Since(at) < until {
							time.Sleep(15 * time.Minute)
							_ = l.AuditNow() // a sweep would find the withheld events
						}
						s := l.Status("demo")
						require.Equal(t, "Running r2", s.Upgrade.Phase+" "+s.Upgrade.To)
						return s.NextUpgrade
					}
					next := passes(15 * time.Minute)
					require.NotNil(t, next)
					require.Equal(t, fmt.Sprintf("Scheduled r3 %s", origin), fmt.Sprintf("%s %s %s", next.Phase, next.To, next.Origin))
					require.WithinDuration(t, at, *next.At, 10*time.Minute)
					require.Zero(t, l.noticesOf(status.UpgradeDelayed))
					next = passes(45 * time.Minute)
					require.Equal(t, status.UpgradeDelayed, next.Phase)
					require.Contains(t, next.Message, "waits for ")
					require.Equal(t, 1, l.noticesOf(status.UpgradeDelayed))
					if missed {
						next = passes(140 * time.Minute)
						require.Equal(t, status.UpgradeMissed, next.Phase)
						require.Equal(t, 1, l.noticesOf(status.UpgradeMissed))
					}

					goOn()
					l.SweepForAnHour()
					require.Nil(t, l.Status("demo").NextUpgrade)
					require.Equal(t, 1, l.noticesOf(status.UpgradeDelayed), "reported once")
					require.Zero(t, l.noticesOf("Cancelled"))
					u := l.Status("demo").Upgrade
					if missed && origin == upgrade.OriginAt {
						require.Equal(t, "Missed r3", u.Phase+" "+u.To, "its time is over")
						require.Equal(t, 1, l.noticesOf(status.UpgradeMissed))
						return
					}
					require.Equal(t, "Done r3", u.Phase+" "+u.To, "a late upgrade is made, and a request of a spec or a channel stays")
				})
			})
		}
	}
}

// The upgrade in flight waits for drains. No execution converges the cluster.
func TestScheduledUpgradeDuringDrainsOfAnother(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		patient := func(more string) string {
			return strings.Replace(harness.Spec("demo", more), "maxSize: 3", "maxSize: 3, drain: {timeout: 6h}", 1)
		}
		l.CreateOldCluster("")
		l.Upload(names.ClusterSpec("demo"), patient(lives.Alarmed))
		l.SettleAll()
		l.Upload(names.ReleaseSpec("r3"), third())
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepControlPlane)
		l.RunBlockedPods(3)
		for l.UpgradeRecord().Step < 2 || l.UpgradeRecord().Steps[2].Converged.IsZero() {
			time.Sleep(time.Minute)
		}
		l.free()
		at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		l.Upload(names.ClusterSpec("demo"), patient(fmt.Sprintf("  upgrade: {alarms: [shop-is-down], at: {time: %q, release: r3}}\n",
			at.Format(time.RFC3339))))
		for _, c := range []struct {
			late  time.Duration
			phase string
		}{{-30 * time.Minute, status.UpgradeScheduled}, {20 * time.Minute, status.UpgradeScheduled}, {50 * time.Minute, status.UpgradeDelayed},
			{150 * time.Minute, status.UpgradeMissed}} {
			for time.Since(at) < c.late {
				time.Sleep(5 * time.Minute)
				l.Sweep()
				_ = l.AuditNow()
			}
			s := l.Status("demo")
			require.Equal(t, "Running r2", s.Upgrade.Phase+" "+s.Upgrade.To, "%s", c.late)
			require.NotNil(t, s.NextUpgrade, "%s", c.late)
			require.Equal(t, c.phase+" r3 At", s.NextUpgrade.Phase+" "+s.NextUpgrade.To+" "+s.NextUpgrade.Origin, "%s", c.late)
		}
		// The sweep and an execution may find the same at the same moment, and then send two: see docs/notifications.md.
		delayed, missed := l.noticesOf(status.UpgradeDelayed), l.noticesOf(status.UpgradeMissed)
		require.Contains(t, []int{1, 2}, delayed)
		require.Contains(t, []int{1, 2}, missed)
		l.API("drover-demo").Run(apiserver.App{Name: "shop", Replicas: 0, Start: time.Second, Stop: time.Second, Grace: time.Minute})
		l.SettleAll()
		l.SweepForAnHour()
		s := l.Status("demo")
		require.Equal(t, "Missed r3", s.Upgrade.Phase+" "+s.Upgrade.To)
		require.Equal(t, "Done r2", s.Upgrades[0].Phase+" "+s.Upgrades[0].To)
		require.Nil(t, s.NextUpgrade)
		require.Equal(t, missed, l.noticesOf(status.UpgradeMissed), "not reported again")
	})
}

const (
	// inTurn is a second pool that is replaced after the first one.
	inTurn = "    - {name: b, instanceTypes: [m7i.large], minSize: 1, maxSize: 3, update: {order: 1}}\n"
	// following makes a spec follow the channel Stable.
	following = inTurn + "  upgrade: {channel: Stable, alarms: [shop-is-down]}\n"
)

func stableAt(release string) string {
	return "apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec: {stable: " + release + "}\n"
}
