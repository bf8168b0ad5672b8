package sweep_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/handler"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/status"
)

// An operator stops an execution while it waits for a stack, so no report writes the status. The event of the stop, or the next sweep,
// records the end. The sweep after the pause starts the retry.
func TestExecutionEndedWithoutAReport(t *testing.T) {
	for name, eventLost := range map[string]bool{"the event arrives": false, "the event is lost": true} {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Upload("releases/r1.yaml", harness.Release())
			a.Events.Decide(func(e harness.Event) harness.Fate {
				if e.Source == "aws.states" && eventLost || e.Source == "aws.cloudformation" && strings.Contains(string(e.Detail), "control-plane") {
					return harness.Lost
				}
				return harness.Delivered
			})
			a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
			a.Until("the control plane is there", func() bool { return a.Idle() && a.Stacks("demo")["control-plane"] == "CREATE_COMPLETE" })
			a.StepFunctions.StopAll("Aborted", "by an operator")
			a.Settle()
			if eventLost {
				require.Equal(t, status.Converging, a.Status("demo").Phase)
				a.Events.Decide(nil)
				require.NoError(t, a.SweepNow())
				a.Settle()
			}
			a.Events.Decide(nil)
			s := a.Status("demo")
			require.Equal(t, status.Failed, s.Phase)
			require.Equal(t, status.ReasonExecutionEnded, s.Condition(status.Converged).Reason)
			require.Contains(t, s.Message, s.Execution)
			require.WithinDuration(t, time.Now().Add(time.Minute), *s.RetryAt, 10*time.Second)

			// A further sweep finds nothing: the retry has a pause.
			require.NoError(t, a.SweepNow())
			mark := a.Calls.Mark()
			require.NoError(t, a.SweepNow())
			for _, call := range a.Calls.Since(mark) {
				require.False(t, call.Mutating, call.Action)
			}
			require.NotContains(t, a.Stacks("demo"), "addons")
			later(a, 2*time.Minute)
			require.NoError(t, a.SweepNow())
			a.Settle()
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
			require.Equal(t, 2, converges(a))
		})
	}
}

// The status and the lease name an execution that ended, again and again, as if an operator stopped each retry. The pauses grow, and in the
// end an operator must act.
func TestExecutionsThatEndAgain(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	execution := a.MachineARN("converge") + ":that-ended"
	for n := range 9 {
		require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
			s.Phase, s.Execution = status.Converging, execution
		}))
		lease, err := a.State().Lease(t.Context(), "demo")
		require.NoError(t, err)
		_, err = a.State().Acquire(t.Context(), "demo", lease, execution)
		require.NoError(t, err)
		a.Functions.Sweep.Executions = endedExecutions{a.Functions.Sweep.Executions}
		require.NoError(t, a.SweepNow())
		s := a.Status("demo")
		require.Equal(t, status.Failed, s.Phase)
		if n == 8 {
			require.Nil(t, s.RetryAt)
			require.Contains(t, s.Message, "run drover converge demo to continue")
			return
		}
		pauses := append(append([]time.Duration{}, backoff.QuickRetries...), backoff.Retries...)
		require.WithinDuration(t, time.Now().Add(pauses[n]), *s.RetryAt, 10*time.Second)
	}
}

// endedExecutions are executions that have ended.
type endedExecutions struct{ handler.Executions }

func (endedExecutions) State(context.Context, string) (running, removed bool, err error) {
	return false, false, nil
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

// An operator stops an execution during a change, and the change then succeeds. drover continues with the rest, once.
func TestExecutionStoppedInItsLastChange(t *testing.T) {
	const pools = "    - {name: b, instanceTypes: [m7i.large], minSize: 1, maxSize: %s}\n    - {name: c, instanceTypes: [m7i.large], " +
		"minSize: 1, maxSize: %[1]s, update: {order: %s}}\n"
	for name, order := range map[string]string{"it was the last": "0", "others come after it": "1"} {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", fmt.Sprintf(pools, "3", order))
			losing(a, "aws.cloudformation")
			a.Upload("clusters/demo.yaml", harness.Spec("demo", fmt.Sprintf(pools, "4", order)))
			a.Until("the pool is changed", func() bool { return a.Idle() && a.Stacks("demo")["pool-b"] == "UPDATE_COMPLETE" })
			a.StepFunctions.StopAll("Aborted", "by an operator")
			a.Settle()
			a.Events.Decide(nil)
			require.Equal(t, status.ReasonExecutionEnded, a.Status("demo").Condition(status.Converged).Reason)
			before := converges(a)
			later(a, 2*time.Minute)
			require.NoError(t, a.SweepNow())
			a.Settle()
			s := a.Status("demo")
			require.Equal(t, status.Ready, s.Phase, s.Message)
			audit(t, a)
			require.NoError(t, a.SweepNow())
			a.Settle()
			require.Equal(t, before+1, converges(a))
		})
	}
}
