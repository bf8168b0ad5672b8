package harness

// Upgrades by the real machine and function, in virtual time: good days and bad ones.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cloudwatchapi "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/apiserver"
	"github.com/drover-run/drover/local/eks"
	"github.com/drover-run/drover/local/endpoint"
	"github.com/drover-run/drover/local/faults"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// alarmed names an alarm that upgrades silence.
const alarmed = "  upgrade: {alarms: [shop-is-down]}\n"

// old creates a cluster of Kubernetes 1.35; the release r2 is of 1.36.
func (l *life) old(more string) {
	l.t.Helper()
	l.Upload(names.ReleaseSpec("r1"), ReleaseOf("1.35", "r1"))
	l.Upload(names.ReleaseSpec("r2"), ReleaseOf("1.36", "r2"))
	_, err := l.cloudwatch().PutMetricAlarm(l.t.Context(), &cloudwatchapi.PutMetricAlarmInput{
		AlarmName: aws.String("shop-is-down"), Namespace: aws.String("shop"), MetricName: aws.String("errors"), Statistic: cloudwatchtypes.StatisticSum,
		Period: aws.Int32(300), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0), ComparisonOperator: cloudwatchtypes.ComparisonOperatorGreaterThanThreshold,
		TreatMissingData: aws.String("notBreaching"), ActionsEnabled: aws.Bool(true),
	})
	require.NoError(l.t, err)
	l.change(more)
	l.phase(status.Ready)
}

func (l *life) cloudwatch() *cloudwatchapi.Client { return cloudwatchapi.NewFromConfig(l.Config()) }

// alarm brings the alarm into a state.
func (l *life) alarm(state cloudwatchtypes.StateValue) {
	l.t.Helper()
	_, err := l.cloudwatch().SetAlarmState(l.t.Context(), &cloudwatchapi.SetAlarmStateInput{
		AlarmName: aws.String("shop-is-down"), StateValue: state, StateReason: aws.String("a test says so"),
	})
	require.NoError(l.t, err)
}

// sounds says whether the alarm's actions are on.
func (l *life) sounds() bool {
	l.t.Helper()
	out, err := l.cloudwatch().DescribeAlarms(l.t.Context(), &cloudwatchapi.DescribeAlarmsInput{AlarmNames: []string{"shop-is-down"}})
	require.NoError(l.t, err)
	require.Len(l.t, out.MetricAlarms, 1)
	return aws.ToBool(out.MetricAlarms[0].ActionsEnabled)
}

// upgrade starts the upgrade machine as a person does, and returns its execution.
func (l *life) upgrade(in events.Upgrade) string {
	l.t.Helper()
	in.Cluster = "demo"
	input, err := json.Marshal(in)
	require.NoError(l.t, err)
	arn, err := l.States.Start(l.t.Context(), l.Admin(), l.machineARN("upgrade"), uuid.NewString(), string(input))
	require.NoError(l.t, err)
	return arn
}

// record of the cluster's upgrade.
func (l *life) record() *upgrade.Record {
	l.t.Helper()
	r, _, err := l.State().Upgrade(l.t.Context(), "demo")
	require.NoError(l.t, err)
	if r == nil {
		return &upgrade.Record{}
	}
	return r
}

// upgradeLife lives a life with upgrades in virtual time.
func upgradeLife(t *testing.T, run func(l *life, bad *faults.Engine)) {
	synctest.Test(t, func(t *testing.T) {
		bad := faults.New(1)
		a := StartWith(t, Options{Bubble: true, Faults: bad})
		defer a.Close()
		run(&life{a}, bad)
	})
}

// strike adds a rule of what goes wrong, and returns how to end it.
func strike(t *testing.T, bad *faults.Engine, rule string) (end func()) {
	t.Helper()
	r, err := faults.Parse(rule)
	require.NoError(t, err)
	id, err := bad.Add(time.Now(), r)
	require.NoError(t, err)
	return func() { bad.Remove(id) }
}

