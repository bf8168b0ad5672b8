package handler

// One call of the function: its limits to the second, and calls of AWS and of the cluster that fail.

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

const (
	rollingPool   = `{"cluster":"demo","pool":"workers"}`
	pausingPool   = `{"cluster":"demo","pool":"workers","update":{"strategy":"RollingUpdate","pauseSeconds":600}}`
	refreshedPool = `{"cluster":"demo","pool":"workers","update":{"strategy":"InstanceRefresh","pauseSeconds":600}}`
)

var errThrottled = errors.New("throttled")

// inWorld runs a test in virtual time. A test that takes no virtual time makes exact comparisons.
func inWorld(t *testing.T, name string, test func(t *testing.T, w *world)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
	})
}

// second lets an image never join, and another instance of the update have failed to join.
func (w *world) second() {
	w.kubelet = "v1.37.0"
	w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
}

// node returns the recorded state of the new instance, or "".
func (w *world) node() status.NodeState {
	for _, n := range w.status.Status.Nodes {
		if n.Instance == "i-new" {
			return n.State
		}
	}
	return ""
}

// unreachable is an API server that never answers.
func unreachable(w *world) { w.away = never }

func TestHookMetadata(t *testing.T) {
	for name, metadata := range map[string]string{
		"is refused when it is no JSON": "?", "is refused without a cluster": `{"pool":"workers"}`,
		"is refused without a pool": `{"cluster":"demo"}`,
	} {
		inWorld(t, name, func(t *testing.T, w *world) {
			_, err := w.handler().Handle(t.Context(), w.request(metadata, 0))
			require.ErrorContains(t, err, "does not name its pool")
		})
	}
}

func TestLimits(t *testing.T) {
	drains := func(w *world) { w.leaving["i-old"] = never }
	inService := func(w *world) { drains(w); w.state = pool.InService }
	rolledBack := func(w *world) { inService(w); w.stack = "UPDATE_ROLLBACK_COMPLETE" }
	surplus := func(w *world) {
		w.state, w.old, w.fellows, w.desired, w.min = pool.InService, []string{"i-old", "i-old2"}, 2, 5, 4
	}
	for name, test := range map[string]struct {
		pool    string
		given   func(*world)
		elapsed time.Duration
		outcome events.JoinOutcome
		// signals is how many are sent.
		signals int
	}{
		"of joining is not over a second before": {
			pool: rollingPool, given: func(w *world) { w.ready, w.missing = never, time.Hour }, elapsed: 14*time.Minute - time.Second,
			outcome: events.JoinWaiting,
		},
		"of joining is over after 14 minutes": {
			pool: rollingPool, given: func(w *world) { w.ready, w.missing = never, time.Hour }, elapsed: 14 * time.Minute,
			outcome: events.JoinAbandoned,
		},
		"of joining is not over when the cluster answers for the first time": {
			pool: rollingPool, given: func(w *world) { w.ready = never }, elapsed: 5 * time.Hour, outcome: events.JoinWaiting,
		},
		"of joining is not over when the cluster has answered for a short time": {
			pool: rollingPool, given: func(w *world) { w.ready, w.missing = never, 49*time.Second }, elapsed: 5 * time.Hour,
			outcome: events.JoinWaiting,
		},
		"of joining is over when the cluster has answered for 50 seconds": {
			pool: rollingPool, given: func(w *world) { w.ready, w.missing = never, 50*time.Second }, elapsed: 5 * time.Hour,
			outcome: events.JoinAbandoned,
		},
		"of an unreachable cluster is not over a second before": {
			pool: rollingPool, given: unreachable, elapsed: 24*time.Hour - time.Second, outcome: events.JoinWaiting,
		},
		"of an unreachable cluster is over after a day": {
			pool: rollingPool, given: unreachable, elapsed: 24 * time.Hour, outcome: events.JoinAbandoned,
		},
		"of a refresh's hook is not over a second before": {
			pool: refreshedPool, given: drains, elapsed: 24*time.Hour - time.Second, outcome: events.JoinWaiting,
		},
		"of a refresh's hook is over after a day": {
			pool: refreshedPool, given: drains, elapsed: 24 * time.Hour, outcome: events.JoinReady, signals: 1,
		},
		"of a signal is not over to the second": {
			pool: rollingPool, given: rolledBack, elapsed: 74 * time.Minute, outcome: events.JoinWaiting,
		},
		"of a signal is over a second later": {
			pool: rollingPool, given: rolledBack, elapsed: 74*time.Minute + time.Second, outcome: events.JoinReady,
		},
		"of a signal is a day while the update runs": {
			pool: rollingPool, given: inService, elapsed: 24 * time.Hour, outcome: events.JoinWaiting,
		},
		"of a signal is no longer than a day": {
			pool: rollingPool, given: inService, elapsed: 24*time.Hour + time.Second, outcome: events.JoinReady,
		},
		"of a surplus signal is a day": {pool: rollingPool, given: surplus, elapsed: 24 * time.Hour, outcome: events.JoinWaiting},
		"of a surplus signal is no longer": {
			pool: rollingPool, given: surplus, elapsed: 24*time.Hour + time.Second, outcome: events.JoinReady,
		},
		"of failing the update is not over to the second": {pool: rollingPool, given: func(w *world) {
			drains(w)
			w.second()
		}, elapsed: 74 * time.Minute, outcome: events.JoinWaiting},
		"of failing the update is over a second later": {pool: rollingPool, given: func(w *world) {
			drains(w)
			w.second()
		}, elapsed: 74*time.Minute + time.Second, outcome: events.JoinAbandoned, signals: 1},
		"of a signal counts when the stack cannot be read": {pool: rollingPool, given: func(w *world) {
			rolledBack(w)
			w.failing["stack"] = errThrottled
		}, elapsed: 2 * time.Hour, outcome: events.JoinWaiting},
	} {
		inWorld(t, name, func(t *testing.T, w *world) {
			test.given(w)
			in := w.request(test.pool, test.elapsed)
			if w.missing > 0 {
				in.MissingSince = w.start.Add(-w.missing)
			}
			result, err := w.handler().Handle(t.Context(), in)
			require.NoError(t, err)
			require.Equal(t, test.outcome, result.Outcome, result.Message)
			require.Len(t, w.signals, test.signals)
		})
	}
}

