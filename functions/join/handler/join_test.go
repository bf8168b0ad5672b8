package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/inprocess"
	"github.com/drover-run/drover/shared/groups"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// world is a pool with one new instance, its cluster, and what is told of it, in virtual time.
type world struct {
	t     *testing.T
	start time.Time
	// registers and ready are when the node does and is, after the start; 0 is from the start, never is not.
	registers, ready time.Duration
	labels           map[string]string
	conditions       []string
	kubelet          string
	// away is for how long the API server does not answer; openErr is why the cluster cannot be opened.
	away    time.Duration
	openErr error
	// leaving instances of the group, each until some time; old ones stay.
	leaving map[string]time.Duration
	old     []string
	// fellows are new instances that were Ready before this one, desired is how many the group is to have of at least min.
	fellows, desired, min int
	// ill is until when the nodes of fellows are not Ready any more; less than 0 is that they are gone.
	ill time.Duration
	// comes is until when i-coming is on its way in, of a version of the launch template; template is the group's.
	comes             time.Duration
	comesOf, template string
	// unwell is when the node is not Ready any more, well when it is again; drained is for how long the node of i-old is.
	unwell, well, drained time.Duration

	state    string
	lastBeat time.Time
	result   groups.Result
	ended    time.Duration
	signals  []signal
	looks    int
	stack    string
	status   *status.Cluster
	// due has what the sweep is asked to look after.
	due []string
}

// signal to CloudFormation, and when.
type signal struct {
	success bool
	after   time.Duration
}

const never = 1000 * time.Hour

func newWorld(t *testing.T) *world {
	w := &world{t: t, start: time.Now(), kubelet: "v1.36.3", state: groups.PendingWait, lastBeat: time.Now(), leaving: map[string]time.Duration{}, stack: "UPDATE_IN_PROGRESS", status: status.New("demo")}
	w.status.Status.Phase, w.status.Status.Execution = status.Converging, "arn:converge:1"
	return w
}

func (w *world) since() time.Duration { return time.Since(w.start) }

// node as it is now, if it is there.
func (w *world) node() []corev1.Node {
	if w.since() < w.registers {
		return nil
	}
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{kube.PoolLabel: "workers"}}, Spec: corev1.NodeSpec{ProviderID: "aws:///eu-central-1a/i-new"},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: w.kubelet}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "no network"}}},
	}
	if w.since() >= w.ready && (w.since() < w.unwell || w.since() >= w.well) {
		n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionTrue, metav1.NewTime(w.start.Add(w.ready))
		for key, value := range w.labels {
			n.Labels[key] = value
		}
		for _, c := range w.conditions {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(c), Status: corev1.ConditionTrue})
		}
	}
	old := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0", Labels: n.Labels}, Spec: corev1.NodeSpec{ProviderID: "aws:///eu-central-1a/i-old"}}
	if w.since() < w.drained {
		old.Annotations = map[string]string{"drover.run/draining-since": w.start.UTC().Format(time.RFC3339)}
	}
	nodes := []corev1.Node{old, n}
	healthy := corev1.ConditionTrue
	if w.since() < w.ill {
		healthy = corev1.ConditionUnknown
	}
	for i := range w.fellows {
		if w.ill < 0 {
			break
		}
		nodes = append(nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n1%d", i), Labels: n.Labels}, Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///eu-central-1a/i-fellow%d", i)},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: healthy, LastTransitionTime: metav1.NewTime(w.start.Add(-time.Minute))}}},
		})
	}
	return nodes
}

// ServeHTTP lists nodes; a watch ends after a second without a word, so the list is read anew.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if w.since() < w.away {
		http.Error(rw, "away", http.StatusServiceUnavailable)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") != "" {
		rw.(http.Flusher).Flush()
		select {
		case <-time.After(time.Second):
		case <-r.Context().Done():
		}
		return
	}
	_ = json.NewEncoder(rw).Encode(corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: w.node()})
}

