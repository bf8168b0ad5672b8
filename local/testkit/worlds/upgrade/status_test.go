package upgrade_test

// The status of a cluster after an upgrade, without any other change, is the status that a converge reports.

import (
	"fmt"
	"strings"
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
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// says returns the phase, the message and the condition Converged of the status.
func (l *life) says() string {
	l.T.Helper()
	s := l.Status("demo")
	c := s.Condition(status.Converged)
	require.NotNil(l.T, c)
	return fmt.Sprintf("%s (%s %s: %s): %s", s.Phase, c.Status, c.Reason, c.Message, s.Message)
}

// lasts asserts that a converge reports the same status.
func (l *life) lasts() {
	l.T.Helper()
	before := l.says()
	l.ConvergeAgain()
	require.Equal(l.T, before, l.says())
}

// halfway uploads a spec with r2, and stops its upgrade during the control plane step.
func (l *life) halfway() {
	l.T.Helper()
	l.ChangeRelease("r2")
	l.WaitForStep(upgrade.StepControlPlane)
	l.StepFunctions.Stop(l.UpgradeRecord().Execution, "Stopped", "by an operator")
	l.SettleAll()
	l.SweepForAnHour()
	require.Equal(l.T, upgrade.Stopped, l.UpgradeRecord().State)
	l.RequirePhase(status.Stopped)
}

func TestBlockedUpgradeKeepsThePhase(t *testing.T) {
	byHand := events.Upgrade{Release: "r2"}
	for name, c := range map[string]struct {
		was     func(l *life)
		upgrade events.Upgrade
		says    string
	}{
		"Ready": {func(*life) {}, byHand, "Ready (True UpToDate: ): the cluster matches its spec"},
		"Stopped, as the spec's own was blocked": {func(l *life) {
			l.alarm(cloudwatchtypes.StateValueAlarm)
			l.ChangeRelease("r2")
			l.SettleAll()
		}, byHand, "Stopped (False UpgradeBlocked: nothing was changed: AlarmsQuiet"},
		"Stopped, as the spec's own stopped on its way": {
			(*life).halfway, events.Upgrade{Rollback: true}, "Stopped (False UpgradeStopped: execution arn:",
		},
		"Ready, as the spec's own waits for its time": {func(l *life) {
			at := fmt.Sprintf("  upgrade: {alarms: [shop-is-down], at: {time: %q, release: r2}}\n", time.Now().Add(48*time.Hour).UTC().
				Format(time.RFC3339))
			l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", at), "name: r1", "name: r2", 1))
			l.SettleAll()
		}, byHand, "Ready (False UpgradeScheduled: the cluster matches its spec, except its release: the upgrade to release r2 "},
		"Ready as its last good spec says": {func(l *life) {
			l.ChangeRelease("lost")
			l.SettleAll()
		}, byHand, "Ready (True UpToDate: ): the cluster matches its last good spec; the newest spec is not used: "},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed)
				c.was(l)
				before := l.says()
				require.Contains(t, before, c.says)
				if l.alarm(cloudwatchtypes.StateValueAlarm); c.upgrade.Rollback {
					l.BlockPods(true)
				}
				arn := l.StartUpgrade(c.upgrade)
				l.over(arn)
				require.Contains(t, l.verdict(arn), "FAILED UpgradeBlocked: nothing was changed")
				require.Equal(t, upgrade.Blocked, l.UpgradeRecord().State)
				require.Equal(t, before, l.says())
				l.lasts()
			})
		})
	}
}

// The upgrade of the spec stopped, and an operator starts it by hand. The status keeps no message of the first one.
func TestUpgradeByHandAfterTheSpecsStopped(t *testing.T) {
	t.Run("is done", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			l.ChangeRelease("r2")
			l.WaitForUpdate("pool-a")
			l.alarm(cloudwatchtypes.StateValueAlarm) // the result is unhealthy
			l.SettleAll()
			require.Contains(t, l.says(), "Stopped (False UpgradeStopped: the final checks failed: AlarmsQuiet")
			l.alarm(cloudwatchtypes.StateValueOk)
			before := len(l.Executions("converge"))
			l.over(l.StartUpgrade(events.Upgrade{Release: "r2"}))
			require.Len(t, l.Executions("converge"), before, "nothing was left but the checks")
			l.RequireUpgraded()
			require.Equal(t, "Ready (True UpToDate: ): the cluster matches its spec", l.says())
			l.lasts()
		})
	})
	t.Run("stops on its way again", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			l.halfway()
			l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.WaitForUpdate("pool-a")
			l.StepFunctions.Stop(l.UpgradeRecord().Execution, "Stopped", "by an operator")
			l.SettleAll()
			l.SweepForAnHour()
			require.Equal(t, upgrade.OriginCommand, l.UpgradeRecord().Origin)
			require.Contains(t, l.says(), "Stopped (False UpgradeStopped: execution arn:")
			l.lasts()
			l.over(l.StartUpgrade(events.Upgrade{Release: "r2"}))
			l.RequireUpgraded()
			l.lasts()
		})
	})
	t.Run("does not continue", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			l.halfway()
			l.alarm(cloudwatchtypes.StateValueAlarm)
			l.over(l.StartUpgrade(events.Upgrade{Release: "r2"}))
			require.Contains(t, l.says(), "Stopped (False UpgradeStopped: the upgrade does not continue: AlarmsQuiet")
			l.lasts()
		})
	})
}

