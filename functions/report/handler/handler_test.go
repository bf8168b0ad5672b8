package handler_test

// Reports over a state bucket in memory: what a report leaves there, and in which order it writes.

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/report/handler"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// fixture is a cluster whose lease the execution mine holds, with its spec.
type fixture struct {
	specs, objects *storetest.Bucket
	state          *store.State
	version        string
	fence          int64
}

func newFixture(t *testing.T) *fixture {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	f := &fixture{specs: storetest.NewBucket("specs"), objects: storetest.NewBucket("state")}
	f.state = store.NewState(f.objects, store.Silent, func() time.Time { return noon })
	lease, err := f.state.Acquire(t.Context(), "demo", store.Lease{}, "mine")
	require.NoError(t, err)
	f.version, f.fence = f.specs.Upload(names.ClusterSpec("demo"), "spec"), lease.Fence
	f.set(t, func(s *status.Status) {
		s.PlannedVersion, s.ObservedVersion, s.Fence = f.version, f.version, f.fence
		s.BeginConverge("mine", false, "1 stack is changed", noon)
		s.Plan, s.Stacks = []status.Change{{Stack: "network"}}, []status.Stack{{Name: "network"}}
		s.Nodes, s.Drift = []status.Node{{Instance: "i-1"}}, []string{"network: tags"}
		s.Upgrade, s.NextUpgrade, s.Upgrades = &status.Upgrade{To: "r2"}, &status.Upgrade{To: "r3"}, []status.Upgrade{{To: "r1"}}
		s.DriftedAt, s.Replaced = &noon, &status.Replaced{}
		s.Set(status.Condition{Type: status.InSync, Status: "False", Reason: status.ReasonDrifted}, noon)
	})
	return f
}

func (f *fixture) set(t *testing.T, change func(*status.Status)) {
	t.Helper()
	require.NoError(t, f.state.UpdateStatus(t.Context(), "demo", change))
}

func (f *fixture) status(t *testing.T) *status.Status {
	t.Helper()
	document, err := f.state.Status(t.Context(), "demo")
	require.NoError(t, err)
	return &document.Status
}

// plan is the result of planning that mine reports.
func (f *fixture) plan(outcome events.Outcome) *events.PlanResult {
	return &events.PlanResult{
		Cluster: "demo", Outcome: outcome, SpecVersion: f.version, Accepted: true, Fence: f.fence, Seen: f.fence,
	}
}

func (f *fixture) report(t *testing.T, in events.ReportRequest) (events.ReportResult, error) {
	t.Helper()
	in.Cluster, in.Execution = "demo", "mine"
	h := &handler.Handler{Specs: f.specs, State: f.state, Now: func() time.Time { return noon }}
	return h.Handle(t.Context(), in)
}

// writtenKeys returns the keys of the writes and deletions, in order.
func (f *fixture) writtenKeys(from int) (keys []string) {
	for _, call := range f.objects.Calls()[from:] {
		if call.Operation == "Put" || call.Operation == "Delete" {
			keys = append(keys, call.Key)
		}
	}
	return keys
}

func TestReport(t *testing.T) {
	t.Run("of a converged cluster ends the execution", func(t *testing.T) {
		f := newFixture(t)
		begin := len(f.objects.Calls())
		result, err := f.report(t, events.ReportRequest{Plan: f.plan(events.OutcomeUnchanged)})
		require.NoError(t, err)
		require.Equal(t, events.ReportResult{Reason: status.AsSpecified}, result)
		require.Equal(t, status.Ready, f.status(t).Phase)
		require.Equal(t, "True", f.status(t).Condition(status.Converged).Status)
		require.Equal(t, []string{names.Status("demo"), names.Lease("demo")}, f.writtenKeys(begin), "the lease is released last")
		lease, err := f.state.Lease(t.Context(), "demo")
		require.NoError(t, err)
		require.Empty(t, lease.Execution)
		require.Equal(t, f.fence, lease.Fence)
	})
	t.Run("plans a spec that arrived during the run", func(t *testing.T) {
		f := newFixture(t)
		f.specs.Upload(names.ClusterSpec("demo"), "newer")
		result, err := f.report(t, events.ReportRequest{Plan: f.plan(events.OutcomeChanges), Results: []events.ChangeResult{{
			Stack: "network", Error: fault.Name(&fault.ChangeRefused{}), Cause: "it would be replaced",
		}}})
		require.NoError(t, err)
		require.True(t, result.Again)
		require.True(t, result.Failed)
		require.Equal(t, status.Failed, f.status(t).Phase)
	})
	t.Run("returns the error of releasing the lease", func(t *testing.T) {
		f := newFixture(t)
		f.objects.OnCall = func(call storetest.Call) error {
			if call.Operation == "Put" && call.Key == names.Lease("demo") {
				return storetest.Refusal("AccessDenied")
			}
			return nil
		}
		result, err := f.report(t, events.ReportRequest{Plan: f.plan(events.OutcomeUnchanged)})
		require.Equal(t, "AccessDenied", fault.Code(err))
		require.Empty(t, result)
		require.Equal(t, status.Ready, f.status(t).Phase, "the verdict is recorded first")
	})
	t.Run("writes nothing again when it is repeated", func(t *testing.T) {
		f := newFixture(t)
		in := events.ReportRequest{Plan: f.plan(events.OutcomeUnchanged)}
		first, err := f.report(t, in)
		require.NoError(t, err)
		begin := len(f.objects.Calls())
		second, err := f.report(t, in)
		require.NoError(t, err)
		require.Equal(t, first, second)
		require.Empty(t, f.writtenKeys(begin))
	})
}

