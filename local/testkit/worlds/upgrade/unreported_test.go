package upgrade_test

// Upgrades whose execution ended without a report, and upgrades of clusters that are deleted.

import (
	"encoding/json"
	"errors"
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
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// notifiedStopped requires a notice that the upgrade is stopped.
func (l *life) notifiedStopped() {
	l.T.Helper()
	require.True(l.T, slices.ContainsFunc(l.Notices(), func(n string) bool {
		return strings.HasPrefix(n, "drover: the upgrade of demo is Stopped\n")
	}))
}

// An upgrade's execution may end in ways in which it cannot report its end. The next sweep then starts the report: the
// status is updated, the lease is free, alarms are enabled, and a notice was sent.
func TestUpgradeWithoutAReportIsReportedBySweep(t *testing.T) {
	for name, c := range map[string]struct {
		origin upgrade.Origin
		end    func(l *life) (restore func())
	}{
		"it is stopped by hand": {upgrade.OriginCommand, func(l *life) func() {
			l.WaitForStep(upgrade.StepControlPlane)
			time.Sleep(time.Minute)
			l.StepFunctions.Stop(l.UpgradeRecord().Execution, "Stopped", "by an operator")
			return func() {}
		}},
		"one that the spec requested": {upgrade.OriginSpec, func(l *life) func() {
			l.WaitForUpdate("pool-a")
			l.StepFunctions.Stop(l.UpgradeRecord().Execution, "Stopped", "by an operator")
			return func() {}
		}},
		"its time is over": {upgrade.OriginCommand, func(l *life) func() {
			l.WaitForStep(upgrade.StepControlPlane)
			l.over(l.UpgradeRecord().Execution)
			require.Contains(l.T, l.verdict(l.UpgradeRecord().Execution), "TIMED_OUT")
			return func() { l.allow(whole) }
		}},
		"its function fails permanently, also to report": {upgrade.OriginCommand, func(l *life) func() {
			l.WaitForStep(upgrade.StepControlPlane)
			works := l.Functions.Return("upgrade", nil, errors.New("it broke"))
			l.over(l.UpgradeRecord().Execution)
			require.Contains(l.T, l.verdict(l.UpgradeRecord().Execution), "FAILED UpgradeStopped: Internal")
			return func() { l.Functions.Replace("upgrade", works) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed)
				if name == "its time is over" {
					l.allow(5 * time.Minute) // EKS needs longer for the control plane
				}
				if c.origin == upgrade.OriginSpec {
					l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Alarmed), "name: r1", "name: r2", 1))
				} else {
					l.StartUpgrade(events.Upgrade{Release: "r2"})
				}
				restore := c.end(l)
				l.SettleAll()
				leader := l.UpgradeRecord().Execution
				require.Equal(t, upgrade.Running, l.UpgradeRecord().State)
				require.False(t, l.AlarmEnabled())
				require.Equal(t, "Running", l.Status("demo").Upgrade.Phase)

				restore()
				time.Sleep(5 * time.Minute)
				l.Sweep()
				l.SettleAll()
				require.Equal(t, upgrade.Stopped, l.UpgradeRecord().State)
				require.Empty(t, l.UpgradeRecord().Alarms)
				require.True(t, l.AlarmEnabled())
				l.free()
				l.notifiedStopped()
				s := l.Status("demo")
				require.Equal(t, "Stopped", s.Upgrade.Phase)
				require.NotNil(t, s.Upgrade.Ended)
				require.Contains(t, s.Upgrade.Message, "execution "+leader+" ended with the status "+l.Execution(leader).Status)
				require.Contains(t, s.Upgrade.Message, "Next: ")
				require.Equal(t, status.ReasonUpgradeStopped, s.Condition(status.Upgraded).Reason)
				require.Equal(t, c.origin == upgrade.OriginSpec, s.Phase == status.Stopped, s.Message)

				l.Sweep()
				mark := l.Calls.Mark()
				time.Sleep(5 * time.Minute)
				l.Sweep()
				for _, call := range l.Calls.Since(mark) {
					require.False(t, call.Mutating, "no work remains: %s %s", call.Service, call.Action)
					require.NotContains(t, call.Resource, names.Upgrade("demo"), "what is over is read once")
				}
				l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.SettleAll()
				l.RequireUpgraded()
			})
		})
	}
}

