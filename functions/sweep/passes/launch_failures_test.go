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
		"after a while":                         {pool, slowChange, "no capacity", "x", stack(moving, ""), nil, true, "no capacity", true},
		"not before":                            {pool, slowChange - 1, "no capacity", "x", stack(moving, ""), nil, false, "", false},
		"not of other stacks":                   {names.Addons, slowChange, "no capacity", "x", stack(moving, ""), nil, false, "", false},
		"not when that cannot be read":          {pool, slowChange, "", "x", stack(moving, ""), errThrottled, true, "", false},
		"not over another execution":            {pool, slowChange, "no capacity", "y", stack(moving, "before"), nil, true, "before", false},
		"until it gets some":                    {pool, slowChange, "", "x", stack(moving, "before"), nil, true, "", true},
		"not when it got some":                  {pool, slowChange, "", "x", stack(moving, ""), nil, true, "", false},
		"not over the reason of another status": {pool, slowChange, "", "x", stack("UPDATE_FAILED", "before"), nil, true, "before", false},
		"not over an event after the read": {
			pool, slowChange, "no capacity", "x", []status.Stack{{Name: pool, Status: "UPDATE_COMPLETE", ReportedAt: noon}}, nil, true, "", false,
		},
		"not over a newer status for another stack's reason": {
			pool, slowChange, "", "x", []status.Stack{{Name: pool, Status: "UPDATE_FAILED"}, {Name: "pool-b", Status: moving, Reason: "before"}},
			nil, true, "", false,
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
