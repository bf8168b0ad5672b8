package handler

// When a report tries again, and over which status it writes, decision by decision.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestFailureIsCounted(t *testing.T) {
	v := verdict{Verdict: status.Verdict{Phase: status.Failed, Message: "m"}, retryable: true, execution: "mine", try: 1}
	before := status.Status{Phase: status.Failed, Execution: "mine", FailedTry: 1, Message: "m", Failures: 1}
	counted := map[string]func(*status.Status){
		"after another phase":     func(s *status.Status) { s.Phase = status.Converging },
		"after another execution": func(s *status.Status) { s.Execution = "theirs" },
		"after another try":       func(s *status.Status) { s.FailedTry = 0 },
		"after another failure":   func(s *status.Status) { s.Message = "n" },
	}
	for name, change := range counted {
		t.Run(name, func(t *testing.T) {
			s := before
			change(&s)
			v.scheduleRetry(&s, noon)
			require.Equal(t, 2, s.Failures)
			require.Equal(t, noon.Add(backoff.Retries[1]), *s.RetryAt)
		})
	}
	t.Run("once", func(t *testing.T) {
		s := before
		v.scheduleRetry(&s, noon)
		require.Equal(t, before, s)
	})
	t.Run("not tried again when that does not help", func(t *testing.T) {
		lasting, s := v, status.Status{RetryAt: &noon}
		lasting.retryable = false
		lasting.scheduleRetry(&s, noon)
		require.Nil(t, s.RetryAt)
		require.Equal(t, 1, s.Failures)
	})
	t.Run("tried again within minutes when it may pass", func(t *testing.T) {
		brief, s := v, status.Status{}
		brief.quick = backoff.QuickRetries
		brief.scheduleRetry(&s, noon)
		require.Equal(t, noon.Add(backoff.QuickRetries[0]), *s.RetryAt)
		s = status.Status{Failures: len(backoff.QuickRetries)}
		brief.scheduleRetry(&s, noon)
		require.Equal(t, noon.Add(backoff.Retries[0]), *s.RetryAt)
	})
	t.Run("not tried again in the end", func(t *testing.T) {
		s := status.Status{Failures: len(backoff.Retries), RetryAt: &noon}
		v.scheduleRetry(&s, noon)
		require.Nil(t, s.RetryAt)
	})
}

func TestExecutionWaitsForItsNextTry(t *testing.T) {
	soon, past := noon.Add(time.Minute), noon.Add(-time.Minute)
	failed := status.Status{Phase: status.Failed, Execution: "mine", RetryAt: &soon, Failures: len(backoff.QuickRetries)}
	for name, test := range map[string]struct {
		change  func(*status.Status)
		missing bool
		err     error
		want    int64
	}{
		"waits for a retry that is soon":         {func(*status.Status) {}, false, nil, 61},
		"does not wait for a retry that is due":  {func(s *status.Status) { s.RetryAt = &past }, false, nil, 1},
		"not when the cluster did not fail":      {func(s *status.Status) { s.Phase = status.Converging }, false, nil, 0},
		"not for the retry of another execution": {func(s *status.Status) { s.Execution = "theirs" }, false, nil, 0},
		"not without a retry":                    {func(s *status.Status) { s.RetryAt = nil }, false, nil, 0},
		"not when the audit makes the retry":     {func(s *status.Status) { s.Failures++ }, false, nil, 0},
		"not without a status":                   {func(*status.Status) {}, true, nil, 0},
		"not when the status cannot be read":     {func(*status.Status) {}, false, errThrottled, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &round{reportFixture: &reportFixture{status: failed}, missing: test.missing, statusErr: test.err}
			test.change(&r.status)
			seconds, err := r.handler().secondsUntilRetry(t.Context(), in(nil), backoff.QuickRetries)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, seconds)
		})
	}
}

// keyDenied is the cause of a control plane whose stack failed because of its key.
func keyDenied(stackStatus string) string {
	return `{"status":"` + stackStatus + `","cause":"Cluster: User: x is not authorized to perform: kms:CreateGrant on resource: y"}`
}