// upgraded says that a cluster is at 1.36 with everything, once, and that nothing of the upgrade is left over.
func (l *life) upgraded() {
	l.t.Helper()
	s := l.Status("demo")
	require.Equal(l.t, status.Ready, s.Phase, s.Message)
	require.Equal(l.t, "Done", s.Upgrade.Phase, s.Upgrade.Message)
	require.Equal(l.t, "True", s.Condition(status.Upgraded).Status)
	stack := l.Stack("demo", names.ControlPlane)
	require.Equal(l.t, "1.36", stack.Outputs["KubernetesVersion"])
	require.True(l.t, strings.HasPrefix(stack.Tags[names.TagRelease], "r2@"), stack.Tags[names.TagRelease])
	nodes := l.API("drover-demo").Nodes()
	require.NotEmpty(l.t, nodes)
	for _, n := range nodes {
		require.True(l.t, strings.HasPrefix(n.KubeletVersion, "v1.36."), n.KubeletVersion)
	}
	require.Equal(l.t, upgrade.Done, l.record().State)
	require.Empty(l.t, l.record().Alarms)
	require.True(l.t, l.sounds())
	require.Equal(l.t, 1, l.updates(), "EKS was asked once")
	p, reason, message, err := l.Functions.Plan.Preview(l.t.Context(), "demo")
	require.NoError(l.t, err)
	require.Empty(l.t, reason, message)
	require.Empty(l.t, p.Changes)
	lease, err := l.State().Lease(l.t.Context(), "demo")
	require.NoError(l.t, err)
	require.Empty(l.t, lease.Execution)
}

// updates counts the updates of the control plane's version that were asked for.
func (l *life) updates() int {
	l.t.Helper()
	out, err := l.EKS.ListUpdates(l.t.Context(), l.Admin(), eks.ListUpdatesInput{Name: "drover-demo"})
	require.NoError(l.t, err)
	count := 0
	for _, id := range out.UpdateIDs {
		u, err := l.EKS.DescribeUpdate(l.t.Context(), l.Admin(), eks.DescribeUpdateInput{Name: "drover-demo", UpdateID: id})
		require.NoError(l.t, err)
		if u.Update.Type == "VersionUpdate" && u.Update.Status == "Successful" {
			count++
		}
	}
	return count
}

// verdict of an execution.
func (l *life) verdict(arn string) string {
	x := l.Execution(arn)
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s", x.Status, x.Error, x.Cause))
}

// over waits until an execution is over, whatever else goes on.
func (l *life) over(arn string) {
	l.t.Helper()
	l.Until("it is over", func() bool { return l.Execution(arn).Status != "RUNNING" })
}

// step waits until a step of an upgrade is open. Asking is a call itself, so it does not wait by Until.
func (l *life) step(kind upgrade.StepKind) {
	l.t.Helper()
	for range 24 * 60 {
		r := l.record()
		if r.State == upgrade.Running && r.Step < len(r.Steps) && r.Steps[r.Step].Kind == kind {
			return
		}
		time.Sleep(time.Minute)
	}
	require.Fail(l.t, "the step "+string(kind)+" was not opened", "%s", l.Status("demo").Message)
}

func TestAnUpgrade(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.old(alarmed)
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		l.step(upgrade.StepControlPlane)
		time.Sleep(time.Minute)
		require.False(t, l.sounds())
		require.Equal(t, status.Upgrading, l.Status("demo").Phase)
		l.settle()
		require.Equal(t, "SUCCEEDED :", l.verdict(arn))
		l.upgraded()
		s := l.Status("demo")
		require.Len(t, s.Upgrades, 1)
		require.Equal(t, []string{"control plane to 1.36", "add-ons to those of the release", "nodes to the images of the release"}, stepNames(s.Upgrade))
		for _, step := range s.Upgrade.Steps {
			require.NotNil(t, step.Ended, step.Name)
		}
		t.Run("again finds nothing to do", func(t *testing.T) {
			before := len(l.Calls.Since(0))
			again := l.upgrade(events.Upgrade{Release: "r2"})
			l.settle()
			require.Equal(t, "SUCCEEDED :", l.verdict(again))
			for _, call := range l.Calls.Since(before) {
				require.False(t, mutates(call) && CalledBy(call) != "admin", "%s %s", call.Service, call.Action)
			}
		})
	})
}