func TestPauseBetweenCalls(t *testing.T) {
	for name, test := range map[string]struct {
		given   func(*world)
		elapsed time.Duration
		seconds int64
	}{
		"is ten seconds when the cluster does not answer":     {unreachable, 0, 10},
		"is longer when the cluster does not answer for long": {unreachable, 10 * time.Minute, 20},
		"is three seconds when a drain begins":                {func(w *world) { w.state, w.leaving["i-old"] = pool.InService, never }, 0, 3},
		"is longer when a drain takes long": {func(w *world) {
			w.state, w.leaving["i-old"] = pool.InService, never
		}, 10 * time.Minute, 20},
		"is a minute when failing the update waits for drains": {func(w *world) { w.second(); w.leaving["i-old"] = never }, time.Hour, 60},
		"is two seconds while the node boots":                  {func(w *world) { w.ready = never }, time.Minute, 2},
	} {
		inWorld(t, name, func(t *testing.T, w *world) {
			test.given(w)
			in := w.request(rollingPool, test.elapsed)
			in.PausedSeconds = 7
			result, err := w.handler().Handle(t.Context(), in)
			require.NoError(t, err)
			require.Equal(t, events.JoinWaiting, result.Outcome)
			require.Equal(t, test.seconds, result.WaitSeconds)
			require.EqualValues(t, 7, result.PausedSeconds)
		})
	}
}

func TestPauseOfPool(t *testing.T) {
	for name, test := range map[string]struct {
		pool                 string
		paused, wait, before int64
	}{
		"is divided when it is longer than the hook allows": {pausingPool, 0, 400, 400},
		"ends with the rest":                       {pausingPool, 400, 200, 600},
		"has a last second":                        {pausingPool, 599, 1, 600},
		"is over":                                  {pausingPool, 600, 0, 0},
		"is zero when the pool has no pause":       {rollingPool, 0, 0, 0},
		"comes before the end of a refresh's hook": {refreshedPool, 0, 400, 400},
	} {
		inWorld(t, name, func(t *testing.T, w *world) {
			w.old = []string{"i-old"}
			in := w.request(test.pool, 0)
			in.PausedSeconds = test.paused
			result, err := w.handler().Handle(t.Context(), in)
			require.NoError(t, err)
			require.Equal(t, test.wait, result.WaitSeconds)
			require.Equal(t, test.before, result.PausedSeconds)
			require.Equal(t, test.wait > 0, result.Outcome == events.JoinWaiting)
			require.Equal(t, test.wait == 0, len(w.signals) == 1)
		})
	}
}

// While instances boot, they must not use up the concurrency of the account.
func TestCallsTakeNoTime(t *testing.T) {
	for name, given := range map[string]func(*world){
		"while the node boots":                func(w *world) { w.registers = never },
		"while the node is not Ready":         func(w *world) { w.ready = never },
		"while other nodes are being drained": func(w *world) { w.state, w.leaving["i-old"] = pool.InService, never },
		"when the node is Ready":              func(*world) {},
		"when the cluster was deleted":        func(w *world) { w.openErr = pool.ErrNoCluster },
		"while the cluster is silent":         unreachable,
	} {
		inWorld(t, name, func(t *testing.T, w *world) {
			given(w)
			_, err := w.handler().Handle(t.Context(), w.request(rollingPool, 0))
			require.NoError(t, err)
			require.Zero(t, w.since())
			require.LessOrEqual(t, w.reads, 2)
		})
	}
}

