package status

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var midday = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func TestStackEvents(t *testing.T) {
	at := func(seconds float64) time.Time { return midday.Add(time.Duration(seconds * float64(time.Second))) }
	type row struct {
		status string
		at     time.Time
	}
	for name, test := range map[string]struct {
		known row
		event StackEvent
		want  string
	}{
		"a change is recorded": {
			row{"UPDATE_COMPLETE", at(0)}, StackEvent{Status: "UPDATE_IN_PROGRESS", At: at(9)}, "UPDATE_IN_PROGRESS",
		},
		"an older event is ignored": {
			row{"UPDATE_COMPLETE", at(9)}, StackEvent{Status: "UPDATE_IN_PROGRESS", At: at(0)}, "UPDATE_COMPLETE",
		},
		"an event without a time is ignored": {
			row{"UPDATE_COMPLETE", at(9)}, StackEvent{Status: "UPDATE_IN_PROGRESS"}, "UPDATE_COMPLETE",
		},
		"the end wins within a second": {
			row{"UPDATE_IN_PROGRESS", at(1.7)}, StackEvent{Status: "UPDATE_COMPLETE", At: at(1)}, "UPDATE_COMPLETE",
		},
		"progress loses within a second": {
			row{"UPDATE_COMPLETE", at(1.7)}, StackEvent{Status: "UPDATE_IN_PROGRESS", At: at(1)}, "UPDATE_COMPLETE",
		},
		"later progress wins within a second": {
			row{"UPDATE_IN_PROGRESS", at(1)}, StackEvent{Status: "UPDATE_ROLLBACK_IN_PROGRESS", At: at(1)}, "UPDATE_ROLLBACK_IN_PROGRESS",
		},
		"earlier progress loses within a second": {
			row{"UPDATE_ROLLBACK_IN_PROGRESS", at(1)}, StackEvent{Status: "UPDATE_IN_PROGRESS", At: at(1)}, "UPDATE_ROLLBACK_IN_PROGRESS",
		},
		"an earlier end loses within a second": {
			row{"UPDATE_COMPLETE", at(1.7)}, StackEvent{Status: "CREATE_COMPLETE", At: at(1)}, "UPDATE_COMPLETE",
		},
		"an external end wins within a second": {
			row{"UPDATE_COMPLETE", at(1.7)}, StackEvent{Status: "DELETE_COMPLETE", At: at(1), External: true}, "DELETE_COMPLETE",
		},
		"a failure is recorded with AWS's reason": {
			row{"UPDATE_IN_PROGRESS", at(1)}, StackEvent{Status: "DELETE_FAILED", At: at(2), Reason: "why"}, "DELETE_FAILED",
		},
		"an event of an unknown stack is ignored": {row{}, StackEvent{Status: "CREATE_IN_PROGRESS", At: at(1)}, ""},
		"a planned stack appears with its first event": {
			row{"planned", at(0)}, StackEvent{Status: "CREATE_IN_PROGRESS", At: at(1)}, "CREATE_IN_PROGRESS",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := Status{Phase: Converging}
			switch test.known.status {
			case "":
			case "planned":
				s.Plan = []Change{{Stack: "pool-a"}}
			default:
				s.Stacks = []Stack{{Name: "pool-a", Status: test.known.status, ReportedAt: test.known.at, Delay: &Delay{Message: "m"}}}
			}
			test.event.Stack = "pool-a"
			before := test.known.status
			require.Equal(t, test.want != before && test.want != "", s.RecordStack(test.event))
			if test.want == "" {
				require.Empty(t, s.Stacks)
				return
			}
			require.Equal(t, test.want, s.Stacks[0].Status)
			require.Equal(t, test.event.Reason, s.Stacks[0].Reason)
			require.Equal(t, before != "planned", s.Stacks[0].Delay != nil)
			require.False(t, s.RecordStack(test.event), "twice is once")
		})
	}
}

func TestDeletedClusterIgnoresStackEvents(t *testing.T) {
	s := Status{Phase: Deleted, Plan: []Change{{Stack: "pool-a"}}}
	require.False(t, s.RecordStack(StackEvent{Stack: "pool-a", Status: "CREATE_COMPLETE", At: midday}))
	require.Empty(t, s.Stacks)
}

// A plan that read the stacks before an event must not overwrite the event.
func TestObserveKeepsNewerEvents(t *testing.T) {
	s := Status{Stacks: []Stack{{Name: "pool-a", Status: "DELETE_IN_PROGRESS", ReportedAt: midday}}}
	s.Observe([]Stack{{Name: "pool-a", Status: "UPDATE_COMPLETE"}}, midday.Add(-time.Second), midday.Add(time.Second))
	require.Equal(t, "DELETE_IN_PROGRESS", s.Stacks[0].Status)
	s.Observe([]Stack{{Name: "pool-a", Status: "DELETE_FAILED"}}, midday.Add(time.Second), midday.Add(2*time.Second))
	require.Equal(t, "DELETE_FAILED", s.Stacks[0].Status)
	require.Equal(t, midday.Add(time.Second), s.Stacks[0].ReportedAt)
}

func TestExternalChange(t *testing.T) {
	deleted := StackEvent{Stack: "addons", Status: "DELETE_COMPLETE", At: midday, External: true}
	updated := StackEvent{Stack: "addons", Status: "UPDATE_COMPLETE", At: midday, External: true}
	paused := []Condition{{Type: Converged, Status: "False", Reason: ReasonPaused}}
	for name, test := range map[string]struct {
		status Status
		event  StackEvent
		want   string
	}{
		"a deleted stack is missing": {Status{Phase: Ready}, deleted, "stack addons is missing"},
		"an updated stack must be audited": {
			Status{Phase: Ready}, updated, "stack addons: an operation outside drover ended with UPDATE_COMPLETE",
		},
		"a failed cluster records only missing stacks":    {Status{Phase: Failed}, updated, ""},
		"a missing stack of a failed cluster is recorded": {Status{Phase: Failed}, deleted, "stack addons is missing"},
		"a converge reads it anyway":                      {Status{Phase: Converging}, deleted, ""},
		"a paused cluster records nothing":                {Status{Phase: Stopped, Conditions: paused}, deleted, ""},
		"earlier findings stay": {
			Status{Phase: Ready, Conditions: []Condition{{Type: InSync, Status: "False", Message: "x"}}}, deleted, "x\nstack addons is missing",
		},
		"an earlier finding is not repeated": {
			Status{Phase: Ready, Conditions: []Condition{{Type: InSync, Status: "False", Message: "stack addons is missing"}}}, deleted,
			"stack addons is missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.status
			s.ExternalChange(test.event, midday)
			s.ExternalChange(test.event, midday)
			c := s.Condition(InSync)
			if test.want == "" {
				require.Nil(t, c)
				return
			}
			require.True(t, strings.HasPrefix(c.Message, test.want), c.Message)
			require.Equal(t, []string{"False", ReasonDrifted}, []string{c.Status, c.Reason})
			s.ClearDrift(midday)
			require.NotContains(t, s.Condition(InSync).Message, "addons", "a plan without changes ends it")
		})
	}
}
