package passes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

func TestSweepReportsExecutionsThatEnded(t *testing.T) {
	for name, test := range map[string]struct {
		given    func(*sweeptest.Account)
		reported bool
		err      error
		want     []string
	}{
		"of a cluster that converged": {func(*sweeptest.Account) {}, true, nil, []string{"write demo", "due demo 12:01", "release demo x"}},
		"of a cluster that was deleted": {func(s *sweeptest.Account) {
			s.Recorded.Phase = status.Deleting
		}, true, nil, []string{"write demo", "due demo 12:01", "release demo x"}},
		"continues after a pause that grows": {func(s *sweeptest.Account) {
			s.Recorded.Failures = 3
		}, true, nil, []string{"write demo", "due demo 12:15", "release demo x"}},
		"leaves the last retry to an operator": {func(s *sweeptest.Account) {
			s.Recorded.Failures = 8
		}, true, nil, []string{"write demo", "release demo x"}},
		"again if the lease was not released": {func(s *sweeptest.Account) {
			s.Recorded.FailUnreported(demo, "x", noon.Add(-time.Minute))
		}, false, nil, []string{"write demo", "due demo 12:00", "release demo x"}},
		"not over a report": {func(s *sweeptest.Account) {
			s.Recorded.Phase = status.Ready
		}, false, nil, []string{"write demo", "release demo x"}},
		"not over another execution": {func(s *sweeptest.Account) {
			s.Recorded.Execution = "y"
		}, false, nil, []string{"write demo", "release demo x"}},
		"not while it runs":            {func(s *sweeptest.Account) { s.Runs = true }, false, nil, nil},
		"not without a lease":          {func(s *sweeptest.Account) { s.Leased = store.Lease{Fence: 3} }, false, nil, nil},
		"fails when that is not known": {func(s *sweeptest.Account) { s.Failing["running"] = errThrottled }, false, errThrottled, nil},
		"continues its work after a removal": {func(s *sweeptest.Account) { s.WasRemoved = true }, false, nil,
			[]string{"converge demo  x", "release demo x"}},
		"leaves the step of an upgrade to the upgrade": {func(s *sweeptest.Account) {
			s.WasRemoved, s.Leased.Execution = true, "machine:demo-upgrade-1-0-0"
		}, false, nil, []string{"release demo machine:demo-upgrade-1-0-0"}},
		"keeps the lease when its work cannot continue": {func(s *sweeptest.Account) {
			s.WasRemoved, s.Failing["converge demo  x"] = true, errThrottled
		}, false, errThrottled, []string{"converge demo  x"}},
		"keeps the lease when the retry cannot be scheduled": {func(s *sweeptest.Account) {
			s.Failing["due"] = errThrottled
		}, true, errThrottled, []string{"write demo", "due demo 12:01"}},
		"keeps the lease when it cannot be reported": {func(s *sweeptest.Account) {
			s.Failing["write"] = errThrottled
		}, true, errThrottled, []string{"write demo"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{
				Leased: store.Lease{Execution: "x"}, Recorded: status.Status{Phase: status.Converging, Execution: "x"}, Failing: map[string]error{},
			}
			test.given(s)
			phase := s.Recorded.Phase
			require.ErrorIs(t, depsOf(s).endedExecutions().release(t.Context(), demo), test.err)
			require.Equal(t, test.want, s.Calls)
			require.Equal(t, test.reported, s.Recorded.Phase == status.Failed && phase != s.Recorded.Phase)
		})
	}
	t.Run("of each cluster, whatever fails for another", func(t *testing.T) {
		s := &sweeptest.Account{
			HeldClusters: []string{"a", "b"}, Leased: store.Lease{Execution: "x"}, Failing: map[string]error{"write a": errThrottled},
		}
		require.ErrorIs(t, depsOf(s).endedExecutions().Run(t.Context()), errThrottled)
		require.Equal(t, []string{"write a", "write b", "release b x"}, s.Calls)
	})
}

