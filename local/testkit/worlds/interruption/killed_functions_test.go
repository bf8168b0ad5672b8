package interruption_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/status"
)

// Every function is killed before, and after, each of its calls in turn while a cluster is created and updated. Lambda and
// Step Functions retry.
func TestKilledFunctionsAreRetried(t *testing.T) {
	lives.KillEachCall(t, []string{
		"admit", "publish", "plan", "change", "stackevent", "report", "join",
	}, func(t *testing.T, die func(harness.Call) harness.Death) {
		a := start(t)
		for _, more := range []string{"", "  tags: {team: b}\n"} {
			a.Functions.Kill(die)
			a.Upload("releases/r1.yaml", harness.Release())
			a.Upload("clusters/demo.yaml", harness.Spec("demo", more))
			a.Settle()
			a.Functions.Kill(nil)
			a.RequireConverged("demo")
			verdict, err := a.State().ReleaseStatus(t.Context(), "r1")
			require.NoError(t, err)
			require.NotEmpty(t, verdict.Status.Version)
		}
	})
}

// The same without retries: the state machines do not retry a process that exited. The next execution, which the operator starts,
// continues from there.
func TestNextExecutionContinuesAfterAKill(t *testing.T) {
	// Without join: its instances would be replaced by others that do not join.
	lives.KillEachCall(t, []string{
		"admit", "plan", "change", "stackevent", "report",
	}, func(t *testing.T, die func(harness.Call) harness.Death) {
		a := start(t)
		a.Functions.Killed = "Runtime.ExitError"
		a.Functions.Kill(die)
		a.Upload("releases/r1.yaml", harness.Release())
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
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
		a.RequireConverged("demo")
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
			if throttled[harness.CalledBy(call)] == call.Action {
				return call.Action
			}
			return ""
		}, 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			var mu sync.Mutex
			throttled := map[string]int{}
			a.OnCall(func(call endpoint.Call) error {
				what := test.what(call)
				if harness.CalledBy(call) == "admin" || what == "" {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				if throttled[harness.CalledBy(call)+what]++; throttled[harness.CalledBy(call)+what] > test.times {
					return nil
				}
				return faults.Throttled(call.Service)
			})
			a.Cluster("demo", "")
			a.Cluster("demo", "  tags: {team: b}\n")
			a.OnCall(nil)
			a.RequireConverged("demo")
			require.GreaterOrEqual(t, len(throttled), test.least)
		})
	}
}
