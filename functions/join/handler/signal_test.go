package handler

import (
	"testing"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// TestJoinSignal is about the signal of a rolling update: it waits for drains, for pauses and for other nodes.
func TestJoinSignal(t *testing.T) {
	requireJoins(t, map[string]joinCase{
		"a drain of seconds delays the signal, not the hook": {
			pool: rolling, world: func(w *world) {
				w.leaving["i-old"] = 30 * time.Second
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 30 * time.Second}},
		},
		"a drain of minutes": {
			pool: rolling, world: func(w *world) {
				w.leaving["i-old"] = 20 * time.Minute
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 20 * time.Minute}},
		},
		"a drain that CloudFormation waits for before it waits for signals": {
			pool: rolling, world: func(w *world) { w.leaving["i-old"] = 3 * time.Hour },
			outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 3 * time.Hour}},
		},
		"a drain after the update was rolled back: no signal": {
			pool: rolling, world: func(w *world) {
				w.leaving["i-old"] = 3 * time.Hour
				w.after(time.Hour, func() { w.stack = "UPDATE_ROLLBACK_COMPLETE" })
			},
			outcome: events.JoinReady, message: "not signalled: the instance is in service; its signal waits until i-old has been drained",
			result: pool.Continue,
		},
		"the node stops being Ready before its signal": {
			pool: pauses, world: func(w *world) {
				w.old, w.unwell, w.well = []string{"i-old"}, 5*time.Minute, 20*time.Minute
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 20*time.Minute + 200*time.Second}},
		},
		"the node stops being Ready forever: no signal": {
			pool: rolling, world: func(w *world) {
				w.leaving["i-old"], w.unwell, w.well = 2*time.Minute, time.Minute, never
			},
			outcome: events.JoinReady, message: "its signal waits until it is Ready again: node n1 is not Ready: no network",
			result: pool.Continue,
		},
		"the cluster is unreachable before the signal": {
			pool: pauses, world: func(w *world) {
				w.old = []string{"i-old"}
				w.after(time.Minute, func() { w.away = 30 * time.Minute })
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 30*time.Minute + 200*time.Second}},
		},
		"another node of the pool is being drained": {
			pool: rolling, world: func(w *world) {
				w.old, w.drained = []string{"i-old"}, 15*time.Minute
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 15 * time.Minute}},
		},
		"the node of a deleted instance does not count": {
			pool: rolling, world: func(w *world) { w.drained = never }, outcome: events.JoinReady, message: "is Ready", result: pool.Continue,
			signals: []signal{{true, 0}},
		},
		"the pool's pause": {
			pool: pauses, world: func(w *world) {
				w.old = []string{"i-old"}
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 600 * time.Second}},
		},
		"no pause after the last batch": {
			pool: pauses, world: func(*world) {}, outcome: events.JoinReady, message: "is Ready", result: pool.Continue,
			signals: []signal{{true, 0 * time.Second}},
		},
		"a drain, then the pause": {
			pool: pauses, world: func(w *world) {
				w.old, w.leaving["i-old2"] = []string{"i-old"}, 4*time.Minute
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 840 * time.Second}},
		},
		"an autoscaler adds an instance that the update does not wait for": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 2, 5, 4
				w.after(10*time.Minute, func() { w.old, w.leaving["i-old2"] = w.old[:1], 12*time.Minute })
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 12 * time.Minute}},
		},
		"an autoscaler adds an instance, and the update takes hours": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.desired, w.min = []string{"i-old"}, 2, 5, 4
				w.leaving["i-old2"] = 5 * time.Hour
				w.after(5*time.Hour, func() { w.stack, w.old = "UPDATE_COMPLETE", nil })
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 5 * time.Hour}},
		},
		"an autoscaler adds an instance, and the update waits for this one": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 2, 5, 4
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 10 * time.Minute}},
		},
		"an autoscaler adds an instance that the update waits for": {
			pool: rolling, world: func(w *world) { w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 1, 5, 4 },
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, signals: []signal{{true, 0}},
		},
		"an autoscaler added instances before the update": {
			pool: rolling, world: func(w *world) { w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 2, 6, 5 },
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, signals: []signal{{true, 0}},
		},
		"an autoscaler adds instances without an update": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.stack = []string{"i-old"}, 4, 6, 1, "UPDATE_COMPLETE"
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, signals: []signal{{true, 0}},
		},
		"a node of an earlier batch stops being Ready": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.ill = []string{"i-old"}, 3, 7*time.Minute
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 7 * time.Minute}},
		},
		"a node of an earlier batch stops being Ready until the rollback": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.ill = []string{"i-old"}, 1, never
				w.after(time.Hour, func() { w.stack = "UPDATE_ROLLBACK_COMPLETE" })
			}, outcome: events.JoinReady, message: "not signalled", result: pool.Continue,
		},
		"a node of an earlier batch no longer exists": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.ill = []string{"i-old"}, 1, -1
			}, outcome: events.JoinReady, message: "is Ready", result: pool.Continue, signals: []signal{{true, 0}},
		},
		"a node of an earlier batch stops being Ready after the last batch": {
			pool: rolling, world: func(w *world) { w.fellows, w.ill = 1, never }, outcome: events.JoinReady, message: "is Ready",
			result: pool.Continue, signals: []signal{{true, 0}},
		},
		"an autoscaler adds an instance, and another launches": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, 6*time.Minute, "2"
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 6 * time.Minute}},
		},
		"the other instance does not join": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, never, "2"
				w.after(14*time.Minute, func() {
					w.status.Status.SetNode(status.Node{Instance: "i-came", Pool: "workers", State: status.NodeNotJoined, Template: "2"}, time.Now())
				})
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 14 * time.Minute}},
		},
		"the other instance replaces one that did not join": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, never, "2"
				w.status.Status.SetNode(status.Node{Instance: "i-came", Pool: "workers", State: status.NodeNotJoined, Template: "2"},
					time.Now().Add(-18*time.Minute))
			}, outcome: events.JoinReady, message: "is Ready", result: pool.Continue, signals: []signal{{true, 0}},
		},
		"instances that did not join were of another pool, or long ago, or have joined": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, 6*time.Minute, "2"
				w.status.Status.SetNode(status.Node{Instance: "i-a", Pool: "other", State: status.NodeNotJoined, Template: "2"}, time.Now())
				w.status.Status.SetNode(status.Node{
					Instance: "i-b", Pool: "workers", State: status.NodeNotJoined, Template: "2",
				}, time.Now().Add(-20*time.Minute))
				w.status.Status.SetNode(status.Node{Instance: "i-c", Pool: "workers", State: status.NodeDraining, Template: "2"}, time.Now())
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 6 * time.Minute}},
		},
		"an instance that did not join has not failed the update yet": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, 10*time.Minute, "2"
				for _, id := range []string{"i-came", "i-coming"} {
					w.status.Status.SetNode(status.Node{Instance: id, Pool: "workers", State: status.NodeNotJoined, Template: "2"}, time.Now())
				}
			}, outcome: events.JoinReady, message: "in service", result: pool.Continue, signals: []signal{{true, 10 * time.Minute}},
		},
		"an instance of the old launch template is launching": {
			pool: rolling, world: func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old"}, 1, 5, 4, never, "1"
			}, outcome: events.JoinReady, message: "is Ready", result: pool.Continue, signals: []signal{{true, 0}},
		},
		"the update replaces the instance: no signal": {
			pool: rolling, world: func(w *world) {
				w.template = "3"
			}, outcome: events.JoinReady, message: "the update will replace it too, so it sends no signal", result: pool.Continue,
		},
	})
}