func TestUnreachableCluster(t *testing.T) {
	for name, test := range map[string]struct {
		given   func(*world)
		elapsed time.Duration
		state   status.NodeState
	}{
		"is not recorded before the limit":             {unreachable, 14*time.Minute - time.Second, ""},
		"is recorded at the limit":                     {unreachable, 14 * time.Minute, status.NodeUnreachable},
		"is recorded at once when access is forbidden": {func(w *world) { w.openErr = errors.New("AccessDenied") }, 0, status.NodeUnreachable},
	} {
		inWorld(t, name, func(t *testing.T, w *world) {
			test.given(w)
			result, err := w.handler().Handle(t.Context(), w.request(rollingPool, test.elapsed))
			require.NoError(t, err)
			require.Equal(t, events.JoinWaiting, result.Outcome)
			require.Equal(t, test.state, w.node())
		})
	}
}

func TestHook(t *testing.T) {
	inWorld(t, "is completed when its heartbeat fails", func(t *testing.T, w *world) {
		w.failing["heartbeat"] = errThrottled
		result, err := w.handler().Handle(t.Context(), w.request(rollingPool, 0))
		require.NoError(t, err)
		require.Equal(t, events.JoinReady, result.Outcome)
		require.Equal(t, pool.Continue, w.result)
	})
	inWorld(t, "is over when the heartbeat finds none", func(t *testing.T, w *world) {
		w.before["heartbeat"] = func() { w.state = "" }
		result, err := w.handler().Handle(t.Context(), w.request(rollingPool, 0))
		require.NoError(t, err)
		require.Equal(t, events.JoinGone, result.Outcome)
		require.Empty(t, w.result)
	})
	inWorld(t, "is over when another call abandoned the instance", func(t *testing.T, w *world) {
		w.kubelet = "v1.37.0"
		w.before["complete"] = func() { w.state = "" }
		result, err := w.handler().Handle(t.Context(), w.request(rollingPool, 0))
		require.NoError(t, err)
		require.Equal(t, events.JoinGone, result.Outcome)
	})
	inWorld(t, "needs a signal when another call completed it", func(t *testing.T, w *world) {
		w.before["complete"] = func() { w.state = pool.InService }
		result, err := w.handler().Handle(t.Context(), w.request(rollingPool, 0))
		require.NoError(t, err)
		require.Equal(t, events.JoinReady, result.Outcome)
		require.Len(t, w.signals, 1)
	})
}

func TestFailedCall(t *testing.T) {
	inService := func(w *world) { w.state = pool.InService }
	grown := func(w *world) { w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 1, 5, 4 }
	for name, test := range map[string]struct {
		call, pool string
		given      func(*world)
		result     pool.HookResult
	}{
		"ends the call when the state cannot be read":                    {"state", rollingPool, func(*world) {}, ""},
		"ends the call when the hook cannot be completed":                {"complete", rollingPool, func(*world) {}, ""},
		"ends the call when the group cannot be read":                    {"group", rollingPool, inService, ""},
		"ends the call when the group of a refresh cannot be read":       {"group", refreshedPool, func(*world) {}, ""},
		"ends the call when the update cannot be read":                   {"stack", rollingPool, func(w *world) { inService(w); grown(w) }, ""},
		"ends the call when the signal cannot be sent":                   {"signal", rollingPool, func(*world) {}, pool.Continue},
		"ends the call when the hook of a bad image cannot be completed": {"complete", rollingPool, func(w *world) { w.kubelet = "v1.37.0" }, ""},
	} {
		inWorld(t, name, func(t *testing.T, w *world) {
			test.given(w)
			w.failing[test.call] = errThrottled
			_, err := w.handler().Handle(t.Context(), w.request(test.pool, 0))
			require.ErrorIs(t, err, errThrottled)
			require.Empty(t, w.signals)
			require.Equal(t, test.result, w.result)
		})
	}
	for _, call := range []string{"status", "write", "due"} {
		inWorld(t, "of the status changes nothing else: "+call, func(t *testing.T, w *world) {
			w.status.Status.Set(status.Condition{Type: status.AddonsDeployed, Status: "False"}, time.Now())
			w.failing[call] = errThrottled
			result, err := w.handler().Handle(t.Context(), w.request(rollingPool, 0))
			require.NoError(t, err)
			require.Equal(t, events.JoinReady, result.Outcome)
			require.Len(t, w.signals, 1)
		})
	}
	for _, call := range []string{"group", "stack", "signal"} {
		inWorld(t, "fails no update: "+call, func(t *testing.T, w *world) {
			w.second()
			w.failing[call] = errThrottled
			result, err := w.handler().Handle(t.Context(), w.request(rollingPool, 0))
			require.NoError(t, err)
			require.Equal(t, events.JoinAbandoned, result.Outcome)
			require.Equal(t, pool.Abandon, w.result)
			require.Equal(t, status.NodeNotJoined, w.node())
			require.Empty(t, w.signals)
		})
	}
	inWorld(t, "of the status lets launching instances take the signals", func(t *testing.T, w *world) {
		grown(w)
		w.comes, w.comesOf = never, "2"
		w.failing["status"] = errThrottled
		result, err := w.handler().Handle(t.Context(), w.request(rollingPool, 0))
		require.NoError(t, err)
		require.Equal(t, events.JoinWaiting, result.Outcome)
		require.Contains(t, result.Message, "its signal waits until i-coming has joined")
	})
}

