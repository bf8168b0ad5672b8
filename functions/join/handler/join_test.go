package handler

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // a day of virtual time logs a lot
	m.Run()
}

func TestJoin(t *testing.T) {
	const (
		rolling = `{"cluster":"demo","pool":"workers"}`
		pauses  = `{"cluster":"demo","pool":"workers","update":{"strategy":"RollingUpdate","pauseSeconds":600}}`
		refresh = `{"cluster":"demo","pool":"workers","update":{"strategy":"InstanceRefresh","pauseSeconds":600}}`
		demands = `{"cluster":"demo","pool":"workers","readiness":{"labels":{"gpu":"up"},"conditions":["DriverReady"]}}`
	)
	failing := func(w *world) { w.registers = never }
	second := func(w *world) {
		failing(w)
		w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
	}
	tooNew := func(w *world) { second(w); w.registers, w.kubelet = 0, "v1.37.0" }
	for name, c := range map[string]struct {
		pool    string
		world   func(*world)
		outcome events.JoinOutcome
		message string
		// result of the hook, and when; the signals sent; the instance's state in the status at the end.
		result   pool.HookResult
		ended    time.Duration
		signals  []signal
		recorded status.NodeState
	}{
		"Ready at once": {
			pool: rolling, world: func(*world) {}, outcome: events.JoinReady, message: "node n1 is Ready (v1.36.3)", result: pool.Continue,
			signals: []signal{{true, 0 * time.Second}},
		},
		"Ready after a while": {
			pool: rolling, world: func(w *world) {
				w.registers, w.ready = time.Minute, 3*time.Minute
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: 3 * time.Minute,
			signals: []signal{{true, 180 * time.Second}},
		},
		"registers late": {
			pool: rolling, world: func(w *world) {
				w.registers, w.ready = 13*time.Minute, 13*time.Minute+30*time.Second
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: 13*time.Minute + 30*time.Second,
			signals: []signal{{true, 810 * time.Second}},
		},
		"never registers": {
			pool: rolling, world: failing, outcome: events.JoinAbandoned, message: "has not registered", result: pool.Abandon,
			ended: 14 * time.Minute, recorded: status.NodeNotJoined,
		},
		"never Ready": {
			pool: rolling, world: func(w *world) {
				w.ready = never
			},
			outcome: events.JoinAbandoned, message: "node n1 is not Ready: no network", result: pool.Abandon, ended: 14 * time.Minute,
			recorded: status.NodeNotJoined,
		},
		"a kubelet that is too new": {
			pool: rolling, world: func(w *world) {
				w.kubelet = "v1.37.0"
			}, outcome: events.JoinAbandoned, message: "newer than the control plane", result: pool.Abandon, recorded: status.NodeNotJoined,
		},
		"the node has the pool's labels and conditions": {
			pool: demands, world: func(w *world) {
				w.ready, w.labels, w.conditions = time.Minute, map[string]string{"gpu": "up"}, []string{"DriverReady"}
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: time.Minute,
			signals: []signal{{true, 60 * time.Second}},
		},
		"a label has another value": {
			pool: demands, world: func(w *world) {
				w.labels, w.conditions = map[string]string{"gpu": "down"}, []string{"DriverReady"}
			},
			outcome: events.JoinAbandoned, message: "does not have the label gpu=up", result: pool.Abandon, ended: 14 * time.Minute,
			recorded: status.NodeNotJoined,
		},
		"a condition is not True": {
			pool: demands, world: func(w *world) {
				w.labels = map[string]string{"gpu": "up"}
			},
			outcome: events.JoinAbandoned, message: "its condition DriverReady, which its pool waits for, is not True", result: pool.Abandon,
			ended: 14 * time.Minute, recorded: status.NodeNotJoined,
		},
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
		"the API server is unreachable for ten minutes": {
			pool: rolling, world: func(w *world) {
				w.away = 10 * time.Minute
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: 10 * time.Minute,
			signals: []signal{{true, 10 * time.Minute}},
		},
		"the API server is unreachable until just before the limit": {
			pool: rolling, world: func(w *world) {
				w.away, w.registers, w.ready = 14*time.Minute-5*time.Second, 14*time.Minute, 14*time.Minute+5*time.Second
			}, outcome: events.JoinReady, message: "is Ready", result: pool.Continue,
			ended: 14*time.Minute + 5*time.Second, signals: []signal{{true, 14*time.Minute + 5*time.Second}},
		},
		"the API server is unreachable for hours": {
			pool: rolling, world: func(w *world) {
				w.away, w.registers, w.ready = 5*time.Hour, 5*time.Hour+10*time.Second, 5*time.Hour+20*time.Second
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: 5*time.Hour + 20*time.Second,
			signals: []signal{{true, 5*time.Hour + 20*time.Second}},
		},
		"the API server is unreachable forever": {
			pool: rolling, world: func(w *world) {
				w.away = never
			},
			outcome: events.JoinAbandoned, message: "the cluster's API does not answer", result: pool.Abandon, ended: 24 * time.Hour,
			recorded: status.NodeNotJoined,
		},
		"a permission is missing": {
			pool: rolling, world: func(w *world) {
				w.openErr = errors.New("AccessDenied: eks:DescribeCluster")
			},
			outcome: events.JoinAbandoned, message: "AccessDenied: eks:DescribeCluster", result: pool.Abandon, ended: 24 * time.Hour,
			recorded: status.NodeNotJoined,
		},
		"the cluster is deleted": {
			pool: rolling, world: func(w *world) { w.openErr = pool.ErrNoCluster }, outcome: events.JoinAbandoned, message: "does not exist",
			result: pool.Abandon,
		},
		"the instance terminates": {pool: rolling, world: func(w *world) {
			w.state = "Terminating:Wait"
		}, outcome: events.JoinGone, message: "is not waiting"},
		"the instance is in no group": {
			pool: rolling, world: func(w *world) { w.state = "" }, outcome: events.JoinGone, message: "is not waiting",
		},
		"the hook is being completed": {pool: rolling, world: func(w *world) {
			w.state = pool.PendingProceed
			w.after(950*time.Millisecond, func() { w.state = pool.InService })
		}, outcome: events.JoinReady, message: "in service", signals: []signal{{true, time.Second}}},
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
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c.world(w)
				got := w.run(c.pool)
				require.Equal(t, c.outcome, got.Outcome)
				require.Contains(t, got.Message, c.message)
				require.Equal(t, c.result, w.result)
				soon := func(want, got time.Duration) {
					require.GreaterOrEqual(t, got, want)
					require.LessOrEqual(t, got, want+want/30+3*time.Second, "changes are noticed at most 3 %% late")
				}
				soon(c.ended, w.ended)
				require.Len(t, w.signals, len(c.signals))
				for i, want := range c.signals {
					require.Equal(t, want.success, w.signals[i].success)
					soon(want.after, w.signals[i].after)
				}
				recorded := status.NodeState("")
				if w.status != nil {
					if i := slices.IndexFunc(w.status.Status.Nodes, func(n status.Node) bool { return n.Instance == "i-new" }); i >= 0 {
						recorded = w.status.Status.Nodes[i].State
						require.Contains(t, w.status.Status.Nodes[i].Message, strings.TrimSuffix(c.message, "; it counts when"))
					}
				}
				require.Equal(t, c.recorded, recorded)
			})
		})
	}
}

// The function reads Auto Scaling less often the longer a drain takes.
func TestPollingOfLongDrain(t *testing.T) {
	for lasts, reads := range map[time.Duration]int{10 * time.Second: 6, 10 * time.Minute: 105, time.Hour: 175} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.leaving["i-old"] = lasts
			require.Equal(t, events.JoinReady, w.run(`{"cluster":"demo","pool":"workers"}`).Outcome)
			require.InDelta(t, lasts, w.signals[0].after, float64(3*time.Second+lasts/30))
			require.Less(t, w.reads, reads, lasts)
		})
	}
}

