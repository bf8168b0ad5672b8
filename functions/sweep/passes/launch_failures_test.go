package passes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// launching is Auto Scaling that says why a group got no instance.
type launching struct {
	anyGroups
	why   string
	err   error
	asked []string
}

func (l *launching) LaunchFailureReason(_ context.Context, group string, _, _ time.Time) (string, error) {
	l.asked = append(l.asked, group)
	return l.why, l.err
}

func TestSweepRecordsThatAPoolGetsNoInstances(t *testing.T) {
	const pool, moving = "pool-a", "UPDATE_IN_PROGRESS"
	stack := func(is, reason string) []status.Stack {
		return []status.Stack{{Name: pool, Status: is, Reason: reason}}
	}
	for name, test := range map[string]struct {
		stack     string
		age       time.Duration
		why       string
		execution string
		before    []status.Stack
		err       error
		asks      bool
		// reason that is recorded; "" when none is.
		reason string
		writes bool
	}{
		"after a while": {
			stack: pool, age: slowChange, why: "no capacity", execution: "x", before: stack(moving, ""), asks: true, reason: "no capacity",
			writes: true,
		},
		"not before": {
			stack: pool, age: slowChange - 1, why: "no capacity", execution: "x", before: stack(moving, ""),
		},
		"not of other stacks": {
			stack: names.Addons, age: slowChange, why: "no capacity", execution: "x", before: stack(moving, ""),
		},
		"not when that cannot be read": {
			stack: pool, age: slowChange, execution: "x", before: stack(moving, ""), err: errThrottled, asks: true,
		},
		"not over another execution": {
			stack: pool, age: slowChange, why: "no capacity", execution: "y", before: stack(moving, "before"), asks: true, reason: "before",
		},
		"until it gets some": {
			stack: pool, age: slowChange, execution: "x", before: stack(moving, "before"), asks: true, writes: true,
		},
		"not when it got some": {stack: pool, age: slowChange, execution: "x", before: stack(moving, ""), asks: true},
		"not over the reason of another status": {
			stack: pool, age: slowChange, execution: "x", before: stack("UPDATE_FAILED", "before"), asks: true, reason: "before",
		},
		"not over an event after the read": {
			stack: pool, age: slowChange, why: "no capacity", execution: "x", before: []status.Stack{{
				Name: pool, Status: "UPDATE_COMPLETE", ReportedAt: noon,
			}}, asks: true,
		},
		"not over a newer status for another stack's reason": {
			stack: pool, age: slowChange, execution: "x", before: []status.Stack{{Name: pool, Status: "UPDATE_FAILED"}, {
				Name: "pool-b", Status: moving, Reason: "before",
			}},
			asks: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Recorded: status.Status{Execution: test.execution, Stacks: test.before}}
			h, l := depsOf(s), &launching{why: test.why, err: test.err}
			h.Groups = l
			s.Recorded.Stacks[0].Resource = "AutoScalingGroup"
			before := s.Recorded.Stacks[0]
			w := store.Waiter{Cluster: demo, Stack: test.stack, Execution: "x"}
			err := h.waiters().recordLaunchFailure(t.Context(), w, status.StackReport{Status: moving, At: noon}, noon.Add(-test.age))
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.asks, len(l.asked) == 1)
			if test.reason == "" {
				require.Empty(t, s.Recorded.Stacks[0].Reason)
			} else {
				require.Contains(t, s.Recorded.Stacks[0].Reason, test.reason)
			}
			require.Equal(t, test.writes, s.Recorded.Stacks[0] != before)
		})
	}
}
