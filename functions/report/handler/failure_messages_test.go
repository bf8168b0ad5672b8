package handler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
)

// Views print a condition as "reason: message".
func TestFailureMessage(t *testing.T) {
	for name, c := range map[string]struct {
		in   events.ReportRequest
		want string
	}{
		"does not repeat the reason": {
			events.ReportRequest{Error: "StackFailed", Cause: `{"cause":"stack a is ROLLBACK_COMPLETE"}`}, "stack a is ROLLBACK_COMPLETE",
		},
		"is the reason when nothing else is known": {events.ReportRequest{Error: "States.Timeout"}, "States.Timeout"},
		"names each further failure that is another kind": {
			events.ReportRequest{Results: []events.ChangeResult{{Error: "StackFailed", Cause: "one"}, {Error: "NodeFailed", Cause: "two"}}},
			"one\nNodeFailed: two",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(c.in)
			require.Equal(t, c.want, v.Condition.Message)
		})
	}
}