func (w *world) Open(context.Context, string) (*kube.Cluster, error) {
	if w.openErr != nil {
		return nil, w.openErr
	}
	c, err := kube.Connect(&rest.Config{Host: "http://api", Transport: inprocess.Transport(w)})
	if err == nil {
		c.Version = "1.36"
	}
	return c, err
}

// hookTimeout and hookCap are the launch hook's, as in the pool's template.
const (
	hookTimeout = 900 * time.Second
	hookCap     = 25 * time.Hour
)

func (w *world) expire() {
	if w.state == groups.PendingWait && (time.Since(w.lastBeat) > hookTimeout || w.since() > hookCap) {
		w.t.Errorf("the hook ran out of time after %s", w.since())
		w.state = ""
	}
}

func (w *world) State(context.Context, string) (string, error) { w.expire(); return w.state, nil }

func (w *world) Describe(_ context.Context, group string) (groups.Group, bool, error) {
	w.looks++
	require.Equal(w.t, "drover-demo-pool-workers", group)
	g := groups.Group{Desired: w.desired, Min: w.min, TemplateVersion: w.template, Instances: []groups.Instance{{ID: "i-new", State: w.state, TemplateVersion: "2"}}}
	for id, until := range w.leaving {
		if w.since() < until {
			g.Instances = append(g.Instances, groups.Instance{ID: id, State: groups.TerminatingWait, TemplateVersion: "1"})
		}
	}
	for i := range w.fellows {
		g.Instances = append(g.Instances, groups.Instance{ID: fmt.Sprintf("i-fellow%d", i), State: groups.InService, TemplateVersion: "2"})
	}
	if w.since() < w.comes {
		g.Instances = append(g.Instances, groups.Instance{ID: "i-coming", State: groups.PendingWait, TemplateVersion: w.comesOf})
	}
	for _, id := range w.old {
		g.Instances = append(g.Instances, groups.Instance{ID: id, State: groups.InService, TemplateVersion: "1"})
	}
	return g, true, nil
}

func (w *world) Heartbeat(context.Context, events.Lifecycle) (bool, error) {
	w.expire()
	require.LessOrEqual(w.t, time.Since(w.lastBeat), hookTimeout/2, "each heartbeat is within half of the hook's timeout")
	w.lastBeat = time.Now()
	return w.state == groups.PendingWait, nil
}

func (w *world) Complete(_ context.Context, _ events.Lifecycle, result groups.Result) (bool, error) {
	w.expire()
	was := w.state == groups.PendingWait
	w.result, w.ended, w.state = result, w.since(), groups.InService
	if result == groups.Abandon {
		w.state = ""
	}
	return was, nil
}

// Stacks.

type stack struct{ *world }

func (s stack) Describe(context.Context, string) (plan.Deployed, error) {
	// The group of three is to have four meanwhile.
	return plan.Deployed{Status: s.stack, Parameters: map[string]string{"MinInstancesInService": "3", "MaxBatchSize": "1"}}, nil
}

func (s stack) Signal(_ context.Context, stackName, resource, instance string, success bool) error {
	require.Equal(s.t, "drover-demo-pool-workers Group i-new", stackName+" "+resource+" "+instance)
	s.signals = append(s.signals, signal{success, s.since()})
	return nil
}

// State.

type state struct{ w *world }

func (s state) Status(context.Context, string) (*status.Cluster, error) {
	if s.w.status == nil {
		return nil, store.ErrNotFound
	}
	return s.w.status, nil
}

func (s state) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	change(&s.w.status.Status)
	return nil
}

func (s state) AddDue(_ context.Context, cluster string, at time.Time) error {
	s.w.due = append(s.w.due, names.Due(at, cluster))
	return nil
}