func TestEventOfAnEndedExecution(t *testing.T) {
	late := noon.Add(3 * time.Minute)
	event := events.ExecutionStatus{
		ExecutionARN: "x", Status: events.ExecutionAborted, StopDate: noon.UnixMilli(), Input: `{"cluster":"demo"}`,
	}
	for name, test := range map[string]struct {
		given func(*sweeptest.Account, *events.ExecutionStatus)
		err   error
		want  []string
	}{
		"releases its lease": {func(s *sweeptest.Account, _ *events.ExecutionStatus) {
			s.Leased.Execution = "x"
		}, nil, []string{"write demo", "due demo 12:01", "release demo x"}},
		"releases its lease if it failed": {func(s *sweeptest.Account, e *events.ExecutionStatus) {
			s.Leased.Execution, e.Status = "x", events.ExecutionFailed
		}, nil, []string{"write demo", "due demo 12:01", "release demo x"}},
		"continues work that it had not begun": {func(s *sweeptest.Account, _ *events.ExecutionStatus) {
			s.Recorded = status.Status{Phase: status.Pending}
		}, nil, []string{"read demo", "due demo 12:01"}},
		"continues work of a cluster that another execution changes": {func(*sweeptest.Account, *events.ExecutionStatus) {
		}, nil, []string{"read demo", "due demo 12:01"}},
		"continues its work if it timed out": {func(_ *sweeptest.Account, e *events.ExecutionStatus) {
			e.Status = events.ExecutionTimedOut
		}, nil, []string{"read demo", "due demo 12:01"}},
		"makes the retry for which it waited": {func(s *sweeptest.Account, _ *events.ExecutionStatus) {
			s.Recorded = status.Status{Phase: status.Failed, Execution: "x", RetryAt: &late}
		}, nil, []string{"read demo", "due demo 12:03"}},
		"leaves the retry of another execution": {func(s *sweeptest.Account, _ *events.ExecutionStatus) {
			s.Recorded = status.Status{Phase: status.Failed, Execution: "y", RetryAt: &late}
		}, nil, []string{"read demo"}},
		"leaves a cluster that waits for an operator": {func(s *sweeptest.Account, _ *events.ExecutionStatus) {
			s.Recorded = status.Status{Phase: status.Failed, Execution: "x"}
		}, nil, []string{"read demo"}},
		"not with a newer spec": {func(s *sweeptest.Account, _ *events.ExecutionStatus) {
			s.Recorded = status.Status{Phase: status.Failed, Execution: "x", PlannedVersion: "v1", ObservedVersion: "v2"}
		}, nil, []string{"read demo", "due demo 12:01"}},
		"leaves a deleted cluster": {func(s *sweeptest.Account, _ *events.ExecutionStatus) {
			s.Recorded = status.Status{Phase: status.Deleted, PlannedVersion: "v1"}
		}, nil, []string{"read demo"}},
		"leaves a failure that was reported": {func(_ *sweeptest.Account, e *events.ExecutionStatus) {
			e.Status = events.ExecutionFailed
		}, nil, nil},
		"leaves the step of an upgrade to the upgrade": {func(_ *sweeptest.Account, e *events.ExecutionStatus) {
			e.ExecutionARN = "machine:demo-upgrade-1-0-0"
		}, nil, nil},
		"leaves a removal to the next deployment": {func(s *sweeptest.Account, e *events.ExecutionStatus) {
			s.Leased.Execution, e.Error = "x", names.Removed
		}, nil, nil},
		"ignores an input without a cluster": {func(_ *sweeptest.Account, e *events.ExecutionStatus) {
			e.Input = `{"cluster":5}`
		}, nil, nil},
		"ignores an input that is too large to be sent": {func(_ *sweeptest.Account, e *events.ExecutionStatus) {
			e.Input = ""
		}, nil, nil},
		"fails without the lease": {func(s *sweeptest.Account, _ *events.ExecutionStatus) {
			s.Failing["lease"] = errThrottled
		}, errThrottled, nil},
		"fails without the status": {func(s *sweeptest.Account, _ *events.ExecutionStatus) {
			s.Failing["read"] = errThrottled
		}, errThrottled, []string{"read demo"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, e := &sweeptest.Account{
				Recorded: status.Status{Phase: status.Converging, Execution: "x"}, Failing: map[string]error{},
			}, event
			test.given(s, &e)
			require.ErrorIs(t, depsOf(s).endedExecutions().Handle(t.Context(), e), test.err)
			require.Equal(t, test.want, s.Calls)
		})
	}
}
