package handler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/groups"
)

// pool is a group with an instance in service and others that leave, each until some time.
type pool struct {
	state   string
	leaving map[string]time.Time
	signals []time.Time
}

func (p *pool) State(context.Context, string) (string, error) { return p.state, nil }

func (p *pool) Leaving(context.Context, string) (ids []string, err error) {
	for id, until := range p.leaving {
		if time.Now().Before(until) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (*pool) Complete(context.Context, events.Lifecycle, groups.Result) (bool, error) {
	panic("an instance in service waits at no hook")
}

func (p *pool) Signal(_ context.Context, stackName, resource, instance string) error {
	if stackName != "drover-demo-pool-workers" || resource != "Group" || instance != "i-new" {
		panic(stackName + resource + instance)
	}
	p.signals = append(p.signals, time.Now())
	return nil
}

// rounds calls the function as the machine does, until it has an answer.
func rounds(t *testing.T, p *pool) (last events.JoinResult, calls int) {
	h := &Handler{Groups: p, Stacks: p, Watch: 50 * time.Second, Limit: 14 * time.Minute, SignalLimit: time.Hour, Now: time.Now}
	in := events.JoinRequest{Started: time.Now(), Lifecycle: events.Lifecycle{
		AutoScalingGroupName: "drover-demo-pool-workers", LifecycleHookName: "launch", EC2InstanceID: "i-new",
		NotificationMetadata: `{"cluster":"demo","pool":"workers"}`,
	}}
	for calls = 1; ; calls++ {
		result, err := h.Handle(t.Context(), in)
		require.NoError(t, err)
		if result.Outcome != events.JoinWaiting {
			return result, calls
		}
		require.Contains(t, result.Message, "its signal waits until i-old are drained")
	}
}

func TestTheSignalWaitsForThePoolsDrains(t *testing.T) {
	tests := map[string]struct {
		state   string
		leaving time.Duration
		outcome events.JoinOutcome
		// signal is how long after the start it is sent at the latest; 0 is never.
		signal time.Duration
		calls  int
	}{
		"nobody leaves: at once":                            {groups.InService, 0, events.JoinReady, time.Millisecond, 1},
		"the hook is being completed: at once":              {groups.PendingProceed, 0, events.JoinReady, time.Millisecond, 1},
		"a drain that ends within a call":                   {groups.InService, 30 * time.Second, events.JoinReady, 35 * time.Second, 1},
		"a drain of minutes takes several calls":            {groups.InService, 4 * time.Minute, events.JoinReady, 4*time.Minute + 5*time.Second, 5},
		"a drain that nobody waits for any more: no signal": {groups.InService, 3 * time.Hour, events.JoinReady, 0, 89},
		"the instance is gone: no signal":                   {"Terminating:Wait", 0, events.JoinGone, 0, 1},
		"the instance is in no group: no signal":            {"", 0, events.JoinGone, 0, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				p := &pool{state: test.state, leaving: map[string]time.Time{"i-old": start.Add(test.leaving)}}
				result, calls := rounds(t, p)
				require.Equal(t, test.outcome, result.Outcome)
				require.Equal(t, test.calls, calls)
				if test.signal == 0 {
					require.Empty(t, p.signals)
					return
				}
				require.Len(t, p.signals, 1)
				require.WithinRange(t, p.signals[0], start.Add(test.leaving), start.Add(test.signal))
			})
		})
	}
}
