package handler

// Whose lease it is, what the result says, and what is written to the status, with a fake planner.

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/status"
)

var errThrottled = errors.New("throttled")

// changes lets the planner find a change of the network.
func (c *cluster) changes() {
	c.outcome.Plan.Changes = []plan.Change{{
		Stack: names.Network, StackName: "drover-demo-network", Operation: plan.Update, Reasons: []status.Reason{{Field: "spec.network"}},
	}}
}

func TestResult(t *testing.T) {
	t.Run("is Unchanged without the lease when nothing differs", func(t *testing.T) {
		c := newCluster(t)
		c.lease("")
		c.outcome.Rejected, c.outcome.OverrideCleared, c.outcome.Upgrade = &events.Rejection{Message: "no"}, 2, &events.PlannedUpgrade{}
		result, err := c.handle(t)
		require.NoError(t, err)
		require.Equal(t, events.PlanResult{
			Cluster: "demo", Outcome: events.OutcomeUnchanged, SpecVersion: "v1", Accepted: true, Rejected: &events.Rejection{Message: "no"},
			Seen: 4, OverrideCleared: 2, Upgrade: &events.PlannedUpgrade{}, Stages: plan.Plan{}.Stages(),
		}, result)
		require.Empty(t, c.holder(t))
		require.Zero(t, c.persisted)
		require.EqualValues(t, 4, c.status(t).Fence)
	})
	t.Run("is Changes under the lease when something differs", func(t *testing.T) {
		c := newCluster(t)
		c.lease("")
		c.changes()
		result, err := c.handle(t)
		require.NoError(t, err)
		require.Equal(t, events.PlanResult{
			Cluster: "demo", Outcome: events.OutcomeChanges, SpecVersion: "v1", Accepted: true, Fence: 5, Seen: 5, PlanKey: "plans/x",
			Stages: c.outcome.Plan.Stages(),
		}, result)
		require.Equal(t, "mine", c.holder(t))
		require.Equal(t, status.Converging, c.status(t).Phase)
		require.EqualValues(t, 5, c.status(t).Fence)
	})
	t.Run("is Stopped when the planner stops", func(t *testing.T) {
		c := newCluster(t)
		c.failing["plan"] = &planner.Stop{Reason: status.ReasonPaused, Message: "paused"}
		result, err := c.handle(t)
		require.NoError(t, err)
		require.Equal(t, []any{events.OutcomeStopped, status.ReasonPaused, "paused"}, []any{result.Outcome, result.Reason, result.Message})
	})
	t.Run("knows only clusters of an execution", func(t *testing.T) {
		c := newCluster(t)
		_, err := c.handle(t)
		require.NoError(t, err)
		h := &Handler{Planner: c, State: c.state, Executions: c, Now: time.Now}
		_, err = h.Handle(t.Context(), events.PlanRequest{Cluster: "demo"})
		require.NoError(t, err)
		require.Equal(t, []bool{true, false}, []bool{c.requests[0].StacksOfStatus, c.requests[1].StacksOfStatus})
	})
	for name, test := range map[string]struct {
		given  func(*cluster)
		held   string
		writes int
	}{
		"fails when the lease cannot be read": {func(c *cluster) { c.refuse("Get", names.Lease("demo")) }, "", 0},
		"fails when the holder's execution cannot be read": {func(c *cluster) {
			c.lease("theirs")
			c.failing["running"] = errThrottled
		}, "theirs", 0},
		"fails when planning fails":             {func(c *cluster) { c.failing["plan"] = errThrottled }, "", 0},
		"fails when the lease cannot be taken":  {func(c *cluster) { c.refuse("Put", names.Lease("demo")) }, "", 0},
		"fails when the plan cannot be written": {func(c *cluster) { c.failing["persist"] = errThrottled }, "mine", 1},
		"fails when the status cannot be written": {
			func(c *cluster) { c.refuse("Put", names.Status("demo")) }, "mine", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.changes()
			test.given(c)
			_, err := c.handle(t)
			require.Error(t, err)
			c.bucket.OnCall = nil
			require.Equal(t, test.held, c.holder(t))
			require.Equal(t, test.writes, c.persisted)
			require.NotContains(t, c.bucket.Keys(), names.Status("demo"))
		})
	}
}

