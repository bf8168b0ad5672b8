package harness

// Upgrades whose execution ended without a word, and those of clusters that are gone by then.

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// toldStopped says that somebody was told that the upgrade is stopped.
func (l *life) toldStopped() {
	l.t.Helper()
	require.True(l.t, slices.ContainsFunc(l.Notices(), func(n string) bool {
		return strings.HasPrefix(n, "drover: the upgrade of demo is Stopped\n")
	}))
}

// However an upgrade's execution ends that cannot say so itself, the next sweep has it told: the status says so, nobody holds the cluster,
// alarms are on again, and a notice was sent.
func TestAnUpgradeThatEndedWithoutAWordIsToldWithinMinutes(t *testing.T) {
	for name, c := range map[string]struct {
		origin upgrade.Origin
		end    func(l *life) (restore func())
	}{
		"it is stopped by hand": {upgrade.OriginHand, func(l *life) func() {
			l.step(upgrade.StepControlPlane)
			time.Sleep(time.Minute)
			l.States.Stop(l.record().Execution, "Stopped", "by a person")
			return func() {}
		}},
		"one that the spec asked for": {upgrade.OriginSpec, func(l *life) func() {
			l.changing("pool-a")
			l.States.Stop(l.record().Execution, "Stopped", "by a person")
			return func() {}
		}},
		"its time is over": {upgrade.OriginHand, func(l *life) func() {
			l.step(upgrade.StepControlPlane)
			l.over(l.record().Execution)
			require.Contains(l.t, l.verdict(l.record().Execution), "TIMED_OUT")
			return func() { l.allow(whole) }
		}},
		"its function fails for good, also when it is to tell": {upgrade.OriginHand, func(l *life) func() {
			l.step(upgrade.StepControlPlane)
			works := l.Functions.handlers["upgrade"]
			l.functionFails("upgrade")
			l.over(l.record().Execution)
			require.Contains(l.t, l.verdict(l.record().Execution), "FAILED UpgradeStopped: Internal")
			return func() { l.Functions.handlers["upgrade"] = works }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				l.old(alarmed)
				if name == "its time is over" {
					l.allow(5 * time.Minute) // EKS takes longer for a control plane
				}
				if c.origin == upgrade.OriginSpec {
					l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", alarmed), "name: r1", "name: r2", 1))
				} else {
					l.upgrade(events.Upgrade{Release: "r2"})
				}
				restore := c.end(l)
				l.settle()
				leader := l.record().Execution
				require.Equal(t, upgrade.Running, l.record().State)
				require.False(t, l.sounds())
				require.Equal(t, "Running", l.Status("demo").Upgrade.Phase)

				restore()
				time.Sleep(5 * time.Minute)
				l.swept()
				l.settle()
				require.Equal(t, upgrade.Stopped, l.record().State)
				require.Empty(t, l.record().Alarms)
				require.True(t, l.sounds())
				l.free()
				l.toldStopped()
				s := l.Status("demo")
				require.Equal(t, "Stopped", s.Upgrade.Phase)
				require.NotNil(t, s.Upgrade.Ended)
				require.Contains(t, s.Upgrade.Message, "execution "+leader+" is over: it is "+l.Execution(leader).Status)
				require.Contains(t, s.Upgrade.Message, "Next: ")
				require.Equal(t, status.ReasonUpgradeStopped, s.Condition(status.Upgraded).Reason)
				require.Equal(t, c.origin == upgrade.OriginSpec, s.Phase == status.Stopped, s.Message)

				l.swept()
				mark := l.Calls.Mark()
				time.Sleep(5 * time.Minute)
				l.swept()
				for _, call := range l.Calls.Since(mark) {
					require.False(t, call.Mutating, "nothing is left to find: %s %s", call.Service, call.Action)
					require.NotContains(t, call.Resource, names.Upgrade("demo"), "what is over is read once")
				}
				l.upgrade(events.Upgrade{Release: "r2"})
				l.settle()
				l.upgraded()
			})
		})
	}
}

