package handler

import (
	"testing"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// TestJoinFailure is about instances that do not join: the second one of the new version fails the update, after the drains of its batch.
func TestJoinFailure(t *testing.T) {
	second := func(w *world) {
		failing(w)
		w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
	}
	tooNew := func(w *world) { second(w); w.registers, w.kubelet = 0, "v1.37.0" }
	requireJoins(t, map[string]joinCase{
		"the second fails the update": {
			pool: rolling, world: second, outcome: events.JoinAbandoned, message: "has not registered", result: pool.Abandon,
			ended: 14 * time.Minute, signals: []signal{
				{false, 840 * time.Second},
			},
			recorded: status.NodeNotJoined,
		},
		"the second of the new version fails the update": {
			pool: rolling, world: func(w *world) {
				second(w)
				w.template = "2"
			},
			outcome: events.JoinAbandoned, message: "has not registered", result: pool.Abandon, ended: 14 * time.Minute,
			signals: []signal{{false, 840 * time.Second}}, recorded: status.NodeNotJoined,
		},
		"the second of the old version does not fail the update": {pool: rolling, world: func(w *world) {
			second(w)
			w.template = "3"
		}, outcome: events.JoinAbandoned, message: "has not", result: pool.Abandon, ended: 14 * time.Minute, recorded: status.NodeNotJoined},
		"the first was of the old version": {
			pool: rolling, world: func(w *world) {
				failing(w)
				w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined, Template: "1"}, time.Now())
			}, outcome: events.JoinAbandoned, message: "has not", result: pool.Abandon, ended: 14 * time.Minute, recorded: status.NodeNotJoined,
		},
		"the second does not fail a rollback": {pool: rolling, world: func(w *world) {
			second(w)
			w.stack = "UPDATE_ROLLBACK_IN_PROGRESS"
		}, outcome: events.JoinAbandoned, message: "has not", result: pool.Abandon, ended: 14 * time.Minute, recorded: status.NodeNotJoined},
		"the second fails nothing without a change": {pool: rolling, world: func(w *world) {
			second(w)
			w.status.Status.Phase = status.Ready
		}, outcome: events.JoinAbandoned, message: "has not", result: pool.Abandon, ended: 14 * time.Minute, recorded: status.NodeNotJoined},
		"one of another pool, or of an earlier update, does not count": {
			pool: rolling, world: func(w *world) {
				failing(w)
				w.status.Status.SetNode(status.Node{Instance: "i-a", Pool: "other", State: status.NodeNotJoined}, time.Now())
				w.status.Status.Execution = "arn:converge:0"
				w.status.Status.SetNode(status.Node{Instance: "i-b", Pool: "workers", State: status.NodeNotJoined}, time.Now())
				w.status.Status.Execution = "arn:converge:1"
			}, outcome: events.JoinAbandoned, message: "has not", result: pool.Abandon, ended: 14 * time.Minute, recorded: status.NodeNotJoined,
		},
		"the failure waits for the drains of its batch": {
			pool: rolling, world: func(w *world) {
				second(w)
				w.leaving["i-old"] = 30 * time.Minute
			},
			outcome: events.JoinAbandoned, message: "has not registered", result: pool.Abandon, ended: 30 * time.Minute,
			signals: []signal{{false, 30 * time.Minute}}, recorded: status.NodeNotJoined,
		},
		"the failure waits for drains from the start": {
			pool: rolling, world: func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 20 * time.Minute
			},
			outcome: events.JoinAbandoned, message: "newer than the control plane", result: pool.Abandon, ended: 20 * time.Minute,
			signals: []signal{{false, 20 * time.Minute}}, recorded: status.NodeNotJoined,
		},
		"the failure waits for drains of other nodes": {
			pool: rolling, world: func(w *world) {
				tooNew(w)
				w.old, w.drained = []string{"i-old"}, 20*time.Minute
			},
			outcome: events.JoinAbandoned, message: "newer than the control plane", result: pool.Abandon, ended: 20 * time.Minute,
			signals: []signal{{false, 20 * time.Minute}}, recorded: status.NodeNotJoined,
		},
		"the failure waits at most until the signal limit": {
			pool: rolling, world: func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
			},
			outcome: events.JoinAbandoned, message: "newer than the control plane", result: pool.Abandon, ended: 74 * time.Minute,
			signals: []signal{{false, 74 * time.Minute}}, recorded: status.NodeNotJoined,
		},
		"the failure stops waiting after a rollback began": {
			pool: rolling, world: func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
				w.after(20*time.Minute, func() { w.stack = "UPDATE_ROLLBACK_IN_PROGRESS" })
			},
			outcome: events.JoinAbandoned, message: "newer than the control plane", result: pool.Abandon, ended: 20 * time.Minute,
			recorded: status.NodeNotJoined,
		},
		"the failure stops waiting after the change ended": {
			pool: rolling, world: func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
				w.after(20*time.Minute, func() { w.status.Status.Phase = status.Failed })
			},
			outcome: events.JoinAbandoned, message: "newer than the control plane", result: pool.Abandon, ended: 20 * time.Minute,
			recorded: status.NodeNotJoined,
		},
		"the instance joins during the wait": {
			pool: rolling, world: func(w *world) {
				second(w)
				w.registers, w.ready, w.leaving["i-old"] = 20*time.Minute, 25*time.Minute, 40*time.Minute
			},
			outcome: events.JoinReady, message: "in service", result: pool.Continue, ended: 25 * time.Minute,
			signals: []signal{{true, 40 * time.Minute}},
		},
		"the failure waits while the cluster is unreachable": {
			pool: rolling, world: func(w *world) {
				second(w)
				w.leaving["i-old"] = 30 * time.Minute
				w.after(20*time.Minute, func() { w.away = 50 * time.Minute })
			},
			outcome: events.JoinAbandoned, message: "has not registered", result: pool.Abandon, ended: 50 * time.Minute,
			signals: []signal{{false, 50 * time.Minute}}, recorded: status.NodeNotJoined,
		},
		"the first is replaced during drains": {
			pool: rolling, world: func(w *world) {
				w.kubelet = "v1.37.0"
				w.leaving["i-old"] = 3 * time.Hour
			}, outcome: events.JoinAbandoned, message: "newer than the control plane", result: pool.Abandon, recorded: status.NodeNotJoined,
		},
		"one of the old version is replaced during drains": {
			pool: rolling, world: func(w *world) {
				tooNew(w)
				w.template = "3"
				w.leaving["i-old"] = 3 * time.Hour
			}, outcome: events.JoinAbandoned, message: "newer than the control plane", result: pool.Abandon, recorded: status.NodeNotJoined,
		},
		"a new pool has no nodes to wait for": {
			pool: rolling, world: func(w *world) {
				tooNew(w)
				w.stack = "CREATE_IN_PROGRESS"
				w.leaving["i-first"] = 3 * time.Hour
			},
			outcome: events.JoinAbandoned, message: "newer than the control plane", result: pool.Abandon, signals: []signal{{false, 0}},
			recorded: status.NodeNotJoined,
		},
		"an instance refresh ignores the signal": {
			pool: refresh, world: func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
			},
			outcome: events.JoinAbandoned, message: "newer than the control plane", result: pool.Abandon, signals: []signal{{false, 0}},
			recorded: status.NodeNotJoined,
		},
		"a cluster without a status gets none": {pool: rolling, world: func(w *world) {
			failing(w)
			w.status = nil
		}, outcome: events.JoinAbandoned, message: "has not", result: pool.Abandon, ended: 14 * time.Minute},
	})
}