// run calls the function as the machine does, until it has an answer.
func (w *world) run(pool string) events.JoinResult {
	h := &Handler{
		Clusters: w, Groups: w, Stacks: stack{w}, State: state{w},
		Watch: 50 * time.Second, Limit: 14 * time.Minute, SignalLimit: time.Hour, HoldLimit: 24 * time.Hour, Now: time.Now,
	}
	in := events.JoinRequest{Started: w.start, Lifecycle: events.Lifecycle{
		AutoScalingGroupName: "drover-demo-pool-workers", LifecycleHookName: "launch", EC2InstanceID: "i-new", NotificationMetadata: pool,
	}}
	for calls := 1; ; calls++ {
		require.Less(w.t, calls, 2000, "an execution has 25,000 events")
		result, err := h.Handle(w.t.Context(), in)
		require.NoError(w.t, err)
		if result.Outcome != events.JoinWaiting {
			return result
		}
		require.NotEmpty(w.t, result.Message)
		time.Sleep(time.Duration(result.WaitSeconds) * time.Second)
		in.PausedSeconds = result.PausedSeconds
	}
}

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
		result  groups.Result
		ended   time.Duration
		signals []signal
		told    status.NodeState
	}{
		"Ready at once": {rolling, func(*world) {}, events.JoinReady, "node n1 is Ready (v1.36.3)", groups.Continue, 0, []signal{{true, 0 * time.Second}}, ""},
		"Ready after a while": {
			rolling, func(w *world) { w.registers, w.ready = time.Minute, 3*time.Minute }, events.JoinReady, "is Ready", groups.Continue, 3 * time.Minute, []signal{{true, 180 * time.Second}}, "",
		},
		"registered late": {
			rolling, func(w *world) { w.registers, w.ready = 13*time.Minute, 13*time.Minute+30*time.Second }, events.JoinReady, "is Ready", groups.Continue, 13*time.Minute + 30*time.Second, []signal{{true, 810 * time.Second}}, "",
		},
		"never registered": {rolling, failing, events.JoinAbandoned, "has not registered", groups.Abandon, 14 * time.Minute, nil, status.NodeNotJoined},
		"never Ready": {
			rolling, func(w *world) { w.ready = never }, events.JoinAbandoned, "node n1 is not Ready: no network", groups.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"a kubelet that is too new": {
			rolling, func(w *world) { w.kubelet = "v1.37.0" }, events.JoinAbandoned, "newer than the control plane", groups.Abandon, 0, nil, status.NodeNotJoined,
		},
		"the pool's labels and conditions are there": {
			demands, func(w *world) {
				w.ready, w.labels, w.conditions = time.Minute, map[string]string{"gpu": "up"}, []string{"DriverReady"}
			}, events.JoinReady, "is Ready", groups.Continue, time.Minute, []signal{{true, 60 * time.Second}}, "",
		},
		"a label is another": {
			demands, func(w *world) { w.labels, w.conditions = map[string]string{"gpu": "down"}, []string{"DriverReady"} }, events.JoinAbandoned, "has not the label gpu=up", groups.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"a condition is not True": {
			demands, func(w *world) { w.labels = map[string]string{"gpu": "up"} }, events.JoinAbandoned, "its condition DriverReady, which its pool waits for, is not True", groups.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"a drain of seconds holds the signal, not the hook": {
			rolling, func(w *world) { w.leaving["i-old"] = 30 * time.Second }, events.JoinReady, "is Ready", groups.Continue, 0, []signal{{true, 30 * time.Second}}, "",
		},
		"a drain of minutes": {
			rolling, func(w *world) { w.leaving["i-old"] = 20 * time.Minute }, events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 20 * time.Minute}}, "",
		},
		"a drain that CloudFormation waits for, too, and only then for signals": {
			rolling, func(w *world) { w.leaving["i-old"] = 3 * time.Hour },
			events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 3 * time.Hour}}, "",
		},
		"a drain that nobody waits for any more: no signal": {
			rolling, func(w *world) {
				w.leaving["i-old"] = 3 * time.Hour
				time.AfterFunc(time.Hour, func() { w.stack = "UPDATE_ROLLBACK_COMPLETE" })
			}, events.JoinReady, "not signalled: the instance is in service; it counts when i-old are drained", groups.Continue, 0, nil, "",
		},
		"a node that is not Ready any more when its time has come": {
			pauses, func(w *world) { w.old, w.unwell, w.well = []string{"i-old"}, 5*time.Minute, 20*time.Minute }, events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 20*time.Minute + 200*time.Second}}, "",
		},
		"nor ever again: no signal": {
			rolling, func(w *world) { w.leaving["i-old"], w.unwell, w.well = 2*time.Minute, time.Minute, never }, events.JoinReady, "it counts when it is what it was: node n1 is not Ready: no network", groups.Continue, 0, nil, "",
		},
		"the cluster cannot be asked when its time has come": {
			pauses, func(w *world) {
				w.old = []string{"i-old"}
				time.AfterFunc(time.Minute, func() { w.away = 30 * time.Minute })
			}, events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 30*time.Minute + 200*time.Second}}, "",
		},
		"another node of the pool is drained, by hand or for its spot instance": {
			rolling, func(w *world) { w.old, w.drained = []string{"i-old"}, 15*time.Minute }, events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 15 * time.Minute}}, "",
		},
		"what its instance leaves behind counts not": {
			rolling, func(w *world) { w.drained = never }, events.JoinReady, "is Ready", groups.Continue, 0, []signal{{true, 0}}, "",
		},
		"the pool's pause": {
			pauses, func(w *world) { w.old = []string{"i-old"} }, events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 600 * time.Second}}, "",
		},
		"no pause when nothing is left to roll": {pauses, func(*world) {}, events.JoinReady, "is Ready", groups.Continue, 0, []signal{{true, 0 * time.Second}}, ""},
		"a drain, then the pause": {
			pauses, func(w *world) { w.old, w.leaving["i-old2"] = []string{"i-old"}, 4*time.Minute }, events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 840 * time.Second}}, "",
		},
		"one more than the update waits for, as an autoscaler wants it": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 2, 5, 4
				time.AfterFunc(10*time.Minute, func() { w.old, w.leaving["i-old2"] = w.old[:1], 12*time.Minute })
			}, events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 12 * time.Minute}}, "",
		},
		"for hours": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 2, 5, 4
				time.AfterFunc(5*time.Hour, func() { w.stack, w.old = "UPDATE_COMPLETE", nil })
			}, events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 5 * time.Hour}}, "",
		},
		"an autoscaler wants more, and the update waits for it": {
			rolling, func(w *world) { w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 1, 5, 4 },
			events.JoinReady, "is Ready", groups.Continue, 0, []signal{{true, 0}}, "",
		},
		"an autoscaler wants more, and wanted more before the update began": {
			rolling, func(w *world) { w.old, w.fellows, w.desired, w.min = []string{"i-old", "i-old2"}, 2, 6, 5 },
			events.JoinReady, "is Ready", groups.Continue, 0, []signal{{true, 0}}, "",
		},
		"an autoscaler wants more, and nothing is rolled": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.stack = []string{"i-old"}, 4, 6, 1, "UPDATE_COMPLETE"
			},
			events.JoinReady, "is Ready", groups.Continue, 0, []signal{{true, 0}}, "",
		},
		"a new node of an earlier batch is not Ready any more": {
			rolling, func(w *world) { w.old, w.fellows, w.ill = []string{"i-old"}, 3, 7*time.Minute }, events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 7 * time.Minute}}, "",
		},
		"and stays so until nobody waits": {
			rolling, func(w *world) {
				w.old, w.fellows, w.ill = []string{"i-old"}, 1, never
				time.AfterFunc(time.Hour, func() { w.stack = "UPDATE_ROLLBACK_COMPLETE" })
			}, events.JoinReady, "not signalled", groups.Continue, 0, nil, "",
		},
		"or its machine is gone": {
			rolling, func(w *world) { w.old, w.fellows, w.ill = []string{"i-old"}, 1, -1 }, events.JoinReady, "is Ready", groups.Continue, 0, []signal{{true, 0}}, "",
		},
		"or there is nothing left to replace": {
			rolling, func(w *world) { w.fellows, w.ill = 1, never }, events.JoinReady, "is Ready", groups.Continue, 0, []signal{{true, 0}}, "",
		},
		"an autoscaler wants more, and one is on its way in": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, 6*time.Minute, "2"
			}, events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 6 * time.Minute}}, "",
		},
		"and does not join, nor do those in its place": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, never, "2"
				time.AfterFunc(14*time.Minute, func() {
					w.status.Status.SetNode(status.Node{Instance: "i-came", Pool: "workers", State: status.NodeNotJoined, Template: "2"}, time.Now())
				})
			}, events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 14 * time.Minute}}, "",
		},
		"nor does it before one that did not join has failed the update": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old", "i-old2"}, 1, 5, 4, 10*time.Minute, "2"
				for _, id := range []string{"i-came", "i-coming"} {
					w.status.Status.SetNode(status.Node{Instance: id, Pool: "workers", State: status.NodeNotJoined, Template: "2"}, time.Now())
				}
			}, events.JoinReady, "in service", groups.Continue, 0, []signal{{true, 10 * time.Minute}}, "",
		},
		"or one of what is replaced is": {
			rolling, func(w *world) {
				w.old, w.fellows, w.desired, w.min, w.comes, w.comesOf = []string{"i-old"}, 1, 5, 4, never, "1"
			}, events.JoinReady, "is Ready", groups.Continue, 0, []signal{{true, 0}}, "",
		},
		"of a launch template that an update replaces: no signal": {
			rolling, func(w *world) { w.template = "3" }, events.JoinReady, "it is replaced, too, and nobody waits for it", groups.Continue, 0, nil, "",
		},
		"an instance refresh holds the hook": {
			refresh, func(w *world) { w.old, w.leaving["i-old2"] = []string{"i-old"}, 3*time.Hour }, events.JoinReady, "is Ready", groups.Continue, 3*time.Hour + 10*time.Minute, []signal{{true, 3*time.Hour + 10*time.Minute}}, "",
		},
		"an instance refresh holds it for a day": {
			refresh, func(w *world) { w.leaving["i-old"] = never }, events.JoinReady, "it counts when i-old are drained", groups.Continue, 24 * time.Hour, []signal{{true, 24 * time.Hour}}, "",
		},
		"the API server is away for ten minutes": {
			rolling, func(w *world) { w.away = 10 * time.Minute }, events.JoinReady, "is Ready", groups.Continue, 10 * time.Minute, []signal{{true, 10 * time.Minute}}, "",
		},
		"the API server is away until the instance's time is almost over": {
			rolling, func(w *world) {
				w.away, w.registers, w.ready = 14*time.Minute-5*time.Second, 14*time.Minute, 14*time.Minute+5*time.Second
			}, events.JoinReady, "is Ready", groups.Continue, 14*time.Minute + 5*time.Second, []signal{{true, 14*time.Minute + 5*time.Second}}, "",
		},
		"the API server is away for hours": {
			rolling, func(w *world) {
				w.away, w.registers, w.ready = 5*time.Hour, 5*time.Hour+10*time.Second, 5*time.Hour+20*time.Second
			}, events.JoinReady, "is Ready", groups.Continue, 5*time.Hour + 20*time.Second, []signal{{true, 5*time.Hour + 20*time.Second}}, "",
		},
		"the API server is away for ever": {
			rolling, func(w *world) { w.away = never }, events.JoinAbandoned, "the cluster cannot be asked", groups.Abandon, 24 * time.Hour, nil, status.NodeNotJoined,
		},
		"a permission is missing": {
			rolling, func(w *world) { w.openErr = errors.New("AccessDenied: eks:DescribeCluster") }, events.JoinAbandoned, "AccessDenied: eks:DescribeCluster", groups.Abandon, 24 * time.Hour, nil, status.NodeNotJoined,
		},
		"the cluster is deleted": {
			rolling, func(w *world) { w.openErr = kube.ErrNoCluster }, events.JoinAbandoned, "not there", groups.Abandon, 0, nil, "",
		},
		"the instance is gone":        {rolling, func(w *world) { w.state = "Terminating:Wait" }, events.JoinGone, "does not wait", "", 0, nil, ""},
		"the instance is in no group": {rolling, func(w *world) { w.state = "" }, events.JoinGone, "does not wait", "", 0, nil, ""},
		"the hook is being completed": {rolling, func(w *world) {
			w.state = groups.PendingProceed
			time.AfterFunc(950*time.Millisecond, func() { w.state = groups.InService })
		}, events.JoinReady, "in service", "", 0, []signal{{true, time.Second}}, ""},
		"the second fails the update": {rolling, second, events.JoinAbandoned, "has not registered", groups.Abandon, 14 * time.Minute, []signal{{false, 840 * time.Second}}, status.NodeNotJoined},
		"of what it brings":           {rolling, func(w *world) { second(w); w.template = "2" }, events.JoinAbandoned, "has not registered", groups.Abandon, 14 * time.Minute, []signal{{false, 840 * time.Second}}, status.NodeNotJoined},
		"and not of what it replaces": {rolling, func(w *world) { second(w); w.template = "3" }, events.JoinAbandoned, "has not", groups.Abandon, 14 * time.Minute, nil, status.NodeNotJoined},
		"the first was of what it replaces": {
			rolling, func(w *world) {
				failing(w)
				w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined, Template: "1"}, time.Now())
			}, events.JoinAbandoned, "has not", groups.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"but not its rollback":           {rolling, func(w *world) { second(w); w.stack = "UPDATE_ROLLBACK_IN_PROGRESS" }, events.JoinAbandoned, "has not", groups.Abandon, 14 * time.Minute, nil, status.NodeNotJoined},
		"nor when nobody changes a pool": {rolling, func(w *world) { second(w); w.status.Status.Phase = status.Ready }, events.JoinAbandoned, "has not", groups.Abandon, 14 * time.Minute, nil, status.NodeNotJoined},
		"one of another pool, or of an earlier update, counts not": {
			rolling, func(w *world) {
				failing(w)
				w.status.Status.SetNode(status.Node{Instance: "i-a", Pool: "other", State: status.NodeNotJoined}, time.Now())
				w.status.Status.Execution = "arn:converge:0"
				w.status.Status.SetNode(status.Node{Instance: "i-b", Pool: "workers", State: status.NodeNotJoined}, time.Now())
				w.status.Status.Execution = "arn:converge:1"
			}, events.JoinAbandoned, "has not", groups.Abandon, 14 * time.Minute, nil, status.NodeNotJoined,
		},
		"it waits for the drains of its batch": {
			rolling, func(w *world) { second(w); w.leaving["i-old"] = 30 * time.Minute }, events.JoinAbandoned, "has not registered", groups.Abandon, 30 * time.Minute, []signal{{false, 30 * time.Minute}}, status.NodeNotJoined,
		},
		"from the first moment on": {
			rolling, func(w *world) { tooNew(w); w.leaving["i-old"] = 20 * time.Minute }, events.JoinAbandoned, "newer than the control plane", groups.Abandon, 20 * time.Minute, []signal{{false, 20 * time.Minute}}, status.NodeNotJoined,
		},
		"and for those of nodes that serve": {
			rolling, func(w *world) { tooNew(w); w.old, w.drained = []string{"i-old"}, 20*time.Minute }, events.JoinAbandoned, "newer than the control plane", groups.Abandon, 20 * time.Minute, []signal{{false, 20 * time.Minute}}, status.NodeNotJoined,
		},
		"for as long as CloudFormation waits for it": {
			rolling, func(w *world) { tooNew(w); w.leaving["i-old"] = 3 * time.Hour }, events.JoinAbandoned, "newer than the control plane", groups.Abandon, 74 * time.Minute, []signal{{false, 74 * time.Minute}}, status.NodeNotJoined,
		},
		"and no longer, when that rolls back by itself": {
			rolling, func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
				time.AfterFunc(20*time.Minute, func() { w.stack = "UPDATE_ROLLBACK_IN_PROGRESS" })
			}, events.JoinAbandoned, "newer than the control plane", groups.Abandon, 20 * time.Minute, nil, status.NodeNotJoined,
		},
		"or nobody changes the pool any more": {
			rolling, func(w *world) {
				tooNew(w)
				w.leaving["i-old"] = 3 * time.Hour
				time.AfterFunc(20*time.Minute, func() { w.status.Status.Phase = status.Failed })
			}, events.JoinAbandoned, "newer than the control plane", groups.Abandon, 20 * time.Minute, nil, status.NodeNotJoined,
		},
		"and it joins, if its node comes meanwhile": {
			rolling, func(w *world) {
				second(w)
				w.registers, w.ready, w.leaving["i-old"] = 20*time.Minute, 25*time.Minute, 40*time.Minute
			}, events.JoinReady, "in service", groups.Continue, 25 * time.Minute, []signal{{true, 40 * time.Minute}}, "",
		},
		"also while the cluster cannot be asked": {
			rolling, func(w *world) {
				second(w)
				w.leaving["i-old"] = 30 * time.Minute
				time.AfterFunc(20*time.Minute, func() { w.away = 50 * time.Minute })
			}, events.JoinAbandoned, "has not registered", groups.Abandon, 50 * time.Minute, []signal{{false, 50 * time.Minute}}, status.NodeNotJoined,
		},
		"the first is replaced beside drains": {
			rolling, func(w *world) { w.kubelet = "v1.37.0"; w.leaving["i-old"] = 3 * time.Hour }, events.JoinAbandoned, "newer than the control plane", groups.Abandon, 0, nil, status.NodeNotJoined,
		},
		"and so is one of what is replaced": {
			rolling, func(w *world) { tooNew(w); w.template = "3"; w.leaving["i-old"] = 3 * time.Hour }, events.JoinAbandoned, "newer than the control plane", groups.Abandon, 0, nil, status.NodeNotJoined,
		},
		"a pool that is made has no nodes to wait for": {
			rolling, func(w *world) { tooNew(w); w.stack = "CREATE_IN_PROGRESS"; w.leaving["i-first"] = 3 * time.Hour }, events.JoinAbandoned, "newer than the control plane", groups.Abandon, 0, []signal{{false, 0}}, status.NodeNotJoined,
		},
		"an instance refresh does not listen to it": {
			refresh, func(w *world) { tooNew(w); w.leaving["i-old"] = 3 * time.Hour }, events.JoinAbandoned, "newer than the control plane", groups.Abandon, 0, []signal{{false, 0}}, status.NodeNotJoined,
		},
		"a cluster that nobody knows gets no status": {rolling, func(w *world) { failing(w); w.status = nil }, events.JoinAbandoned, "has not", groups.Abandon, 14 * time.Minute, nil, ""},
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
				time.AfterFunc(c.at, func() { then, w.openErr = slices.Clone(w.status.Status.Nodes), nil })
				require.Equal(t, events.JoinReady, w.run(`{"cluster":"demo","pool":"workers"}`).Outcome)
				require.Equal(t, c.told, len(then) == 1 && then[0].State == status.NodeUnreachable, "%v", then)
				require.Empty(t, w.status.Status.Nodes, "and it is over")
			})
		})
	}
}

