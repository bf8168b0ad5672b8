package report_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/report/handler"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

// The same execution retries a transient failure, after growing pauses that the status shows. drover notifies once.
func TestQuickRetries(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	sent := len(a.Notices())
	var mu sync.Mutex
	failing := true
	a.OnCall(func(call endpoint.Call) error {
		mu.Lock()
		defer mu.Unlock()
		caller := harness.CalledBy(call)
		failing = failing && caller != "report" // until the first try is reported
		if failing && caller == "plan" && call.Action == "GetResources" {
			return faults.Throttled(call.Service)
		}
		return nil
	})
	before := len(converges(a))
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {team: b}\n"))
	a.Until("the first try was retried", func() bool {
		return len(converges(a)) == before+1 && a.Status("demo").Phase == status.Ready
	})
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Zero(t, s.Failures)
	require.Len(t, converges(a), before+1, "no other execution")
	failed := 0
	for _, notice := range a.Notices()[sent:] {
		if strings.HasPrefix(notice, "drover: demo is Failed") {
			require.Contains(t, notice, `(step "Plan", function drover-plan, log group /aws/lambda/drover-plan)`)
			failed++
		}
	}
	require.Equal(t, 1, failed)
}

func TestPausesBetweenTries(t *testing.T) {
	a := harness.Start(t)
	now := time.Now()
	h := &handler.Handler{Specs: uploadedSpecs("two"), State: a.State(), Now: func() time.Time { return now }}
	try := 0
	fail := func(name, execution string) (events.ReportResult, time.Duration) {
		held, err := a.State().Lease(t.Context(), "demo")
		require.NoError(t, err)
		held, err = a.State().Acquire(t.Context(), "demo", held, execution)
		require.NoError(t, err)
		in := events.ReportRequest{
			Cluster: "demo", Execution: execution, Try: try, Error: name, Cause: "c", Failed: &events.FailedState{
				State: "Prepare the cluster", Function: "prepare",
			},
			Plan: &events.PlanResult{Outcome: events.OutcomeChanges, SpecVersion: "two", Accepted: true, Fence: held.Fence, Seen: held.Fence},
		}
		result, err := h.Handle(t.Context(), in)
		require.NoError(t, err)
		again, err := h.Handle(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, result, again, "a repeated report returns the same")
		s := a.Status("demo")
		require.NotNil(t, s.RetryAt)
		return result, s.RetryAt.Sub(now).Round(time.Second)
	}
	for n, want := range []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour} {
		result, pause := fail("ClusterUnreachable", mine)
		require.InDelta(t, want.Seconds(), pause.Seconds(), 1)
		require.Equal(t, n+1, a.Status("demo").Failures)
		require.Equal(t, n < 3, result.Again, "the audit retries after long pauses")
		if result.Again {
			require.InDelta(t, want.Seconds(), float64(result.WaitSeconds), 2)
		}
		now = now.Add(want + 2*time.Second)
		try++
	}

	require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
		s.Failures, s.RetryAt, s.Phase = 0, nil, status.Ready
	}))
	for name, test := range map[string]struct{ fault, execution string }{
		"what does not pass within minutes": {"Internal", mine},
		"a step of an upgrade":              {"Throttled", strings.Replace(mine, ":mine", ":demo-upgrade-0123456789abcdef-0-0", 1)},
	} {
		result, pause := fail(test.fault, test.execution)
		require.InDelta(t, (15 * time.Minute).Seconds(), pause.Seconds(), 1, name)
		require.False(t, result.Again, name)
		require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
			s.Failures, s.RetryAt, s.Phase = 0, nil, status.Ready
		}))
	}
}

// A failed step names its function, its stack and its log group. A failed stack names itself.
func TestFailuresNameTheirStep(t *testing.T) {
	a := harness.Start(t)
	require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
		s.Phase, s.PlannedVersion = status.Converging, "two"
	}))
	h := &handler.Handler{Specs: uploadedSpecs("two"), State: a.State(), Now: time.Now}
	plan := &events.PlanResult{Outcome: events.OutcomeChanges, SpecVersion: "two", Accepted: true}
	crash := `{"errorType":"Runtime.ExitError","errorMessage":"RequestId: 1234 Error: Runtime exited with error: exit status 2"}`
	for want, in := range map[string]events.ReportRequest{
		`Runtime.ExitError: RequestId: 1234 Error: Runtime exited with error: exit status 2 (step "Change network stack" of stack ` +
			`network, function drover-change, log group /aws/lambda/drover-change)`: {
			Error: "Runtime.ExitError", Cause: crash, Failed: &events.FailedState{
				State: "Change network stack", Function: "change", Stack: "network",
			},
		},
		`Runtime.ExitError: RequestId: 1234 Error: Runtime exited with error: exit status 2 (step "Change pool stack" of stack ` +
			`pool-a, function drover-change, log group /aws/lambda/drover-change)`: {
			Results: []events.ChangeResult{{Stack: "pool-a", Error: "Runtime.ExitError", Cause: crash, State: "Change pool stack"}},
		},
		`StackFailed: stack drover-demo-network is ROLLBACK_COMPLETE`: {
			Error: "StackFailed", Cause: `{"cause":"stack drover-demo-network is ROLLBACK_COMPLETE"}`,
			Failed: &events.FailedState{State: "Change network stack", Function: "change", Stack: "network"},
		},
	} {
		in.Cluster, in.Execution, in.Plan = "demo", mine, plan
		_, err := h.Handle(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, want, a.Status("demo").Message)
	}
}