// An execution that made a step may have ended, too, before it told what came of that: the end of the upgrade is told
// with what the cluster is.
func TestTheEndOfAnUpgradeIsToldWithWhatTheClusterIs(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.old(alarmed)
		l.Events.Decide(func(e Event) Fate {
			if e.Source == "aws.cloudformation" {
				return Lost
			}
			return Delivered
		})
		l.upgrade(events.Upgrade{Release: "r2"})
		l.changing(names.ControlPlane)
		for _, x := range l.States.Executions() {
			if x.Status == "RUNNING" {
				l.States.Stop(x.ARN, "Stopped", "by a person")
			}
		}
		l.settle()
		require.Equal(t, "UPDATE_COMPLETE", l.Stacks("demo")[names.ControlPlane])
		require.Equal(t, "1.35", l.Status("demo").KubernetesVersion)
		time.Sleep(5 * time.Minute)
		l.swept()
		l.settle()
		require.Equal(t, upgrade.Stopped, l.record().State)
		told := l.Status("demo")
		require.Equal(t, "1.36", told.KubernetesVersion)
		l.Converge("demo")
		l.settle()
		planned := l.Status("demo")
		told.UpdatedAt = planned.UpdatedAt
		require.Equal(t, planned, told, "planning it has nothing to add")
	})
}

// whole is more time than any upgrade takes here.
const whole = 30 * 24 * time.Hour

// allow the executions of upgrades that begin from now on so much time.
func (l *life) allow(timeout time.Duration) {
	l.t.Helper()
	client, arn := sfn.NewFromConfig(l.Config()), l.machineARN("upgrade")
	machine, err := client.DescribeStateMachine(l.t.Context(), &sfn.DescribeStateMachineInput{StateMachineArn: &arn})
	require.NoError(l.t, err)
	var definition map[string]any
	require.NoError(l.t, json.Unmarshal([]byte(*machine.Definition), &definition))
	definition["TimeoutSeconds"] = int(timeout.Seconds())
	body, err := json.Marshal(definition)
	require.NoError(l.t, err)
	_, err = client.UpdateStateMachine(l.t.Context(), &sfn.UpdateStateMachineInput{
		StateMachineArn: &arn, Definition: aws.String(string(body)),
	})
	require.NoError(l.t, err)
}

// Everybody is stopped while CloudFormation changes a stack, and a spec with other tags comes before it is done. What
// the stack says of itself then is what it was: nothing goes back to that.
func TestASpecThatComesWhileAStoppedUpgradesStackStillChanges(t *testing.T) {
	for _, stack := range []string{names.ControlPlane, "pool-a"} {
		t.Run(stack, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				l.old(alarmed)
				l.upgrade(events.Upgrade{Release: "r2"})
				l.changing(stack)
				l.States.StopAll("Aborted", "by a person")
				time.Sleep(10 * time.Second)
				l.swept()
				time.Sleep(10 * time.Second)
				require.Equal(t, upgrade.Stopped, l.record().State)
				require.Equal(t, "UPDATE_IN_PROGRESS", l.Stacks("demo")[stack])
				l.Upload(names.ClusterSpec("demo"), Spec("demo", alarmed+"  tags: {team: b}\n"))
				l.settle()
				l.phase(status.Ready)
				require.Equal(t, "b", l.Stack("demo", stack).Tags["team"])
				require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
				require.Equal(t, 1, l.updates())
				require.Equal(t, []string{map[bool]string{true: "1.36", false: "1.35"}[stack == "pool-a"]}, l.kubelets("a"))
				l.upgrade(events.Upgrade{Release: "r2"})
				l.settle()
				l.upgraded()
			})
		})
	}
}