func TestSignal(t *testing.T) {
	inWorld(t, "is sent when the cluster was deleted", func(t *testing.T, w *world) {
		w.state, w.openErr, w.old = pool.InService, pool.ErrNoCluster, []string{"i-old"}
		result, err := w.handler().Handle(t.Context(), w.request(rollingPool, 0))
		require.NoError(t, err)
		require.Equal(t, events.JoinReady, result.Outcome)
		require.Len(t, w.signals, 1)
	})
	inWorld(t, "waits when the cluster does not answer", func(t *testing.T, w *world) {
		w.state, w.away = pool.InService, never
		result, err := w.handler().Handle(t.Context(), w.request(rollingPool, 0))
		require.NoError(t, err)
		require.Equal(t, events.JoinWaiting, result.Outcome)
		require.Contains(t, result.Message, "its signal waits until the cluster's API answers again; it failed with: ")
	})
	// Of three new instances, two were Ready before this one. Two old instances are left.
	for name, test := range map[string]struct {
		parameters map[string]string
		fellows    int
		waits      bool
	}{
		"is counted with the instances that stay and the batch": {map[string]string{"MinInstancesInService": "3", "MaxBatchSize": "1"}, 1, false},
		"waits when the update has enough signals":              {map[string]string{"MinInstancesInService": "3", "MaxBatchSize": "1"}, 2, true},
		"is not counted when no instance stays":                 {map[string]string{"MinInstancesInService": "0", "MaxBatchSize": "4"}, 2, false},
		"is not counted without a batch":                        {map[string]string{"MinInstancesInService": "4"}, 2, false},
		"is not counted without instances that stay":            {map[string]string{"MaxBatchSize": "4"}, 2, false},
	} {
		inWorld(t, name, func(t *testing.T, w *world) {
			w.old, w.fellows, w.desired, w.min, w.parameters = []string{"i-old", "i-old2"}, test.fellows, 5, 2, test.parameters
			result, err := w.handler().Handle(t.Context(), w.request(rollingPool, 0))
			require.NoError(t, err)
			require.Equal(t, test.waits, result.Outcome == events.JoinWaiting)
			require.Equal(t, test.waits, len(w.signals) == 0)
		})
	}
}

func TestGivenUp(t *testing.T) {
	for name, test := range map[string]struct {
		state   string
		failing error
		outcome events.JoinOutcome
	}{
		"has joined when the hook is being completed": {pool.PendingProceed, nil, events.JoinReady},
		"has joined when the instance is in service":  {pool.InService, nil, events.JoinReady},
		"has not joined when it still waits":          {pool.PendingWait, nil, events.JoinAbandoned},
		"has not joined when its state is not known":  {pool.InService, errThrottled, events.JoinAbandoned},
	} {
		inWorld(t, name, func(t *testing.T, w *world) {
			w.state, w.failing["state"] = test.state, test.failing
			in := w.request(rollingPool, 0)
			in.GivenUp = "it crashed"
			result, err := w.handler().Handle(t.Context(), in)
			require.NoError(t, err)
			require.Equal(t, events.JoinResult{Outcome: test.outcome, Message: "it crashed"}, result)
			require.Equal(t, test.outcome == events.JoinAbandoned, w.node() == status.NodeNotJoined)
		})
	}
	inWorld(t, "waits for no drains when a refresh ignores signals", func(t *testing.T, w *world) {
		w.second()
		w.state, w.leaving["i-old"] = "", never
		in := w.request(refreshedPool, 0)
		in.GivenUp = "it crashed"
		_, err := w.handler().Handle(t.Context(), in)
		require.NoError(t, err)
		require.Len(t, w.signals, 1)
	})
}