// While an update that is about to be failed waits for drains, people read of it: which instance, why, for what and until when.
func TestAnUpdateThatIsAboutToBeFailedIsInTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
		w.kubelet, w.leaving["i-old"], w.leaving["i-old2"] = "v1.37.0", 20*time.Minute, 30*time.Minute
		var then, later []status.Node
		time.AfterFunc(10*time.Minute, func() { then = slices.Clone(w.status.Status.Nodes) })
		time.AfterFunc(25*time.Minute, func() { later = slices.Clone(w.status.Status.Nodes) })
		require.Equal(t, events.JoinAbandoned, w.run(`{"cluster":"demo","pool":"workers"}`).Outcome)
		const why = "the kubelet is v1.37.0, newer than the control plane (1.36): use an image for 1.36 or older"
		until := w.start.Add(74 * time.Minute).UTC().Format(time.RFC3339)
		require.Len(t, then, 2)
		require.Equal(t, "i-new", then[1].Instance)
		require.Equal(t, status.NodeNotJoined, then[1].State)
		require.Contains(t, []string{ // a group's instances come in any order
			why + "; the update is failed when i-old, i-old2 are drained, by " + until + " at the latest",
			why + "; the update is failed when i-old2, i-old are drained, by " + until + " at the latest",
		}, then[1].Message)
		require.Equal(t, why+"; the update is failed when i-old2 are drained, by "+until+" at the latest", later[1].Message)
		require.Equal(t, then[1].Since, later[1].Since)
		require.Equal(t, why, w.status.Status.Nodes[1].Message, "that is over")
	})
	t.Run("until its instance is gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
			w.kubelet, w.leaving["i-old"] = "v1.37.0", time.Hour
			time.AfterFunc(10*time.Minute, func() {
				require.Contains(t, w.status.Status.Nodes[1].Message, "; the update is failed when i-old are drained")
				w.state = groups.TerminatingWait
			})
			require.Equal(t, events.JoinGone, w.run(`{"cluster":"demo","pool":"workers"}`).Outcome)
			require.Empty(t, w.signals)
			require.Equal(t, status.NodeNotJoined, w.status.Status.Nodes[1].State)
			require.NotContains(t, w.status.Status.Nodes[1].Message, "the update is failed when")
		})
	})
}

