package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// finished asserts that a cluster matches its spec, without leftovers.
func (a *Account) finished(cluster string) {
	a.t.Helper()
	s := a.Status(cluster)
	require.Equal(a.t, status.Ready, s.Phase, s.Message)
	p, reason, message, err := a.Functions.Planner.Preview(context.Background(), cluster)
	require.NoError(a.t, err)
	require.Empty(a.t, reason, message)
	require.Empty(a.t, p.Changes, "of a cluster that is Ready")
	waiters, err := a.State().List(context.Background(), names.Waiters)
	require.NoError(a.t, err)
	require.Empty(a.t, waiters)
	lease, err := a.State().Lease(context.Background(), cluster)
	require.NoError(a.t, err)
	require.Empty(a.t, lease.Execution)
	require.Equal(a.t, []string{
		"addons", "addons-on-nodes", "control-plane", "network", "pool-a",
	}, slices.Sorted(maps.Keys(a.Stacks(cluster))))
	for stack, stackStatus := range a.Stacks(cluster) {
		require.Contains(a.t, []string{"CREATE_COMPLETE", "UPDATE_COMPLETE"}, stackStatus, stack)
		require.Empty(a.t, a.leftover(names.Stack(cluster, stack)), stack)
	}
}

// leftover lists the rollbacks and deletions of a stack, and its remaining change sets.
func (a *Account) leftover(stackName string) (found []string) {
	a.t.Helper()
	events, err := a.CloudFormation.DescribeStackEvents(context.Background(), a.Admin(), &cloudformation.StackPageInput{StackName: stackName})
	require.NoError(a.t, err)
	for _, event := range events.StackEvents {
		if event.LogicalResourceId == stackName && (strings.Contains(event.ResourceStatus, "ROLLBACK") ||
			strings.Contains(event.ResourceStatus, "DELETE")) {
			found = append(found, event.ResourceStatus)
		}
	}
	sets, err := a.CloudFormation.ListChangeSets(context.Background(), a.Admin(), &cloudformation.StackPageInput{StackName: stackName})
	require.NoError(a.t, err)
	for _, set := range sets.Summaries {
		found = append(found, "change set "+set.ChangeSetName)
	}
	return found
}

// mostCalls exceeds the calls of any invocation.
const mostCalls = 60

// eachCall runs a test for every death at every call that functions make, by number. die kills every function at that call of
// every odd attempt, and the retry after that survives.
func eachCall(t *testing.T, functions []string, test func(t *testing.T, die func(Call) Death)) {
	for death, name := range map[Death]string{Before: "before", After: "after"} {
		died := map[string]bool{}
		for number := 1; number <= mostCalls; number++ {
			var mu sync.Mutex
			ran, deaths := false, 0
			t.Run(fmt.Sprintf("%s call %d", name, number), func(t *testing.T) {
				ran = true
				test(t, func(c Call) Death {
					if c.Number != number || c.Attempt%2 == 0 || !slices.Contains(functions, c.Function) {
						return Lives
					}
					mu.Lock()
					defer mu.Unlock()
					died[c.Function] = true
					deaths++
					return death
				})
			})
			if ran && deaths == 0 {
				require.Len(t, died, len(functions), "all of them died: %v", died)
				break
			}
			require.False(t, ran && number == mostCalls)
		}
	}
}

// Every function is killed before, and after, each of its calls in turn while a cluster is created and updated. Lambda and
// Step Functions retry.
func TestKilledFunctionsAreRetried(t *testing.T) {
	eachCall(t, []string{"admit", "publish", "plan", "change", "stackevent", "report", "join"}, func(t *testing.T, die func(Call) Death) {
		a := Start(t)
		for _, more := range []string{"", "  tags: {team: b}\n"} {
			a.Functions.Kill(die)
			a.Upload("releases/r1.yaml", Release())
			a.Upload("clusters/demo.yaml", Spec("demo", more))
			a.Settle()
			a.Functions.Kill(nil)
			a.finished("demo")
			verdict, err := a.State().Verdict(t.Context(), "r1")
			require.NoError(t, err)
			require.NotEmpty(t, verdict.Status.Version)
		}
	})
}

// The same without retries: the state machines do not retry a process that exited. The next execution, which the operator starts,
// continues from there.
func TestNextExecutionContinuesAfterAKill(t *testing.T) {
	// Without join: its instances would be replaced by others that do not join.
	eachCall(t, []string{"admit", "plan", "change", "stackevent", "report"}, func(t *testing.T, die func(Call) Death) {
		a := Start(t)
		a.Functions.Killed = "Runtime.ExitError"
		a.Functions.Kill(die)
		a.Upload("releases/r1.yaml", Release())
		a.Upload("clusters/demo.yaml", Spec("demo", ""))
		a.Until("it stands still", a.Still)
		for range 30 {
			if a.Status("demo").Phase == status.Ready {
				break
			}
			a.Converge("demo")
			a.Until("it stands still", a.Still)
			require.NoError(t, a.SweepNow())
			a.Until("it stands still", a.Still)
		}
		a.Functions.Kill(nil)
		require.NoError(t, a.SweepNow())
		a.Settle()
		a.finished("demo")
	})
}

// Calls are throttled: once, so that the SDK retries, and more often, so that the state machines and Lambda retry.
func TestThrottling(t *testing.T) {
	tests := map[string]struct {
		times int
		what  func(call endpoint.Call) string
		least int
	}{
		"every call, once": {1, func(call endpoint.Call) string { return call.Service + " " + call.Action + " " + call.Resource }, 40},
		// One action of a function is throttled at a time. Otherwise it would fail before it made all of its calls.
		"one action of each function, longer than the SDK tries": {4, func(call endpoint.Call) string {
			throttled := map[string]string{
				"plan": "DescribeStacks", "change": "CreateChangeSet", "stackevent": "SendTaskSuccess", "report": "Publish", "admit": "StartExecution",
			}
			if throttled[CalledBy(call)] == call.Action {
				return call.Action
			}
			return ""
		}, 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := Start(t)
			var mu sync.Mutex
			throttled := map[string]int{}
			a.OnCall(func(call endpoint.Call) error {
				what := test.what(call)
				if CalledBy(call) == "admin" || what == "" {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				if throttled[CalledBy(call)+what]++; throttled[CalledBy(call)+what] > test.times {
					return nil
				}
				return faults.Throttled(call.Service)
			})
			a.Cluster("demo", "")
			a.Cluster("demo", "  tags: {team: b}\n")
			a.OnCall(nil)
			a.finished("demo")
			require.GreaterOrEqual(t, len(throttled), test.least)
		})
	}
}
