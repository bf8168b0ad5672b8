package sweep_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// losing loses the events of a source.
func losing(a *harness.Account, source string) {
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == source {
			return harness.Lost
		}
		return harness.Delivered
	})
}

// failNetwork fails every network.
func failNetwork(step string, r resource.Request) error {
	if step == "create" && r.Type == "AWS::EC2::VPC" {
		return &wire.Error{Code: "VpcLimitExceeded", Message: "no room for networks", Status: 400}
	}
	return nil
}

// failUpdateOf fails the next change of a resource of a kind, once.
func failUpdateOf(kind string) func(step string, r resource.Request) error {
	var once sync.Once
	return func(step string, r resource.Request) (err error) {
		if step == "update" && r.Type == kind {
			once.Do(func() { err = &wire.Error{Code: "InvalidParameterException", Message: "no such version", Status: 400} })
		}
		return err
	}
}

// waiting waits until an execution waits for an idle stack whose event was lost.
func waiting(t *testing.T, a *harness.Account, stack string) {
	a.Until("an execution waits for "+stack, func() bool {
		_, err := a.State().Waiter(t.Context(), names.Stack("demo", stack))
		return err == nil && a.Idle()
	})
}

func TestEveryStackEventIsLost(t *testing.T) {
	a := harness.Start(t)
	losing(a, "aws.cloudformation")
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	for _, stack := range []string{"network", "control-plane", "control-plane", "addons", "pool-a", "addons-on-nodes"} {
		waiting(t, a, stack)
		require.NoError(t, a.SweepNow())
	}
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	waiters, err := a.State().List(t.Context(), names.Waiters)
	require.NoError(t, err)
	require.Empty(t, waiters)
}

func TestLostEventOfAFailure(t *testing.T) {
	a := harness.Start(t)
	losing(a, "aws.cloudformation")
	a.Upload("releases/r1.yaml", harness.Release())
	a.OnResource(failNetwork)
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	waiting(t, a, "network")
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Equal(t, status.Failed, a.Status("demo").Phase)
	require.Contains(t, a.Status("demo").Message, "no room for networks")
}

