package handler

// The conditions of planning, one by one: whose lease it is, which stacks and times count, and what an earlier status keeps.

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

func TestLeaseOfAPlan(t *testing.T) {
	for name, test := range map[string]struct {
		lease   store.Lease
		running bool
		outcome events.Outcome
		fence   int64
		rolls   []string
	}{
		"is taken when it is free": {
			lease: store.Lease{Fence: 4}, outcome: events.OutcomeChanges, fence: 5, rolls: []string{"a"},
		},
		"is taken when it is free, without a check": {
			lease: store.Lease{Fence: 4}, running: true, outcome: events.OutcomeChanges, fence: 5, rolls: []string{"a"},
		},
		"is taken from an execution that is over": {
			lease: store.Lease{Execution: "theirs", Fence: 4}, outcome: events.OutcomeChanges, fence: 5, rolls: []string{"a"},
		},
		"stays with an execution that runs": {
			lease: store.Lease{Execution: "theirs", Fence: 4}, running: true, outcome: events.OutcomeBusy, rolls: []string{"a"},
		},
		"is its own when the call is repeated": {
			lease: store.Lease{Execution: "mine", Fence: 4}, running: true, outcome: events.OutcomeChanges, fence: 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := withSpec(t)
			s.lease, s.running = test.lease, test.running
			result, err := s.plan(t, "a")
			require.NoError(t, err)
			require.Equal(t, test.outcome, result.Outcome, result.Message)
			require.Equal(t, test.fence, result.Fence)
			require.Equal(t, test.rolls, s.rolls, "a repeated call recorded its rolls before")
			if test.outcome == events.OutcomeBusy {
				require.Zero(t, s.acquired)
				require.Equal(t, []time.Time{planTime.Add(-time.Minute)}, s.dues)
			}
		})
	}
	t.Run("is not taken when a roll cannot be recorded", func(t *testing.T) {
		for _, running := range []bool{false, true} {
			s := withSpec(t)
			s.lease, s.running, s.err["rolls"] = store.Lease{Execution: "theirs"}, running, errors.New("throttled")
			_, err := s.plan(t, "a")
			require.ErrorIs(t, err, s.err["rolls"])
			require.Zero(t, s.acquired)
			require.Empty(t, s.dues)
		}
	})
	t.Run("is taken again when another execution was quicker", func(t *testing.T) {
		s := withSpec(t)
		s.conflicts = maxAttempts - 1
		result, err := s.plan(t)
		require.NoError(t, err)
		require.Equal(t, events.OutcomeChanges, result.Outcome)
		s.conflicts = maxAttempts
		_, err = s.plan(t)
		require.ErrorContains(t, err, "conflicted with other executions")
	})
}

func TestTimesToPlanAgain(t *testing.T) {
	s := withSpec(t)
	_, err := s.plan(t)
	require.NoError(t, err)
	require.Equal(t, []time.Time{time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}, s.dues)
	s = withSpec(t)
	s.err["due"] = errors.New("throttled")
	_, err = s.plan(t)
	require.ErrorIs(t, err, s.err["due"])
	require.Zero(t, s.acquired, "the call changes nothing while a time would be forgotten")
}

func TestPlanThatCannotBeRendered(t *testing.T) {
	s := withSpec(t)
	s.cell.Partition = "{{resolve:ssm:x}}" // which CloudFormation would replace
	result, err := s.plan(t)
	require.NoError(t, err)
	require.Equal(t, []any{events.OutcomeStopped, status.ReasonSpecInvalid}, []any{result.Outcome, result.Reason})
	require.Contains(t, result.Message, "CloudFormation would take {{resolve: for a reference")
	require.Zero(t, s.acquired)
	require.Empty(t, s.kept)
}

func TestPlanIsPersistedFirst(t *testing.T) {
	s := withSpec(t)
	s.err["keep"] = errors.New("throttled")
	_, err := s.plan(t)
	require.ErrorIs(t, err, s.err["keep"])
	require.Empty(t, s.status.Plan)
}
