package report_test

// Reports that end right after they released the lease, and reports of an execution that lost its lease.

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/report/handler"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// The converge of a spec fails permanently. A newer spec was left to it, and its report ends after it released the lease and before it read
// the bucket.
func TestInterruptedReportStillFindsNewerWork(t *testing.T) {
	tests := map[string]struct {
		comes func(a *harness.Account) (version string)
		phase status.Phase
	}{
		"a newer spec": {func(a *harness.Account) string {
			return a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {version: three}\n"))
		}, status.Ready},
		"the deletion of the spec": {func(a *harness.Account) string {
			a.Remove("clusters/demo.yaml", "")
			return ""
		}, status.Stopped},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "")
			before := len(converges(a))
			var mu sync.Mutex
			came, version, refused := false, "", 0
			a.OnResource(func(step string, r resource.Request) error {
				mu.Lock()
				defer mu.Unlock()
				if came || step != "update" || r.Type != "AWS::EKS::Cluster" {
					return nil
				}
				came, version = true, test.comes(a)
				a.Until("its own execution has left", func() bool {
					all := converges(a)
					return len(all) > before+1 && all[before+1].Status == "SUCCEEDED"
				})
				return &wire.Error{Code: "InternalFailure", Message: "no luck", Status: 400}
			})
			a.OnCall(func(call endpoint.Call) error {
				if harness.CalledBy(call) != "report" || call.Action != "GetObject" || !strings.HasSuffix(call.Resource, "clusters/demo.yaml") {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				if refused++; refused > 3 { // all that the client tries
					return nil
				}
				return faults.Throttled(call.Service)
			})
			a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {version: two}\n"))
			a.Settle()
			require.True(t, busy(t, converges(a)[before+1].Output))
			s := a.Status("demo")
			require.Equal(t, test.phase, s.Phase, s.Message)
			require.Equal(t, version, s.PlannedVersion)
			if version == "" {
				require.Equal(t, status.ReasonDeletionProtected, s.Condition(status.Converged).Reason)
			}
			require.Equal(t, "SUCCEEDED", converges(a)[before].Status, "the execution ends with its last result")
			require.Len(t, converges(a), before+2)
			require.Greater(t, refused, 3, "a report failed and was retried")
		})
	}
}

// uploadedSpecs is a specs bucket in which every spec has one version.
type uploadedSpecs string

func (u uploadedSpecs) Get(context.Context, string, int64) (store.Object, error) {
	return store.Object{Version: string(u)}, nil
}

const (
	mine   = "arn:aws:states:eu-west-1:111122223333:execution:drover-converge:mine"
	theirs = "arn:aws:states:eu-west-1:111122223333:execution:drover-converge:theirs"
)

// failedRequest is the request for a report after a permanent failure of a change. Without the failure the machine would begin an upgrade.
func failedRequest(fence int64) events.ReportRequest {
	return events.ReportRequest{
		Cluster: "demo", Execution: mine, Error: "ChangeRefused", Cause: "no",
		Plan: &events.PlanResult{
			Outcome: events.OutcomeChanges, SpecVersion: "two", Fence: fence, Seen: fence,
			Upgrade: &events.PlannedUpgrade{Name: "begin", Start: &events.Upgrade{Cluster: "demo"}},
		},
	}
}

func TestRepeatedReportWritesNothing(t *testing.T) {
	a := harness.Start(t)
	held, err := a.State().Acquire(t.Context(), "demo", store.Lease{}, mine)
	require.NoError(t, err)
	h := &handler.Handler{Specs: uploadedSpecs("two"), State: a.State(), Now: time.Now}
	first, err := h.Handle(t.Context(), failedRequest(held.Fence))
	require.NoError(t, err)
	require.Equal(t, events.ReportResult{Failed: true, Reason: "ChangeRefused: no"}, first)

	// An execution that finds nothing to change takes no lease. It may have written the status since.
	require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) { s.Phase, s.Message = status.Ready, "theirs" }))
	before := a.Status("demo")
	again, err := h.Handle(t.Context(), failedRequest(held.Fence))
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, before, a.Status("demo"))

	h.Specs = uploadedSpecs("three")
	again, err = h.Handle(t.Context(), failedRequest(held.Fence))
	require.NoError(t, err)
	require.True(t, again.Again)
}

func TestExecutionWithoutItsLeaseFails(t *testing.T) {
	for name, given := range map[string]bool{"to one that works": false, "to one that is over": true} {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			held, err := a.State().Acquire(t.Context(), "demo", store.Lease{}, mine)
			require.NoError(t, err)
			seen, err := a.State().Lease(t.Context(), "demo")
			require.NoError(t, err)
			_, err = a.State().Acquire(t.Context(), "demo", seen, theirs)
			require.NoError(t, err)
			if given {
				require.NoError(t, a.State().Release(t.Context(), "demo", theirs))
			}
			h := &handler.Handler{Specs: uploadedSpecs("three"), State: a.State(), Now: time.Now}
			for _, in := range []events.ReportRequest{failedRequest(held.Fence), {
				Cluster: "demo", Execution: mine, Plan: failedRequest(held.Fence).Plan,
			}} {
				result, err := h.Handle(t.Context(), in)
				require.NoError(t, err)
				require.True(t, result.Failed, "otherwise the machine begins the planned upgrade")
				require.False(t, result.Again, "the other execution reads the bucket")
				require.Contains(t, result.Reason, "was taken over")
			}
			_, err = a.State().Status(t.Context(), "demo")
			require.ErrorIs(t, err, store.ErrNotFound, names.Status("demo"))
		})
	}
}

