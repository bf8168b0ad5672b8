package handler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
)

// ours is a token of drover's operations.
var ours = plan.Change{StackName: "s", Operation: plan.Update}.Token("v", 1)

func TestHandle(t *testing.T) {
	const waitForAny = "any"
	for name, test := range map[string]struct {
		status, token, waiting string
		resumed, inspected     bool
	}{
		"records the progress of drover's operation":        {status: "UPDATE_IN_PROGRESS", token: ours},
		"records progress while a task waits":               {status: "UPDATE_IN_PROGRESS", token: ours, waiting: ours},
		"resumes the task that waits for its end":           {status: "UPDATE_COMPLETE", token: ours, waiting: ours, resumed: true},
		"resumes a task that waits for any operation":       {status: "UPDATE_COMPLETE", token: "t", waiting: waitForAny, resumed: true},
		"records the end of another operation":              {status: "DELETE_FAILED", token: "t", waiting: ours, inspected: true},
		"records the end of drover's own operation":         {status: "UPDATE_ROLLBACK_COMPLETE", token: ours},
		"records the start of an external operation":        {status: "DELETE_IN_PROGRESS"},
		"inspects after the end of an external operation":   {status: "DELETE_COMPLETE", inspected: true},
		"inspects after an external update, with its token": {status: "UPDATE_ROLLBACK_COMPLETE", token: "t", inspected: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			switch test.waiting {
			case "":
			case waitForAny:
				f.wait(t, "")
			default:
				f.wait(t, test.waiting)
			}
			require.NoError(t, f.handle(t, test.status, test.token, nil))
			if test.resumed {
				require.Equal(t, []string{stackName + " " + test.status}, f.resumed)
				require.Equal(t, status.StackReport{Status: test.status, At: noon, Event: true}, f.report)
				require.Equal(t, "UPDATE_COMPLETE", f.stack(t).Status, "the resumer records it")
				require.Equal(t, noon.Add(-time.Minute), f.stack(t).ReportedAt)
				return
			}
			require.Empty(t, f.resumed)
			require.Equal(t, test.status, f.stack(t).Status)
			require.Equal(t, noon, f.stack(t).ReportedAt)
			require.Equal(t, test.token != ours, f.stack(t).External)
			require.Equal(t, test.inspected, f.drift(t) != "")
			if !test.inspected {
				require.Empty(t, f.inspection())
				return
			}
			require.JSONEq(t, `{"why":"stack network: `+test.status+` at 2026-11-26T12:00:00Z","at":"2026-11-26T12:00:00Z"}`, f.inspection())
		})
	}
	t.Run("records the reason of a failure", func(t *testing.T) {
		f := newFixture(t)
		require.NoError(t, f.handle(t, "DELETE_FAILED", ours, nil))
		require.Equal(t, "a reason", f.stack(t).Reason)
	})
	t.Run("reads no waiter while an operation is in flight", func(t *testing.T) {
		f := newFixture(t)
		f.refuse("Get", names.Waiter(stackName))
		require.NoError(t, f.handle(t, "UPDATE_IN_PROGRESS", ours, nil))
	})
	t.Run("creates no status", func(t *testing.T) {
		f := newFixture(t)
		f.objects.Delete(names.Status("demo"))
		require.NoError(t, f.handle(t, "DELETE_COMPLETE", "", nil))
		require.Empty(t, f.objects.Keys())
	})
}

func TestHandleIgnores(t *testing.T) {
	for name, test := range map[string]struct {
		given  func(*status.Stack)
		change func(*events.Event[events.StackStatus])
	}{
		"another stack": {change: func(in *events.Event[events.StackStatus]) {
			in.Detail.StackID = "arn:aws:cloudformation:r:1:stack/website/1"
		}},
		"an event without a time": {change: func(in *events.Event[events.StackStatus]) { in.Time = time.Time{} }},
		"a recorded status": {given: func(s *status.Stack) {
			s.Status, s.ReportedAt, s.Since, s.External = "DELETE_COMPLETE", noon, noon, true
		}},
		"an older event": {given: func(s *status.Stack) { s.ReportedAt = noon.Add(time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if test.given != nil {
				f.set(t, func(s *status.Status) { test.given(&s.Stacks[0]) })
			}
			written := f.objects.Written()
			require.NoError(t, f.handle(t, "DELETE_COMPLETE", "", test.change))
			require.Equal(t, written, f.objects.Written())
			require.Empty(t, f.inspection())
		})
	}
}

func TestHandleReturnsErrors(t *testing.T) {
	for name, test := range map[string]struct {
		operation, key string
		recorded       bool
	}{
		"of reading the waiter":       {"Get", names.Waiter(stackName), false},
		"of reading the status":       {"Get", names.Status("demo"), false},
		"of writing the status":       {"Put", names.Status("demo"), false},
		"of requesting an inspection": {"Put", names.Inspection("demo"), true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.refuse(test.operation, test.key)
			require.Equal(t, "AccessDenied", fault.Code(f.handle(t, "DELETE_COMPLETE", "", nil)))
			f.objects.OnCall = nil
			require.Equal(t, test.recorded, f.stack(t).Status == "DELETE_COMPLETE")
			require.Empty(t, f.inspection())
		})
	}
	t.Run("of resuming the step", func(t *testing.T) {
		f := newFixture(t)
		f.wait(t, ours)
		f.resumeErr = errors.New("throttled")
		require.ErrorIs(t, f.handle(t, "UPDATE_COMPLETE", ours, nil), f.resumeErr)
	})
}
