package upgrade_test

// Rollbacks, and attempts that change nothing and must keep the rollback possible.

import (
	"strings"
	"testing"
	"time"

	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// rolledBack asserts that a cluster is at 1.35 again.
func (l *life) rolledBack() {
	l.T.Helper()
	s := l.Status("demo")
	require.Equal(l.T, "Done Rollback r1", strings.Join([]string{s.Upgrade.Phase, s.Upgrade.Origin, s.Upgrade.To}, " "), s.Upgrade.Message)
	stack := l.Stack("demo", names.ControlPlane)
	require.Equal(l.T, "1.35", stack.Outputs["KubernetesVersion"])
	require.True(l.T, strings.HasPrefix(stack.Tags[names.TagRelease], "r1@"))
	for _, n := range l.API("drover-demo").Nodes() {
		require.True(l.T, strings.HasPrefix(n.KubeletVersion, "v1.35."), n.KubeletVersion)
	}
	require.True(l.T, l.AlarmEnabled())
	l.RequirePhase(status.Ready)
}

// half upgrades a cluster, and stops its rollback after the nodes: EKS fails to roll back the control plane. It returns the rollback's ARN.
func (l *life) half(bad *faults.Engine) string {
	l.T.Helper()
	l.CreateOldCluster(lives.Alarmed)
	l.StartUpgrade(events.Upgrade{Release: "r2"})
	l.SettleAll()
	l.RequireUpgraded()
	defer lives.AddFault(l.T, bad, "update-fails action=VersionRollback")()
	arn := l.StartUpgrade(events.Upgrade{Rollback: true})
	l.SettleAll()
	return arn
}

func TestRollbackOfAnUpgrade(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		arn := l.StartUpgrade(events.Upgrade{Rollback: true})
		l.SettleAll()
		require.Contains(t, l.verdict(arn), "SUCCEEDED Refused: this cluster has no upgrade that can be rolled back")
		require.Equal(t, status.ReasonUpgradeRefused, l.Status("demo").Condition(status.RequestAccepted).Reason)
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		l.RequireUpgraded()
		require.Nil(t, l.Status("demo").Condition(status.RequestAccepted), "the next request was accepted")
		arn = l.StartUpgrade(events.Upgrade{Rollback: true})
		l.WaitForStep(upgrade.StepControlPlane)
		for _, n := range l.API("drover-demo").Nodes() {
			require.True(t, strings.HasPrefix(n.KubeletVersion, "v1.35."), "nodes go first")
		}
		l.SettleAll()
		require.Equal(t, "SUCCEEDED :", l.verdict(arn))
		stack := l.Stack("demo", names.ControlPlane)
		require.Equal(t, "1.35", stack.Outputs["KubernetesVersion"])
		require.True(t, strings.HasPrefix(stack.Tags[names.TagRelease], "r1@"))
		require.True(t, l.AlarmEnabled())
		l.RequirePhase(status.Ready)
		again := l.StartUpgrade(events.Upgrade{Rollback: true})
		l.SettleAll()
		require.Contains(t, l.verdict(again), "was rolled back already")
	})
	t.Run("not after a week", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster("")
			l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.SettleAll()
			time.Sleep(8 * 24 * time.Hour)
			arn := l.StartUpgrade(events.Upgrade{Rollback: true})
			l.SettleAll()
			require.Contains(t, l.verdict(arn), "EKS rolls a control plane back within 7 days only")
			l.RequireUpgraded()
		})
	})
}

