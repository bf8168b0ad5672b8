package interruption_test

// drover is removed while it works, and deployed again. The work continues, and no healthy node is lost.

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// removeDrover removes drover, and deploys it again after a while. The schedules then start the sweep and the audit.
func (l *life) removeDrover(absence time.Duration) {
	l.T.Helper()
	l.Undeploy()
	time.Sleep(absence)
	l.Redeploy()
}

// launches counts the instances that the pool has launched.
func (l *life) launches() (count int) {
	l.T.Helper()
	out, err := autoscalingapi.NewFromConfig(l.Config()).DescribeScalingActivities(l.T.Context(),
		&autoscalingapi.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String(lives.PoolGroup)})
	require.NoError(l.T, err)
	for _, activity := range out.Activities {
		if strings.HasPrefix(aws.ToString(activity.Description), "Launching") {
			count++
		}
	}
	return count
}

const (
	shortAbsence = 5 * time.Minute // shorter than the heartbeat timeout of a terminate hook
	// longAbsence is shorter than the hour that CloudFormation waits for signals.
	longAbsence = 50 * time.Minute
)

func TestRemovalDuringARoll(t *testing.T) {
	for name, test := range map[string]struct {
		hold    bool
		absence time.Duration
	}{
		"while a new node joins":                    {false, shortAbsence},
		"while an old node is being drained":        {true, shortAbsence},
		"while a new node joins, for a longer time": {false, longAbsence},
	} {
		hold := test.hold
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreatePool(lives.TwoNodes)
				l.RequirePhase(status.Ready)
				l.BlockPods(hold)
				before := l.Group("demo", "a")
				l.Converge("demo", "a")
				l.WaitForGroup(func(g pool.Group) bool { return hold && len(g.Draining()) > 0 || !hold && len(g.Instances) > 2 })
				l.removeDrover(test.absence)
				l.BlockPods(false)
				l.RunSchedules(3)
				l.RequireRenewed(before, 2)
				require.Equal(t, 4, l.launches(), "no new node was replaced")
				require.Empty(t, l.Status("demo").Nodes)
			})
		})
	}
}

// CloudFormation waits one hour for signals, and then rolls the update back. The first sweep starts the roll again.
func TestRemovalForAnHourDuringARoll(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreatePool(lives.TwoNodes)
		before := l.Group("demo", "a")
		l.Converge("demo", "a")
		l.WaitForGroup(func(g pool.Group) bool { return len(g.Instances) > 2 })
		l.removeDrover(time.Hour)
		l.RunSchedules(3)
		l.RequirePhase(status.Ready)
		l.RequireRenewed(before, 3) // the failed rollback left the node that CloudFormation had added for the batch
		require.Empty(t, l.Status("demo").Nodes)
	})
}

// No pool of a removed drover may lose the nodes that an autoscaler adds: each serves, at the latest when its hook times out.
func TestScaleOutWithoutDrover(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreatePool(lives.TwoNodes)
		l.Undeploy()
		l.SetPoolSize(3)
		time.Sleep(6 * time.Hour)
		group := l.Group("demo", "a")
		require.Len(t, group.Instances, 3)
		for _, i := range group.Instances {
			require.Equal(t, pool.InService, i.State)
		}
		require.Equal(t, 3, l.launches())
		l.Redeploy()
		l.RunSchedules(1)
		l.RequirePhase(status.Ready)
		require.Equal(t, 3, l.launches(), "no node was replaced")
	})
}

// No function signals while drover is removed for hours, so CloudFormation rolls the update back. The old nodes stay in service.
func TestLongRemovalDuringARoll(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreatePool(lives.TwoNodes)
		before := l.Group("demo", "a")
		l.Converge("demo", "a")
		l.WaitForGroup(func(g pool.Group) bool { return len(g.Instances) > 2 })
		l.removeDrover(6 * time.Hour)
		after := l.Group("demo", "a")
		for _, old := range before.Instances {
			i := slices.IndexFunc(after.Instances, func(i pool.Instance) bool { return i.ID == old.ID })
			require.GreaterOrEqual(t, i, 0, old.ID)
			require.Equal(t, pool.InService, after.Instances[i].State)
		}
		require.Equal(t, "UPDATE_ROLLBACK_FAILED", l.Stacks("demo")["pool-a"])
		l.RunSchedules(4)
		l.RequireRenewed(before, 3) // the failed rollback left the node that CloudFormation had added for the batch
	})
}

func TestRemovalDuringADrain(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		drained := l.StartDrain(lives.TwoNodes)
		l.removeDrover(shortAbsence)
		require.Equal(t, []string{drained}, l.Group("demo", "a").Draining())
		l.Sweep()
		time.Sleep(time.Minute)
		require.Equal(t, []string{drained}, l.Group("demo", "a").Draining(), "the budget still blocks it")
		l.BlockPods(false)
		l.RunSchedules(1)
		l.RequirePhase(status.Ready)
		require.Empty(t, l.Group("demo", "a").Draining())
		require.Equal(t, 3, l.launches())
		require.Empty(t, l.Status("demo").Nodes)
	})
}

func TestRemovalDuringAnUpgrade(t *testing.T) {
	for step, kind := range map[string]upgrade.StepKind{"control plane": upgrade.StepControlPlane, "nodes": upgrade.StepNodes} {
		t.Run(step, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed)
				l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.WaitForStep(kind)
				time.Sleep(time.Minute)
				l.removeDrover(shortAbsence)
				l.RunSchedules(6)
				l.RequireUpgraded()
			})
		})
	}
}

func TestRemovalDuringADeletion(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateCluster(lives.Unprotected)
		l.Remove("clusters/demo.yaml", "")
		time.Sleep(time.Minute)
		require.NotEmpty(t, l.Stacks("demo"))
		l.removeDrover(shortAbsence)
		l.RunSchedules(1)
		l.RequirePhase(status.Deleted)
		require.Empty(t, l.Stacks("demo"))
	})
}
