package handler

// How a task repairs a stack: it continues a failed rollback, and recreates what was deleted outside drover.

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

func TestRepair(t *testing.T) {
	repairs := func(t *testing.T, tags map[string]string) *account {
		a := updates(t)
		a.change.Tags = map[string]string{names.TagChecksum: "new"}
		a.change.RepairKey = "templates/repair"
		a.stacks[a.change.StackName] = stack.Deployed{Status: "UPDATE_COMPLETE", Tags: tags}
		return a
	}
	t.Run("first removes what was deleted outside drover", func(t *testing.T) {
		for _, checksum := range []string{"new", "old"} {
			a := repairs(t, map[string]string{names.TagChecksum: checksum})
			require.NoError(t, a.handle(t))
			require.Equal(t, []string{"prepare", "register", "execute"}, a.calls)
			require.Equal(t, "https://state/templates/repair", a.sets[0].template)
			require.Equal(t, names.ChecksumRepair, a.sets[0].tags[names.TagChecksum])
			require.True(t, a.waiter(t).Again)
			// CloudFormation would take an update with the token of this execution's earlier update for that one.
			require.True(t, strings.HasPrefix(a.sets[0].token, "repair-update-"), a.sets[0].token)
			require.Equal(t, a.sets[0].token, a.waiter(t).ClientRequestToken)
		}
	})
	t.Run("adds it again, with another token", func(t *testing.T) {
		a := repairs(t, map[string]string{names.TagChecksum: names.ChecksumRepair})
		require.NoError(t, a.handle(t))
		require.Equal(t, "https://state/templates/x", a.sets[0].template)
		require.Equal(t, "new", a.sets[0].tags[names.TagChecksum])
		require.Equal(t, a.token(), a.sets[0].tags[names.TagSettled])
		require.True(t, strings.HasPrefix(a.sets[0].token, "then-update-"), a.sets[0].token)
		require.False(t, a.waiter(t).Again)
	})
	t.Run("ends when it is called again after both", func(t *testing.T) {
		a := repairs(t, nil)
		a.stacks[a.change.StackName] = stack.Deployed{
			Status: "UPDATE_COMPLETE", Tags: map[string]string{names.TagChecksum: "new", names.TagSettled: a.token()},
		}
		require.NoError(t, a.handle(t))
		require.Empty(t, a.sets)
		require.Equal(t, "UPDATE_COMPLETE", a.results[0].Status)
	})
}

func TestContinuedRollback(t *testing.T) {
	failed := func(t *testing.T) *account {
		a := accountWithPool(t, 2)
		a.stacks[a.change.StackName] = deployedFor(2)
		a.deploy("UPDATE_ROLLBACK_FAILED")
		return a
	}
	t.Run("has a waiter that wants the rollback complete", func(t *testing.T) {
		a := failed(t)
		require.NoError(t, a.handle(t))
		require.Equal(t, []string{"register", "continue rollback"}, a.calls)
		w := a.waiter(t)
		require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", w.Wants)
		require.Equal(t, "rollback-"+a.token(), w.ClientRequestToken)
		require.True(t, w.Again)
	})
	t.Run("skips a relay that was deleted outside drover", func(t *testing.T) {
		for failed, want := range map[string][]string{names.RelayResource: {names.RelayResource}, "Cluster": nil} {
			a := updates(t)
			a.change.RepairKey, a.updateFailed = "templates/repair", failed
			a.deploy("UPDATE_ROLLBACK_FAILED")
			require.NoError(t, a.handle(t))
			require.Equal(t, []string{"register", "continue rollback"}, a.calls)
			require.Equal(t, want, a.skipped)
		}
	})
	t.Run("waits while nodes of the pool are being drained", func(t *testing.T) {
		a := failed(t)
		a.draining()
		a.change.Pace.DrainSeconds = 3600
		require.NoError(t, a.handle(t))
		require.Equal(t, rollbackMessage+" when i-1 has been drained", a.status(t).Delay.Message)
		require.Equal(t, []string{"drains", "status", "resume"}, a.calls)
	})
	t.Run("fails when drains cannot be read", func(t *testing.T) {
		a := failed(t)
		a.draining()
		a.failing["drains"] = errThrottled
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.NotContains(t, a.calls, "continue rollback")
	})
	t.Run("fails when the group cannot be read", func(t *testing.T) {
		a := failed(t)
		a.failing["group"] = errThrottled
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.NotContains(t, a.calls, "continue rollback")
	})
}