func TestRollbackAfterABlockedAttempt(t *testing.T) {
	t.Run("to roll back", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.SettleAll()
			l.RequireUpgraded()
			for range 2 { // one after the other
				l.BlockPods(true)
				arn := l.StartUpgrade(events.Upgrade{Rollback: true})
				l.SettleAll()
				require.Contains(t, l.verdict(arn), "FAILED UpgradeBlocked: nothing was changed: BudgetsAllow")
				l.BlockPods(false)
			}
			l.StartUpgrade(events.Upgrade{Rollback: true})
			l.SettleAll()
			l.rolledBack()
		})
	})
	t.Run("to continue to another release", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.SettleAll()
			l.RequireUpgraded()
			l.Upload(names.ReleaseSpec("r3"), harness.ReleaseOf("1.36", "r3"))
			l.alarm(cloudwatchtypes.StateValueAlarm)
			arn := l.StartUpgrade(events.Upgrade{Release: "r3"})
			l.SettleAll()
			require.Contains(t, l.verdict(arn), "FAILED UpgradeBlocked: nothing was changed: AlarmsQuiet")
			l.alarm(cloudwatchtypes.StateValueOk)
			l.StartUpgrade(events.Upgrade{Rollback: true})
			l.SettleAll()
			l.rolledBack()
		})
	})
}

// An unhealthy cluster after an upgrade is the reason for a rollback. It does not block the rollback.
func TestRollbackOfAnUnhealthyCluster(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepNodes)
		l.alarm(cloudwatchtypes.StateValueAlarm)
		l.over(arn)
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: the final checks failed: AlarmsQuiet")
		require.Contains(t, l.verdict(arn), "To roll back: `drover upgrade demo --rollback`")
		back := l.StartUpgrade(events.Upgrade{Rollback: true})
		l.WaitForStep(upgrade.StepNodesBack)
		time.Sleep(time.Minute)
		checks := l.Status("demo").Upgrade.Checks
		require.Equal(t, "AlarmsQuiet", checks[0].Name)
		require.False(t, checks[0].Blocks)
		l.alarm(cloudwatchtypes.StateValueOk) // of the old version
		l.SettleAll()
		require.Equal(t, "SUCCEEDED :", l.verdict(back))
		l.rolledBack()
	})
}

// A rollback stops after the control plane. A pool that is added then gets nodes of the old version.
func TestPoolIsAddedDuringAStoppedRollback(t *testing.T) {
	runWithFaults(t, func(l *life, bad *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		l.RequireUpgraded()
		end := lives.AddFault(t, bad, `kill machine=upgrade state="Upgrade the add-ons" count=1`)
		l.StartUpgrade(events.Upgrade{Rollback: true})
		l.SettleAll()
		end()
		l.Sweep()
		l.SettleAll()
		require.Equal(t, upgrade.Stopped, l.UpgradeRecord().State)
		more := strings.Replace(harness.Spec("demo", lives.Alarmed), "maxSize: 3}\n",
			"maxSize: 3}\n    - {name: late, instanceTypes: [m7i.large], minSize: "+
				"1, maxSize: 1}\n", 1)
		l.Upload(names.ClusterSpec("demo"), more)
		l.SettleAll()
		require.Equal(t, []string{"1.35"}, l.kubelets("late"))
		l.StartUpgrade(events.Upgrade{Rollback: true})
		l.SettleAll()
		l.rolledBack()
	})
}

// A rollback stops and is undone: the nodes are upgraded again. A second rollback is still possible as long as EKS supports it.
func TestSecondRollbackAfterAnUndoneOne(t *testing.T) {
	for name, forward := range map[string]func(t *testing.T, l *life, bad *faults.Engine){
		"when the nodes are forward again": func(t *testing.T, l *life, _ *faults.Engine) {
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.SettleAll()
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			l.RequireUpgraded()
		},
		"when that stopped, too": func(t *testing.T, l *life, bad *faults.Engine) {
			end := lives.AddFault(t, bad, `kill machine=upgrade state="Replace the nodes" count=1`)
			l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.SettleAll()
			end()
			l.Sweep()
			l.SettleAll()
			require.Equal(t, upgrade.Stopped, l.UpgradeRecord().State)
			require.Equal(t, upgrade.OriginCommand, l.UpgradeRecord().Origin)
		},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				l.half(bad)
				require.Equal(t, []string{"1.35"}, l.kubelets("a"))
				forward(t, l, bad)
				arn := l.StartUpgrade(events.Upgrade{Rollback: true})
				l.SettleAll()
				require.Equal(t, "SUCCEEDED :", l.verdict(arn))
				l.rolledBack()
			})
		})
	}
}

