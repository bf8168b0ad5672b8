package upgrade_test

// Simultaneous upgrades, and upgrades during rolls.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestSimultaneousUpgrades(t *testing.T) {
	t.Run("the same twice at once is made once", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			one, other := l.StartUpgrade(events.Upgrade{Release: "r2"}), l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.SettleAll()
			require.Equal(t, "SUCCEEDED :", l.verdict(one))
			require.Equal(t, "SUCCEEDED :", l.verdict(other))
			l.RequireUpgraded()
			require.EqualValues(t, 1, l.UpgradeRecord().Number)
		})
	})
	t.Run("another waits for the first", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			l.Upload(names.ReleaseSpec("r3"), strings.Replace(harness.ReleaseOf("1.36", "r3"), "v1.13.2-eksbuild.1", "v1.14.0-eksbuild.1", 1))
			one := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.WaitForStep(upgrade.StepControlPlane)
			other := l.StartUpgrade(events.Upgrade{Release: "r3"})
			l.SettleAll()
			require.Equal(t, "SUCCEEDED :", l.verdict(one))
			require.Equal(t, "SUCCEEDED :", l.verdict(other))
			require.EqualValues(t, 2, l.UpgradeRecord().Number)
			require.Equal(t, "r3", l.Status("demo").Upgrade.To)
		})
	})
	t.Run("one waits for a roll, and is reported as late", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed + "  deletionProtection: false\n")
			l.holdStackEvents(func() {
				arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
				time.Sleep(time.Minute)
				require.Equal(t, status.UpgradeScheduled, l.Status("demo").Upgrade.Phase, "reported at once")
				require.Contains(t, l.Status("demo").Upgrade.Message, "is being converged by")
				require.Equal(t, arn, l.Status("demo").Upgrade.Execution, "to those who watch it")
				time.Sleep(40 * time.Minute)
				require.Equal(t, status.UpgradeDelayed, l.Status("demo").Upgrade.Phase)
				require.Contains(t, l.Status("demo").Upgrade.Message, "is being converged by")
				require.Equal(t, "RUNNING", l.Execution(arn).Status)
			})
			l.SettleAll()
			l.RequireUpgraded()
		})
	})
	t.Run("one that waits for two hours is missed", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			l.holdStackEvents(func() {
				arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.over(arn)
				require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: the upgrade did not begin, because the cluster was busy for 2h")
				require.Equal(t, status.UpgradeMissed, l.Status("demo").Upgrade.Phase)
				require.Equal(t, status.ReasonUpgradeMissed, l.Status("demo").Condition(status.Upgraded).Reason)
			})
			l.SettleAll()
			l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.SettleAll()
			l.RequireUpgraded()
		})
	})
}

// holdStackEvents runs during while the cluster converges: a roll whose stack events are withheld.
func (l *life) holdStackEvents(during func()) {
	deliver := l.withhold()
	l.Converge("demo", "a")
	time.Sleep(time.Minute)
	during()
	deliver()
}

// withhold withholds events of CloudFormation until the returned function delivers them.
func (l *life) withhold() (deliver func()) {
	l.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" {
			return harness.Held
		}
		return harness.Delivered
	})
	return func() {
		l.Events.Decide(nil)
		for _, e := range l.Events.Held() {
			l.Events.Deliver(e)
		}
	}
}
