package sweep_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

// An operator stops an execution while it waits for a stack, so no report writes the status.
func TestExecutionEndedWithoutAReport(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" && strings.Contains(string(e.Detail), "control-plane") {
			return harness.Lost
		}
		return harness.Delivered
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Until("the control plane is there", func() bool { return a.Idle() && a.Stacks("demo")["control-plane"] == "CREATE_COMPLETE" })
	a.States.StopAll("Aborted", "by a person")
	a.Settle()
	require.Equal(t, status.Converging, a.Status("demo").Phase)

	a.Events.Decide(nil)
	require.NoError(t, a.SweepNow())
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Equal(t, status.ReasonExecutionEnded, s.Condition(status.Converged).Reason)
	require.Contains(t, s.Message, s.Execution)
	require.NotContains(t, a.Stacks("demo"), "addons", "it was stopped on purpose")

	// A second sweep finds nothing.
	mark := a.Calls.Mark()
	require.NoError(t, a.SweepNow())
	for _, call := range a.Calls.Since(mark) {
		require.False(t, call.Mutating, call.Action)
	}
	a.Converge("demo")
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

// A sweep changes neither the status nor the lease of a running execution, even when it precedes the event of a stack.
func TestRunningExecutionIsUnchanged(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	type cluster struct {
		phase         status.Phase
		works, leased string
		converges     int
	}
	swept := make(chan cluster, 100)
	a.OnCall(func(call endpoint.Call) error {
		if call.Action == "ExecuteChangeSet" {
			assert.NoError(t, a.SweepNow())
			s := a.Status("demo")
			swept <- cluster{s.Phase, s.Execution, a.Lease("demo").Execution, converges(a)}
		}
		return nil
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	close(swept)
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.NotEmpty(t, swept)
	for found := range swept {
		require.Equal(t, cluster{status.Converging, s.Execution, s.Execution, 1}, found)
	}
	require.Len(t, a.Verdicts(), 1)
}

// An operator stops an execution during a change, and the change then succeeds. If it was the last one, the audit starts an execution
// that reports Ready. If other changes remain, the audit starts none: the operator stopped them on purpose.
func TestExecutionStoppedInItsLastChange(t *testing.T) {
	const pools = "    - {name: b, instanceTypes: [m7i.large], minSize: 1, maxSize: %s}\n    - {name: c, instanceTypes: [m7i.large], " +
		"minSize: 1, maxSize: %[1]s, update: {order: %s}}\n"
	for name, test := range map[string]struct{ order, phase string }{
		"it was the last":      {"0", "Ready"},
		"others come after it": {"1", "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", fmt.Sprintf(pools, "3", test.order))
			a.Events.Decide(func(e harness.Event) harness.Fate {
				if e.Source == "aws.cloudformation" {
					return harness.Lost
				}
				return harness.Delivered
			})
			a.Upload("clusters/demo.yaml", harness.Spec("demo", fmt.Sprintf(pools, "4", test.order)))
			a.Until("the pool is changed", func() bool { return a.Idle() && a.Stacks("demo")["pool-b"] == "UPDATE_COMPLETE" })
			a.States.StopAll("Aborted", "by a person")
			a.Settle()
			a.Events.Decide(nil)
			require.NoError(t, a.SweepNow())
			require.Equal(t, status.ReasonExecutionEnded, a.Status("demo").Condition(status.Converged).Reason)
			audit(t, a)
			s := a.Status("demo")
			require.Equal(t, test.phase, string(s.Phase), s.Message)
			before := converges(a)
			audit(t, a)
			require.Equal(t, before, converges(a))
		})
	}
}
