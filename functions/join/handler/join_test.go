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
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // a day of virtual time has a lot to say
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
		// result of the hook, and when; signals sent; what the status has of the instance in the end.
		result  autoscaling.Result
		ended   time.Duration
		signals []signal
		told    status.NodeState
	}{
		"Ready at once": {
			rolling, func(*world) {}, events.JoinReady, "node n1 is Ready (v1.36.3)", autoscaling.Continue, 0, []signal{{true, 0 * time.Second}}, "",
		},
		"Ready after a while": {
			rolling, func(w *world) {
				w.registers, w.ready = time.Minute, 3*time.Minute
			}, events.JoinReady, "is Ready", autoscaling.Continue, 3 * time.Minute, []signal{{true, 180 * time.Second}}, "",
		},
		"registered late": {
			rolling, func(w *world) {
				w.registers, w.ready = 13*time.Minute, 13*time.Minute+30*time.Second
			}, events.JoinReady, "is Ready", autoscaling.Continue, 13*time.Minute + 30*time.Second, []signal{{true, 810 * time.Second}}, "",
		},
		"never registered": {
			rolling, failing, events.JoinAbandoned, "has not registered", autoscaling.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"never Ready": {
			rolling, func(w *world) {
				w.ready = never
			}, events.JoinAbandoned, "node n1 is not Ready: no network", autoscaling.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"a kubelet that is too new": {
			rolling, func(w *world) {
				w.kubelet = "v1.37.0"
			}, events.JoinAbandoned, "newer than the control plane", autoscaling.Abandon, 0, nil, status.NodeNotJoined,
		},
		"the pool's labels and conditions are there": {
			demands, func(w *world) {
				w.ready, w.labels, w.conditions = time.Minute, map[string]string{"gpu": "up"}, []string{"DriverReady"}
			}, events.JoinReady, "is Ready", autoscaling.Continue, time.Minute, []signal{{true, 60 * time.Second}}, "",
		},
		"a label is another": {
			demands, func(w *world) {
				w.labels, w.conditions = map[string]string{"gpu": "down"}, []string{"DriverReady"}
			}, events.JoinAbandoned, "has not the label gpu=up", autoscaling.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"a condition is not True": {
			demands, func(w *world) {
				w.labels = map[string]string{"gpu": "up"}
			}, events.JoinAbandoned, "its condition DriverReady, which its pool waits for, is not True", autoscaling.Abandon, 14 * time.Minute,
			nil, status.NodeNotJoined,
		},
		"a drain of seconds holds the signal, not the hook": {
			rolling, func(w *world) {
				w.leaving["i-old"] = 30 * time.Second
			}, events.JoinReady, "is Ready", autoscaling.Continue, 0, []signal{{true, 30 * time.Second}}, "",
		},
		"a drain of minutes": {
			rolling, func(w *world) {
				w.leaving["i-old"] = 20 * time.Minute
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 20 * time.Minute}}, "",
		},
		"a drain that CloudFormation waits for, too, and only then for signals": {
			rolling, func(w *world) { w.leaving["i-old"] = 3 * time.Hour },
			events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 3 * time.Hour}}, "",
		},
		"a drain that nobody waits for any more: no signal": {
			rolling, func(w *world) {
				w.leaving["i-old"] = 3 * time.Hour
				w.after(time.Hour, func() { w.stack = "UPDATE_ROLLBACK_COMPLETE" })
			}, events.JoinReady, "not signalled: the instance is in service; it counts when i-old are drained", autoscaling.Continue, 0, nil, "",
		},
		"a node that is not Ready any more when its time has come": {
			pauses, func(w *world) {
				w.old, w.unwell, w.well = []string{"i-old"}, 5*time.Minute, 20*time.Minute
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 20*time.Minute + 200*time.Second}}, "",
		},
		"nor ever again: no signal": {
			rolling, func(w *world) {
				w.leaving["i-old"], w.unwell, w.well = 2*time.Minute, time.Minute, never
			}, events.JoinReady, "it counts when it is what it was: node n1 is not Ready: no network", autoscaling.Continue, 0, nil, "",
		},
		"the cluster cannot be asked when its time has come": {
			pauses, func(w *world) {
				w.old = []string{"i-old"}
				w.after(time.Minute, func() { w.away = 30 * time.Minute })
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 30*time.Minute + 200*time.Second}}, "",
		},
		"another node of the pool is drained, by hand or for its spot instance": {
			rolling, func(w *world) {
				w.old, w.drained = []string{"i-old"}, 15*time.Minute
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 15 * time.Minute}}, "",
		},
		"what its instance leaves behind counts not": {
			rolling, func(w *world) { w.drained = never }, events.JoinReady, "is Ready", autoscaling.Continue, 0, []signal{{true, 0}}, "",
		},
		"the pool's pause": {
			pauses, func(w *world) {
				w.old = []string{"i-old"}
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 600 * time.Second}}, "",
		},
		"no pause when nothing is left to roll": {
			pauses, func(*world) {}, events.JoinReady, "is Ready", autoscaling.Continue, 0, []signal{{true, 0 * time.Second}}, "",
		},
		"a drain, then the pause": {
			pauses, func(w *world) {
				w.old, w.leaving["i-old2"] = []string{"i-old"}, 4*time.Minute
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 840 * time.Second}}, "",
		},
		"one more than the update waits for, as an autoscaler wants it": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 2, 5, 4
				w.after(10*time.Minute, func() { w.old, w.leaving["i-old2"] = w.old[:1], 12*time.Minute })
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 12 * time.Minute}}, "",
		},
		"for hours": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 2, 5, 4
				w.after(5*time.Hour, func() { w.stack, w.old = "UPDATE_COMPLETE", nil })
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 5 * time.Hour}}, "",
		},
		"an autoscaler wants more, and the update waits for it": {
			rolling, func(w *world) { w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 1, 5, 4 },
			events.JoinReady, "is Ready", autoscaling.Continue, 0, []signal{{true, 0}}, "",
		},
		"an autoscaler wants more, and wanted more before the update began": {
			rolling, func(w *world) { w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 2, 6, 5 },
			events.JoinReady, "is Ready", autoscaling.Continue, 0, []signal{{true, 0}}, "",
		},
		"an autoscaler wants more, and nothing is rolled": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.stack = []string{"i-old"}, 4, 6, 1, "UPDATE_COMPLETE"
			},
			events.JoinReady, "is Ready", autoscaling.Continue, 0, []signal{{true, 0}}, "",
		},
		"a new node of an earlier batch is not Ready any more": {
			rolling, func(w *world) {
				w.old, w.fellows, w.ill = []string{"i-old"}, 3, 7*time.Minute
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 7 * time.Minute}}, "",
		},
		"and stays so until nobody waits": {
			rolling, func(w *world) {
				w.old, w.fellows, w.ill = []string{"i-old"}, 1, never
				w.after(time.Hour, func() { w.stack = "UPDATE_ROLLBACK_COMPLETE" })
			}, events.JoinReady, "not signalled", autoscaling.Continue, 0, nil, "",
		},
		"or its machine is gone": {
			rolling, func(w *world) {
				w.old, w.fellows, w.ill = []string{"i-old"}, 1, -1
			}, events.JoinReady, "is Ready", autoscaling.Continue, 0, []signal{{true, 0}}, "",
		},
		"or there is nothing left to replace": {
			rolling, func(w *world) { w.fellows, w.ill = 1, never }, events.JoinReady, "is Ready", autoscaling.Continue, 0, []signal{{true, 0}}, "",
		},
		"an autoscaler wants more, and one is on its way in": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, 6*time.Minute, "2"
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 6 * time.Minute}}, "",
		},
		"and does not join, nor do those in its place": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, never, "2"
				w.after(14*time.Minute, func() {
					w.status.Status.SetNode(status.Node{Instance: "i-came", Pool: "workers", State: status.NodeNotJoined, Template: "2"}, time.Now())
				})
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 14 * time.Minute}}, "",
		},
		"and took the place of one that did not join a while ago": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, never, "2"
				w.status.Status.SetNode(status.Node{Instance: "i-came", Pool: "workers", State: status.NodeNotJoined, Template: "2"},
					time.Now().Add(-18*time.Minute))
			}, events.JoinReady, "is Ready", autoscaling.Continue, 0, []signal{{true, 0}}, "",
		},
		"and those that did not join were of another pool, or long ago, or have joined": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, 6*time.Minute, "2"
				w.status.Status.SetNode(status.Node{Instance: "i-a", Pool: "other", State: status.NodeNotJoined, Template: "2"}, time.Now())
				w.status.Status.SetNode(status.Node{
					Instance: "i-b", Pool: "workers", State: status.NodeNotJoined, Template: "2",
				}, time.Now().Add(-20*time.Minute))
				w.status.Status.SetNode(status.Node{Instance: "i-c", Pool: "workers", State: status.NodeDraining, Template: "2"}, time.Now())
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 6 * time.Minute}}, "",
		},
		"nor does it before one that did not join has failed the update": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, 10*time.Minute, "2"
				for _, id := range []string{"i-came", "i-coming"} {
					w.status.Status.SetNode(status.Node{Instance: id, Pool: "workers", State: status.NodeNotJoined, Template: "2"}, time.Now())
				}
			}, events.JoinReady, "in service", autoscaling.Continue, 0, []signal{{true, 10 * time.Minute}}, "",
		},
		"or one of what is replaced is": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old"}, 1, 5, 4, never, "1"
			}, events.JoinReady, "is Ready", autoscaling.Continue, 0, []signal{{true, 0}}, "",
		},
		"of a launch template that an update replaces: no signal": {
			rolling, func(w *world) {
				w.template = "3"
			}, events.JoinReady, "it is replaced, too, and nobody waits for it", autoscaling.Continue, 0, nil, "",
		},
		"an instance refresh holds the hook": {
			refresh, func(w *world) {
				w.old, w.leaving["i-old2"] = []string{"i-old"}, 3*time.Hour
			}, events.JoinReady, "is Ready", autoscaling.Continue, 3*time.Hour + 10*time.Minute, []signal{{true, 3*time.Hour + 10*time.Minute}}, "",
		},
		"an instance refresh has no batch to hold back when only nodes that leave are outdated": {
			refresh, func(w *world) {
				w.template, w.fellows, w.leaving["i-old"] = "2", 1, never
			}, events.JoinReady, "is Ready", autoscaling.Continue, 0, []signal{{true, 0}}, "",
		},
		"an instance refresh holds the hook while another outdated node is in service": {
			refresh, func(w *world) {
				w.template, w.fellows, w.old, w.leaving["i-old2"] = "2", 1, []string{"i-old"}, 3*time.Hour
			}, events.JoinReady, "is Ready", autoscaling.Continue, 3*time.Hour + 10*time.Minute, []signal{{true, 3*time.Hour + 10*time.Minute}}, "",
		},
		"an instance refresh holds the hook of an instance that is outdated itself": {
			refresh, func(w *world) {
				w.template, w.leaving["i-old"] = "3", time.Hour
			}, events.JoinReady, "is Ready", autoscaling.Continue, time.Hour, []signal{{true, time.Hour}}, "",
		},
		"an instance refresh that changes no template holds the hook": {
			refresh, func(w *world) {
				w.template, w.leavingOf, w.leaving["i-old"] = "2", "2", time.Hour
			}, events.JoinReady, "is Ready", autoscaling.Continue, time.Hour, []signal{{true, time.Hour}}, "",
		},
		"an instance refresh holds it for a day": {
			refresh, func(w *world) {
				w.leaving["i-old"] = never
			}, events.JoinReady, "it counts when i-old are drained", autoscaling.Continue, 24 * time.Hour, []signal{{true, 24 * time.Hour}}, "",
		},
		"the API server is away for ten minutes": {
			rolling, func(w *world) {
				w.away = 10 * time.Minute
			}, events.JoinReady, "is Ready", autoscaling.Continue, 10 * time.Minute, []signal{{true, 10 * time.Minute}}, "",
		},
		"the API server is away until the instance's time is almost over": {
			rolling, func(w *world) {
				w.away, w.registers, w.ready = 14*time.Minute-5*time.Second, 14*time.Minute, 14*time.Minute+5*time.Second
			}, events.JoinReady, "is Ready", autoscaling.Continue,
			14*time.Minute + 5*time.Second, []signal{{true, 14*time.Minute + 5*time.Second}}, "",
		},
		"the API server is away for hours": {
			rolling, func(w *world) {
				w.away, w.registers, w.ready = 5*time.Hour, 5*time.Hour+10*time.Second, 5*time.Hour+20*time.Second
			}, events.JoinReady, "is Ready", autoscaling.Continue, 5*time.Hour + 20*time.Second, []signal{{true, 5*time.Hour + 20*time.Second}}, "",
		},
		"the API server is away for ever": {
			rolling, func(w *world) {
				w.away = never
			}, events.JoinAbandoned, "the cluster cannot be asked", autoscaling.Abandon, 24 * time.Hour, nil, status.NodeNotJoined,
		},
		"a permission is missing": {
			rolling, func(w *world) {
				w.openErr = errors.New("AccessDenied: eks:DescribeCluster")
			}, events.JoinAbandoned, "AccessDenied: eks:DescribeCluster", autoscaling.Abandon, 24 * time.Hour, nil, status.NodeNotJoined,
		},
		"the cluster is deleted": {
			rolling, func(w *world) { w.openErr = kube.ErrNoCluster }, events.JoinAbandoned, "not there", autoscaling.Abandon, 0, nil, "",
		},
		"the instance is gone": {rolling, func(w *world) {
			w.state = "Terminating:Wait"
		}, events.JoinGone, "does not wait", "", 0, nil, ""},
		"the instance is in no group": {rolling, func(w *world) { w.state = "" }, events.JoinGone, "does not wait", "", 0, nil, ""},
		"the hook is being completed": {rolling, func(w *world) {
			w.state = pool.PendingProceed
			w.after(950*time.Millisecond, func() { w.state = pool.InService })
		}, events.JoinReady, "in service", "", 0, []signal{{true, time.Second}}, ""},
		"the second fails the update": {
			rolling, second, events.JoinAbandoned, "has not registered", autoscaling.Abandon, 14 * time.Minute, []signal{
				{false, 840 * time.Second},
			}, status.NodeNotJoined,
		},
		"of what it brings": {rolling, func(w *world) {
			second(w)
			w.template = "2"
		}, events.JoinAbandoned, "has not registered", autoscaling.Abandon, 14 * time.Minute, []signal{{false, 840 * time.Second}},
			status.NodeNotJoined},
		"and not of what it replaces": {rolling, func(w *world) {
			second(w)
			w.template = "3"
		}, events.JoinAbandoned, "has not", autoscaling.Abandon, 14 * time.Minute, nil, status.NodeNotJoined},
		"the first was of what it replaces": {
			rolling, func(w *world) {
				failing(w)
				w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined, Template: "1"}, time.Now())
			}, events.JoinAbandoned, "has not", autoscaling.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"but not its rollback": {rolling, func(w *world) {
			second(w)
			w.stack = "UPDATE_ROLLBACK_IN_PROGRESS"
		}, events.JoinAbandoned, "has not", autoscaling.Abandon, 14 * time.Minute, nil, status.NodeNotJoined},
		"nor when nobody changes a pool": {rolling, func(w *world) {
			second(w)
			w.status.Status.Phase = status.Ready
		}, events.JoinAbandoned, "has not", autoscaling.Abandon, 14 * time.Minute, nil, status.NodeNotJoined},
		"one of another pool, or of an earlier update, counts not": {
			rolling, func(w *world) {
				failing(w)
				w.status.Status.SetNode(status.Node{Instance: "i-a", Pool: "other", State: status.NodeNotJoined}, time.Now())
				w.status.Status.Execution = "arn:converge:0"
				w.status.Status.SetNode(status.Node{Instance: "i-b", Pool: "workers", State: status.NodeNotJoined}, time.Now())
				w.status.Status.Execution = "arn:converge:1"
			}, events.JoinAbandoned, "has not", autoscaling.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"it waits for the drains of its batch": {
			rolling, func(w *world) {
				second(w)
				w.leaving["i-old"] = 30 * time.Minute
			}, events.JoinAbandoned, "has not registered", autoscaling.Abandon, 30 * time.Minute, []signal{{false, 30 * time.Minute}},
			status.NodeNotJoined,
		},
		"from the first moment on": {
			rolling, func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 20 * time.Minute
			}, events.JoinAbandoned, "newer than the control plane", autoscaling.Abandon, 20 * time.Minute, []signal{{false, 20 * time.Minute}},
			status.NodeNotJoined,
		},
		"and for those of nodes that serve": {
			rolling, func(w *world) {
				tooNew(w)
				w.old, w.drained = []string{"i-old"}, 20*time.Minute
			}, events.JoinAbandoned, "newer than the control plane", autoscaling.Abandon, 20 * time.Minute, []signal{{false, 20 * time.Minute}},
			status.NodeNotJoined,
		},
		"for as long as CloudFormation waits for it": {
			rolling, func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
			}, events.JoinAbandoned, "newer than the control plane", autoscaling.Abandon, 74 * time.Minute, []signal{{false, 74 * time.Minute}},
			status.NodeNotJoined,
		},
		"and no longer, when that rolls back by itself": {
			rolling, func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
				w.after(20*time.Minute, func() { w.stack = "UPDATE_ROLLBACK_IN_PROGRESS" })
			}, events.JoinAbandoned, "newer than the control plane", autoscaling.Abandon, 20 * time.Minute, nil, status.NodeNotJoined,
		},
		"or nobody changes the pool any more": {
			rolling, func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
				w.after(20*time.Minute, func() { w.status.Status.Phase = status.Failed })
			}, events.JoinAbandoned, "newer than the control plane", autoscaling.Abandon, 20 * time.Minute, nil, status.NodeNotJoined,
		},
		"and it joins, if its node comes meanwhile": {
			rolling, func(w *world) {
				second(w)
				w.registers, w.ready, w.leaving["i-old"] = 20*time.Minute, 25*time.Minute, 40*time.Minute
			}, events.JoinReady, "in service", autoscaling.Continue, 25 * time.Minute, []signal{{true, 40 * time.Minute}}, "",
		},
		"also while the cluster cannot be asked": {
			rolling, func(w *world) {
				second(w)
				w.leaving["i-old"] = 30 * time.Minute
				w.after(20*time.Minute, func() { w.away = 50 * time.Minute })
			}, events.JoinAbandoned, "has not registered", autoscaling.Abandon, 50 * time.Minute, []signal{{false, 50 * time.Minute}},
			status.NodeNotJoined,
		},
		"the first is replaced beside drains": {
			rolling, func(w *world) {
				w.kubelet = "v1.37.0"
				w.leaving["i-old"] = 3 * time.Hour
			}, events.JoinAbandoned, "newer than the control plane", autoscaling.Abandon, 0, nil, status.NodeNotJoined,
		},
		"and so is one of what is replaced": {
			rolling, func(w *world) {
				tooNew(w)
				w.template = "3"
				w.leaving["i-old"] = 3 * time.Hour
			}, events.JoinAbandoned, "newer than the control plane", autoscaling.Abandon, 0, nil, status.NodeNotJoined,
		},
		"a pool that is made has no nodes to wait for": {
			rolling, func(w *world) {
				tooNew(w)
				w.stack = "CREATE_IN_PROGRESS"
				w.leaving["i-first"] = 3 * time.Hour
			}, events.JoinAbandoned, "newer than the control plane", autoscaling.Abandon, 0, []signal{{false, 0}}, status.NodeNotJoined,
		},
		"an instance refresh does not listen to it": {
			refresh, func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
			}, events.JoinAbandoned, "newer than the control plane", autoscaling.Abandon, 0, []signal{{false, 0}}, status.NodeNotJoined,
		},
		"a cluster that nobody knows gets no status": {rolling, func(w *world) {
			failing(w)
			w.status = nil
		}, events.JoinAbandoned, "has not", autoscaling.Abandon, 14 * time.Minute, nil, ""},
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
					require.LessOrEqual(t, got, want+want/20+2*time.Second, "what happens is found at most 5 %% late")
				}
				soon(c.ended, w.ended)
				require.Len(t, w.signals, len(c.signals))
				for i, want := range c.signals {
					require.Equal(t, want.success, w.signals[i].success)
					soon(want.after, w.signals[i].after)
				}
				told := status.NodeState("")
				if w.status != nil {
					if i := slices.IndexFunc(w.status.Status.Nodes, func(n status.Node) bool { return n.Instance == "i-new" }); i >= 0 {
						told = w.status.Status.Nodes[i].State
						require.Contains(t, w.status.Status.Nodes[i].Message, strings.TrimSuffix(c.message, "; it counts when"))
					}
				}
				require.Equal(t, c.told, told)
			})
		})
	}
}