func TestFailuresThatPass(t *testing.T) {
	results := func(errs ...string) events.ReportRequest {
		r := in(nil)
		for _, e := range errs {
			r.Results = append(r.Results, events.ChangeResult{Error: e})
		}
		return r
	}
	step := func(name, cause string) events.ReportRequest {
		r := in(nil)
		r.Error, r.Cause = name, cause
		return r
	}
	upgrades := step("Throttled", "")
	upgrades.Execution = "arn:demo-upgrade-0"
	both := results("StackFailed")
	both.Error = "Throttled"
	for name, test := range map[string]struct {
		in      events.ReportRequest
		passing bool
		quick   []time.Duration
	}{
		"throttled":                      {step("Throttled", ""), true, backoff.QuickRetries},
		"a crash":                        {step("Runtime.ExitError", ""), true, backoff.QuickRetries},
		"a timeout of Lambda":            {step("Sandbox.Timedout", ""), true, backoff.QuickRetries},
		"a failure of Lambda":            {step("Lambda.Unknown", ""), true, backoff.QuickRetries},
		"internal":                       {step("Internal", ""), true, nil},
		"a timeout":                      {step("States.Timeout", ""), true, nil},
		"a broken stack":                 {step("StackFailed", `{"status":"ROLLBACK_COMPLETE"}`), true, nil},
		"a rollback that failed":         {step("StackFailed", `{"status":"UPDATE_ROLLBACK_FAILED"}`), true, nil},
		"a change that was rolled back":  {step("StackFailed", `{"status":"UPDATE_ROLLBACK_COMPLETE"}`), false, nil},
		"a stack without a result":       {step("StackFailed", "words"), false, nil},
		"refused":                        {step("ChangeRefused", ""), false, nil},
		"several that pass":              {results("Throttled", "", "Transient"), true, backoff.QuickRetries},
		"several, and one does not":      {results("Throttled", "ChangeRefused"), false, nil},
		"several, and one takes long":    {results("Throttled", "Internal"), true, nil},
		"a step that passes and a stack": {both, false, nil},
		"a step of an upgrade":           {upgrades, true, nil},
		"a key that denies a new role":   {step("StackFailed", keyDenied("ROLLBACK_COMPLETE")), true, backoff.PermissionRetries},
		"a key that denies an update":    {step("StackFailed", keyDenied("UPDATE_ROLLBACK_COMPLETE")), false, nil},
	} {
		require.Equal(t, test.passing, mayPass(test.in), name)
		require.Equal(t, test.quick, quickRetries(test.in), name)
	}
}

func TestEndOfARound(t *testing.T) {
	soon := noon.Add(time.Minute)
	plan := &events.PlanResult{Outcome: events.OutcomeChanges, SpecVersion: "v1", Accepted: true}
	v := verdict{Verdict: status.Verdict{Phase: status.Failed, Message: "m"}, quick: backoff.QuickRetries}
	lasting := v
	lasting.quick = nil
	for name, test := range map[string]struct {
		v       verdict
		given   func(*round)
		want    events.ReportResult
		failing error
	}{
		"waits for the next try": {
			v, func(*round) {}, events.ReportResult{Again: true, Failed: true, Reason: "m", WaitSeconds: 61}, nil,
		},
		"does not wait for a newer spec": {
			v, func(r *round) { r.version = "v2" }, events.ReportResult{Again: true, Failed: true, Reason: "m"}, nil,
		},
		"ends when a try is the audit's": {
			v, func(r *round) { r.status.RetryAt = nil }, events.ReportResult{Failed: true, Reason: "m"}, nil,
		},
		"ends when no try helps": {lasting, func(*round) {}, events.ReportResult{Failed: true, Reason: "m"}, nil},
		"fails when the spec is unknown": {
			v, func(r *round) { r.specErr = errThrottled }, events.ReportResult{Failed: true, Reason: "m"}, errThrottled,
		},
		"fails when the status is unknown": {
			v, func(r *round) { r.statusErr = errThrottled }, events.ReportResult{Failed: true, Reason: "m"}, errThrottled,
		},
		"plans a spec that admit overwrote": {
			lasting, func(r *round) { r.reject("v1", status.ReasonSpecInvalid) }, events.ReportResult{Again: true, Failed: true, Reason: "m"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &round{reportFixture: &reportFixture{}, version: "v1"}
			r.status = status.Status{Phase: status.Failed, Execution: "mine", RetryAt: &soon, Failures: 1}
			test.given(r)
			result, err := r.handler().decideNext(t.Context(), in(plan), test.v)
			require.ErrorIs(t, err, test.failing)
			require.Equal(t, test.want, result)
		})
	}
}