// Executions are stopped while CloudFormation moves the control plane, and nobody waits for its end. The audit tells
// what the cluster has come to.
func TestAControlPlaneThatMovesOnWhenItsUpgradeIsStopped(t *testing.T) {
	for name, stop := range map[string]func(l *life, arn string){
		"with all there is": func(l *life, _ string) { l.States.StopAll("Aborted", "by a person") },
		"with its converge": func(l *life, _ string) {
			all := l.executions("converge")
			l.States.Stop(all[len(all)-1].ARN, "Aborted", "by a person")
		},
		"alone": func(l *life, arn string) { l.States.Stop(arn, "Aborted", "by a person") },
	} {
		t.Run(name, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				l.old(alarmed)
				arn := l.upgrade(events.Upgrade{Release: "r2"})
				l.changing(names.ControlPlane)
				stop(l, arn)
				time.Sleep(10 * time.Second)
				l.swept()
				l.settle()
				l.Until("it has moved", func() bool { return l.Stacks("demo")[names.ControlPlane] == "UPDATE_COMPLETE" })
				require.Equal(t, upgrade.Stopped, l.record().State)
				time.Sleep(5 * time.Minute)
				l.swept()
				l.audited()
				s := l.Status("demo")
				require.Equal(t, "1.36", s.KubernetesVersion)
				require.Empty(t, s.Plan, "nobody goes on by himself")
				l.phase(status.Ready)
				require.Contains(t, s.Message, status.ButRelease)
				require.Equal(t, status.ReasonUpgradeStopped, s.Condition(status.Upgraded).Reason)
				require.Equal(t, upgrade.Stopped, l.record().State)
				mark := l.Calls.Mark()
				l.audited()
				for _, call := range l.Calls.Since(mark) {
					require.False(t, call.Mutating, "told once: %s %s", call.Service, call.Action)
				}
			})
		})
	}
}

// What is asked for while the control plane of a stopped upgrade still moves waits until it is somewhere: only then is there a way back.
func TestARollbackThatIsAskedForWhileAStoppedUpgradesControlPlaneStillMoves(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.old(alarmed)
		l.upgrade(events.Upgrade{Release: "r2"})
		l.changing(names.ControlPlane)
		l.States.StopAll("Aborted", "by a person")
		time.Sleep(10 * time.Second)
		l.swept()
		time.Sleep(10 * time.Second)
		require.Equal(t, upgrade.Stopped, l.record().State)
		_, _, err := l.dryRun(events.Upgrade{Rollback: true})
		require.ErrorContains(t, err, "the stack of the control plane is being changed (UPDATE_IN_PROGRESS): ask again when that is over")
		arn := l.upgrade(events.Upgrade{Rollback: true})
		time.Sleep(10 * time.Second)
		require.Equal(t, status.UpgradeScheduled, l.Status("demo").Upgrade.Phase)
		require.Equal(t, "the stack of the control plane is being changed (UPDATE_IN_PROGRESS)", l.Status("demo").Upgrade.Message)
		l.over(arn)
		require.Equal(t, "SUCCEEDED :", l.verdict(arn))
		require.Equal(t, 1, l.updates())
		require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		require.True(t, l.sounds())
		l.phase(status.Ready)
	})
}