// The event of drover's update is lost, and an operator updates the stack afterwards. The execution waits for an operation that has ended
// but is not the newest.
func TestLostEventAfterAnExternalUpdate(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	losing(a, "aws.cloudformation")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {team: b}\n"))
	waiting(t, a, "network")
	for _, stack := range a.CloudFormation.Stacks() {
		if stack.StackName != "drover-demo-network" {
			continue
		}
		_, err := a.CloudFormation.UpdateStack(t.Context(), a.Admin(), &cloudformation.UpdateStackInput{
			StackName: stack.StackName, UsePreviousTemplate: true, Tags: append(stack.Tags, cloudformation.Tag{Key: "by", Value: "hand"}),
		})
		require.NoError(t, err)
	}
	a.Until("it is done", a.Idle)
	a.Events.Decide(nil)
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

// The change function has stored the waiter and not yet started the operation, so the stack is idle after an earlier one.
func TestWaiterOfAPendingOperationIsKept(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	var once sync.Once
	a.OnCall(func(call endpoint.Call) error {
		if call.Action == "ExecuteChangeSet" {
			once.Do(func() {
				mark := a.Calls.Mark()
				require.NoError(t, a.SweepNow())
				for _, made := range a.Calls.Since(mark) {
					require.False(t, made.Mutating, "%s %s", made.Action, made.Resource)
				}
			})
		}
		return nil
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {team: b}\n"))
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase)
}

// The waiting execution has ended. The sweep resumes none, and deletes the waiter.
func TestWaiterOfAnEndedExecutionIsDeleted(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	x := a.Converge("demo")
	a.Settle()
	_, err := a.State().PutWaiter(t.Context(), store.Waiter{
		Cluster: "demo", Stack: "network", StackName: "drover-demo-network", ClientRequestToken: "never-begun", TaskToken: "t", Execution: x,
	})
	require.NoError(t, err)
	require.NoError(t, a.SweepNow())
	_, err = a.State().Waiter(t.Context(), "drover-demo-network")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestLostEventsOfSpecs(t *testing.T) {
	t.Run("of the first spec", func(t *testing.T) {
		a := harness.Start(t)
		losing(a, "aws.s3")
		a.Upload("releases/r1.yaml", harness.Release())
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		require.NoError(t, a.SweepNow())
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase)
	})
	t.Run("of a spec in the second of the status before it", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("releases/r1.yaml", harness.Release())
		a.Upload("clusters/demo.yaml", "kind: Cluster")
		a.Settle()
		losing(a, "aws.s3")
		version := a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		require.NoError(t, a.SweepNow())
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase)
		require.Equal(t, version, a.Status("demo").PlannedVersion)
	})
	t.Run("not of one in the second of its own status", func(t *testing.T) {
		for name, spec := range map[string]string{"invalid": "kind: Cluster", "too large": strings.Repeat("#", api.MaxFile+1)} {
			a := harness.Start(t)
			a.Upload("clusters/demo.yaml", spec)
			a.Settle()
			require.Equal(t, status.Stopped, a.Status("demo").Phase)
			require.Zero(t, countAdmitted(t, a), name)
		}
	})
	t.Run("not of a deletion that was handled, and whose tries fail", func(t *testing.T) {
		a := harness.Start(t)
		a.Cluster("demo", "  deletionProtection: false\n")
		a.OnCall(func(call endpoint.Call) error {
			if harness.CalledBy(call) == "plan" && call.Action == "DescribeStacks" {
				return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
			}
			return nil
		})
		a.Remove("clusters/demo.yaml", "")
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, status.Failed, s.Phase)
		require.NotEmpty(t, s.PlannedVersion, "it was not planned")
		require.Zero(t, countAdmitted(t, a))
		mark := a.Calls.Mark()
		require.NoError(t, a.SweepNow())
		for _, call := range a.Calls.Since(mark) {
			require.False(t, call.Action == "StartExecution" || call.Action == "GetObject" && strings.Contains(call.Resource, "demo"), "%s %s",
				call.Action, call.Resource)
		}
	})
	t.Run("of a handled deletion whose execution did not start", func(t *testing.T) {
		a := harness.Start(t)
		a.Cluster("demo", "  deletionProtection: false\n")
		a.OnCall(func(call endpoint.Call) error {
			if call.Action == "StartExecution" {
				return &wire.Error{Code: "AccessDeniedException", Message: "not now", Status: 400}
			}
			return nil
		})
		a.Remove("clusters/demo.yaml", "")
		a.Settle()
		require.Empty(t, a.Status("demo").ObservedVersion)
		require.ErrorContains(t, a.SweepNow(), "starting to converge demo")
		a.OnCall(nil)
		require.Zero(t, countAdmitted(t, a))
		a.Settle()
		require.Equal(t, status.Deleted, a.Status("demo").Phase)
		require.Empty(t, a.Stacks("demo"))
	})
	t.Run("of a spec whose event may still come", func(t *testing.T) {
		a := harness.Start(t)
		a.Functions.Sweep.EventGrace = time.Minute
		losing(a, "aws.s3")
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		require.NoError(t, a.SweepNow())
		require.Empty(t, a.StepFunctions.Executions())
		a.Functions.Sweep.Now = func() time.Time { return time.Now().Add(2 * time.Minute) }
		require.NoError(t, a.SweepNow())
		require.Len(t, a.StepFunctions.Executions(), 1)
		a.Settle()
	})
}

// countAdmitted counts the missed specs that a sweep logs.
func countAdmitted(t *testing.T, a *harness.Account) int {
	t.Helper()
	var logs strings.Builder
	_, err := lambdaruntime.WrapTo(&logs, "sweep", a.Functions.Sweep.Handle)(t.Context(), events.Sweep{})
	require.NoError(t, err)
	return strings.Count(logs.String(), "of this spec was lost")
}

func TestSweepWithoutFindingsChangesNothing(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	mark := a.Calls.Mark()
	require.NoError(t, a.SweepNow())
	var calls []string
	for _, call := range a.Calls.Since(mark) {
		require.False(t, call.Mutating, call.Action)
		calls = append(calls, call.Action)
	}
	require.Equal(t, 6, strings.Count(strings.Join(calls, " "), "ListBucket"))
}

func TestFailureOfOneClusterDelaysNoOther(t *testing.T) {
	a := harness.Start(t)
	losing(a, "aws.s3")
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/alpha.yaml", harness.Spec("alpha", ""))
	a.Upload("clusters/beta.yaml", harness.Spec("beta", ""))
	a.OnCall(func(call endpoint.Call) error {
		if strings.HasSuffix(call.Resource, "status/clusters/alpha.json") && harness.CalledBy(call) == "sweep" {
			return &wire.Error{Code: "AccessDenied", Message: "not this one", Status: 403}
		}
		return nil
	})
	require.ErrorContains(t, a.SweepNow(), "not this one")
	a.Settle()
	require.Equal(t, status.Ready, a.Status("beta").Phase)
}
