package status

// Which stack events apply, and which fields they keep.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStackEventReplacesState(t *testing.T) {
	at := func(seconds float64) time.Time { return midday.Add(time.Duration(seconds * float64(time.Second))) }
	failed := Stack{Status: "UPDATE_FAILED", Reason: "why", Resource: "Role", ReportedAt: at(0)}
	for name, test := range map[string]struct {
		known, want Stack
		event       StackEvent
		ignored     bool
	}{
		"with its reason": {
			failed, Stack{Status: "UPDATE_COMPLETE", Since: at(2), ReportedAt: at(2)}, StackEvent{Status: "UPDATE_COMPLETE", At: at(2)}, false,
		},
		"except the reason when the status is the same": {
			failed, Stack{Status: "UPDATE_FAILED", Reason: "why", Resource: "Role", Since: at(2), ReportedAt: at(2)},
			StackEvent{Status: "UPDATE_FAILED", Reason: "other", At: at(2)}, false,
		},
		"except the reason of a failed deletion that is retried": {
			Stack{Status: "DELETE_FAILED", Reason: "why", Resource: "VPC"},
			Stack{Status: "DELETE_IN_PROGRESS", Reason: "why", Resource: "VPC", Since: at(2), ReportedAt: at(2)},
			StackEvent{Status: "DELETE_IN_PROGRESS", At: at(2)}, false,
		},
		"with the reason of a failed deletion when another operation begins": {
			Stack{Status: "DELETE_FAILED", Reason: "why", Resource: "VPC"}, Stack{Status: "UPDATE_IN_PROGRESS", Since: at(2), ReportedAt: at(2)},
			StackEvent{Status: "UPDATE_IN_PROGRESS", At: at(2)}, false,
		},
		"with the reason of an update when its deletion begins": {
			failed, Stack{Status: "DELETE_IN_PROGRESS", Since: at(2), ReportedAt: at(2)}, StackEvent{Status: "DELETE_IN_PROGRESS", At: at(2)}, false,
		},
		"with a reason only after a failure": {
			Stack{Status: "UPDATE_IN_PROGRESS"}, Stack{Status: "UPDATE_COMPLETE", Since: at(2), ReportedAt: at(2)},
			StackEvent{Status: "UPDATE_COMPLETE", Reason: "words", At: at(2)}, false,
		},
		"with the execution that started it": {
			Stack{Status: "UPDATE_IN_PROGRESS", External: true}, Stack{Status: "UPDATE_COMPLETE", Since: at(2), ReportedAt: at(2)},
			StackEvent{Status: "UPDATE_COMPLETE", At: at(2)}, false,
		},
		"outside drover": {
			Stack{Status: "UPDATE_COMPLETE"}, Stack{Status: "DELETE_COMPLETE", Since: at(2), ReportedAt: at(2), External: true},
			StackEvent{Status: "DELETE_COMPLETE", At: at(2), External: true}, false,
		},
		"not with progress that began in the second of an end": {
			Stack{Status: "UPDATE_COMPLETE", ReportedAt: at(1.7)}, Stack{Status: "UPDATE_COMPLETE", ReportedAt: at(1.7)},
			StackEvent{Status: "UPDATE_IN_PROGRESS", At: at(1), External: true}, true,
		},
		"with a cleanup in the second of the update": {
			Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: at(1)},
			Stack{Status: "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", Since: at(1), ReportedAt: at(1)},
			StackEvent{Status: "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", At: at(1)}, false,
		},
		"with a cleanup in the second of the rollback": {
			Stack{Status: "UPDATE_ROLLBACK_IN_PROGRESS", ReportedAt: at(1)},
			Stack{Status: "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", Since: at(1), ReportedAt: at(1)},
			StackEvent{Status: "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", At: at(1)}, false,
		},
		"with a creation in the second of the deletion": {
			Stack{Status: "DELETE_COMPLETE", ReportedAt: at(1)}, Stack{Status: "CREATE_IN_PROGRESS", Since: at(1), ReportedAt: at(1)},
			StackEvent{Status: "CREATE_IN_PROGRESS", At: at(1)}, false,
		},
		"not with the deletion in the second of the next creation": {
			Stack{Status: "CREATE_IN_PROGRESS", ReportedAt: at(1)}, Stack{Status: "CREATE_IN_PROGRESS", ReportedAt: at(1)},
			StackEvent{Status: "DELETE_COMPLETE", At: at(1), External: true}, true,
		},
		"not without a time, also when the stack has none": {
			Stack{Status: "UPDATE_COMPLETE"}, Stack{Status: "UPDATE_COMPLETE"}, StackEvent{Status: "DELETE_COMPLETE", External: true}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := Status{Phase: Ready, Stacks: []Stack{test.known}}
			require.Equal(t, !test.ignored, s.RecordStack(test.event))
			require.Equal(t, test.want, s.Stacks[0])
		})
	}
	t.Run("not with an event of a deleted stack whose name is planned again", func(t *testing.T) {
		s := Status{Phase: Converging, Plan: []Change{{Stack: "pool-a"}}, PlannedAt: at(2.9)}
		require.False(t, s.RecordStack(StackEvent{Stack: "pool-a", Status: "CREATE_COMPLETE", At: at(1)}))
		s.EndStack(Stack{Name: "pool-a"}, StackReport{Status: "CREATE_COMPLETE", At: at(1), Event: true})
		require.Empty(t, s.Stacks)
		require.True(t, s.RecordStack(StackEvent{Stack: "pool-a", Status: "CREATE_IN_PROGRESS", At: at(2)}), "in the second of the plan")
	})
	t.Run("not with the deletion of a stack that is only planned", func(t *testing.T) {
		s := Status{Phase: Converging, Plan: []Change{{Stack: "pool-a"}}}
		require.False(t, s.RecordStack(StackEvent{Stack: "pool-a", Status: "DELETE_COMPLETE", At: midday}))
		require.Empty(t, s.Stacks)
	})
}