// An execution may also end after a step and before it recorded the step's result. The end of the upgrade is then
// reported with the cluster's observed state.
func TestUpgradeEndReportsObservedState(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		l.Events.Decide(func(e harness.Event) harness.Fate {
			if e.Source == "aws.cloudformation" {
				return harness.Lost
			}
			return harness.Delivered
		})
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForUpdate(names.ControlPlane)
		for _, x := range l.StepFunctions.Executions() {
			if x.Status == "RUNNING" {
				l.StepFunctions.Stop(x.ARN, "Stopped", "by an operator")
			}
		}
		l.SettleAll()
		require.Equal(t, "UPDATE_COMPLETE", l.Stacks("demo")[names.ControlPlane])
		require.Equal(t, "1.35", l.Status("demo").KubernetesVersion)
		time.Sleep(5 * time.Minute)
		l.Sweep()
		l.SettleAll()
		require.Equal(t, upgrade.Stopped, l.UpgradeRecord().State)
		reported := l.Status("demo")
		require.Equal(t, "1.36", reported.KubernetesVersion)
		l.Converge("demo")
		l.SettleAll()
		planned := l.Status("demo")
		reported.UpdatedAt = planned.UpdatedAt
		require.Equal(t, planned, reported, "planning it has nothing to add")
	})
}

// whole exceeds the duration of any upgrade here.
const whole = 30 * 24 * time.Hour

// allow limits the executions of upgrades that begin from now on.
func (l *life) allow(timeout time.Duration) {
	l.T.Helper()
	client, arn := sfn.NewFromConfig(l.Config()), l.MachineARN("upgrade")
	machine, err := client.DescribeStateMachine(l.T.Context(), &sfn.DescribeStateMachineInput{StateMachineArn: &arn})
	require.NoError(l.T, err)
	var definition map[string]any
	require.NoError(l.T, json.Unmarshal([]byte(*machine.Definition), &definition))
	definition["TimeoutSeconds"] = int(timeout.Seconds())
	body, err := json.Marshal(definition)
	require.NoError(l.T, err)
	_, err = client.UpdateStateMachine(l.T.Context(), &sfn.UpdateStateMachineInput{
		StateMachineArn: &arn, Definition: aws.String(string(body)),
	})
	require.NoError(l.T, err)
}

// All executions are aborted while CloudFormation changes a stack, and a spec with other tags arrives before its end.
// The stack still describes its previous state then: no plan may roll back to it.
func TestSpecDuringAStackUpdateAfterAnAbort(t *testing.T) {
	for _, stack := range []string{names.ControlPlane, "pool-a"} {
		t.Run(stack, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed)
				l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.WaitForUpdate(stack)
				l.StepFunctions.StopAll("Aborted", "by an operator")
				time.Sleep(10 * time.Second)
				l.Sweep()
				time.Sleep(10 * time.Second)
				require.Equal(t, upgrade.Stopped, l.UpgradeRecord().State)
				require.Equal(t, "UPDATE_IN_PROGRESS", l.Stacks("demo")[stack])
				l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Alarmed+"  tags: {team: b}\n"))
				l.SettleAll()
				l.RequirePhase(status.Ready)
				require.Equal(t, "b", l.Stack("demo", stack).Tags["team"])
				require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
				require.Equal(t, 1, l.VersionUpdates())
				l.WaitForGroup(func(g pool.Group) bool { return len(g.Instances) == 1 }) // the tags replace no node, and need no drain
				require.Equal(t, []string{map[bool]string{true: "1.36", false: "1.35"}[stack == "pool-a"]}, l.kubelets("a"))
				l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.SettleAll()
				l.RequireUpgraded()
			})
		})
	}
}