func mutates(call endpoint.Call) bool {
	return !slices.ContainsFunc([]string{"Get", "List", "Describe", "Head", "AssumeRole"}, func(p string) bool { return strings.HasPrefix(call.Action, p) })
}

func stepNames(u *status.Upgrade) (all []string) {
	for _, s := range u.Steps {
		all = append(all, s.Name)
	}
	return all
}

func TestAnUpgradeThatIsBlocked(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.old(alarmed)
		l.alarm(cloudwatchtypes.StateValueAlarm)
		before := l.Stacks("demo")
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		require.Contains(t, l.verdict(arn), "FAILED UpgradeBlocked: nothing was changed: AlarmsQuiet")
		s := l.Status("demo")
		require.Equal(t, status.Ready, s.Phase, "nobody's spec was left undone")
		require.Equal(t, "Blocked", s.Upgrade.Phase)
		require.Equal(t, status.ReasonUpgradeBlocked, s.Condition(status.Upgraded).Reason)
		require.Equal(t, "AlarmsQuiet", s.Upgrade.Checks[0].Name)
		require.Equal(t, before, l.Stacks("demo"))
		require.True(t, l.sounds())
		l.alarm(cloudwatchtypes.StateValueOk)
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		l.upgraded()
	})
}

func TestAnUpgradeThatEKSFails(t *testing.T) {
	upgradeLife(t, func(l *life, bad *faults.Engine) {
		l.old(alarmed)
		end := strike(t, bad, "update-fails action=VersionUpdate")
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: StackFailed: stack drover-demo-control-plane")
		require.Contains(t, l.verdict(arn), "Nothing is done yet. Next: control plane to 1.36")
		require.Equal(t, "Stopped", l.Status("demo").Upgrade.Phase)
		require.True(t, l.sounds())
		l.again()
		l.phase(status.Ready) // as it was before
		end()
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		l.upgraded()
		require.Len(t, l.Status("demo").Upgrades, 2)
	})
}

func TestAnUpgradeWhoseNodesCannotLeave(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.old(alarmed)
		l.busy(3) // its budget allows none
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		require.Contains(t, l.verdict(arn), "UpgradeBlocked: nothing was changed: BudgetsAllow")
	})
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.old(alarmed)
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		l.step(upgrade.StepControlPlane)
		l.busy(3) // after the checks
		l.over(arn)
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: still being drained: i-")
		require.Contains(t, l.verdict(arn), "Done and kept: control plane to 1.36, add-ons to those of the release. Next: nodes to the images of the release")
		require.True(t, l.sounds())
		require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		again := l.upgrade(events.Upgrade{Release: "r2"})
		l.over(again)
		require.Contains(t, l.verdict(again), "UpgradeBlocked: it does not go on: ", "a preflight that passed, and then fails")
		l.API("drover-demo").Run(apiserver.App{Name: "shop", Replicas: 0, Start: time.Second, Stop: time.Second, Grace: time.Minute})
		time.Sleep(time.Hour)
		l.settle()
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		l.upgraded()
	})
}