func TestQueuedUpgrade(t *testing.T) {
	at := time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	busy := func(t *testing.T) *cluster {
		c := newCluster(t)
		c.lease("theirs")
		c.running = true
		c.queued = &planner.QueuedUpgrade{RecheckAt: at, Write: func(s *status.Status) { s.Message = "queued" }}
		return c
	}
	t.Run("is recorded and scheduled while another execution runs", func(t *testing.T) {
		c := busy(t)
		result, err := c.handle(t)
		require.NoError(t, err)
		require.Equal(t, events.OutcomeBusy, result.Outcome)
		require.Empty(t, c.requests)
		require.Equal(t, "queued", c.status(t).Message)
		require.Contains(t, c.bucket.Keys(), names.Due(at, "demo"))
	})
	t.Run("is not scheduled when no time is known", func(t *testing.T) {
		c := busy(t)
		c.queued.RecheckAt = time.Time{}
		_, err := c.handle(t)
		require.NoError(t, err)
		require.Equal(t, "queued", c.status(t).Message)
		require.Equal(t, []string{names.Lease("demo"), names.Status("demo")}, c.bucket.Keys())
	})
	t.Run("is not recorded when there is none", func(t *testing.T) {
		c := busy(t)
		c.queued = nil
		_, err := c.handle(t)
		require.NoError(t, err)
		require.Equal(t, []string{names.Lease("demo")}, c.bucket.Keys())
	})
	t.Run("is not recorded when it cannot be read", func(t *testing.T) {
		c := busy(t)
		c.failing["queued"] = errThrottled
		_, err := c.handle(t)
		require.ErrorIs(t, err, errThrottled)
		require.Equal(t, []string{names.Lease("demo")}, c.bucket.Keys())
	})
	t.Run("is not recorded when it cannot be scheduled", func(t *testing.T) {
		c := busy(t)
		c.refuse("Put", names.Due(at, "demo"))
		_, err := c.handle(t)
		require.Error(t, err)
		require.Equal(t, []string{names.Lease("demo")}, c.bucket.Keys())
	})
}

func TestDeletionOfCluster(t *testing.T) {
	absent := func(t *testing.T) *cluster {
		c := newCluster(t)
		c.failing["plan"] = planner.ErrAbsent
		c.deletion = planner.Deletion{
			Plan: plan.Plan{Changes: []plan.Change{{Stack: "pool-a", Operation: plan.Delete, Reasons: []status.Reason{{Field: "spec"}}}}},
			Next: events.Deletion{Stacks: []string{"pool-a"}, Leftovers: true}, Deployed: deployedAll("false"),
		}
		return c
	}
	t.Run("plans the next step under the lease", func(t *testing.T) {
		c := absent(t)
		result, err := c.handle(t)
		require.NoError(t, err)
		require.Equal(t, events.PlanResult{
			Cluster: "demo", Outcome: events.OutcomeDeletes, Fence: 1, Seen: 1, PlanKey: "plans/x", Deletion: &c.deletion.Next,
			Stages: plan.Plan{}.Stages(),
		}, result)
		require.Equal(t, "mine", c.holder(t))
		s := c.status(t)
		require.Equal(t, status.Deleting, s.Phase)
		require.Equal(t, "https://x", s.Endpoint)
		require.Contains(t, s.Message, "stacks left: 3; now what Kubernetes created in the account, pool-a")
		require.Equal(t, []status.Change{{Stack: "pool-a", Operation: "Delete", Reasons: []status.Reason{{Field: "spec"}}}}, s.Plan)
	})
	t.Run("names no leftovers when stacks are next", func(t *testing.T) {
		require.Contains(t, progress(nil, events.Deletion{Stacks: []string{"pool-a", "pool-b"}}), "stacks left: 0; now pool-a, pool-b")
	})
	for name, given := range map[string]func(*cluster){
		"is neither planned nor written when the lease cannot be taken": func(c *cluster) { c.refuse("Put", names.Lease("demo")) },
		"is not written when planning fails":                            func(c *cluster) { c.failing["plan deletion"] = errThrottled },
		"is not written when the plan cannot be persisted":              func(c *cluster) { c.failing["persist"] = errThrottled },
		"is refused only when the refusal can be written": func(c *cluster) {
			c.deletion.Protected = &planner.Stop{Reason: status.ReasonDeletionProtected}
			c.refuse("Put", names.Status("demo"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := absent(t)
			given(c)
			_, err := c.handle(t)
			require.Error(t, err)
			require.NotContains(t, c.bucket.Keys(), names.Status("demo"))
		})
	}
	t.Run("ends when the cluster is deleted or unknown", func(t *testing.T) {
		for outcome, deletion := range map[events.Outcome]planner.Deletion{
			events.OutcomeGone: {Done: true}, events.OutcomeUnknown: {Unknown: true},
		} {
			c := absent(t)
			c.deletion = deletion
			result, err := c.handle(t)
			require.NoError(t, err)
			require.Equal(t, outcome, result.Outcome)
			require.Empty(t, c.bucket.Keys())
		}
	})
}