// Executions are aborted while CloudFormation updates the control plane, so that none waits for its end. The audit
// records the cluster's new version.
func TestControlPlaneUpdateAfterAnAbort(t *testing.T) {
	for name, stop := range map[string]func(l *life, arn string){
		"with all there is": func(l *life, _ string) { l.StepFunctions.StopAll("Aborted", "by an operator") },
		"with its converge": func(l *life, _ string) {
			all := l.Executions("converge")
			l.StepFunctions.Stop(all[len(all)-1].ARN, "Aborted", "by an operator")
		},
		"alone": func(l *life, arn string) { l.StepFunctions.Stop(arn, "Aborted", "by an operator") },
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed)
				arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.WaitForUpdate(names.ControlPlane)
				stop(l, arn)
				time.Sleep(10 * time.Second)
				l.Sweep()
				l.SettleAll()
				l.Until("it has moved", func() bool { return l.Stacks("demo")[names.ControlPlane] == "UPDATE_COMPLETE" })
				require.Equal(t, upgrade.Stopped, l.UpgradeRecord().State)
				time.Sleep(5 * time.Minute)
				l.Sweep()
				l.Audit()
				s := l.Status("demo")
				require.Equal(t, "1.36", s.KubernetesVersion)
				require.Empty(t, s.Plan, "drover starts nothing by itself")
				l.RequirePhase(status.Ready)
				require.Contains(t, s.Message, status.ButRelease)
				require.Equal(t, status.ReasonUpgradeStopped, s.Condition(status.Upgraded).Reason)
				require.Equal(t, upgrade.Stopped, l.UpgradeRecord().State)
				mark := l.Calls.Mark()
				l.Audit()
				for _, call := range l.Calls.Since(mark) {
					require.False(t, call.Mutating, "reported once: %s %s", call.Service, call.Action)
				}
			})
		})
	}
}

// A rollback that is requested while the control plane of a stopped upgrade still updates waits for the update's end.
// Only then is there a route back.
func TestRollbackWaitsForTheControlPlaneUpdate(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForUpdate(names.ControlPlane)
		l.StepFunctions.StopAll("Aborted", "by an operator")
		time.Sleep(10 * time.Second)
		l.Sweep()
		time.Sleep(10 * time.Second)
		require.Equal(t, upgrade.Stopped, l.UpgradeRecord().State)
		_, _, err := l.dryRun(events.Upgrade{Rollback: true})
		require.ErrorContains(t, err, "the stack of the control plane is being changed (UPDATE_IN_PROGRESS): try again when that has finished")
		arn := l.StartUpgrade(events.Upgrade{Rollback: true})
		time.Sleep(10 * time.Second)
		require.Equal(t, status.UpgradeScheduled, l.Status("demo").Upgrade.Phase)
		require.Equal(t, "the stack of the control plane is being changed (UPDATE_IN_PROGRESS)", l.Status("demo").Upgrade.Message)
		l.over(arn)
		require.Equal(t, "SUCCEEDED :", l.verdict(arn))
		require.Equal(t, 1, l.VersionUpdates())
		require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		require.True(t, l.AlarmEnabled())
		l.RequirePhase(status.Ready)
	})
}