// Somebody deleted the stack of the control plane, and CloudFormation could not: converging makes it anew, or says
// why not, and no upgrade does so in its place. It waits for as long as an upgrade may.
func TestAnUpgradeOfAControlPlaneThatSomebodyTriedToDelete(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.old(alarmed)
		name := names.Stack("demo", names.ControlPlane)
		l.OnResource(func(step string, r resource.Request) error {
			if step == "delete" && r.StackName == name {
				return &wire.Error{Code: "DependencyViolation", Message: "somebody holds it", Status: 400}
			}
			return nil
		})
		l.tryToUnstack("demo", names.ControlPlane)
		require.Equal(t, "DELETE_FAILED", l.Stacks("demo")[names.ControlPlane])
		_, _, err := l.dryRun(events.Upgrade{Release: "r2"})
		require.ErrorContains(t, err, "the stack of the control plane is to be made anew (DELETE_FAILED): ask again when that is over")
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		time.Sleep(10 * time.Second)
		require.Equal(t, status.UpgradeScheduled, l.Status("demo").Upgrade.Phase)
		require.Equal(t, "the stack of the control plane is to be made anew (DELETE_FAILED)", l.Status("demo").Upgrade.Message)
		l.over(arn)
		require.Contains(t, l.verdict(arn), "the upgrade did not begin: the stack of the control plane is to be made anew (DELETE_FAILED)")
		require.Equal(t, "DELETE_FAILED", l.Stacks("demo")[names.ControlPlane], "nobody touches it")
		require.Zero(t, l.updates())
	})
}

// Somebody deleted the stack of a control plane that a person had upgraded; the EKS cluster went, and its role did
// not. What is made anew is made as the spec says, and there is none that would be downgraded.
func TestAControlPlaneThatSomebodyTriedToDeleteAfterItsUpgrade(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.old(alarmed + unprotected)
		l.over(l.upgrade(events.Upgrade{Release: "r2"}))
		require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		name := names.Stack("demo", names.ControlPlane)
		l.OnResource(func(step string, r resource.Request) error {
			if step == "delete" && r.StackName == name && r.LogicalID == "ClusterRole" {
				return &wire.Error{Code: "DependencyViolation", Message: "somebody holds it", Status: 400}
			}
			return nil
		})
		l.tryToUnstack("demo", names.ControlPlane)
		require.Equal(t, "DELETE_FAILED", l.Stacks("demo")[names.ControlPlane])
		l.OnResource(nil)
		time.Sleep(15 * time.Minute)
		l.audited()
		l.settle()
		l.phase(status.Ready)
		require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		require.Equal(t, "True", l.Status("demo").Condition(status.SpecAccepted).Status)
	})
}

// EKS failed an upgrade, and CloudFormation took the update back. Then somebody deletes a stack: the audit tells of it all the same.
func TestAStackThatIsDeletedAfterItsUpgradeWasTakenBack(t *testing.T) {
	for _, stack := range []string{names.ControlPlane, names.Network} {
		for name, phase := range map[string]status.Phase{"asked for by hand": status.Failed, "by the spec": status.Stopped} {
			t.Run(stack+", "+name, func(t *testing.T) {
				upgradeLife(t, func(l *life, bad *faults.Engine) {
					l.old(alarmed)
					strike(t, bad, "update-fails action=VersionUpdate")
					if phase == status.Failed {
						l.upgrade(events.Upgrade{Release: "r2"})
					} else {
						l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", alarmed), "name: r1", "name: r2", 1))
					}
					l.settle()
					require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", l.Stacks("demo")[names.ControlPlane])
					require.Equal(t, phase, l.Status("demo").Phase)
					l.Unstack("demo", stack)
					time.Sleep(15 * time.Minute)
					l.audited()
					told := l.Status("demo").Condition(status.InSync)
					require.NotNil(t, told)
					require.Contains(t, told.Message, "stack "+stack+" is missing")
					require.Contains(t, told.Message, "the EKS cluster drover-demo is there without it")
				})
			})
		}
	}
}

// The execution that was to tell fails, too: each sweep tries again.
func TestASweepThatCannotEndAnUpgradeTriesAgain(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.old(alarmed)
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		l.step(upgrade.StepControlPlane)
		time.Sleep(time.Minute)
		l.States.Stop(arn, "Stopped", "by a person")
		l.settle()
		works := l.Functions.handlers["upgrade"]
		l.functionFails("upgrade")
		l.swept()
		l.swept() // the same sweep, twice
		l.settle()
		require.Len(t, l.executions("upgrade"), 2)
		require.False(t, l.sounds())
		l.Functions.handlers["upgrade"] = works
		time.Sleep(5 * time.Minute)
		l.swept()
		l.settle()
		require.Len(t, l.executions("upgrade"), 3)
		require.True(t, l.sounds())
		require.Equal(t, "Stopped", l.Status("demo").Upgrade.Phase)
	})
}

