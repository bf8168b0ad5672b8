package handler

// Reports of an execution after another one took the cluster or its status.

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

func unchangedPlan(fence int64) *events.PlanResult {
	return &events.PlanResult{Outcome: events.OutcomeUnchanged, SpecVersion: "v1", Accepted: true, Fence: fence, Seen: 7}
}

func gonePlan(fence int64) *events.PlanResult {
	return &events.PlanResult{Outcome: events.OutcomeDeletes, SpecVersion: "v1", Accepted: true, Fence: fence, Seen: 7}
}

func TestReportOfATakenOverCluster(t *testing.T) {
	for name, lease := range map[string]store.Lease{
		"by another execution":                   {Execution: "theirs", Fence: 8},
		"by another execution, which is over":    {Fence: 8},
		"by itself, later":                       {Execution: "mine", Fence: 8},
		"by another with a number that it knows": {Execution: "theirs", Fence: 7},
	} {
		t.Run("changes nothing when it was taken "+name, func(t *testing.T) {
			for _, plan := range []*events.PlanResult{unchangedPlan(7), gonePlan(7)} {
				r := &reportFixture{lease: lease}
				result, err := r.report(t, plan)
				require.NoError(t, err)
				require.Empty(t, r.done)
				require.False(t, result.Again)
				require.Equal(t, plan.Outcome != events.OutcomeDeletes, result.Failed)
				require.Contains(t, result.Reason, "the lease of demo (7) was taken over")
			}
		})
	}
	t.Run("changes nothing after it gave the lease up", func(t *testing.T) {
		r := &reportFixture{lease: store.Lease{Fence: 7}}
		result, err := r.report(t, unchangedPlan(7))
		require.NoError(t, err)
		require.Empty(t, r.done)
		require.False(t, result.Failed)
	})
	t.Run("fails when the lease cannot be read", func(t *testing.T) {
		r := &reportFixture{failing: map[string]error{"lease": errors.New("throttled")}}
		_, err := r.report(t, unchangedPlan(7))
		require.ErrorIs(t, err, r.failing["lease"])
		require.Empty(t, r.done)
	})
}

func TestReportOverALaterStatus(t *testing.T) {
	mine := store.Lease{Execution: "mine", Fence: 7}
	for name, c := range map[string]struct {
		fence int64
		phase status.Phase
	}{
		"writes over its own":         {7, status.Ready},
		"writes over an earlier one":  {6, status.Ready},
		"leaves that of a later hand": {8, status.Converging},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reportFixture{lease: mine, status: status.Status{Phase: status.Converging, Fence: c.fence, Execution: "theirs"}}
			_, err := r.report(t, unchangedPlan(7))
			require.NoError(t, err)
			require.Equal(t, c.phase, r.status.Phase)
			require.Equal(t, []string{"status", "release mine"}, r.done, "the lease is released last")
		})
	}
	t.Run("leaves what another execution converges when it could not plan", func(t *testing.T) {
		for _, phase := range []status.Phase{status.Converging, status.Upgrading, status.Deleting} {
			for execution, left := range map[string]bool{"theirs": true, "mine": false} {
				r := &reportFixture{status: status.Status{Phase: phase, Execution: execution, PlannedVersion: "v1"}}
				_, err := r.report(t, nil)
				require.NoError(t, err)
				require.Equal(t, left, r.status.Phase == phase, "%s of %s: %s", phase, execution, r.status.Phase)
			}
		}
	})
	t.Run("records that planning failed if no execution converges", func(t *testing.T) {
		r := &reportFixture{status: status.Status{Phase: status.Ready, Execution: "theirs", PlannedVersion: "v1"}}
		_, err := r.report(t, nil)
		require.NoError(t, err)
		require.Equal(t, status.Failed, r.status.Phase)
		require.Equal(t, "mine", r.status.Execution)
	})
	t.Run("keeps the lease when the status cannot be written", func(t *testing.T) {
		r := &reportFixture{lease: mine, failing: map[string]error{"status": errors.New("throttled")}}
		_, err := r.report(t, unchangedPlan(7))
		require.ErrorIs(t, err, r.failing["status"])
		require.Equal(t, []string{"status"}, r.done)
	})
}

// The report deletes the records of pending work before it writes the status. If it is aborted, it is repeated.
func TestReportOfADeletedCluster(t *testing.T) {
	mine := store.Lease{Execution: "mine", Fence: 7}
	t.Run("forgets first", func(t *testing.T) {
		r := &reportFixture{lease: mine}
		_, err := r.report(t, gonePlan(7))
		require.NoError(t, err)
		require.Equal(t, []string{"forget", "status", "release mine"}, r.done)
		require.Equal(t, status.Deleted, r.status.Phase)
	})
	t.Run("forgets nothing without the lease", func(t *testing.T) {
		r := &reportFixture{}
		plan := gonePlan(0)
		plan.Outcome = events.OutcomeGone
		_, err := r.report(t, plan)
		require.NoError(t, err)
		require.NotContains(t, r.done, "forget", "another cluster of the name may be in progress")
	})
	t.Run("says nothing when that fails", func(t *testing.T) {
		r := &reportFixture{lease: mine, failing: map[string]error{"forget": errors.New("throttled")}}
		_, err := r.report(t, gonePlan(7))
		require.ErrorIs(t, err, r.failing["forget"])
		require.Equal(t, []string{"forget"}, r.done)
	})
}

func TestReportThatTheSpecCountsAgain(t *testing.T) {
	served := unchangedPlan(0)
	served.OverrideCleared = 3
	record := func() *upgrade.Record { return &upgrade.Record{Number: 3, Overridden: "r1", State: upgrade.Done} }
	t.Run("writes the record unchanged", func(t *testing.T) {
		r := &reportFixture{record: record()}
		_, err := r.report(t, served)
		require.NoError(t, err)
		require.Equal(t, []string{`record "" etag`, "status", "release mine"}, r.done)
	})
	t.Run("leaves the record to another upgrade", func(t *testing.T) {
		r := &reportFixture{record: record()}
		r.record.Number = 4
		_, err := r.report(t, served)
		require.NoError(t, err)
		require.Equal(t, []string{"status", "release mine"}, r.done)
		r = &reportFixture{record: record(), conflicts: 1, other: &upgrade.Record{Number: 4, State: upgrade.Running}}
		_, err = r.report(t, served)
		require.NoError(t, err, "an upgrade began between reading and writing")
		require.Equal(t, []string{`record "" etag`, "status", "release mine"}, r.done)
	})
	t.Run("fails when the record cannot be written", func(t *testing.T) {
		r := &reportFixture{record: record(), failing: map[string]error{`record "" etag`: errors.New("throttled")}}
		_, err := r.report(t, served)
		require.Error(t, err)
		require.NotContains(t, r.done, "status")
	})
}
