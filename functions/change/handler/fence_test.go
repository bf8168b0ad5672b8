package handler

// A holder that lost its lease changes nothing. The lease is checked before each call that changes something.

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
)

// deletes returns an account whose change deletes an existing stack. The lease is lost after a number of checks, or never if it is -1.
func deletes(t *testing.T, checks int) *account {
	a := newAccount(t, plan.Change{Stack: "addons", StackName: "drover-demo-addons", Operation: plan.Delete})
	a.checks = checks
	a.deploy("CREATE_COMPLETE")
	return a
}

func TestFence(t *testing.T) {
	t.Run("lets a holder delete after registering its waiter", func(t *testing.T) {
		a := deletes(t, -1)
		require.NoError(t, a.handle(t))
		require.Equal(t, []string{"register", "delete"}, a.calls)
		require.Len(t, a.waiters(), 1)
		w := a.waiter(t)
		require.EqualValues(t, 7, w.Fence, "a later holder's waiter replaces this one, never the reverse")
		require.Equal(t, "mine", w.Execution)
		require.Equal(t, "task", w.TaskToken)
		require.NotEmpty(t, w.ClientRequestToken)
	})
	t.Run("stops a task at its first call", func(t *testing.T) {
		a := deletes(t, 0)
		require.Equal(t, "LeaseLost", fault.NameOf(a.handle(t)))
		require.Empty(t, a.calls)
	})
	t.Run("stops a task just before it registers its waiter", func(t *testing.T) {
		a := deletes(t, 1)
		require.Equal(t, "LeaseLost", fault.NameOf(a.handle(t)))
		require.Subset(t, []string{"delete waiter"}, a.calls, "it has registered no waiter")
	})
	t.Run("stops a task that waits for an operation in flight", func(t *testing.T) {
		a := deletes(t, 1)
		a.deploy("UPDATE_IN_PROGRESS")
		require.Equal(t, "LeaseLost", fault.NameOf(a.handle(t)))
		require.Subset(t, []string{"delete waiter"}, a.calls)
	})
	t.Run("stops a task before it changes termination protection", func(t *testing.T) {
		a := deletes(t, 0)
		c := a.newCall()
		for _, on := range []bool{true, false} {
			require.Equal(t, "LeaseLost", fault.NameOf(c.protect(t.Context(), on)))
		}
		require.Empty(t, a.calls)
	})
	t.Run("stops a task before it writes the status", func(t *testing.T) {
		a := deletes(t, 0)
		c := a.newCall()
		require.Equal(t, "LeaseLost", fault.NameOf(c.recordWait(t.Context(), nil)))
		require.Empty(t, a.calls)
	})
	t.Run("stops a task before it continues a rollback", func(t *testing.T) {
		a := deletes(t, 1)
		a.change.Operation = plan.Update
		a.deploy("UPDATE_ROLLBACK_FAILED")
		require.Equal(t, "LeaseLost", fault.NameOf(a.handle(t)))
		require.NotContains(t, a.calls, "continue rollback")
	})
}

func TestDeletionOfProtectedStack(t *testing.T) {
	a := deletes(t, -1)
	a.stacks[a.change.StackName] = stack.Deployed{Status: "CREATE_COMPLETE", TerminationProtection: true}
	err := a.handle(t)
	require.Equal(t, "ChangeRefused", fault.NameOf(err))
	require.NotContains(t, a.calls, "delete")
	require.NotContains(t, a.calls, "protect false", "an operator protected it after planning")
}

func TestRefusedDeletion(t *testing.T) {
	a := deletes(t, -1)
	a.failing["delete"] = errors.New("AccessDenied")
	require.ErrorIs(t, a.handle(t), a.failing["delete"])
	require.Equal(t, []string{"register", "delete", "delete waiter"}, a.calls, "no waiter stays for an operation that did not start")
}