// An upgrade is over by its record, and nobody could be told: the audit sees that the status speaks of an execution that is over.
func TestAnUpgradeWhoseEndWasWrittenAndNotTold(t *testing.T) {
	upgradeLife(t, func(l *life, bad *faults.Engine) {
		l.old(alarmed)
		strike(t, bad, "update-fails action=VersionUpdate")
		l.OnCall(func(call endpoint.Call) error {
			if CalledBy(call) == "upgrade" && call.Action == "PutObject" && strings.Contains(call.Resource, names.Statuses) &&
				l.record().State.Over() {
				return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
			}
			return nil
		})
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		require.Contains(t, l.verdict(arn), "AccessDenied")
		require.Equal(t, upgrade.Stopped, l.record().State)
		require.Equal(t, "Running", l.Status("demo").Upgrade.Phase)
		l.OnCall(nil)
		time.Sleep(15 * time.Minute)
		l.audited()
		require.Equal(t, "Stopped", l.Status("demo").Upgrade.Phase)
		l.toldStopped()
		require.True(t, l.sounds())
	})
}

// A cluster is deleted while it is upgraded, and another is made under its name. The record that is left says Running: the new cluster has
// nothing to do with it, and yet the alarms come on again.
func TestAClusterThatIsMadeAnewInTheMiddleOfAnUpgrade(t *testing.T) {
	for _, stack := range []string{names.ControlPlane, "pool-a"} {
		t.Run(stack, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				l.old(alarmed + unprotected)
				arn := l.upgrade(events.Upgrade{Release: "r2"})
				l.changing(stack)
				l.States.Stop(arn, "Stopped", "by a person")
				l.settle()
				l.Remove(names.ClusterSpec("demo"), "")
				l.settle()
				l.phase(status.Deleted)
				require.False(t, l.sounds())
				require.Equal(t, upgrade.Running, l.record().State)

				l.change(alarmed + unprotected)
				l.phase(status.Ready)
				require.Nil(t, l.Status("demo").Upgrade)
				require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
				require.Equal(t, []string{"1.35"}, l.kubelets("a"))
				l.again()
				require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
				l.phase(status.Ready)

				// The one that led it may still be about to go on.
				for _, action := range []events.UpgradeAction{events.UpgradeBegin, events.UpgradeNext, events.UpgradeFinish} {
					out, err := l.Functions.Call("upgrade", events.UpgradeRequest{
						Upgrade: events.Upgrade{Cluster: "demo"}, Action: action, Execution: arn, Started: time.Now(),
					})
					require.NoError(t, err)
					require.Contains(t, string(out), "the cluster was deleted")
				}
				time.Sleep(5 * time.Minute)
				l.swept()
				l.settle()
				require.True(t, l.sounds())
				require.True(t, l.record().State.Over())
				require.Nil(t, l.Status("demo").Upgrade, "it is not the new cluster's")
				l.phase(status.Ready)

				again := l.upgrade(events.Upgrade{Rollback: true})
				l.settle()
				require.Contains(t, l.verdict(again), "there was no upgrade of this cluster that could be rolled back")
				again = l.upgrade(events.Upgrade{Release: "r2"})
				l.settle()
				require.Equal(t, "SUCCEEDED :", l.verdict(again))
				l.upgraded()
				require.Zero(t, l.record().First, "it goes on with nothing")
				require.Len(t, l.Status("demo").Upgrades, 1)
			})
		})
	}
}

