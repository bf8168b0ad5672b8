package sweep

// What a sweep resumes, forgets, releases and starts, without an account.

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestSweepLooksAfterWaiters(t *testing.T) {
	const resumed = `resume "token" false UPDATE_COMPLETE`
	for name, test := range map[string]struct {
		given    func(*sweeptest.Account)
		age      time.Duration
		changing bool
		err      error
		want     []string
	}{
		"resumes a step whose operation is over": {func(s *sweeptest.Account) { s.HasBegun = true }, 0, false, nil, []string{resumed}},
		"leaves one alone whose operation runs": {func(s *sweeptest.Account) {
			s.Deployed.Status = "UPDATE_IN_PROGRESS"
		}, 0, true, nil, nil},
		"leaves one alone whose operation may still begin": {func(*sweeptest.Account) {}, startLimit - 1, false, nil, nil},
		"has one look again whose operation never began": {
			func(*sweeptest.Account) {}, startLimit, false, nil, []string{`resume "" true UPDATE_COMPLETE`},
		},
		"resumes one that waits for any operation": {func(s *sweeptest.Account) {
			s.Waiting.ClientRequestToken = ""
		}, 0, false, nil, []string{`resume "" false UPDATE_COMPLETE`}},
		"resumes one whose stack is deleted": {func(s *sweeptest.Account) {
			s.Deployed.Status = "DELETE_COMPLETE"
		}, 0, false, nil, []string{`resume "token" false DELETE_COMPLETE`}},
		"leaves one alone whose stack is about to be created": {func(s *sweeptest.Account) {
			s.Deployed.Status, s.HasBegun = stack.InReview, true
		}, startLimit, false, nil, nil},
		"forgets one whose execution is over": {func(s *sweeptest.Account) { s.Runs = false }, 0, false, nil, []string{"forget"}},
		"leaves one alone that is gone":       {func(s *sweeptest.Account) { s.Waiting = store.Waiter{} }, 0, false, nil, nil},
		"leaves one alone when it cannot be read": {func(s *sweeptest.Account) {
			s.Failing["waiter"] = errThrottled
		}, 0, false, errThrottled, nil},
		"leaves one alone when its execution cannot be read": {func(s *sweeptest.Account) {
			s.Failing["running"] = errThrottled
		}, 0, false, errThrottled, nil},
		"leaves one alone when its stack cannot be read": {func(s *sweeptest.Account) {
			s.Failing["describe"] = errThrottled
		}, 0, false, errThrottled, nil},
		"leaves one alone when the stack's events cannot be read": {func(s *sweeptest.Account) {
			s.Failing["began"] = errThrottled
		}, startLimit, false, errThrottled, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Runs: true, Deployed: stack.Deployed{Status: "UPDATE_COMPLETE"}, Failing: map[string]error{}}
			s.Waiting = store.Waiter{
				Cluster: demo, Stack: names.Addons, StackName: names.Stack(demo, names.Addons), ClientRequestToken: "token", Execution: "x",
			}
			test.given(s)
			changing, err := depsOf(s).waiters().resume(t.Context(), s.Waiting.StackName, noon.Add(-test.age))
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.changing, changing)
			require.Equal(t, test.want, s.Calls)
		})
	}
}