func TestNewerSpec(t *testing.T) {
	planned := func(accepted bool) *events.PlanResult {
		return &events.PlanResult{SpecVersion: "v1", Accepted: accepted}
	}
	for name, test := range map[string]struct {
		plan  *events.PlanResult
		given func(*round)
		want  bool
		err   error
	}{
		"is planned":                             {planned(true), func(r *round) { r.version = "v2" }, true, nil},
		"is planned when the spec was deleted":   {planned(true), func(r *round) { r.version = "" }, true, nil},
		"is planned when the spec is too large":  {planned(true), func(r *round) { r.specErr = &store.TooLarge{Version: "v2"} }, true, nil},
		"is not planned without a newer version": {planned(true), func(*round) {}, false, nil},
		"is planned when the accepted version was rejected": {
			planned(true), func(r *round) { r.reject("v1", status.ReasonSpecInvalid) }, true, nil,
		},
		"not when the planned version was not accepted": {
			planned(false), func(r *round) { r.reject("v1", status.ReasonSpecInvalid) }, false, nil,
		},
		"not when it was rejected for its release": {planned(true), func(r *round) { r.reject("v1", status.ReasonReleaseUnusable) }, false, nil},
		"not when another version was rejected":    {planned(true), func(r *round) { r.reject("v2", status.ReasonSpecInvalid) }, false, nil},
		"not without a status":                     {planned(true), func(r *round) { r.missing = true }, false, nil},
		"fails when the status cannot be read":     {planned(true), func(r *round) { r.statusErr = errThrottled }, false, errThrottled},
		"fails when the spec cannot be read":       {planned(true), func(r *round) { r.specErr = errThrottled }, false, errThrottled},
		"is planned once after planning failed":    {nil, func(r *round) { r.status.PlannedVersion = "v0" }, true, nil},
		"not a second time after planning failed":  {nil, func(r *round) { r.status.PlannedVersion = "v1" }, false, nil},
		"not after planning failed for a deleted spec": {
			nil, func(r *round) { r.version, r.status.PlannedVersion = "", "v0" }, false, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &round{reportFixture: &reportFixture{}, version: "v1"}
			test.given(r)
			newer, err := r.handler().hasNewerSpec(t.Context(), in(test.plan))
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, newer)
		})
	}
	t.Run("is tried later when that answer is lost", func(t *testing.T) {
		theirs := noon.Add(time.Hour)
		for name, test := range map[string]struct {
			phase  status.Phase
			before *time.Time
			want   time.Time
		}{
			"failed":        {status.Failed, nil, noon.Add(backoff.Retries[0])},
			"failed before": {status.Failed, &theirs, theirs},
			"ready":         {status.Ready, nil, time.Time{}},
		} {
			r := &round{reportFixture: &reportFixture{status: status.Status{Phase: test.phase, RetryAt: test.before}}, version: "v1"}
			_, err := r.handler().hasNewerSpec(t.Context(), in(nil))
			require.NoError(t, err)
			if test.want.IsZero() {
				require.Nil(t, r.status.RetryAt, name)
				continue
			}
			require.Equal(t, test.want, *r.status.RetryAt, name)
		}
	})
}

