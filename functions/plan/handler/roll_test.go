package handler

// Rolls that an execution requests: recorded, queued or refused.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// refuseRequest lets an earlier request be refused.
func refuseRequest(s *status.Status) {
	s.Refuse(status.ReasonRollRefused, "an earlier request", planTime)
}

func TestRequestedRoll(t *testing.T) {
	started := planTime.Add(-time.Minute)
	rolls := func(t *testing.T, c *cluster) map[string]time.Time {
		rolls, err := c.state.Rolls(t.Context(), "demo")
		require.NoError(t, err)
		return rolls
	}
	t.Run("is recorded with the time of the execution's start", func(t *testing.T) {
		c := newCluster(t)
		c.amend(t, refuseRequest)
		_, err := c.handle(t, "a")
		require.NoError(t, err)
		require.Equal(t, map[string]time.Time{"a": started}, rolls(t, c))
		require.Nil(t, c.status(t).Condition(status.RequestAccepted), "the refusal of an earlier request is removed")
	})
	t.Run("is recorded when the cluster has no status", func(t *testing.T) {
		c := newCluster(t)
		c.failing["plan"] = errThrottled
		_, err := c.handle(t, "a")
		require.ErrorIs(t, err, errThrottled)
		require.Equal(t, []string{names.RollsOf("demo")}, c.bucket.Keys())
	})
	t.Run("writes no status when no request was refused", func(t *testing.T) {
		c := newCluster(t)
		c.amend(t, func(*status.Status) {})
		c.failing["plan"] = errThrottled
		written := c.bucket.Written()
		_, err := c.handle(t, "a")
		require.ErrorIs(t, err, errThrottled)
		require.Equal(t, written+1, c.bucket.Written())
	})
	t.Run("is not requested again when the call is a retry", func(t *testing.T) {
		c := newCluster(t)
		c.lease("mine")
		_, err := c.handle(t, "a")
		require.NoError(t, err)
		require.Empty(t, c.requests[0].Roll)
		require.Empty(t, rolls(t, c))
	})
	t.Run("is part of planning otherwise", func(t *testing.T) {
		c := newCluster(t)
		_, err := c.handle(t, "a")
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, c.requests[0].Roll)
	})
	t.Run("is queued while another execution runs", func(t *testing.T) {
		c := newCluster(t)
		c.lease("theirs")
		c.running = true
		result, err := c.handle(t, "a")
		require.NoError(t, err)
		require.Equal(t, events.OutcomeBusy, result.Outcome)
		require.Equal(t, map[string]time.Time{"a": started}, rolls(t, c))
		require.Contains(t, c.bucket.Keys(), names.Due(started, "demo"))
	})
	for name, given := range map[string]func(*cluster){
		"is not queued when the spec cannot be read":     func(c *cluster) { c.failing["spec"] = errThrottled },
		"is not queued when it cannot be recorded":       func(c *cluster) { c.refuse("Put", names.RollsOf("demo")) },
		"is not queued when the refusal cannot be read":  func(c *cluster) { c.refuse("Get", names.Status("demo")) },
		"is an error when its time cannot be written":    func(c *cluster) { c.refuse("Put", names.Due(started, "demo")) },
		"is not queued when the refusal cannot be unset": func(c *cluster) { c.refuse("Put", names.Status("demo")) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.amend(t, refuseRequest)
			c.lease("theirs")
			c.running = true
			given(c)
			_, err := c.handle(t, "a")
			require.Error(t, err)
			require.NotContains(t, c.bucket.Keys(), names.Due(started, "demo"))
		})
	}
}

func TestRefusedRoll(t *testing.T) {
	t.Run("is recorded in the status", func(t *testing.T) {
		for _, running := range []bool{false, true} {
			c := newCluster(t)
			c.amend(t, func(s *status.Status) { s.Phase = status.Ready })
			c.lease("theirs")
			c.running = running
			result, err := c.handle(t, "b")
			require.NoError(t, err)
			require.Equal(t, []any{events.OutcomeRefused, status.ReasonRollRefused}, []any{result.Outcome, result.Reason})
			require.Contains(t, result.Message, "no pool b")
			condition := c.status(t).Condition(status.RequestAccepted)
			require.Equal(t, []any{status.ReasonRollRefused, result.Message}, []any{condition.Reason, condition.Message})
			require.NotContains(t, c.bucket.Keys(), names.RollsOf("demo"))
		}
	})
	t.Run("is not recorded when the cluster has no status", func(t *testing.T) {
		c := newCluster(t)
		_, err := c.handle(t, "b")
		require.NoError(t, err)
		require.Empty(t, c.bucket.Keys())
	})
	t.Run("is not recorded when the cluster is deleted", func(t *testing.T) {
		c := newCluster(t)
		c.amend(t, func(s *status.Status) { s.Phase = status.Deleted })
		_, err := c.handle(t, "b")
		require.NoError(t, err)
		require.Nil(t, c.status(t).Condition(status.RequestAccepted))
	})
	for _, operation := range []string{"Get", "Put"} {
		t.Run("fails when the status cannot be recorded: "+operation, func(t *testing.T) {
			c := newCluster(t)
			c.amend(t, func(s *status.Status) { s.Phase = status.Ready })
			c.refuse(operation, names.Status("demo"))
			_, err := c.handle(t, "b")
			require.Error(t, err)
		})
	}
}
