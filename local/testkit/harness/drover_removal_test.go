package harness

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
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// removed removes drover, and deploys it again after a while. The schedules then start the sweep and the audit.
func (l *life) removed(absence time.Duration) {
	l.t.Helper()
	l.Undeploy()
	time.Sleep(absence)
	l.Redeploy()
}

// scheduled runs the sweep every 5 minutes and the audit every 15, as long as these hours.
func (l *life) scheduled(hours int) {
	for n := range hours * 12 {
		time.Sleep(5 * time.Minute)
		l.swept()
		if n%3 == 2 {
			_ = l.AuditNow() // the logs of functions have the reason of a failure
		}
	}
	l.settle()
}

// reaches waits until the pool is in a state.
func (l *life) reaches(state func(pool.Group) bool) {
	l.t.Helper()
	for range 6 * 60 {
		if state(l.Group("demo", "a")) {
			return
		}
		time.Sleep(10 * time.Second)
	}
	require.Fail(l.t, "the pool never reached the state")
}

// launches counts the instances that the pool has launched.
func (l *life) launches() (count int) {
	l.t.Helper()
	out, err := autoscalingapi.NewFromConfig(l.Config()).DescribeScalingActivities(l.t.Context(),
		&autoscalingapi.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String(rolledGroup)})
	require.NoError(l.t, err)
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
		"while an old node is drained":              {true, shortAbsence},
		"while a new node joins, for a longer time": {false, longAbsence},
	} {
		hold := test.hold
		t.Run(name, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				l.grown(twoNodes)
				l.phase(status.Ready)
				l.hold(hold)
				before := l.Group("demo", "a")
				l.Converge("demo", "a")
				l.reaches(func(g pool.Group) bool { return hold && len(g.Draining()) > 0 || !hold && len(g.Instances) > 2 })
				l.removed(test.absence)
				l.hold(false)
				l.scheduled(3)
				l.renewed(before, 2)
				require.Equal(t, 4, l.launches(), "no new node was replaced")
				require.Empty(t, l.Status("demo").Nodes)
			})
		})
	}
}

// CloudFormation waits one hour for signals, and then rolls the update back. The first sweep starts the roll again.
func TestRemovalForAnHourDuringARoll(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.grown(twoNodes)
		before := l.Group("demo", "a")
		l.Converge("demo", "a")
		l.reaches(func(g pool.Group) bool { return len(g.Instances) > 2 })
		l.removed(time.Hour)
		l.scheduled(3)
		l.phase(status.Ready)
		l.renewed(before, 3) // the failed rollback left the node that CloudFormation had added for the batch
		require.Empty(t, l.Status("demo").Nodes)
	})
}

// No pool of a removed drover may lose the nodes that an autoscaler adds: each serves, at the latest when its hook times out.
func TestScaleOutWithoutDrover(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.grown(twoNodes)
		l.Undeploy()
		l.scale(3)
		time.Sleep(6 * time.Hour)
		group := l.Group("demo", "a")
		require.Len(t, group.Instances, 3)
		for _, i := range group.Instances {
			require.Equal(t, pool.InService, i.State)
		}
		require.Equal(t, 3, l.launches())
		l.Redeploy()
		l.scheduled(1)
		l.phase(status.Ready)
		require.Equal(t, 3, l.launches(), "no node was replaced")
	})
}

// No function signals while drover is removed for hours, so CloudFormation rolls the update back. The old nodes stay in service.
func TestLongRemovalDuringARoll(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.grown(twoNodes)
		before := l.Group("demo", "a")
		l.Converge("demo", "a")
		l.reaches(func(g pool.Group) bool { return len(g.Instances) > 2 })
		l.removed(6 * time.Hour)
		after := l.Group("demo", "a")
		for _, old := range before.Instances {
			i := slices.IndexFunc(after.Instances, func(i pool.Instance) bool { return i.ID == old.ID })
			require.GreaterOrEqual(t, i, 0, old.ID)
			require.Equal(t, pool.InService, after.Instances[i].State)
		}
		require.Equal(t, "UPDATE_ROLLBACK_FAILED", l.Stacks("demo")["pool-a"])
		l.scheduled(4)
		l.renewed(before, 3) // the failed rollback left the node that CloudFormation had added for the batch
	})
}

func TestRemovalDuringADrain(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		drained := l.drains(twoNodes)
		l.removed(shortAbsence)
		require.Equal(t, []string{drained}, l.Group("demo", "a").Draining())
		l.swept()
		time.Sleep(time.Minute)
		require.Equal(t, []string{drained}, l.Group("demo", "a").Draining(), "the budget still blocks it")
		l.hold(false)
		l.scheduled(1)
		l.phase(status.Ready)
		require.Empty(t, l.Group("demo", "a").Draining())
		require.Equal(t, 3, l.launches())
		require.Empty(t, l.Status("demo").Nodes)
	})
}

func TestRemovalDuringAnUpgrade(t *testing.T) {
	for step, kind := range map[string]upgrade.StepKind{"control plane": upgrade.StepControlPlane, "nodes": upgrade.StepNodes} {
		t.Run(step, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				l.old(alarmed)
				l.upgrade(events.Upgrade{Release: "r2"})
				l.step(kind)
				time.Sleep(time.Minute)
				l.removed(shortAbsence)
				l.scheduled(6)
				l.upgraded()
			})
		})
	}
}

func TestRemovalDuringADeletion(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.create(unprotected)
		l.Remove("clusters/demo.yaml", "")
		time.Sleep(time.Minute)
		require.NotEmpty(t, l.Stacks("demo"))
		l.removed(shortAbsence)
		l.scheduled(1)
		l.phase(status.Deleted)
		require.Empty(t, l.Stacks("demo"))
	})
}