func TestReportOfAnOutdatedSpec(t *testing.T) {
	plan := func(outcome events.Outcome) *events.PlanResult {
		return &events.PlanResult{Outcome: outcome, SpecVersion: "v1", Accepted: true, Seen: 7, Reason: status.ReasonPaused, Message: "paused"}
	}
	before := status.Status{Phase: status.Converging, Plan: []status.Change{{Stack: "network"}}}
	for name, test := range map[string]struct {
		outcome events.Outcome
		fence   int64
		failed  string
		phase   status.Phase
		planned bool
	}{
		"writes only that nothing changes": {outcome: events.OutcomeUnchanged, fence: 7, phase: status.Converging},
		"writes nothing when it stopped":   {outcome: events.OutcomeStopped, fence: 7, phase: status.Converging, planned: true},
		"writes nothing over a later one":  {outcome: events.OutcomeUnchanged, fence: 8, phase: status.Converging, planned: true},
		"writes that it failed": {
			outcome: events.OutcomeUnchanged, fence: 7, failed: "ChangeRefused", phase: status.Failed, planned: true,
		},
		"writes that changes failed": {
			outcome: events.OutcomeChanges, fence: 7, failed: "ChangeRefused", phase: status.Failed, planned: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &round{reportFixture: &reportFixture{status: before}, version: "v2"}
			r.status.Fence = test.fence
			request := in(plan(test.outcome))
			request.Error = test.failed
			result, err := r.handler().Handle(t.Context(), request)
			require.NoError(t, err)
			require.True(t, result.Again)
			require.Equal(t, test.phase, r.status.Phase)
			require.Equal(t, test.planned, len(r.status.Plan) > 0)
		})
	}
	t.Run("fails when the spec is unknown", func(t *testing.T) {
		r := &round{reportFixture: &reportFixture{status: before}, specErr: errThrottled}
		_, err := r.handler().Handle(t.Context(), in(plan(events.OutcomeUnchanged)))
		require.ErrorIs(t, err, errThrottled)
		require.Empty(t, r.done)
	})
	t.Run("writes that the cluster is deleted, and plans the newer spec", func(t *testing.T) {
		r := &round{reportFixture: &reportFixture{status: before}, version: "v2"}
		deleted := plan(events.OutcomeGone)
		deleted.SpecVersion = ""
		result, err := r.handler().Handle(t.Context(), in(deleted))
		require.NoError(t, err)
		require.True(t, result.Again)
		require.Equal(t, status.Deleted, r.status.Phase)
	})
	t.Run("plans again also when the newer version was deleted", func(t *testing.T) {
		r := &round{reportFixture: &reportFixture{status: before}, version: "v2"}
		r.restored = true
		result, err := r.handler().Handle(t.Context(), in(plan(events.OutcomeUnchanged)))
		require.NoError(t, err)
		require.True(t, result.Again)
	})
}

func TestReportOfAFailedPlan(t *testing.T) {
	for name, test := range map[string]struct {
		given func(*round)
		err   error
		want  []string
	}{
		"writes the status of a cluster with a spec":    {func(*round) {}, nil, []string{"status", "release mine"}},
		"amends the status of a cluster without a spec": {func(r *round) { r.version = "" }, nil, []string{"amend", "release mine"}},
		"makes no status for a name without a spec":     {func(r *round) { r.version, r.missing = "", true }, nil, []string{"release mine"}},
		"fails when the spec is unknown":                {func(r *round) { r.version, r.specErr = "", errThrottled }, errThrottled, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &round{reportFixture: &reportFixture{status: status.Status{PlannedVersion: "v1"}}, version: "v1"}
			test.given(r)
			request := in(nil)
			request.Error = "ChangeRefused"
			_, err := r.handler().Handle(t.Context(), request)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, r.done[:min(len(r.done), len(test.want))])
		})
	}
	t.Run("writes the status of a deletion that was planned", func(t *testing.T) {
		r := &round{reportFixture: &reportFixture{}}
		_, err := r.handler().Handle(t.Context(), in(&events.PlanResult{Outcome: events.OutcomeGone, Accepted: true}))
		require.NoError(t, err)
		require.Equal(t, "status", r.done[0])
	})
}