// Planning fails permanently while a spec is pending. The spec gets one more try, after the status records it. The response to that write,
// or to the whole report, is lost.
func TestPendingSpecIsPlannedAfterALostReport(t *testing.T) {
	unplanned := events.ReportRequest{Cluster: "demo", Execution: mine, Error: "AccessDeniedException", Cause: "not allowed"}
	marked := func(s *status.Status) bool { return s.PlannedVersion == "two" }
	start := func(t *testing.T) (*harness.Account, *losesAnswers) {
		a := harness.Start(t)
		require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
			s.Phase, s.ObservedVersion = status.Pending, "two"
		}))
		return a, &losesAnswers{State: a.State(), of: marked}
	}
	t.Run("the answer to the write", func(t *testing.T) {
		a, state := start(t)
		state.again = true
		h := &handler.Handler{Specs: uploadedSpecs("two"), State: state, Now: time.Now}
		result, err := h.Handle(t.Context(), unplanned)
		require.NoError(t, err)
		require.Positive(t, state.lost)
		require.True(t, result.Again)
		require.Equal(t, "two", a.Status("demo").PlannedVersion)
	})
	t.Run("the answer of the report", func(t *testing.T) {
		a, state := start(t)
		h := &handler.Handler{Specs: uploadedSpecs("two"), State: state, Now: time.Now}
		_, err := h.Handle(t.Context(), unplanned)
		require.Error(t, err)
		require.Positive(t, state.lost)
		result, err := h.Handle(t.Context(), unplanned)
		require.NoError(t, err)
		require.False(t, result.Again, "the report may belong to the second try")
		s := a.Status("demo")
		require.Equal(t, status.Failed, s.Phase)
		require.NotNil(t, s.RetryAt, "the audit retries")
		require.WithinDuration(t, time.Now().Add(15*time.Minute), *s.RetryAt, time.Minute)
		// The retry of the audit is another execution. After it has failed, too, no retry follows.
		other := unplanned
		other.Execution = theirs
		result, err = h.Handle(t.Context(), other)
		require.NoError(t, err)
		require.False(t, result.Again)
		require.Nil(t, a.Status("demo").RetryAt)
	})
	t.Run("nothing", func(t *testing.T) {
		a, _ := start(t)
		h := &handler.Handler{Specs: uploadedSpecs("two"), State: a.State(), Now: time.Now}
		for _, again := range []bool{true, false} {
			result, err := h.Handle(t.Context(), unplanned)
			require.NoError(t, err)
			require.Equal(t, again, result.Again)
		}
	})
}

// losesAnswers is a state that loses the response to the first write of a matching status. The store retries by itself, or the caller gets
// an error.
type losesAnswers struct {
	*store.State
	of    func(*status.Status) bool
	again bool
	lost  int
}

func (l *losesAnswers) UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error {
	wrote := false
	err := l.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		before := l.of(s)
		change(s)
		wrote = !before && l.of(s)
	})
	if err != nil || !wrote || l.lost > 0 {
		return err
	}
	if l.lost++; l.again {
		return l.State.UpdateStatus(ctx, cluster, change)
	}
	return errors.New("connection reset by peer")
}

// A plan that changes nothing takes no lease. Its report keeps the status of a newer spec, and the execution plans that spec, too.
func TestPlanOfAnOlderSpecDoesNotJudgeANewer(t *testing.T) {
	unchanged := &events.PlanResult{Cluster: "demo", Outcome: events.OutcomeUnchanged, SpecVersion: "two"}
	stopped := &events.PlanResult{Cluster: "demo", Outcome: events.OutcomeStopped, SpecVersion: "two", Reason: "ChangeRefused", Message: "no"}
	for name, test := range map[string]struct {
		plan  *events.PlanResult
		there string // the spec's version
		again bool
		phase status.Phase
	}{
		"it changes nothing, and the newer is paused":           {unchanged, "three", true, status.Stopped},
		"it changes nothing, and the spec is deleted":           {unchanged, "", true, status.Stopped},
		"it may not be made, and the newer may":                 {stopped, "three", true, status.Stopped},
		"it changes nothing, and an older one's word came late": {unchanged, "two", false, status.Ready},
		"it may not be made, and an older one's word came late": {stopped, "two", false, status.Stopped},
	} {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
				s.Phase, s.Message, s.PlannedVersion = status.Stopped, "theirs", "another"
				s.Plan = []status.Change{{Stack: "pool-a"}}
			}))
			h := &handler.Handler{Specs: uploadedSpecs(test.there), State: a.State(), Now: time.Now}
			result, err := h.Handle(t.Context(), events.ReportRequest{Cluster: "demo", Execution: mine, Plan: test.plan})
			require.NoError(t, err)
			require.Equal(t, test.again, result.Again)
			s := a.Status("demo")
			require.Equal(t, test.phase, s.Phase)
			require.Equal(t, test.again, s.Message == "theirs", s.Message)
			require.Equal(t, test.plan == unchanged, s.Plan == nil, "no change is left")
		})
	}
}