func TestReportOfAFailure(t *testing.T) {
	for name, test := range map[string]struct{ cause, message string }{
		"quotes the error of a crashed function": {`{"errorMessage":"signal: killed","errorType":"x"}`, "Internal: signal: killed"},
		"prefers the cause of a stack":           {`{"errorMessage":"no","cause":"a subnet is full"}`, "Internal: a subnet is full"},
		"quotes plain text":                      {"the response is too large", "Internal: the response is too large"},
		"quotes an object without a message":     {`{"errorType":"x"}`, `Internal: {"errorType":"x"}`},
		"names the fault alone without a cause":  {"", "Internal"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			result, err := f.report(t, events.ReportRequest{
				Plan: f.plan(events.OutcomeChanges), Error: "Internal", Cause: test.cause, Failed: &events.FailedState{
					State: "Change", Function: "change",
				},
			})
			require.NoError(t, err)
			s := f.status(t)
			require.Equal(t, test.message+` (step "Change", function drover-change, log group /aws/lambda/drover-change)`, s.Message)
			require.Equal(t, s.Message, result.Reason)
			require.True(t, result.Failed)
			require.False(t, result.Again)
			require.Equal(t, "Internal", s.Condition(status.Converged).Reason)
			require.Equal(t, 1, s.Failures)
			require.True(t, s.RetryAt.After(noon), "the audit retries it")
		})
	}
}

func TestReportOfADeletion(t *testing.T) {
	removed := []string{"load balancer a", "volume b"}
	for name, test := range map[string]struct {
		deletion  *status.Deletion
		leftovers string // the end of the message
	}{
		"without a cleanup": {nil, ""},
		"without leftovers": {&status.Deletion{}, "; Kubernetes had created nothing in the account"},
		"with one leftover": {
			&status.Deletion{Removed: removed[:1]}, ", with the one resource that Kubernetes created in the account",
		},
		"with several leftovers": {
			&status.Deletion{Removed: removed}, ", with the 2 resources that Kubernetes created in the account",
		},
		"with retained volumes": {
			&status.Deletion{Retained: removed}, "; Kubernetes had created nothing in the account; retained: load balancer a, volume b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.specs.Delete(names.ClusterSpec("demo"))
			f.version = ""
			f.set(t, func(s *status.Status) {
				s.PlannedVersion, s.Deletion = "", test.deletion
				s.Warn(api.SpecWarnings{Network: []string{"public"}, Addons: []string{"tainted"}}, noon)
				s.BeginDeletion("mine", nil, "the network is deleted", noon)
			})
			inspection := names.Inspection("demo")
			f.objects.Upload(inspection, "{}")
			begin := len(f.objects.Calls())
			result, err := f.report(t, events.ReportRequest{Plan: f.plan(events.OutcomeDeletes)})
			require.NoError(t, err)
			require.Equal(t, events.ReportResult{Reason: result.Reason}, result)
			s := f.status(t)
			require.Equal(t, status.Deleted, s.Phase)
			require.Regexp(t, "^the cluster is [a-z]+"+test.leftovers+"$", s.Message)
			require.Equal(t, s.Message, s.Condition(status.Converged).Message)
			require.Equal(t, []string{inspection, names.Status("demo"), names.Lease("demo")}, f.writtenKeys(begin))
			require.Empty(t, s.Plan)
			require.Empty(t, s.Stacks)
			require.Empty(t, s.Nodes)
			require.Nil(t, s.Upgrade)
			require.Nil(t, s.NextUpgrade)
			require.Empty(t, s.Upgrades)
			require.Empty(t, s.Drift)
			require.Nil(t, s.DriftedAt)
			require.Nil(t, s.Replaced)
			require.Nil(t, s.Condition(status.InSync))
			require.Nil(t, s.Condition(status.AccessGranted))
			require.Nil(t, s.Condition(status.NetworkUsable))
			require.Nil(t, s.Condition(status.PodsIsolated))
			require.Nil(t, s.Condition(status.KubeletFieldsKnown))
			require.Nil(t, s.Condition(status.AddonsSchedulable))
		})
	}
}