// An operator deleted the control plane's stack, and the deletion failed. Converging recreates it, or reports why it
// cannot. No upgrade recreates it: an upgrade waits until its timeout.
func TestUpgradeAfterAFailedStackDeletion(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		name := names.Stack("demo", names.ControlPlane)
		l.OnResource(func(step string, r resource.Request) error {
			if step == "delete" && r.StackName == name {
				return &wire.Error{Code: "DependencyViolation", Message: "it is in use", Status: 400}
			}
			return nil
		})
		l.TryDeleteStack("demo", names.ControlPlane)
		require.Equal(t, "DELETE_FAILED", l.Stacks("demo")[names.ControlPlane])
		_, _, err := l.dryRun(events.Upgrade{Release: "r2"})
		require.ErrorContains(t, err, "the stack of the control plane must be recreated (DELETE_FAILED): try again when that has finished")
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		time.Sleep(10 * time.Second)
		require.Equal(t, status.UpgradeScheduled, l.Status("demo").Upgrade.Phase)
		require.Equal(t, "the stack of the control plane must be recreated (DELETE_FAILED)", l.Status("demo").Upgrade.Message)
		l.over(arn)
		require.Contains(t, l.verdict(arn), "the upgrade did not begin, because the cluster was busy for 2h0m0s: the stack of the control plane "+
			"must be recreated (DELETE_FAILED)")
		require.Equal(t, "DELETE_FAILED", l.Stacks("demo")[names.ControlPlane], "nothing changes it")
		require.Zero(t, l.VersionUpdates())
	})
}

// An operator deleted the control plane's stack after an upgrade that the spec does not contain. The EKS cluster was
// deleted, its role was not. The control plane is recreated as the spec says, because none exists that would be
// downgraded.
func TestRecreationAfterAFailedStackDeletion(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed + lives.Unprotected)
		l.over(l.StartUpgrade(events.Upgrade{Release: "r2"}))
		require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		name := names.Stack("demo", names.ControlPlane)
		l.OnResource(func(step string, r resource.Request) error {
			if step == "delete" && r.StackName == name && r.LogicalID == "ClusterRole" {
				return &wire.Error{Code: "DependencyViolation", Message: "it is in use", Status: 400}
			}
			return nil
		})
		l.TryDeleteStack("demo", names.ControlPlane)
		require.Equal(t, "DELETE_FAILED", l.Stacks("demo")[names.ControlPlane])
		l.OnResource(nil)
		time.Sleep(15 * time.Minute)
		l.Audit()
		l.SettleAll()
		l.RequirePhase(status.Ready)
		require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		require.Equal(t, "True", l.Status("demo").Condition(status.SpecAccepted).Status)
	})
}

// EKS failed an upgrade, and CloudFormation rolled the update back. Then an operator deletes a stack: the audit reports
// it.
func TestDeletedStackAfterAFailedUpgrade(t *testing.T) {
	for _, stack := range []string{names.ControlPlane, names.Network} {
		for name, phase := range map[string]status.Phase{"requested by hand": status.Failed, "by the spec": status.Stopped} {
			t.Run(stack+", "+name, func(t *testing.T) {
				runWithFaults(t, func(l *life, bad *faults.Engine) {
					l.CreateOldCluster(lives.Alarmed)
					lives.AddFault(t, bad, "update-fails action=VersionUpdate")
					if phase == status.Failed {
						l.StartUpgrade(events.Upgrade{Release: "r2"})
					} else {
						l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Alarmed), "name: r1", "name: r2", 1))
					}
					l.SettleAll()
					require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", l.Stacks("demo")[names.ControlPlane])
					require.Equal(t, phase, l.Status("demo").Phase)
					l.DeleteStack("demo", stack)
					time.Sleep(15 * time.Minute)
					l.Audit()
					reported := l.Status("demo").Condition(status.InSync)
					require.NotNil(t, reported)
					require.Contains(t, reported.Message, "stack "+stack+" is missing")
					require.Contains(t, reported.Message, "the EKS cluster drover-demo exists without it")
				})
			})
		}
	}
}

