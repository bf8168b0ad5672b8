package passes

// What a sweep starts for instances at hooks.

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/pool"
)

func TestSweepStartsWorkAtHooks(t *testing.T) {
	instance := func(id, state string) pool.Instance { return pool.Instance{ID: id, State: state} }
	group := pool.Group{Name: "g", Instances: []pool.Instance{
		instance("i-1", pool.PendingWait), instance("i-2", pool.TerminatingWait), instance("i-3", pool.InService),
		instance("i-4", pool.TerminatingWait),
	}}
	hooks := map[string]events.Lifecycle{
		"g " + pool.LaunchHook: {LifecycleHookName: "launch"}, "g " + pool.TerminateHook: {LifecycleHookName: "terminate"},
	}
	for name, test := range map[string]struct {
		hooks   map[string]events.Lifecycle
		running map[string]events.Lifecycle
		failing map[string]error
		want    []string
	}{
		"of instances that leave, then of those that join": {hooks, nil, nil, []string{"work i-2", "work i-4", "work i-1"}},
		"not of those that an execution has": {
			hooks, map[string]events.Lifecycle{"m:x": {EC2InstanceID: "i-2"}}, nil, []string{"work i-4", "work i-1"},
		},
		"not without a hook":                   {nil, nil, nil, nil},
		"not when executions cannot be listed": {hooks, nil, map[string]error{"list": errThrottled}, nil},
		"not when an execution is unknown": {
			hooks, map[string]events.Lifecycle{"m:x": {}}, map[string]error{"input m:x": errThrottled}, nil,
		},
		"not when its hook cannot be read": {hooks, nil, map[string]error{"hook g": errThrottled}, nil},
		"of each, whatever fails for another": {
			hooks, nil, map[string]error{"work i-2": errThrottled}, []string{"work i-2", "work i-4", "work i-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Failing: test.failing}
			h := depsOf(s)
			h.Groups = sweeptest.Groups{Account: s, Hooks: test.hooks}
			h.DrainNode, h.JoinNode = worker{Account: s, running: test.running}, worker{Account: s, running: test.running}
			err := h.hooks().Run(t.Context(), []pool.Group{group})
			require.Equal(t, test.failing != nil, errors.Is(err, errThrottled))
			require.Equal(t, test.want, s.Calls)
		})
	}
	t.Run("abandons those that ended", func(t *testing.T) {
		s := &sweeptest.Account{}
		h := depsOf(s)
		h.Groups, h.EC2 = sweeptest.Groups{Account: s, Hooks: hooks}, sweeptest.EC2{Account: s, Dead: []string{"i-1", "i-2", "i-3"}}
		h.DrainNode, h.JoinNode = worker{Account: s}, worker{Account: s}
		require.NoError(t, h.hooks().Run(t.Context(), []pool.Group{group}))
		require.Equal(t, []string{"work i-2", "work i-4", "ABANDON launch i-1"}, s.Calls, "a drain of an ended instance completes its hook")
	})
	t.Run("when EC2 cannot be read", func(t *testing.T) {
		s := &sweeptest.Account{Failing: map[string]error{"ended": errThrottled}}
		h := depsOf(s)
		h.Groups = sweeptest.Groups{Account: s, Hooks: hooks}
		h.DrainNode, h.JoinNode = worker{Account: s}, worker{Account: s}
		require.ErrorIs(t, h.hooks().Run(t.Context(), []pool.Group{group}), errThrottled)
		require.Equal(t, []string{"work i-2", "work i-4", "work i-1"}, s.Calls)
	})
	t.Run("lists nothing when none waits", func(t *testing.T) {
		s := &sweeptest.Account{Failing: map[string]error{"list": errThrottled}}
		h := depsOf(s)
		h.DrainNode, h.JoinNode = worker{Account: s}, worker{Account: s}
		require.NoError(t, h.hooks().Run(t.Context(), []pool.Group{{Instances: []pool.Instance{instance("i-3", pool.InService)}}}))
	})
}

// worker is a machine whose executions run.
type worker struct {
	Machine
	*sweeptest.Account
	running map[string]events.Lifecycle
}

func (w worker) Running(context.Context) (all []string, err error) {
	for x := range w.running {
		all = append(all, x)
	}
	return all, w.Failing["list"]
}

func (w worker) Input(_ context.Context, x string, into any) error {
	*into.(*events.Lifecycle) = w.running[x]
	return w.Failing["input "+x]
}

func (w worker) Start(_ context.Context, _ string, input any) error {
	return w.Did("work %s", input.(events.Lifecycle).EC2InstanceID)
}