// Whoever tells of what was given up is called once. Beside drains it does not fail the update: another instance comes in its place. It asks no cluster.
func TestWhatTheMachineGaveUpIsTold(t *testing.T) {
	const why = "Runtime.ExitError: it crashed"
	for name, c := range map[string]struct {
		world   func(*world)
		told    string
		signals int
	}{
		"the first": {func(*world) {}, why, 0},
		"the second": {
			func(w *world) {
				w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
			}, why, 1,
		},
		"the second, beside drains": {
			func(w *world) {
				w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
				w.leaving["i-old"] = time.Hour
			}, why + "; the update is not failed for it while i-old are drained", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.state = ""
			c.world(w)
			h := &Handler{Groups: w, Stacks: stack{w}, State: state{w}, Limit: 14 * time.Minute, SignalLimit: time.Hour, Now: time.Now}
			got, err := h.Handle(t.Context(), events.JoinRequest{GivenUp: why, Started: time.Now(), Lifecycle: events.Lifecycle{
				AutoScalingGroupName: "drover-demo-pool-workers",
				EC2InstanceID:        "i-new", NotificationMetadata: `{"cluster":"demo","pool":"workers"}`,
			}})
			require.NoError(t, err)
			require.Equal(t, events.JoinAbandoned, got.Outcome)
			nodes := w.status.Status.Nodes
			require.Equal(t, "i-new "+c.told, nodes[len(nodes)-1].Instance+" "+nodes[len(nodes)-1].Message)
			require.Len(t, w.signals, c.signals)
		})
	}
}

// The function failed when the instance's hook was completed already: it did join, and no update is failed for it.
func TestAnInstanceInServiceThatWasNotSignalledDidJoin(t *testing.T) {
	w := newWorld(t)
	w.state = groups.InService
	w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
	h := &Handler{Groups: w, Stacks: stack{w}, State: state{w}, Now: time.Now}
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