func TestObserveKeepsAnEventOfTheSameSecond(t *testing.T) {
	reported := func(at time.Time) string {
		s := Status{Stacks: []Stack{{Name: "pool-a", Status: "UPDATE_COMPLETE", ReportedAt: at}}}
		s.Observe([]Stack{{Name: "pool-a", Status: "UPDATE_IN_PROGRESS"}}, midday.Add(500*time.Millisecond), midday.Add(time.Second))
		return s.Stacks[0].Status
	}
	require.Equal(t, "UPDATE_COMPLETE", reported(midday), "an event has no fractions")
	require.Equal(t, "UPDATE_IN_PROGRESS", reported(midday.Add(-time.Second)))
	require.Equal(t, "UPDATE_IN_PROGRESS", reported(midday.Add(499*time.Millisecond)), "drover's own time has fractions")
	require.Equal(t, "UPDATE_COMPLETE", reported(midday.Add(501*time.Millisecond)))
}

func TestExternalChangeIsRecordedOnce(t *testing.T) {
	deleted := StackEvent{Stack: "addons", Status: "DELETE_COMPLETE", At: midday, External: true}
	updated := StackEvent{Stack: "addons", Status: "UPDATE_COMPLETE", At: midday, External: true}
	s := Status{Phase: Ready, Conditions: []Condition{{Type: InSync, Status: "True", Message: "nothing differs"}}}
	for range 2 {
		s.ExternalChange(deleted, midday)
		require.Equal(t, []string{"stack addons is missing"}, s.Drift)
		require.Equal(t, "stack addons is missing", s.Condition(InSync).Message)
	}
	for name, test := range map[string]struct {
		phase  Phase
		reason string
		event  StackEvent
		want   bool
	}{
		"of a cluster that stopped":                    {Stopped, ReasonChangeRefused, updated, true},
		"not of one that is paused":                    {Stopped, ReasonPaused, updated, false},
		"of a cluster that is upgraded":                {Upgrading, "", deleted, true},
		"not an update of a cluster that is upgraded":  {Upgrading, "", updated, false},
		"not of a cluster that is deleted":             {Deleting, "", deleted, false},
		"of a cluster that is ready with no condition": {Ready, "", updated, true},
	} {
		s := Status{Phase: test.phase}
		if test.reason != "" {
			s.Conditions = []Condition{{Type: Converged, Status: "False", Reason: test.reason}}
		}
		s.ExternalChange(test.event, midday)
		require.Equal(t, test.want, s.Condition(InSync) != nil, name)
		require.Equal(t, test.want, len(s.Drift) == 1, name)
	}
}
