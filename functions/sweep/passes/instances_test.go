package passes

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
)

func TestSweepGivesBackNodes(t *testing.T) {
	node := events.DrainRequest{Cluster: demo, Node: "node-1"}
	atHook := events.DrainRequest{Lifecycle: &events.Lifecycle{EC2InstanceID: "i-1"}}
	for name, test := range map[string]struct {
		broken, drains map[string]events.DrainRequest
		failing        map[string]error
		want           []string
	}{
		"of a drain that was stopped": {map[string]events.DrainRequest{"m:x": node}, nil, nil, []string{"give back demo/node-1"}},
		"not of one that another drains": {
			map[string]events.DrainRequest{"m:x": node}, map[string]events.DrainRequest{"m:y": node}, nil, nil,
		},
		"not of one at its hook":           {map[string]events.DrainRequest{"m:x": atHook}, nil, nil, nil},
		"not of one that names no node":    {map[string]events.DrainRequest{"m:x": {Cluster: demo}}, nil, nil, nil},
		"not of one that gave a node back": {map[string]events.DrainRequest{"m:" + restorePrefix + "x": node}, nil, nil, nil},
		"not when drains cannot be listed": {map[string]events.DrainRequest{"m:x": node}, nil, map[string]error{"list": errThrottled}, nil},
		"not when a drain that runs is unknown": {
			map[string]events.DrainRequest{"m:x": node}, map[string]events.DrainRequest{"m:y": {}}, map[string]error{"input m:y": errThrottled}, nil,
		},
		"not when it is unknown itself": {map[string]events.DrainRequest{"m:x": node}, nil, map[string]error{"input m:x": errThrottled}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Aborted: test.broken, Drains: test.drains, Failing: test.failing}
			err := depsOf(s).instances().uncordon(t.Context())
			require.Equal(t, test.failing != nil, errors.Is(err, errThrottled))
			require.Equal(t, test.want, s.Calls)
		})
	}
}

func TestSweepSignalsInstances(t *testing.T) {
	group := pool.Group{Name: "g", Instances: []pool.Instance{{ID: "i-1", State: pool.InService}, {ID: "i-2", State: pool.PendingWait}}}
	hook := func(group, instance string) map[string]events.Lifecycle {
		return map[string]events.Lifecycle{"m:x": {AutoScalingGroupName: group, EC2InstanceID: instance}}
	}
	for name, test := range map[string]struct {
		joins map[string]events.Lifecycle
		since time.Time
		want  []string
	}{
		"in service whose join was stopped": {hook("g", "i-1"), noon, []string{"signal i-1"}},
		"not before they are in service":    {hook("g", "i-2"), noon, nil},
		"not of another group":              {hook("h", "i-1"), noon, nil},
		"not of a stack that does not move": {hook("g", "i-1"), time.Time{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Joins: test.joins, ChangedAt: test.since}
			require.NoError(t, depsOf(s).instances().startMissingSignals(t.Context(), group))
			require.Equal(t, test.want, s.Calls)
		})
	}
	t.Run("of pools that a waiter, or their processes, say are changing", func(t *testing.T) {
		suspended := group
		suspended.SuspendedAt = map[string]time.Time{}
		for _, process := range pool.SuspendedByUpdate {
			suspended.SuspendedAt[process] = noon
		}
		for name, test := range map[string]struct {
			group    pool.Group
			changing bool
			want     []string
		}{
			"neither":   {group, false, nil},
			"waiter":    {group, true, []string{"signal i-1"}},
			"processes": {suspended, false, []string{"signal i-1"}},
		} {
			s := &sweeptest.Account{Joins: hook("g", "i-1"), ChangedAt: noon, Deployed: stack.Deployed{Status: "UPDATE_IN_PROGRESS"}}
			h := depsOf(s)
			h.DrainNode = sweeptest.Machine{Account: &sweeptest.Account{}}
			require.NoError(t, h.instances().Run(t.Context(), []pool.Group{test.group}, map[string]bool{"g": test.changing}))
			require.Equal(t, test.want, s.Calls, name)
		}
	})
}

func TestSweepResumesProcesses(t *testing.T) {
	at := func(change func(map[string]time.Time)) pool.Group {
		group := pool.Group{Name: "g", SuspendedAt: map[string]time.Time{}}
		for _, process := range pool.SuspendedByUpdate {
			group.SuspendedAt[process] = noon
		}
		change(group.SuspendedAt)
		return group
	}
	all := func(map[string]time.Time) {}
	for name, test := range map[string]struct {
		suspended func(map[string]time.Time)
		status    string
		left      bool
		failing   map[string]error
		changing  bool
		want      []string
	}{
		"that an update left suspended": {
			suspended: all, status: "UPDATE_COMPLETE", left: true, want: []string{"resume processes of g: 5"},
		},
		"not while it runs":                  {suspended: all, status: "UPDATE_IN_PROGRESS", left: true, changing: true},
		"not those that no update suspended": {suspended: all, status: "UPDATE_COMPLETE"},
		"not when some are not suspended": {
			suspended: func(s map[string]time.Time) { delete(s, pool.SuspendedByUpdate[4]) }, status: "UPDATE_COMPLETE", left: true,
		},
		"not one that was suspended before": {
			suspended: func(s map[string]time.Time) { s[pool.SuspendedByUpdate[1]] = noon.Add(-time.Minute) }, status: "UPDATE_COMPLETE", left: true,
			want: []string{"resume processes of g: 4"},
		},
		"not one that was suspended before the others": {
			suspended: func(s map[string]time.Time) { s[pool.SuspendedByUpdate[4]] = noon.Add(-time.Minute) }, status: "UPDATE_COMPLETE", left: true,
			want: []string{"resume processes of g: 4"},
		},
		"within a second": {
			suspended: func(s map[string]time.Time) { s[pool.SuspendedByUpdate[1]] = noon.Add(-time.Second) }, status: "UPDATE_COMPLETE", left: true,
			want: []string{"resume processes of g: 5"},
		},
		"not when the stack cannot be read": {
			suspended: all, status: "UPDATE_COMPLETE", left: true, failing: map[string]error{"describe": errThrottled},
		},
		"not when its events are unknown": {
			suspended: all, status: "UPDATE_COMPLETE", left: true, failing: map[string]error{"changing": errThrottled},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Deployed: stack.Deployed{Status: test.status}, OperationBegan: test.left, Failing: test.failing}
			h := depsOf(s)
			h.Groups = sweeptest.Groups{Account: s}
			changing, err := h.instances().resumeProcesses(t.Context(), at(test.suspended))
			require.Equal(t, test.failing != nil, errors.Is(err, errThrottled))
			require.Equal(t, test.changing, changing)
			require.Equal(t, test.want, s.Calls)
		})
	}
}