// Auto Scaling is asked a few times a minute, however long a drain takes.
func TestALongDrainIsLookedAtLessOften(t *testing.T) {
	for lasts, looks := range map[time.Duration]int{10 * time.Second: 40, 10 * time.Minute: 240, time.Hour: 600} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.leaving["i-old"] = lasts
			require.Equal(t, events.JoinReady, w.run(`{"cluster":"demo","pool":"workers"}`).Outcome)
			require.InEpsilon(t, lasts, w.signals[0].after, 0.1)
			require.Less(t, w.looks, looks, lasts)
		})
	}
}

func TestTheFirstNodeWakesAClusterWhoseAddonsWait(t *testing.T) {
	for name, c := range map[string]struct {
		addons string // the condition's status
		world  func(*world)
		asks   bool
	}{
		"they wait":                          {"False", func(*world) {}, true},
		"they wait, and it does not join":    {"False", func(w *world) { w.registers = never }, false},
		"they are deployed":                  {"True", func(*world) {}, false},
		"they were never missed":             {"", func(*world) {}, false},
		"nobody knows the cluster's status":  {"", func(w *world) { w.status = nil }, false},
		"they wait, and the node comes late": {"False", func(w *world) { w.registers, w.ready = 5*time.Minute, 6*time.Minute }, true},
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
				if c.asks {
					want = []string{names.Due(w.start.Truncate(time.Minute), "demo")}
				}
				require.Equal(t, want, w.due)
			})
		})
	}
}

// While a cluster cannot be asked, people read it: at once when it will not pass by itself, else when it lasts.
func TestAClusterThatCannotBeAskedIsInTheStatus(t *testing.T) {
	for name, c := range map[string]struct {
		world func(*world)
		at    time.Duration
		told  bool
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
				require.Equal(t, c.told, len(then) == 1 && then[0].State == status.NodeUnreachable, "%v", then)
				require.Empty(t, w.status.Status.Nodes, "and it is over")
			})
		})
	}
}

// The function failed when the instance's hook was completed already: it did join, and no update is failed for it.
func TestAnInstanceInServiceThatWasNotSignalledDidJoin(t *testing.T) {
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

func TestAHookThatSaysNothingOfItsPool(t *testing.T) {
	_, err := (&Handler{Now: time.Now}).Handle(t.Context(), events.JoinRequest{Lifecycle: events.Lifecycle{NotificationMetadata: "?"}})
	require.ErrorContains(t, err, `does not say which pool it is of: "?"`)
}