func TestWaitingAddons(t *testing.T) {
	for name, c := range map[string]struct {
		addons string // the condition's status
		world  func(*world)
		due    bool
	}{
		"the add-ons wait":                     {"False", func(*world) {}, true},
		"the add-ons wait, and no node joins":  {"False", func(w *world) { w.registers = never }, false},
		"the add-ons are deployed":             {"True", func(*world) {}, false},
		"the add-ons have no condition":        {"", func(*world) {}, false},
		"the cluster has no status":            {"", func(w *world) { w.status = nil }, false},
		"the add-ons wait, and a node is late": {"False", func(w *world) { w.registers, w.ready = 5*time.Minute, 6*time.Minute }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(42 * time.Second) // into a minute
				w := newWorld(t)
				if c.addons != "" {
					w.status.Status.Set(status.Condition{Type: status.AddonsDeployed, Status: c.addons}, time.Now())
				}
				c.world(w)
				w.run(`{"cluster":"demo","pool":"workers"}`)
				var want []string
				if c.due {
					want = []string{names.Due(w.start.Truncate(time.Minute), "demo")}
				}
				require.Equal(t, want, w.due)
			})
		})
	}
}

// The status names an unreachable cluster: at once if the error is permanent, otherwise after a while.
func TestStatusOfUnreachableCluster(t *testing.T) {
	for name, c := range map[string]struct {
		world    func(*world)
		at       time.Duration
		recorded bool
	}{
		"a permission is missing":           {func(w *world) { w.openErr = errors.New("AccessDenied") }, time.Minute, true},
		"the API server is away":            {func(w *world) { w.away = 10 * time.Minute }, 9 * time.Minute, false},
		"the API server is away for longer": {func(w *world) { w.away = time.Hour }, 16 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c.world(w)
				var then []status.Node
				w.after(c.at, func() { then, w.openErr = slices.Clone(w.status.Status.Nodes), nil })
				require.Equal(t, events.JoinReady, w.run(`{"cluster":"demo","pool":"workers"}`).Outcome)
				require.Equal(t, c.recorded, len(then) == 1 && then[0].State == status.NodeUnreachable, "%v", then)
				require.Empty(t, w.status.Status.Nodes, "the cluster answers")
			})
		})
	}
}

// The function failed after the hook was completed. The instance has joined, and does not fail the update.
func TestOmittedSignal(t *testing.T) {
	w := newWorld(t)
	w.state = pool.InService
	w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
	h := &Handler{Groups: w, Stacks: stackFake{w}, State: state{w}, Now: time.Now}
	got, err := h.Handle(t.Context(), events.JoinRequest{GivenUp: "Throttled: rate exceeded", Lifecycle: events.Lifecycle{
		EC2InstanceID: "i-new", NotificationMetadata: `{"cluster":"demo","pool":"workers"}`,
	}})
	require.NoError(t, err)
	require.Equal(t, events.JoinReady, got.Outcome)
	require.Empty(t, w.signals)
	require.Len(t, w.status.Status.Nodes, 1)
}

func TestHookWithoutPool(t *testing.T) {
	_, err := (&Handler{Now: time.Now}).Handle(t.Context(), events.JoinRequest{Lifecycle: events.Lifecycle{NotificationMetadata: "?"}})
	require.ErrorContains(t, err, `does not name its pool: "?"`)
}