// Clusters of one name come and go, and each is upgraded: names of executions do not come again for 90 days.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
func TestClustersOfOneNameAreUpgradedOneAfterTheOther(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.old(alarmed + unprotected)
		for range 4 {
			before := len(l.executions("converge"))
			arn := l.upgrade(events.Upgrade{Release: "r2"})
			l.settle()
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			l.upgraded()
			require.Len(t, l.executions("converge"), before+3, "one for each step")
			l.Remove(names.ClusterSpec("demo"), "")
			l.settle()
			l.phase(status.Deleted)
			l.change(alarmed + unprotected)
			l.phase(status.Ready)
		}
	})
}

// The spec is deleted while its own upgrade is under way. The upgrade stops, and the status goes on telling of the deletion.
func TestAnUpgradeThatStopsWhileItsClusterIsDeleted(t *testing.T) {
	for name, come := range map[string]func(l *life){
		"the step's own execution deletes it": func(l *life) { time.Sleep(time.Minute) },
		"it waits for drains meanwhile": func(l *life) {
			l.busy(3)
			for range 24 * 60 {
				if r := l.record(); r.Step == 2 && !r.Steps[2].Made.IsZero() {
					require.Regexp(l.t, `^still being drained: i-.* \(at \d\d:\d\d:\d\dZ; looked at again at \d\d:\d\d:\d\dZ\)$`,
						l.Status("demo").Upgrade.Message)
					return
				}
				time.Sleep(time.Minute)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				l.old(alarmed + unprotected)
				l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", alarmed+unprotected), "name: r1", "name: r2", 1))
				l.step(upgrade.StepControlPlane)
				come(l)
				told := len(l.Verdicts())
				l.Remove(names.ClusterSpec("demo"), "")
				l.settle()
				l.phase(status.Deleted)
				var phases []string
				for _, verdict := range l.Verdicts()[told:] {
					phase, _, _ := strings.Cut(verdict, ":")
					phases = append(phases, phase)
				}
				require.Equal(t, []string{"Deleted"}, phases, "%q", l.Verdicts()[told:])
				require.True(t, l.sounds())
				require.True(t, l.record().State == "" || l.record().State.Over())
				require.Nil(t, l.Status("demo").Upgrade, "nothing is left of it")
			})
		})
	}
}

// Somebody deletes the control plane's stack while an upgrade is under way: with it goes what the upgrade was of, and
// the cluster is made anew as its spec says, not as the upgrade had it.
func TestAControlPlaneThatIsDeletedUnderItsUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		release, is string
		step        upgrade.StepKind
	}{
		"by hand, as the control plane moves": {"r1", "1.35", upgrade.StepControlPlane},
		"by hand, as nodes are replaced":      {"r1", "1.35", upgrade.StepNodes},
		"the spec's, as nodes are replaced":   {"r2", "1.36", upgrade.StepNodes},
	} {
		t.Run(name, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				l.old(unprotected)
				if c.release == "r1" {
					l.upgrade(events.Upgrade{Release: "r2"})
				} else {
					l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", unprotected), "name: r1", "name: r2", 1))
				}
				l.step(c.step)
				pool := l.Stack("demo", "pool-a").ID
				for deleted := false; !deleted; time.Sleep(time.Minute) { // CloudFormation refuses while it changes it
					_, err := l.CloudFormation.DeleteStack(t.Context(), l.Admin(), &cloudformation.DeleteStackInput{
						StackName: names.Stack("demo", names.ControlPlane),
					})
					deleted = err == nil
				}
				l.settle()
				for range 6 {
					time.Sleep(time.Hour)
					l.swept()
					l.audited()
				}
				s := l.Status("demo")
				require.Equal(t, status.Ready, s.Phase, s.Message)
				require.Equal(t, c.is, l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
				require.Equal(t, c.is, s.KubernetesVersion)
				require.Equal(t, c.release, s.Release)
				require.NotEqual(t, pool, l.Stack("demo", "pool-a").ID)
				require.Len(t, l.API("drover-demo").Nodes(), 1)
				l.free()
			})
		})
	}
}