func TestUpgradesThatMeet(t *testing.T) {
	t.Run("the same twice at once is made once", func(t *testing.T) {
		upgradeLife(t, func(l *life, _ *faults.Engine) {
			l.old(alarmed)
			one, other := l.upgrade(events.Upgrade{Release: "r2"}), l.upgrade(events.Upgrade{Release: "r2"})
			l.settle()
			require.Equal(t, "SUCCEEDED :", l.verdict(one))
			require.Equal(t, "SUCCEEDED :", l.verdict(other))
			l.upgraded()
			require.EqualValues(t, 1, l.record().Number)
		})
	})
	t.Run("another waits for the first", func(t *testing.T) {
		upgradeLife(t, func(l *life, _ *faults.Engine) {
			l.old(alarmed)
			l.Upload(names.ReleaseSpec("r3"), strings.Replace(ReleaseOf("1.36", "r3"), "v1.13.2-eksbuild.1", "v1.14.0-eksbuild.1", 1))
			one := l.upgrade(events.Upgrade{Release: "r2"})
			l.step(upgrade.StepControlPlane)
			other := l.upgrade(events.Upgrade{Release: "r3"})
			l.settle()
			require.Equal(t, "SUCCEEDED :", l.verdict(one))
			require.Equal(t, "SUCCEEDED :", l.verdict(other))
			require.EqualValues(t, 2, l.record().Number)
			require.Equal(t, "r3", l.Status("demo").Upgrade.To)
		})
	})
	t.Run("one waits for a roll, and is told to be late", func(t *testing.T) {
		upgradeLife(t, func(l *life, _ *faults.Engine) {
			l.old(alarmed + "  deletionProtection: false\n")
			l.held(func() {
				arn := l.upgrade(events.Upgrade{Release: "r2"})
				time.Sleep(time.Minute)
				require.Nil(t, l.Status("demo").Upgrade)
				time.Sleep(40 * time.Minute)
				require.Equal(t, status.UpgradeDelayed, l.Status("demo").Upgrade.Phase)
				require.Contains(t, l.Status("demo").Upgrade.Message, "is being converged by")
				require.Equal(t, "RUNNING", l.Execution(arn).Status)
			})
			l.settle()
			l.upgraded()
		})
	})
	t.Run("one that waits for two hours is missed", func(t *testing.T) {
		upgradeLife(t, func(l *life, _ *faults.Engine) {
			l.old(alarmed)
			l.held(func() {
				arn := l.upgrade(events.Upgrade{Release: "r2"})
				l.over(arn)
				require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: the cluster was busy for 2h")
				require.Equal(t, status.UpgradeMissed, l.Status("demo").Upgrade.Phase)
				require.Equal(t, status.ReasonUpgradeMissed, l.Status("demo").Condition(status.Upgraded).Reason)
			})
			l.settle()
			l.upgrade(events.Upgrade{Release: "r2"})
			l.settle()
			l.upgraded()
		})
	})
}

// held has the cluster be converged while something goes on: a roll whose stack's events do not come.
func (l *life) held(during func()) {
	l.Events.Decide(func(e Event) Fate {
		if e.Source == "aws.cloudformation" {
			return Held
		}
		return Delivered
	})
	l.Converge("demo", "a")
	time.Sleep(time.Minute)
	during()
	l.Events.Decide(nil)
	for _, e := range l.Events.Held() {
		l.Events.Deliver(e)
	}
}

func TestWhatPeopleDoDuringAnUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(l *life)
		says string
	}{
		"the spec names another release": {func(l *life) {
			l.Upload(names.ReleaseSpec("r3"), ReleaseOf("1.36", "r3"))
			l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", alarmed), "name: r1", "name: r3", 1))
		}, "the spec names release r3 by now"},
		"the spec is paused": {func(l *life) {
			l.Upload(names.ClusterSpec("demo"), Spec("demo", alarmed+"  paused: true\n"))
		}, "spec.paused is true"},
		"the spec is deleted": {func(l *life) { l.Remove(names.ClusterSpec("demo"), "") }, "the spec was deleted"},
		"the spec is no good": {func(l *life) { l.Upload(names.ClusterSpec("demo"), "no: spec\n") }, "the newest spec cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				l.old(alarmed)
				arn := l.upgrade(events.Upgrade{Release: "r2"})
				l.step(upgrade.StepControlPlane)
				time.Sleep(time.Minute)
				c.do(l)
				l.over(arn)
				require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: "+c.says)
				require.True(t, l.sounds())
				require.Equal(t, upgrade.Stopped, l.record().State)
				require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"], "what was under way was finished")
				for _, n := range l.API("drover-demo").Nodes() {
					require.True(t, strings.HasPrefix(n.KubeletVersion, "v1.35."), "and nothing more was begun")
				}
				if name == "the spec names another release" {
					return
				}
				l.change(alarmed) // as it was
				l.upgrade(events.Upgrade{Release: "r2"})
				l.settle()
				l.upgraded()
			})
		})
	}
	t.Run("other changes are made meanwhile", func(t *testing.T) {
		upgradeLife(t, func(l *life, _ *faults.Engine) {
			l.old(alarmed)
			arn := l.upgrade(events.Upgrade{Release: "r2"})
			l.step(upgrade.StepControlPlane)
			l.Upload(names.ClusterSpec("demo"), Spec("demo", alarmed+"  tags: {team: b}\n"))
			l.settle()
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			l.upgraded()
			require.Equal(t, "b", l.Stack("demo", names.Network).Tags["team"])
		})
	})
}

func TestAnUpgradeWhoseNodesHaveAnotherVersion(t *testing.T) {
	upgradeLife(t, func(l *life, bad *faults.Engine) {
		l.old(alarmed)
		end := strike(t, bad, "kubelet-version=v1.35.9-eks-0e3cf2b")
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		l.over(arn)
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: the result is not well: NodesReplaced")
		require.Contains(t, l.verdict(arn), "v1.35.9")
		require.True(t, l.sounds())
		end()
		l.Converge("demo", "a")
		l.settle()
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		l.upgraded()
	})
}

func TestARollback(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.old(alarmed)
		arn := l.upgrade(events.Upgrade{Rollback: true})
		l.settle()
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: there was no upgrade of this cluster that could be rolled back")
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		l.upgraded()
		arn = l.upgrade(events.Upgrade{Rollback: true})
		l.step(upgrade.StepControlPlane)
		for _, n := range l.API("drover-demo").Nodes() {
			require.True(t, strings.HasPrefix(n.KubeletVersion, "v1.35."), "nodes go first")
		}
		l.settle()
		require.Equal(t, "SUCCEEDED :", l.verdict(arn))
		stack := l.Stack("demo", names.ControlPlane)
		require.Equal(t, "1.35", stack.Outputs["KubernetesVersion"])
		require.True(t, strings.HasPrefix(stack.Tags[names.TagRelease], "r1@"))
		require.True(t, l.sounds())
		l.phase(status.Ready)
		again := l.upgrade(events.Upgrade{Rollback: true})
		l.settle()
		require.Contains(t, l.verdict(again), "was rolled back already")
	})
	t.Run("not after a week", func(t *testing.T) {
		upgradeLife(t, func(l *life, _ *faults.Engine) {
			l.old("")
			l.upgrade(events.Upgrade{Release: "r2"})
			l.settle()
			time.Sleep(8 * 24 * time.Hour)
			arn := l.upgrade(events.Upgrade{Rollback: true})
			l.settle()
			require.Contains(t, l.verdict(arn), "EKS takes a control plane back within 7 days")
			l.upgraded()
		})
	})
}

