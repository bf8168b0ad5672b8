package status

// Reads of a stack and ends of its operations: which apply, and which fields they keep.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStackReports(t *testing.T) {
	at := func(seconds float64) time.Time { return midday.Add(time.Duration(seconds * float64(time.Second))) }
	state := func(stackStatus, reason string, seconds float64) Stack {
		return Stack{Name: "pool-a", Status: stackStatus, Reason: reason, Since: at(seconds), ReportedAt: at(seconds)}
	}
	known := state("UPDATE_COMPLETE", "before", 2)
	event := func(stackStatus string, seconds float64) StackReport {
		return StackReport{Status: stackStatus, At: at(seconds), Event: true}
	}
	read := func(stackStatus string, seconds float64) StackReport {
		return StackReport{Status: stackStatus, At: at(seconds)}
	}
	for name, test := range map[string]struct {
		report     StackReport
		phase      Phase
		set, ended Stack // the results of SetStack, for a read, and of EndStack
	}{
		"a newer read": {
			read("UPDATE_FAILED", 3), Converging, state("UPDATE_FAILED", "after", 3), state("UPDATE_FAILED", "after", 3),
		},
		"a newer event":                          {event("UPDATE_FAILED", 3), Ready, Stack{}, state("UPDATE_FAILED", "after", 3)},
		"an older read":                          {read("UPDATE_FAILED", 1), Converging, known, known},
		"a read in the same second as the event": {read("UPDATE_FAILED", 2.9), Converging, known, known},
		"an older event":                         {event("UPDATE_FAILED", 1), Converging, Stack{}, known},
		"another end in the same second": {
			event("UPDATE_FAILED", 2), Converging, Stack{}, state("UPDATE_FAILED", "after", 2),
		},
		"progress in the same second as the end": {event("UPDATE_IN_PROGRESS", 2), Converging, Stack{}, known},
		"a report without a time":                {StackReport{Status: "UPDATE_FAILED", Event: true}, Converging, Stack{}, known},
		"the same event again":                   {event("UPDATE_COMPLETE", 2), Converging, Stack{}, state("UPDATE_COMPLETE", "after", 2)},
		"the same result of a newer operation":   {event("UPDATE_COMPLETE", 3), Ready, Stack{}, state("UPDATE_COMPLETE", "after", 3)},
		"the same result, which a task waits for": {
			read("UPDATE_COMPLETE", 3), Converging, state("UPDATE_COMPLETE", "after", 2), state("UPDATE_COMPLETE", "after", 3),
		},
		"the same result, late": {
			read("UPDATE_COMPLETE", 3), Ready, state("UPDATE_COMPLETE", "after", 2), state("UPDATE_COMPLETE", "after", 2),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := Status{Phase: test.phase, Stacks: []Stack{known}}
			s.EndStack(Stack{Name: "pool-a", Reason: "after"}, test.report)
			require.Equal(t, []Stack{test.ended}, s.Stacks)
			if test.report.Event {
				return
			}
			s.Stacks = []Stack{known}
			s.SetStack(Stack{Name: "pool-a", Status: test.report.Status, Reason: "after"}, test.report.At)
			require.Equal(t, []Stack{test.set}, s.Stacks)
		})
	}
}

// A read that does not list a stack is older than the event of its creation.
func TestObserveKeepsNewerStacks(t *testing.T) {
	stacks := []Stack{
		{Name: "network", Status: "CREATE_IN_PROGRESS", ReportedAt: midday.Add(-time.Second)},
		{Name: "addons", Status: "DELETE_COMPLETE", ReportedAt: midday},
		{Name: "pool-a", Status: "CREATE_IN_PROGRESS", ReportedAt: midday, Delay: &Delay{Message: "drains"}},
	}
	s := Status{Stacks: stacks}
	s.Observe(nil, midday.Add(500*time.Millisecond), midday.Add(time.Second))
	require.Equal(t, []Stack{{Name: "pool-a", Status: "CREATE_IN_PROGRESS", ReportedAt: midday}}, s.Stacks)
}
