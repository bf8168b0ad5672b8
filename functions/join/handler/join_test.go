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
			rolling, func(*world) {}, events.JoinReady, "node n1 is Ready (v1.36.3)", pool.Continue, 0, []signal{{true, 0 * time.Second}}, "",
		},
		"Ready after a while": {
			rolling, func(w *world) {
				w.registers, w.ready = time.Minute, 3*time.Minute
			}, events.JoinReady, "is Ready", pool.Continue, 3 * time.Minute, []signal{{true, 180 * time.Second}}, "",
		},
		"registers late": {
			rolling, func(w *world) {
				w.registers, w.ready = 13*time.Minute, 13*time.Minute+30*time.Second
			}, events.JoinReady, "is Ready", pool.Continue, 13*time.Minute + 30*time.Second, []signal{{true, 810 * time.Second}}, "",
		},
		"never registers": {
			rolling, failing, events.JoinAbandoned, "has not registered", pool.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"never Ready": {
			rolling, func(w *world) {
				w.ready = never
			}, events.JoinAbandoned, "node n1 is not Ready: no network", pool.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"a kubelet that is too new": {
			rolling, func(w *world) {
				w.kubelet = "v1.37.0"
			}, events.JoinAbandoned, "newer than the control plane", pool.Abandon, 0, nil, status.NodeNotJoined,
		},
		"the node has the pool's labels and conditions": {
			demands, func(w *world) {
				w.ready, w.labels, w.conditions = time.Minute, map[string]string{"gpu": "up"}, []string{"DriverReady"}
			}, events.JoinReady, "is Ready", pool.Continue, time.Minute, []signal{{true, 60 * time.Second}}, "",
		},
		"a label has another value": {
			demands, func(w *world) {
				w.labels, w.conditions = map[string]string{"gpu": "down"}, []string{"DriverReady"}
			}, events.JoinAbandoned, "does not have the label gpu=up", pool.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"a condition is not True": {
			demands, func(w *world) {
				w.labels = map[string]string{"gpu": "up"}
			}, events.JoinAbandoned, "its condition DriverReady, which its pool waits for, is not True", pool.Abandon, 14 * time.Minute,
			nil, status.NodeNotJoined,
		},
		"a drain of seconds delays the signal, not the hook": {
			rolling, func(w *world) {
				w.leaving["i-old"] = 30 * time.Second
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 30 * time.Second}}, "",
		},
		"a drain of minutes": {
			rolling, func(w *world) {
				w.leaving["i-old"] = 20 * time.Minute
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 20 * time.Minute}}, "",
		},
		"a drain that CloudFormation waits for before it waits for signals": {
			rolling, func(w *world) { w.leaving["i-old"] = 3 * time.Hour },
			events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 3 * time.Hour}}, "",
		},
		"a drain after the update was rolled back: no signal": {
			rolling, func(w *world) {
				w.leaving["i-old"] = 3 * time.Hour
				w.after(time.Hour, func() { w.stack = "UPDATE_ROLLBACK_COMPLETE" })
			}, events.JoinReady, "not signalled: the instance is in service; its signal waits until i-old has been drained", pool.Continue,
			0, nil, "",
		},
		"the node stops being Ready before its signal": {
			pauses, func(w *world) {
				w.old, w.unwell, w.well = []string{"i-old"}, 5*time.Minute, 20*time.Minute
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 20*time.Minute + 200*time.Second}}, "",
		},
		"the node stops being Ready forever: no signal": {
			rolling, func(w *world) {
				w.leaving["i-old"], w.unwell, w.well = 2*time.Minute, time.Minute, never
			}, events.JoinReady, "its signal waits until it is Ready again: node n1 is not Ready: no network", pool.Continue, 0, nil, "",
		},
		"the cluster is unreachable before the signal": {
			pauses, func(w *world) {
				w.old = []string{"i-old"}
				w.after(time.Minute, func() { w.away = 30 * time.Minute })
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 30*time.Minute + 200*time.Second}}, "",
		},
		"another node of the pool is being drained": {
			rolling, func(w *world) {
				w.old, w.drained = []string{"i-old"}, 15*time.Minute
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 15 * time.Minute}}, "",
		},
		"the node of a deleted instance does not count": {
			rolling, func(w *world) { w.drained = never }, events.JoinReady, "is Ready", pool.Continue, 0, []signal{{true, 0}}, "",
		},
		"the pool's pause": {
			pauses, func(w *world) {
				w.old = []string{"i-old"}
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 600 * time.Second}}, "",
		},
		"no pause after the last batch": {
			pauses, func(*world) {}, events.JoinReady, "is Ready", pool.Continue, 0, []signal{{true, 0 * time.Second}}, "",
		},
		"a drain, then the pause": {
			pauses, func(w *world) {
				w.old, w.leaving["i-old2"] = []string{"i-old"}, 4*time.Minute
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 840 * time.Second}}, "",
		},
		"an autoscaler adds an instance that the update does not wait for": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 2, 5, 4
				w.after(10*time.Minute, func() { w.old, w.leaving["i-old2"] = w.old[:1], 12*time.Minute })
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 12 * time.Minute}}, "",
		},
		"an autoscaler adds an instance, and the update takes hours": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min = []string{"i-old"}, 2, 5, 4
				w.leaving["i-old2"] = 5 * time.Hour
				w.after(5*time.Hour, func() { w.stack, w.old = "UPDATE_COMPLETE", nil })
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 5 * time.Hour}}, "",
		},
		"an autoscaler adds an instance, and the update waits for this one": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 2, 5, 4
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 10 * time.Minute}}, "",
		},
		"an autoscaler adds an instance that the update waits for": {
			rolling, func(w *world) { w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 1, 5, 4 },
			events.JoinReady, "is Ready", pool.Continue, 0, []signal{{true, 0}}, "",
		},
		"an autoscaler added instances before the update": {
			rolling, func(w *world) { w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 2, 6, 5 },
			events.JoinReady, "is Ready", pool.Continue, 0, []signal{{true, 0}}, "",
		},
		"an autoscaler adds instances without an update": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.stack = []string{"i-old"}, 4, 6, 1, "UPDATE_COMPLETE"
			},
			events.JoinReady, "is Ready", pool.Continue, 0, []signal{{true, 0}}, "",
		},
		"a node of an earlier batch stops being Ready": {
			rolling, func(w *world) {
				w.old, w.fellows, w.ill = []string{"i-old"}, 3, 7*time.Minute
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 7 * time.Minute}}, "",
		},
		"a node of an earlier batch stops being Ready until the rollback": {
			rolling, func(w *world) {
				w.old, w.fellows, w.ill = []string{"i-old"}, 1, never
				w.after(time.Hour, func() { w.stack = "UPDATE_ROLLBACK_COMPLETE" })
			}, events.JoinReady, "not signalled", pool.Continue, 0, nil, "",
		},
		"a node of an earlier batch no longer exists": {
			rolling, func(w *world) {
				w.old, w.fellows, w.ill = []string{"i-old"}, 1, -1
			}, events.JoinReady, "is Ready", pool.Continue, 0, []signal{{true, 0}}, "",
		},
		"a node of an earlier batch stops being Ready after the last batch": {
			rolling, func(w *world) { w.fellows, w.ill = 1, never }, events.JoinReady, "is Ready", pool.Continue, 0, []signal{{true, 0}}, "",
		},
		"an autoscaler adds an instance, and another launches": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, 6*time.Minute, "2"
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 6 * time.Minute}}, "",
		},
		"the other instance does not join": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, never, "2"
				w.after(14*time.Minute, func() {
					w.status.Status.SetNode(status.Node{Instance: "i-came", Pool: "workers", State: status.NodeNotJoined, Template: "2"}, time.Now())
				})
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 14 * time.Minute}}, "",
		},
		"the other instance replaces one that did not join": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, never, "2"
				w.status.Status.SetNode(status.Node{Instance: "i-came", Pool: "workers", State: status.NodeNotJoined, Template: "2"},
					time.Now().Add(-18*time.Minute))
			}, events.JoinReady, "is Ready", pool.Continue, 0, []signal{{true, 0}}, "",
		},
		"instances that did not join were of another pool, or long ago, or have joined": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, 6*time.Minute, "2"
				w.status.Status.SetNode(status.Node{Instance: "i-a", Pool: "other", State: status.NodeNotJoined, Template: "2"}, time.Now())
				w.status.Status.SetNode(status.Node{
					Instance: "i-b", Pool: "workers", State: status.NodeNotJoined, Template: "2",
				}, time.Now().Add(-20*time.Minute))
				w.status.Status.SetNode(status.Node{Instance: "i-c", Pool: "workers", State: status.NodeDraining, Template: "2"}, time.Now())
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 6 * time.Minute}}, "",
		},
		"an instance that did not join has not failed the update yet": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, 10*time.Minute, "2"
				for _, id := range []string{"i-came", "i-coming"} {
					w.status.Status.SetNode(status.Node{Instance: id, Pool: "workers", State: status.NodeNotJoined, Template: "2"}, time.Now())
				}
			}, events.JoinReady, "in service", pool.Continue, 0, []signal{{true, 10 * time.Minute}}, "",
		},
		"an instance of the old launch template is launching": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old"}, 1, 5, 4, never, "1"
			}, events.JoinReady, "is Ready", pool.Continue, 0, []signal{{true, 0}}, "",
		},
		"the update replaces the instance: no signal": {
			rolling, func(w *world) {
				w.template = "3"
			}, events.JoinReady, "the update will replace it too, so it sends no signal", pool.Continue, 0, nil, "",
		},
		"an instance refresh holds the hook": {
			refresh, func(w *world) {
				w.old, w.leaving["i-old2"] = []string{"i-old"}, 3*time.Hour
			}, events.JoinReady, "is Ready", pool.Continue, 3*time.Hour + 10*time.Minute, []signal{{true, 3*time.Hour + 10*time.Minute}}, "",
		},
		"an instance refresh has no batch left if only leaving nodes are outdated": {
			refresh, func(w *world) {
				w.template, w.fellows, w.leaving["i-old"] = "2", 1, never
			}, events.JoinReady, "is Ready", pool.Continue, 0, []signal{{true, 0}}, "",
		},
		"an instance refresh holds the hook while another outdated node is in service": {
			refresh, func(w *world) {
				w.template, w.fellows, w.old, w.leaving["i-old2"] = "2", 1, []string{"i-old"}, 3*time.Hour
			}, events.JoinReady, "is Ready", pool.Continue, 3*time.Hour + 10*time.Minute, []signal{{true, 3*time.Hour + 10*time.Minute}}, "",
		},
		"an instance refresh holds the hook of an instance that is outdated itself": {
			refresh, func(w *world) {
				w.template, w.leaving["i-old"] = "3", time.Hour
			}, events.JoinReady, "is Ready", pool.Continue, time.Hour, []signal{{true, time.Hour}}, "",
		},
		"an instance refresh that changes no template holds the hook": {
			refresh, func(w *world) {
				w.template, w.leavingOf, w.leaving["i-old"] = "2", "2", time.Hour
			}, events.JoinReady, "is Ready", pool.Continue, time.Hour, []signal{{true, time.Hour}}, "",
		},
		"an instance refresh holds the hook for at most a day": {
			refresh, func(w *world) {
				w.leaving["i-old"] = never
			}, events.JoinReady, "its launch hook waits until i-old has been drained", pool.Continue,
			24 * time.Hour, []signal{{true, 24 * time.Hour}}, "",
		},
		"the API server is unreachable for ten minutes": {
			rolling, func(w *world) {
				w.away = 10 * time.Minute
			}, events.JoinReady, "is Ready", pool.Continue, 10 * time.Minute, []signal{{true, 10 * time.Minute}}, "",
		},
		"the API server is unreachable until just before the limit": {
			rolling, func(w *world) {
				w.away, w.registers, w.ready = 14*time.Minute-5*time.Second, 14*time.Minute, 14*time.Minute+5*time.Second
			}, events.JoinReady, "is Ready", pool.Continue,
			14*time.Minute + 5*time.Second, []signal{{true, 14*time.Minute + 5*time.Second}}, "",
		},
		"the API server is unreachable for hours": {
			rolling, func(w *world) {
				w.away, w.registers, w.ready = 5*time.Hour, 5*time.Hour+10*time.Second, 5*time.Hour+20*time.Second
			}, events.JoinReady, "is Ready", pool.Continue, 5*time.Hour + 20*time.Second, []signal{{true, 5*time.Hour + 20*time.Second}}, "",
		},
		"the API server is unreachable forever": {
			rolling, func(w *world) {
				w.away = never
			}, events.JoinAbandoned, "the cluster's API does not answer", pool.Abandon, 24 * time.Hour, nil, status.NodeNotJoined,
		},
		"a permission is missing": {
			rolling, func(w *world) {
				w.openErr = errors.New("AccessDenied: eks:DescribeCluster")
			}, events.JoinAbandoned, "AccessDenied: eks:DescribeCluster", pool.Abandon, 24 * time.Hour, nil, status.NodeNotJoined,
		},
		"the cluster is deleted": {
			rolling, func(w *world) { w.openErr = pool.ErrNoCluster }, events.JoinAbandoned, "does not exist", pool.Abandon, 0, nil, "",
		},
		"the instance terminates": {rolling, func(w *world) {
			w.state = "Terminating:Wait"
		}, events.JoinGone, "is not waiting", "", 0, nil, ""},
		"the instance is in no group": {rolling, func(w *world) { w.state = "" }, events.JoinGone, "is not waiting", "", 0, nil, ""},
		"the hook is being completed": {rolling, func(w *world) {
			w.state = pool.PendingProceed
			w.after(950*time.Millisecond, func() { w.state = pool.InService })
		}, events.JoinReady, "in service", "", 0, []signal{{true, time.Second}}, ""},
		"the second fails the update": {
			rolling, second, events.JoinAbandoned, "has not registered", pool.Abandon, 14 * time.Minute, []signal{
				{false, 840 * time.Second},
			}, status.NodeNotJoined,
		},
		"the second of the new version fails the update": {rolling, func(w *world) {
			second(w)
			w.template = "2"
		}, events.JoinAbandoned, "has not registered", pool.Abandon, 14 * time.Minute, []signal{{false, 840 * time.Second}},
			status.NodeNotJoined},
		"the second of the old version does not fail the update": {rolling, func(w *world) {
			second(w)
			w.template = "3"
		}, events.JoinAbandoned, "has not", pool.Abandon, 14 * time.Minute, nil, status.NodeNotJoined},
		"the first was of the old version": {
			rolling, func(w *world) {
				failing(w)
				w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined, Template: "1"}, time.Now())
			}, events.JoinAbandoned, "has not", pool.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"the second does not fail a rollback": {rolling, func(w *world) {
			second(w)
			w.stack = "UPDATE_ROLLBACK_IN_PROGRESS"
		}, events.JoinAbandoned, "has not", pool.Abandon, 14 * time.Minute, nil, status.NodeNotJoined},
		"the second fails nothing without a change": {rolling, func(w *world) {
			second(w)
			w.status.Status.Phase = status.Ready
		}, events.JoinAbandoned, "has not", pool.Abandon, 14 * time.Minute, nil, status.NodeNotJoined},
		"one of another pool, or of an earlier update, does not count": {
			rolling, func(w *world) {
				failing(w)
				w.status.Status.SetNode(status.Node{Instance: "i-a", Pool: "other", State: status.NodeNotJoined}, time.Now())
				w.status.Status.Execution = "arn:converge:0"
				w.status.Status.SetNode(status.Node{Instance: "i-b", Pool: "workers", State: status.NodeNotJoined}, time.Now())
				w.status.Status.Execution = "arn:converge:1"
			}, events.JoinAbandoned, "has not", pool.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"the failure waits for the drains of its batch": {
			rolling, func(w *world) {
				second(w)
				w.leaving["i-old"] = 30 * time.Minute
			}, events.JoinAbandoned, "has not registered", pool.Abandon, 30 * time.Minute, []signal{{false, 30 * time.Minute}},
			status.NodeNotJoined,
		},
		"the failure waits for drains from the start": {
			rolling, func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 20 * time.Minute
			}, events.JoinAbandoned, "newer than the control plane", pool.Abandon, 20 * time.Minute, []signal{{false, 20 * time.Minute}},
			status.NodeNotJoined,
		},
		"the failure waits for drains of other nodes": {
			rolling, func(w *world) {
				tooNew(w)
				w.old, w.drained = []string{"i-old"}, 20*time.Minute
			}, events.JoinAbandoned, "newer than the control plane", pool.Abandon, 20 * time.Minute, []signal{{false, 20 * time.Minute}},
			status.NodeNotJoined,
		},
		"the failure waits at most until the signal limit": {
			rolling, func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
			}, events.JoinAbandoned, "newer than the control plane", pool.Abandon, 74 * time.Minute, []signal{{false, 74 * time.Minute}},
			status.NodeNotJoined,
		},
		"the failure stops waiting after a rollback began": {
			rolling, func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
				w.after(20*time.Minute, func() { w.stack = "UPDATE_ROLLBACK_IN_PROGRESS" })
			}, events.JoinAbandoned, "newer than the control plane", pool.Abandon, 20 * time.Minute, nil, status.NodeNotJoined,
		},
		"the failure stops waiting after the change ended": {
			rolling, func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
				w.after(20*time.Minute, func() { w.status.Status.Phase = status.Failed })
			}, events.JoinAbandoned, "newer than the control plane", pool.Abandon, 20 * time.Minute, nil, status.NodeNotJoined,
		},
		"the instance joins during the wait": {
			rolling, func(w *world) {
				second(w)
				w.registers, w.ready, w.leaving["i-old"] = 20*time.Minute, 25*time.Minute, 40*time.Minute
			}, events.JoinReady, "in service", pool.Continue, 25 * time.Minute, []signal{{true, 40 * time.Minute}}, "",
		},
		"the failure waits while the cluster is unreachable": {
			rolling, func(w *world) {
				second(w)
				w.leaving["i-old"] = 30 * time.Minute
				w.after(20*time.Minute, func() { w.away = 50 * time.Minute })
			}, events.JoinAbandoned, "has not registered", pool.Abandon, 50 * time.Minute, []signal{{false, 50 * time.Minute}},
			status.NodeNotJoined,
		},
		"the first is replaced during drains": {
			rolling, func(w *world) {
				w.kubelet = "v1.37.0"
				w.leaving["i-old"] = 3 * time.Hour
			}, events.JoinAbandoned, "newer than the control plane", pool.Abandon, 0, nil, status.NodeNotJoined,
		},
		"one of the old version is replaced during drains": {
			rolling, func(w *world) {
				tooNew(w)
				w.template = "3"
				w.leaving["i-old"] = 3 * time.Hour
			}, events.JoinAbandoned, "newer than the control plane", pool.Abandon, 0, nil, status.NodeNotJoined,
		},
		"a new pool has no nodes to wait for": {
			rolling, func(w *world) {
				tooNew(w)
				w.stack = "CREATE_IN_PROGRESS"
				w.leaving["i-first"] = 3 * time.Hour
			}, events.JoinAbandoned, "newer than the control plane", pool.Abandon, 0, []signal{{false, 0}}, status.NodeNotJoined,
		},
		"an instance refresh ignores the signal": {
			refresh, func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
			}, events.JoinAbandoned, "newer than the control plane", pool.Abandon, 0, []signal{{false, 0}}, status.NodeNotJoined,
		},
		"a cluster without a status gets none": {rolling, func(w *world) {
			failing(w)
			w.status = nil
		}, events.JoinAbandoned, "has not", pool.Abandon, 14 * time.Minute, nil, ""},
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