// A rollback to the release of the spec stops after the nodes. The cluster then does not match the spec.
func TestStoppedRollbackIsNotConverged(t *testing.T) {
	runWithFaults(t, func(l *life, bad *faults.Engine) {
		arn := l.half(bad)
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: EKS did not roll the control plane back in 3 attempts")
		l.ConvergeAgain()
		require.Equal(t, "Ready (True UpToDate: ): the cluster matches its spec, except its release: the upgrade to release r1 (Kubernetes "+
			"1.35) stopped before its last step, and its changes stay", l.says())
		l.lasts()
	})
}

// Planning the first step takes the lease but cannot store the plan. Only the fence of the lease changes.
func TestUpgradeThatStopsWithoutAChange(t *testing.T) {
	for name, asked := range map[string]func(l *life) string{
		"by hand": func(l *life) string { return l.StartUpgrade(events.Upgrade{Release: "r2"}) },
		"by hand, back": func(l *life) string {
			l.over(l.StartUpgrade(events.Upgrade{Release: "r2"}))
			l.SettleAll()
			l.RequireUpgraded()
			return l.StartUpgrade(events.Upgrade{Rollback: true})
		},
		"of the spec": func(l *life) string {
			l.ChangeRelease("r2")
			l.Until("it begins", func() bool { return l.UpgradeRecord().Execution != "" })
			return l.UpgradeRecord().Execution
		},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed)
				arn := asked(l)
				had := false
				l.OnCall(func(call endpoint.Call) error {
					if harness.CalledBy(call) != "plan" || call.Action != "PutObject" || !strings.Contains(call.Resource, "/plans/") {
						return nil
					}
					had = true
					return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
				})
				l.over(arn)
				l.SettleAll()
				l.OnCall(nil)
				require.True(t, had)
				require.Equal(t, upgrade.Stopped, l.UpgradeRecord().State)
				mark := l.Calls.Mark()
				l.lasts()
				for _, call := range l.Calls.Since(mark) {
					by := harness.CalledBy(call)
					require.False(t, lives.Mutates(call) && (by == "plan" || by == "report"), "%s called %s %s", by, call.Action, call.Resource)
				}
			})
		})
	}
}

// A user deletes the spec while its upgrade replaces nodes, and uploads it again before the deletion ends. The execution of the step
// deletes and recreates the cluster. The ended upgrade does not belong to the new cluster.
func TestUpgradeLeavesARecreatedClusterAlone(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed + lives.Unprotected)
		spec := strings.Replace(harness.Spec("demo", lives.Alarmed+lives.Unprotected), "name: r1", "name: r2", 1)
		l.Upload(names.ClusterSpec("demo"), spec)
		l.WaitForUpdate("pool-a")
		arn := l.UpgradeRecord().Execution
		l.Remove(names.ClusterSpec("demo"), "")
		l.Until("the network goes", func() bool { return l.Stacks("demo")[names.Network] == "DELETE_IN_PROGRESS" })
		l.Upload(names.ClusterSpec("demo"), spec)
		l.SettleAll()
		require.Contains(t, l.verdict(arn), "the cluster was deleted, and possibly recreated")
		require.Equal(t, "Ready (True UpToDate: ): the cluster matches its spec", l.says())
		l.lasts()
	})
}

// An operator stops an upgrade during its checks and uploads a spec. The sweep records that end while the changes of the spec run.
func TestUpgradeEndsDuringAConverge(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		time.Sleep(20 * time.Second)
		l.StepFunctions.Stop(l.UpgradeRecord().Execution, "Stopped", "by an operator")
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.SecondPool+lives.Alarmed))
		time.Sleep(10 * time.Second)
		l.Sweep()
		time.Sleep(10 * time.Second)
		require.Equal(t, upgrade.Blocked, l.UpgradeRecord().State)
		require.Regexp(t, "^Converging \\(False Converging: changing . of . stacks\\): changing", l.says())
		l.SettleAll()
		require.Equal(t, "Ready (True UpToDate: ): the cluster matches its spec", l.says())
		l.lasts()
	})
}