// The execution that should report the end fails too: each sweep retries.
func TestSweepRetriesTheReportOfAnUpgrade(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepControlPlane)
		time.Sleep(time.Minute)
		l.StepFunctions.Stop(arn, "Stopped", "by an operator")
		l.SettleAll()
		works := l.Functions.Return("upgrade", nil, errors.New("it broke"))
		l.Sweep()
		l.Sweep() // the same sweep, twice
		l.SettleAll()
		require.Len(t, l.Executions("upgrade"), 2)
		require.False(t, l.AlarmEnabled())
		l.Functions.Replace("upgrade", works)
		time.Sleep(5 * time.Minute)
		l.Sweep()
		l.SettleAll()
		require.Len(t, l.Executions("upgrade"), 3)
		require.True(t, l.AlarmEnabled())
		require.Equal(t, "Stopped", l.Status("demo").Upgrade.Phase)
	})
}

// An upgrade ended by its record, but the status could not be written: the audit notices that the status names an ended
// execution.
func TestUpgradeEndMissingInTheStatus(t *testing.T) {
	runWithFaults(t, func(l *life, bad *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		lives.AddFault(t, bad, "update-fails action=VersionUpdate")
		l.OnCall(func(call endpoint.Call) error {
			if harness.CalledBy(call) == "upgrade" && call.Action == "PutObject" && strings.Contains(call.Resource, names.Statuses) &&
				l.UpgradeRecord().State.Final() {
				return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
			}
			return nil
		})
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		require.Contains(t, l.verdict(arn), "AccessDenied")
		require.Equal(t, upgrade.Stopped, l.UpgradeRecord().State)
		require.Equal(t, "Running", l.Status("demo").Upgrade.Phase)
		l.OnCall(nil)
		time.Sleep(15 * time.Minute)
		l.Audit()
		require.Equal(t, "Stopped", l.Status("demo").Upgrade.Phase)
		l.notifiedStopped()
		require.True(t, l.AlarmEnabled())
	})
}

// A cluster is deleted during its upgrade, and another is created under its name. The remaining record says Running. It
// does not affect the new cluster, but the alarms are enabled again.
func TestRecreatedClusterDuringAnUpgrade(t *testing.T) {
	for _, stack := range []string{names.ControlPlane, "pool-a"} {
		t.Run(stack, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed + lives.Unprotected)
				arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.WaitForUpdate(stack)
				l.StepFunctions.Stop(arn, "Stopped", "by an operator")
				l.SettleAll()
				l.Remove(names.ClusterSpec("demo"), "")
				l.SettleAll()
				l.RequirePhase(status.Deleted)
				require.False(t, l.AlarmEnabled())
				require.Equal(t, upgrade.Running, l.UpgradeRecord().State)

				l.ChangeSpec(lives.Alarmed + lives.Unprotected)
				l.RequirePhase(status.Ready)
				require.Nil(t, l.Status("demo").Upgrade)
				require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
				require.Equal(t, []string{"1.35"}, l.kubelets("a"))
				l.ConvergeAgain()
				require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
				l.RequirePhase(status.Ready)

				// The execution of that upgrade may still run.
				for _, action := range []events.UpgradeAction{events.UpgradeBegin, events.UpgradeNext, events.UpgradeFinish} {
					out, err := l.Functions.Call("upgrade", events.UpgradeRequest{
						Upgrade: events.Upgrade{Cluster: "demo"}, Action: action, Execution: arn, Started: time.Now(),
					})
					require.NoError(t, err)
					require.Contains(t, string(out), "the cluster was deleted")
				}
				time.Sleep(5 * time.Minute)
				l.Sweep()
				l.SettleAll()
				require.True(t, l.AlarmEnabled())
				require.True(t, l.UpgradeRecord().State.Final())
				require.Nil(t, l.Status("demo").Upgrade, "it is not the new cluster's")
				l.RequirePhase(status.Ready)

				again := l.StartUpgrade(events.Upgrade{Rollback: true})
				l.SettleAll()
				require.Contains(t, l.verdict(again), "this cluster has no upgrade that can be rolled back")
				again = l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.SettleAll()
				require.Equal(t, "SUCCEEDED :", l.verdict(again))
				l.RequireUpgraded()
				require.Zero(t, l.UpgradeRecord().First, "it continues no step")
				require.Len(t, l.Status("demo").Upgrades, 1)
			})
		})
	}
}

