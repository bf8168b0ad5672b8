package handler

// A holder that lost its lease changes nothing. The lease is checked before each call that changes something.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// fenced is a fake with one stack. The lease is lost after a number of checks, or never if it is -1. done lists the changes.
type fenced struct {
	State
	Stacks
	Specs
	change  plan.Change
	now     stack.Deployed
	checks  int
	done    []string
	waiters []store.Waiter
	// deleteErr is the error of deleting the stack.
	deleteErr error
	status    status.Status
}

func (f *fenced) GetJSON(_ context.Context, _ string, v any) (string, error) {
	body, err := json.Marshal(plan.Plan{Cluster: "demo", SpecVersion: "v1", Changes: []plan.Change{f.change}})
	if err != nil {
		return "", err
	}
	return "", json.Unmarshal(body, v)
}

func (f *fenced) CheckLease(_ context.Context, cluster, execution string, fence int64) error {
	if cluster != "demo" || execution != "mine" || fence != 7 {
		return fmt.Errorf("unexpected holder: %s %s %d", cluster, execution, fence)
	}
	if f.checks == 0 {
		return &fault.LeaseLost{Cause: errors.New("taken over")}
	}
	f.checks--
	return nil
}

func (f *fenced) Get(context.Context, string, int64) (store.Object, error) {
	return store.Object{Version: "v1"}, nil
}

func (f *fenced) Describe(context.Context, string) (stack.Deployed, error) { return f.now, nil }

func (f *fenced) PutWaiter(_ context.Context, w store.Waiter) (store.Waiter, error) {
	f.waiters, f.done = append(f.waiters, w), append(f.done, "register")
	return w, nil
}

func (f *fenced) DeleteWaiter(context.Context, store.Waiter) error {
	f.done = append(f.done, "delete waiter")
	return nil
}

func (f *fenced) Protect(_ context.Context, _ string, on bool) error {
	f.done = append(f.done, fmt.Sprint("protect ", on))
	return nil
}

func (f *fenced) Delete(context.Context, string, string) error {
	f.done = append(f.done, "delete")
	return f.deleteErr
}

func (f *fenced) ContinueRollback(context.Context, string, string) error {
	f.done = append(f.done, "continue rollback")
	return nil
}

func (f *fenced) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	change(&f.status)
	f.done = append(f.done, "status")
	return nil
}

func (f *fenced) handle(t *testing.T) error {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	h := &Handler{Specs: f, State: f, Stacks: f}
	_, err := h.Handle(t.Context(), events.ChangeRequest{
		Cluster: "demo", Execution: "mine", Fence: 7, PlanKey: "plans/x", Stack: "addons", TaskToken: "token",
	})
	return err
}

// deletes returns a fake whose change deletes an existing stack.
func deletes(checks int) *fenced {
	return &fenced{
		checks: checks, change: plan.Change{Stack: "addons", StackName: "drover-demo-addons", Operation: plan.Delete},
		now: stack.Deployed{ID: "stack-1", Status: "CREATE_COMPLETE"},
	}
}

func TestFence(t *testing.T) {
	t.Run("lets a holder delete after registering its waiter", func(t *testing.T) {
		f := deletes(-1)
		require.NoError(t, f.handle(t))
		require.Equal(t, []string{"register", "delete"}, f.done)
		require.Len(t, f.waiters, 1)
		w := f.waiters[0]
		require.EqualValues(t, 7, w.Fence, "a later holder's waiter replaces this one, never the reverse")
		require.Equal(t, "mine", w.Execution)
		require.Equal(t, "token", w.TaskToken)
		require.NotEmpty(t, w.ClientRequestToken)
	})
	t.Run("stops a step at its first call", func(t *testing.T) {
		f := deletes(0)
		require.Equal(t, "LeaseLost", fault.NameOf(f.handle(t)))
		require.Empty(t, f.done)
	})
	t.Run("stops a step just before it registers its waiter", func(t *testing.T) {
		f := deletes(1)
		require.Equal(t, "LeaseLost", fault.NameOf(f.handle(t)))
		require.Subset(t, []string{"delete waiter"}, f.done, "it has registered no waiter")
	})
	t.Run("stops a step that waits for an operation in flight", func(t *testing.T) {
		f := deletes(1)
		f.now.Status = "UPDATE_IN_PROGRESS"
		require.Equal(t, "LeaseLost", fault.NameOf(f.handle(t)))
		require.Subset(t, []string{"delete waiter"}, f.done)
	})
	t.Run("stops a step before it changes termination protection", func(t *testing.T) {
		f := deletes(0)
		s := &step{Handler: &Handler{
			State: f, Stacks: f,
		}, in: events.ChangeRequest{Cluster: "demo", Execution: "mine", Fence: 7}, change: f.change}
		for _, on := range []bool{true, false} {
			require.Equal(t, "LeaseLost", fault.NameOf(s.protect(t.Context(), on)))
		}
		require.Empty(t, f.done)
	})
	t.Run("stops a step before it writes the status", func(t *testing.T) {
		f := deletes(0)
		s := &step{Handler: &Handler{
			State: f, Stacks: f,
		}, in: events.ChangeRequest{Cluster: "demo", Execution: "mine", Fence: 7}, change: f.change}
		require.Equal(t, "LeaseLost", fault.NameOf(s.recordWait(t.Context(), nil)))
		require.Empty(t, f.done)
	})
	t.Run("stops a step before it continues a rollback", func(t *testing.T) {
		f := deletes(1)
		f.change.Operation, f.now.Status = plan.Update, "UPDATE_ROLLBACK_FAILED"
		require.Equal(t, "LeaseLost", fault.NameOf(f.handle(t)))
		require.NotContains(t, f.done, "continue rollback")
	})
}

func TestDeletionOfProtectedStack(t *testing.T) {
	f := deletes(-1)
	f.now.TerminationProtection = true
	err := f.handle(t)
	require.Equal(t, "ChangeRefused", fault.NameOf(err))
	require.NotContains(t, f.done, "delete")
	require.NotContains(t, f.done, "protect false", "an operator protected it after planning")
}

func TestRefusedDeletion(t *testing.T) {
	f := deletes(-1)
	f.deleteErr = errors.New("AccessDenied")
	require.ErrorIs(t, f.handle(t), f.deleteErr)
	require.Equal(t, []string{"register", "delete", "delete waiter"}, f.done, "no waiter stays for an operation that did not start")
}