func TestSweepReportsExecutionsThatEnded(t *testing.T) {
	for name, test := range map[string]struct {
		given    func(*sweeptest.Account)
		reported bool
		err      error
		want     []string
	}{
		"of a cluster that converged": {func(*sweeptest.Account) {}, true, nil, []string{"write demo", "release demo x"}},
		"of a cluster that was deleted": {func(s *sweeptest.Account) {
			s.Recorded.Phase = status.Deleting
		}, true, nil, []string{"write demo", "release demo x"}},
		"but not over a report": {func(s *sweeptest.Account) {
			s.Recorded.Phase = status.Ready
		}, false, nil, []string{"write demo", "release demo x"}},
		"but not over another execution": {func(s *sweeptest.Account) {
			s.Recorded.Execution = "y"
		}, false, nil, []string{"write demo", "release demo x"}},
		"but not while it runs":           {func(s *sweeptest.Account) { s.Runs = true }, false, nil, nil},
		"but not without a lease":         {func(s *sweeptest.Account) { s.Leased = store.Lease{Fence: 3} }, false, nil, nil},
		"or fails when that is not known": {func(s *sweeptest.Account) { s.Failing["running"] = errThrottled }, false, errThrottled, nil},
		"but continues its work after a removal": {func(s *sweeptest.Account) { s.WasRemoved = true }, false, nil,
			[]string{"converge demo  x", "release demo x"}},
		"but leaves the step of an upgrade to the upgrade": {func(s *sweeptest.Account) {
			s.WasRemoved, s.Leased.Execution = true, "machine:demo-upgrade-1-0-0"
		}, false, nil, []string{"release demo machine:demo-upgrade-1-0-0"}},
		"or keeps the lease when its work cannot continue": {func(s *sweeptest.Account) {
			s.WasRemoved, s.Failing["converge demo  x"] = true, errThrottled
		}, false, errThrottled, []string{"converge demo  x"}},
		"or keeps the lease when it cannot be reported": {func(s *sweeptest.Account) {
			s.Failing["write"] = errThrottled
		}, true, errThrottled, []string{"write demo"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{
				Leased: store.Lease{Execution: "x"}, Recorded: status.Status{Phase: status.Converging, Execution: "x"}, Failing: map[string]error{},
			}
			test.given(s)
			phase := s.Recorded.Phase
			require.ErrorIs(t, depsOf(s).ended().release(t.Context(), demo), test.err)
			require.Equal(t, test.want, s.Calls)
			require.Equal(t, test.reported, s.Recorded.Phase == status.Failed && phase != s.Recorded.Phase)
		})
	}
	t.Run("of each cluster, whatever fails for another", func(t *testing.T) {
		s := &sweeptest.Account{
			HeldClusters: []string{"a", "b"}, Leased: store.Lease{Execution: "x"}, Failing: map[string]error{"write a": errThrottled},
		}
		require.ErrorIs(t, depsOf(s).ended().Run(t.Context()), errThrottled)
		require.Equal(t, []string{"write a", "write b", "release b x"}, s.Calls)
	})
}

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
		"not of one that gave a node back": {map[string]events.DrainRequest{"m:" + releasePrefix + "x": node}, nil, nil, nil},
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
			require.NoError(t, depsOf(s).instances().signal(t.Context(), group))
			require.Equal(t, test.want, s.Calls)
		})
	}
	t.Run("of pools that a waiter, or their processes, say are changing", func(t *testing.T) {
		suspended := group
		suspended.SuspendedAt = map[string]time.Time{}
		for _, process := range suspendedByUpdate {
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

func TestUpgradesThatAreLate(t *testing.T) {
	at := noon.Add(-upgrade.Delayed)
	other := noon.Add(-time.Minute)
	u := func(phase string, at *time.Time) *status.Upgrade {
		return &status.Upgrade{Phase: phase, To: "r2", Origin: "At", At: at, Message: "before"}
	}
	for name, test := range map[string]struct {
		upgrade, next *status.Upgrade
		want, behind  string
	}{
		"is delayed":                 {u(status.UpgradeScheduled, &at), nil, status.UpgradeDelayed, ""},
		"is delayed behind another":  {u("Running", nil), u(status.UpgradeScheduled, &at), "Running", status.UpgradeDelayed},
		"stays missed":               {u(status.UpgradeMissed, &at), nil, status.UpgradeMissed, ""},
		"is another of another time": {u(status.UpgradeScheduled, &other), nil, status.UpgradeScheduled, ""},
		"is none without a time":     {u(status.UpgradeScheduled, nil), nil, status.UpgradeScheduled, ""},
		"is none that began":         {u("Running", &at), nil, "Running", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Recorded: status.Status{Upgrade: test.upgrade, NextUpgrade: test.next}}
			require.NoError(t, depsOf(s).late().Record(t.Context(), demo, at, "waits"))
			require.Equal(t, test.want, s.Recorded.Upgrade.Phase)
			if test.next != nil {
				require.Equal(t, test.behind, s.Recorded.NextUpgrade.Phase)
			}
			require.Nil(t, s.Recorded.Condition(status.Upgraded))
		})
	}
	t.Run("is not late before half an hour", func(t *testing.T) {
		s := &sweeptest.Account{}
		require.NoError(t, depsOf(s).late().Record(t.Context(), demo, at.Add(1), "waits"))
		require.Empty(t, s.Calls)
	})
	t.Run("is ended when its execution is over", func(t *testing.T) {
		for running, calls := range map[bool]int{true: 0, false: 1} {
			s := &sweeptest.Account{Runs: running}
			require.NoError(t, depsOf(s).ender().End(t.Context(), demo, "x"))
			require.Len(t, s.Calls, calls)
		}
	})
}