// Clusters with the same name are created, upgraded and deleted one after the other. Names of executions are reusable
// only after 90 days. https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
func TestUpgradesOfClustersWithTheSameName(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed + lives.Unprotected)
		for range 4 {
			before := len(l.Executions("converge"))
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.SettleAll()
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			l.RequireUpgraded()
			require.Len(t, l.Executions("converge"), before+3, "one for each step")
			l.Remove(names.ClusterSpec("demo"), "")
			l.SettleAll()
			l.RequirePhase(status.Deleted)
			l.ChangeSpec(lives.Alarmed + lives.Unprotected)
			l.RequirePhase(status.Ready)
		}
	})
}

// The spec is deleted during its own upgrade. The upgrade stops, and the status continues to report the deletion.
func TestUpgradeStopsDuringADeletion(t *testing.T) {
	for name, come := range map[string]func(l *life){
		"the step's own execution deletes it": func(l *life) { time.Sleep(time.Minute) },
		"it waits for drains in between": func(l *life) {
			l.RunBlockedPods(3)
			for range 24 * 60 {
				if r := l.UpgradeRecord(); r.Step == 2 && !r.Steps[2].Converged.IsZero() {
					require.Regexp(l.T, `^nodes are still being drained: i-.* \(at \d\d:\d\d:\d\dZ; next check at \d\d:\d\d:\d\dZ\)$`,
						l.Status("demo").Upgrade.Message)
					return
				}
				time.Sleep(time.Minute)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed + lives.Unprotected)
				l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Alarmed+lives.Unprotected), "name: r1", "name: r2", 1))
				l.WaitForStep(upgrade.StepControlPlane)
				come(l)
				reported := len(l.Verdicts())
				l.Remove(names.ClusterSpec("demo"), "")
				l.SettleAll()
				l.RequirePhase(status.Deleted)
				var phases []string
				for _, verdict := range l.Verdicts()[reported:] {
					phase, _, _ := strings.Cut(verdict, ":")
					phases = append(phases, phase)
				}
				require.Equal(t, []string{"Deleted"}, phases, "%q", l.Verdicts()[reported:])
				require.True(t, l.AlarmEnabled())
				require.True(t, l.UpgradeRecord().State == "" || l.UpgradeRecord().State.Final())
				require.Nil(t, l.Status("demo").Upgrade, "the upgrade is removed")
			})
		})
	}
}

// An operator deletes the control plane's stack during an upgrade. The upgrade has no subject then: the cluster is
// recreated as its spec says, without the upgrade.
func TestControlPlaneDeletedDuringItsUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		release, is string
		step        upgrade.StepKind
	}{
		"by hand, as the control plane moves": {"r1", "1.35", upgrade.StepControlPlane},
		"by hand, as nodes are replaced":      {"r1", "1.35", upgrade.StepNodes},
		"the spec's, as nodes are replaced":   {"r2", "1.36", upgrade.StepNodes},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(lives.Unprotected)
				if c.release == "r1" {
					l.StartUpgrade(events.Upgrade{Release: "r2"})
				} else {
					l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "name: r1", "name: r2", 1))
				}
				l.WaitForStep(c.step)
				pool := l.Stack("demo", "pool-a").ID
				for deleted := false; !deleted; time.Sleep(time.Minute) { // CloudFormation refuses during an update
					_, err := l.CloudFormation.DeleteStack(t.Context(), l.Admin(), &cloudformation.DeleteStackInput{
						StackName: names.Stack("demo", names.ControlPlane),
					})
					deleted = err == nil
				}
				l.SettleAll()
				for range 6 {
					time.Sleep(time.Hour)
					l.Sweep()
					l.Audit()
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