// TestJoinRefresh is about instance refreshes, which wait for the hook.
func TestJoinRefresh(t *testing.T) {
	requireJoins(t, map[string]joinCase{
		"an instance refresh holds the hook": {
			pool: refresh, world: func(w *world) {
				w.old, w.leaving["i-old2"] = []string{"i-old"}, 3*time.Hour
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: 3*time.Hour + 10*time.Minute,
			signals: []signal{{true, 3*time.Hour + 10*time.Minute}},
		},
		"an instance refresh has no batch left if only leaving nodes are outdated": {
			pool: refresh, world: func(w *world) {
				w.template, w.fellows, w.leaving["i-old"] = "2", 1, never
			}, outcome: events.JoinReady, message: "is Ready", result: pool.Continue, signals: []signal{{true, 0}},
		},
		"an instance refresh holds the hook while another outdated node is in service": {
			pool: refresh, world: func(w *world) {
				w.template, w.fellows, w.old, w.leaving["i-old2"] = "2", 1, []string{"i-old"}, 3*time.Hour
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: 3*time.Hour + 10*time.Minute,
			signals: []signal{{true, 3*time.Hour + 10*time.Minute}},
		},
		"an instance refresh holds the hook of an instance that is outdated itself": {
			pool: refresh, world: func(w *world) {
				w.template, w.leaving["i-old"] = "3", time.Hour
			}, outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: time.Hour, signals: []signal{{true, time.Hour}},
		},
		"an instance refresh that changes no template holds the hook": {
			pool: refresh, world: func(w *world) {
				w.template, w.leavingOf, w.leaving["i-old"] = "2", "2", time.Hour
			}, outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: time.Hour, signals: []signal{{true, time.Hour}},
		},
		"an instance refresh holds the hook for at most a day": {
			pool: refresh, world: func(w *world) {
				w.leaving["i-old"] = never
			}, outcome: events.JoinReady, message: "its launch hook waits until i-old has been drained", result: pool.Continue,
			ended: 24 * time.Hour, signals: []signal{{true, 24 * time.Hour}},
		},
	})
}
