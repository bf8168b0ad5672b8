package handler_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/stackevent/handler"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

const stackName = "drover-demo-network"

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// fixture is the cluster demo, which is Ready and has the stack network. It implements handler.Resumer.
type fixture struct {
	objects   *storetest.Bucket
	state     *store.State
	resumed   []string           // the stacks of the tasks, with the status
	report    status.StackReport // the last one
	resumeErr error
}

func newFixture(t *testing.T) *fixture {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	f := &fixture{objects: storetest.NewBucket("state")}
	f.state = store.NewState(f.objects, store.Silent, func() time.Time { return noon })
	f.set(t, func(s *status.Status) {
		s.Phase = status.Ready
		s.Stacks = []status.Stack{{Name: "network", Status: "UPDATE_COMPLETE", ReportedAt: noon.Add(-time.Minute)}}
	})
	return f
}

func (f *fixture) Resume(_ context.Context, w store.Waiter, report status.StackReport) error {
	f.resumed = append(f.resumed, w.StackName+" "+report.Status)
	f.report = report
	return f.resumeErr
}

func (f *fixture) set(t *testing.T, change func(*status.Status)) {
	t.Helper()
	require.NoError(t, f.state.UpdateStatus(t.Context(), "demo", change))
}

// wait registers a task that waits for the operation with a token.
func (f *fixture) wait(t *testing.T, token string) {
	t.Helper()
	_, err := f.state.PutWaiter(t.Context(), store.Waiter{Cluster: "demo", Stack: "network", StackName: stackName, ClientRequestToken: token})
	require.NoError(t, err)
}

// refuse refuses an operation on a key.
func (f *fixture) refuse(operation, key string) {
	f.objects.OnCall = func(call storetest.Call) error {
		if call.Operation == operation && call.Key == key {
			return storetest.Refusal("AccessDenied")
		}
		return nil
	}
}

// handle handles an event of noon.
func (f *fixture) handle(t *testing.T, stackStatus, token string, change func(*events.Event[events.StackStatus])) error {
	t.Helper()
	in := events.Event[events.StackStatus]{Time: noon}
	in.Detail.StackID = "arn:aws:cloudformation:r:1:stack/" + stackName + "/1"
	in.Detail.StatusDetails.Status, in.Detail.StatusDetails.StatusReason = stackStatus, "a reason"
	in.Detail.ClientRequestToken = token
	if change != nil {
		change(&in)
	}
	h := &handler.Handler{State: f.state, Resume: f, Now: func() time.Time { return noon.Add(time.Second) }}
	_, err := h.Handle(t.Context(), in)
	return err
}

// stack is the stack in the status.
func (f *fixture) stack(t *testing.T) status.Stack {
	t.Helper()
	document, err := f.state.Status(t.Context(), "demo")
	require.NoError(t, err)
	return document.Status.Stacks[0]
}

// drift is the message of the condition InSync; empty if there is no condition.
func (f *fixture) drift(t *testing.T) string {
	t.Helper()
	document, err := f.state.Status(t.Context(), "demo")
	require.NoError(t, err)
	c := document.Status.Condition(status.InSync)
	if c == nil {
		return ""
	}
	require.Equal(t, "False", c.Status)
	require.Equal(t, noon.Add(time.Second), c.LastTransitionTime)
	return c.Message
}

// inspection is the reason of the requested inspection.
func (f *fixture) inspection() string { return string(f.objects.Body(names.Inspection("demo"))) }