func TestInstancesThatDidNotJoinAreNamedOnce(t *testing.T) {
	nodes := func(ids ...string) (nodes []status.Node) {
		for _, id := range ids {
			nodes = append(nodes, status.Node{Instance: id, Pool: "a", State: status.NodeNotJoined, Execution: "mine", Message: "m"})
		}
		return nodes
	}
	r := &round{reportFixture: &reportFixture{status: status.Status{Nodes: nodes("i-1", "i-2", "i-3", "i-4")}}, version: "v1"}
	for _, pool := range []string{"b", "addons"} { // stack pool-b did not fail, and stack addons is no pool
		r.status.Nodes = append(r.status.Nodes, status.Node{Instance: "i-8", Pool: pool, State: status.NodeNotJoined, Execution: "mine"})
	}
	r.tries = []status.Status{{Nodes: nodes("i-9")}}
	request := in(&events.PlanResult{Outcome: events.OutcomeChanges, SpecVersion: "v1", Accepted: true})
	request.Results = []events.ChangeResult{
		{Stack: "pool-a", Error: "StackFailed"}, {Stack: "pool-b"}, {Stack: "addons", Error: "StackFailed"},
	}
	_, err := r.handler().Handle(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(r.status.Message, "did not join"))
	require.NotContains(t, r.status.Message, "i-8")
	require.NotContains(t, r.status.Message, "i-9")
}

func TestSpecThatIsServed(t *testing.T) {
	plan := func(outcome events.Outcome, served int64) *events.PlanResult {
		return &events.PlanResult{Outcome: outcome, SpecVersion: "v1", Accepted: true, OverrideCleared: served}
	}
	record := &upgrade.Record{Number: 3, Overridden: "r1", State: upgrade.Done}
	for name, test := range map[string]struct {
		plan      *events.PlanResult
		record    *upgrade.Record
		failing   map[string]error
		conflicts int
		err       error
		writes    int
	}{
		"is recorded":                  {plan: plan(events.OutcomeUnchanged, 3), record: record, writes: 1},
		"is recorded after a conflict": {plan: plan(events.OutcomeUnchanged, 3), record: record, conflicts: 3, writes: 4},
		"fails after four conflicts": {
			plan: plan(events.OutcomeUnchanged, 3), record: record, conflicts: 4, err: store.ErrConflict, writes: 4,
		},
		"not before the cluster is as it says": {plan: plan(events.OutcomeStopped, 3), record: record},
		"not when no record is over it": {
			plan: plan(events.OutcomeUnchanged, 0), record: record, failing: map[string]error{"record": errThrottled},
		},
		"not without a record": {plan: plan(events.OutcomeUnchanged, 3)},
		"not without a plan":   {record: record, failing: map[string]error{"record": errThrottled}},
		"not when the record is unknown": {
			plan: plan(events.OutcomeUnchanged, 3), record: record, failing: map[string]error{"record": errThrottled}, err: errThrottled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &round{reportFixture: &reportFixture{record: test.record, failing: test.failing, conflicts: test.conflicts}, version: "v1"}
			require.ErrorIs(t, r.handler().clearOverride(t.Context(), in(test.plan)), test.err)
			require.Len(t, r.done, test.writes)
		})
	}
}

func TestFailedStepIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		fault string
		at    *events.FailedState
		want  string
	}{
		"without a stack": {
			"Internal", &events.FailedState{State: "Plan", Function: "plan"},
			` (step "Plan", function drover-plan, log group /aws/lambda/drover-plan)`,
		},
		"with its stack": {
			"Internal", &events.FailedState{State: "Change", Function: "change", Stack: "network"},
			` (step "Change" of stack network, function drover-change, log group /aws/lambda/drover-change)`,
		},
		"not when it is blank": {"Internal", &events.FailedState{}, ""},
		"not when it is none":  {"Internal", nil, ""},
		"not of a stack":       {"StackFailed", &events.FailedState{State: "Change", Function: "change"}, ""},
		"not of a lost lease":  {"LeaseLost", &events.FailedState{State: "Change", Function: "change"}, ""},
		"not of a refusal":     {"ChangeRefused", &events.FailedState{State: "Change", Function: "change"}, ""},
		"not of leftovers":     {"LeftoversRemain", &events.FailedState{State: "Clean", Function: "clean"}, ""},
		"not when superseded":  {"Superseded", &events.FailedState{State: "Change", Function: "change"}, ""},
	} {
		require.Equal(t, test.want, where(test.fault, test.at), name)
	}
}