// The execution is stopped at each of its states in turn. The audit finds it, alarms are on again, and a retry makes what is left: nothing
// twice, nothing lost.
func TestAnUpgradeThatIsStoppedAnywhere(t *testing.T) {
	for _, state := range []string{
		"Check the cluster", "May it begin?", "Silence the alarms", "What is the next step?", "Upgrade the control plane", "Prove the step",
		"Upgrade the add-ons", "Replace the nodes", "Check the result", "Is all well?",
	} {
		t.Run(state, func(t *testing.T) {
			upgradeLife(t, func(l *life, bad *faults.Engine) {
				l.old(alarmed)
				end := strike(t, bad, fmt.Sprintf("kill machine=upgrade state=%q count=1", state))
				arn := l.upgrade(events.Upgrade{Release: "r2"})
				l.settle()
				require.Equal(t, "ABORTED Killed: by a fault rule", l.verdict(arn))
				end()
				for range 3 {
					time.Sleep(15 * time.Minute)
					l.audited()
				}
				require.True(t, l.sounds())
				require.True(t, l.record().State == "" || l.record().State.Over(), l.record().State)
				l.upgrade(events.Upgrade{Release: "r2"})
				l.settle()
				l.upgraded()
			})
		})
	}
}

// The function dies before, and after, each of its calls, whenever it is asked for something anew.
func TestAnUpgradeWhoseFunctionDies(t *testing.T) {
	for name, death := range map[string]Death{"before": Before, "after": After} {
		for number := 1; number <= 60; number++ {
			deaths := 0
			t.Run(fmt.Sprintf("%s call %d", name, number), func(t *testing.T) {
				upgradeLife(t, func(l *life, _ *faults.Engine) {
					l.old(alarmed)
					var asked []string // each death is of another asking, or nothing would ever come of it
					l.Functions.Kill(func(c Call) Death {
						if c.Function != "upgrade" || c.Number != number || slices.Contains(asked, string(c.Payload)) {
							return Lives
						}
						asked = append(asked, string(c.Payload))
						deaths++
						return death
					})
					arn := l.upgrade(events.Upgrade{Release: "r2"})
					l.settle()
					require.Equal(t, "SUCCEEDED :", l.verdict(arn))
					l.Functions.Kill(nil)
					l.upgraded()
				})
			})
			if t.Failed() || deaths == 0 {
				require.Greater(t, number, 20, "as many calls at least")
				break
			}
		}
	}
}

// transitions counts the states that the executions of each machine entered: what Step Functions charges for.
// https://aws.amazon.com/step-functions/pricing/
func (l *life) transitions(since int) map[string]int {
	l.t.Helper()
	count := map[string]int{}
	for _, x := range l.States.Executions()[since:] {
		pages := sfn.NewGetExecutionHistoryPaginator(sfn.NewFromConfig(l.Config()), &sfn.GetExecutionHistoryInput{ExecutionArn: &x.ARN, MaxResults: 1000})
		for pages.HasMorePages() {
			page, err := pages.NextPage(l.t.Context())
			require.NoError(l.t, err)
			for _, e := range page.Events {
				if strings.HasSuffix(string(e.Type), "StateEntered") {
					count[strings.TrimPrefix(x.MachineName, names.Prefix)]++
				}
			}
		}
	}
	return count
}

// What an upgrade by one minor version costs, with 2 pools of 10 nodes: docs/performance.md has the figures.
func TestWhatAnUpgradeCosts(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		more := "    - {name: b, instanceTypes: [m7i.large], minSize: 10, maxSize: 12}\n" + alarmed
		spec := func(more string) string {
			return strings.Replace(Spec("demo", more), "minSize: 1, maxSize: 3", "minSize: 10, maxSize: 12", 1)
		}
		l.old("")
		l.Upload(names.ClusterSpec("demo"), spec(more))
		l.settle()
		l.phase(status.Ready)
		before, began := len(l.States.Executions()), time.Now()
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		l.over(arn)
		require.Equal(t, "SUCCEEDED :", l.verdict(arn))
		took := time.Since(began)
		l.settle()
		l.upgraded()
		count := l.transitions(before)
		t.Logf("%d nodes, %s: transitions %v", len(l.API("drover-demo").Nodes()), took.Round(time.Second), count)
		require.LessOrEqual(t, count["upgrade"], 20)
	})
}
