package upgrade_test

// Specs that name the release of an upgrade by hand.

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

func TestSpecNamesTheUpgradeInFlight(t *testing.T) {
	t.Run("it continues, once", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.WaitForStep(upgrade.StepControlPlane)
			time.Sleep(time.Minute)
			l.ChangeRelease("r2")
			l.over(arn)
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			l.RequireUpgraded()
			l.SweepForAnHour()
			l.ConvergeAgain()
			l.RequireUpgraded()
			require.Len(t, l.Executions("upgrade"), 1)
			require.Equal(t, "True", l.Status("demo").Condition(status.Converged).Status)
			require.Len(t, l.Status("demo").Upgrades, 1)
		})
	})
	t.Run("a rollback, too", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			l.ChangeRelease("r2")
			l.SettleAll()
			l.RequireUpgraded()
			arn := l.StartUpgrade(events.Upgrade{Rollback: true})
			l.WaitForStep(upgrade.StepControlPlane)
			l.ChangeRelease("r1")
			l.over(arn)
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			l.SweepForAnHour()
			s := l.Status("demo")
			require.Equal(t, "Ready Done Rollback r1", strings.Join([]string{string(s.Phase), s.Upgrade.Phase, s.Upgrade.Origin, s.Upgrade.To},
				" "), s.Message)
			require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
			require.Len(t, l.Executions("upgrade"), 2)
		})
	})
	t.Run("one that stops waits for an operator, as the spec's would", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.WaitForStep(upgrade.StepControlPlane)
			l.ChangeRelease("r2")
			l.StepFunctions.Stop(arn, "Aborted", "by an operator")
			l.SettleAll()
			l.SweepForAnHour()
			l.ConvergeAgain()
			require.Equal(t, upgrade.Stopped, l.UpgradeRecord().State)
			s := l.Status("demo")
			require.Equal(t, status.Stopped, s.Phase, s.Message)
			require.Equal(t, status.ReasonUpgradeStopped, s.Condition(status.Converged).Reason)
			require.Equal(t, "Stopped Command", s.Upgrade.Phase+" "+s.Upgrade.Origin)
			require.EqualValues(t, 1, l.UpgradeRecord().Number, "nothing began")
			l.ChangeRelease("r2")
			l.SettleAll()
			l.RequireUpgraded()
			require.Equal(t, upgrade.OriginSpec, l.UpgradeRecord().Origin)
		})
	})
}

// A spec names a missing release, an upgrade by hand begins, and the user then restores the spec.
func TestSpecIsRestoredDuringAnUpgrade(t *testing.T) {
	for name, when := range map[string]func(l *life, arn string){
		"that is in flight": func(l *life, _ string) { l.WaitForStep(upgrade.StepControlPlane) },
		"that is over":      func(l *life, arn string) { l.over(arn) },
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed)
				l.ChangeRelease("lost")
				l.SettleAll()
				require.Equal(t, "False", l.Status("demo").Condition(status.SpecAccepted).Status)
				arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
				when(l, arn)
				l.ChangeRelease("r1")
				l.over(arn)
				l.SettleAll()
				require.Equal(t, "SUCCEEDED :", l.verdict(arn))
				l.RequireUpgraded()
				s := l.Status("demo")
				require.Equal(t, "True", s.Condition(status.SpecAccepted).Status, s.Message)
				require.Contains(t, s.Message, "release r2 (Kubernetes 1.36) applies, requested by an operator, until the spec names a release "+
					"other than lost or r1")
			})
		})
	}
}

// A spec that names the release of an upgrade by hand ends the override. If it then names the old release, it requests a change.
func TestSpecNamesItsOldReleaseAgain(t *testing.T) {
	refused := func(l *life) {
		l.T.Helper()
		l.SettleAll()
		s := l.Status("demo")
		c := s.Condition(status.SpecAccepted)
		require.NotNil(l.T, c)
		require.Equal(l.T, "False", c.Status)
		require.Contains(l.T, c.Message, "the cluster runs 1.36, and Kubernetes is not downgraded: `drover upgrade demo --rollback` "+
			"rolls an upgrade back")
		require.Contains(l.T, s.Message, "is not downgraded")
		require.Equal(l.T, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		require.Contains(l.T, strings.Join(l.Notices(), "\n"), "is not downgraded")
	}
	t.Run("after an upgrade by hand, it is refused", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			l.over(l.StartUpgrade(events.Upgrade{Release: "r2"}))
			l.SettleAll()
			l.RequireUpgraded()
			upgraded := l.Status("demo")
			require.Equal(t, "the cluster matches its spec, except its release: release r2 (Kubernetes 1.36) applies, requested by an operator, "+
				"until the spec names a release other than r1", upgraded.Message)
			l.ConvergeAgain()
			require.Equal(t, "r1", l.UpgradeRecord().Overridden, "the operator's request applies")
			require.Equal(t, upgraded, l.Status("demo"), "the status is unchanged")
			l.ChangeRelease("r2")
			l.SettleAll()
			l.RequireUpgraded()
			require.Empty(t, l.UpgradeRecord().Overridden)
			require.Equal(t, status.AsSpecified, l.Status("demo").Message)
			before := l.Calls.Mark()
			l.ConvergeAgain()
			for _, call := range l.Calls.Since(before) {
				require.False(t, lives.Mutates(call) && harness.CalledBy(call) == "report", "%s %s", call.Service, call.Action)
			}
			l.ChangeRelease("r1")
			refused(l)
			// The user follows the advice in the message.
			arn := l.StartUpgrade(events.Upgrade{Rollback: true})
			l.over(arn)
			l.SettleAll()
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			l.ConvergeAgain()
			s := l.Status("demo")
			require.Equal(t, "Ready True", string(s.Phase)+" "+s.Condition(status.SpecAccepted).Status, s.Message)
			require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		})
	})
	t.Run("although it named it while that was in flight", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.WaitForStep(upgrade.StepControlPlane)
			l.ChangeRelease("r2")
			l.over(arn)
			l.RequireUpgraded()
			require.Empty(t, l.UpgradeRecord().Overridden)
			l.ChangeRelease("r1")
			refused(l)
		})
	})
	t.Run("after a rollback, it upgrades again", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			l.ChangeRelease("r2")
			l.SettleAll()
			l.RequireUpgraded()
			l.over(l.StartUpgrade(events.Upgrade{Rollback: true}))
			l.SettleAll()
			require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
			l.ConvergeAgain()
			require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"],
				"the spec that was rolled back requests nothing")
			require.Contains(t, l.Status("demo").Message, "except its release: release r1 (Kubernetes 1.35) applies, requested by a rollback, "+
				"until the spec names a release other than r2")
			l.ChangeRelease("r1")
			l.SettleAll()
			l.RequirePhase(status.Ready)
			l.ChangeRelease("r2")
			l.SettleAll()
			s := l.Status("demo")
			require.Equal(t, "Ready Done Spec r2", strings.Join([]string{string(s.Phase), s.Upgrade.Phase, s.Upgrade.Origin, s.Upgrade.To}, " "),
				s.Message)
			require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		})
	})
}