// EKS counts seven days from the update of the control plane, whatever was attempted since.
func TestRollbackAfterItsDeadline(t *testing.T) {
	for name, between := range map[string]func(l *life){
		"it is continued":       func(*life) {},
		"after it was reverted": func(l *life) { l.over(l.StartUpgrade(events.Upgrade{Release: "r2"})) },
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				l.half(bad)
				between(l)
				time.Sleep(8 * 24 * time.Hour)
				before := l.kubelets("a")
				arn := l.StartUpgrade(events.Upgrade{Rollback: true})
				l.SettleAll()
				require.Contains(t, l.verdict(arn), "EKS rolls a control plane back within 7 days only")
				require.Equal(t, before, l.kubelets("a"), "no node goes for nothing")
				l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.SettleAll()
				l.RequireUpgraded()
			})
		})
	}
}

// The nodes are rolled back, but EKS fails to roll back the control plane. If nodes are upgraded before the rollback
// continues, drover rolls them back again before the control plane.
func TestRollbackContinuesAfterNodesWereUpgraded(t *testing.T) {
	spec := func(pools ...string) string {
		return strings.NewReplacer(pools...).Replace(harness.Spec("demo", lives.Alarmed))
	}
	for name, test := range map[string]struct {
		forward func(l *life)
		pool    string
	}{
		"not at all": {func(*life) {}, ""},
		"as another spec says": {func(l *life) {
			l.ChangeRelease("r2")
			l.SettleAll()
		}, "a"},
		"in a pool that was added": {func(l *life) {
			l.Upload(names.ClusterSpec("demo"),
				spec("maxSize: 3}\n", "maxSize: 3}\n    - {name: late, instanceTypes: [m7i.large], minSize: 1, maxSize: 1}\n"))
			l.SettleAll()
		}, "late"},
		"by an image that the spec named for a while": {func(l *life) {
			l.Upload(names.ClusterSpec("demo"), spec("{name: a,", "{name: a, imageID: "+ec2.ImageID("1.36", "amd64")+","))
			l.SettleAll()
			l.Upload(names.ClusterSpec("demo"), spec())
			l.SettleAll()
		}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				arn := l.half(bad)
				require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: EKS did not roll the control plane back in 3 attempts")
				require.Contains(t, l.verdict(arn), "Completed and kept: nodes back to their previous images")
				require.Contains(t, l.verdict(arn), "Next: control plane to 1.35. To continue: `drover upgrade demo --rollback`, "+
					"which starts drover-upgrade with {\"cluster\":\"demo\",\"rollback\":true}. To undo the rollback: `drover upgrade demo --to r2`")
				require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
				require.Equal(t, []string{"1.35"}, l.kubelets("a"))

				test.forward(l)
				if test.pool != "" {
					require.Equal(t, []string{"1.36"}, l.kubelets(test.pool))
				}
				plan, blocks, err := l.dryRun(events.Upgrade{Rollback: true})
				require.NoError(t, err)
				require.Empty(t, blocks)
				require.Equal(t, upgrade.StepNodesBack, plan.Steps[0].Kind)
				arn = l.StartUpgrade(events.Upgrade{Rollback: true})
				l.WaitForStep(upgrade.StepControlPlane)
				for _, n := range l.API("drover-demo").Nodes() {
					require.True(t, strings.HasPrefix(n.KubeletVersion, "v1.35."), "nodes go first")
				}
				l.SettleAll()
				require.Equal(t, "SUCCEEDED :", l.verdict(arn))
				l.rolledBack()
			})
		})
	}
}
