package handler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/inprocess"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// world is a fake of a pool with one new instance, its cluster and its status, in virtual time. Each method holds the lock.
type world struct {
	t     *testing.T
	start time.Time
	mu    sync.Mutex
	// registers and ready are how long after the start the node registers and is Ready.
	registers, ready time.Duration
	labels           map[string]string
	conditions       []string
	kubelet          string
	// away is how long the API server does not answer. openErr is the error of opening the cluster.
	away    time.Duration
	openErr error
	// leaving has the instances that terminate, of the template version leavingOf, and until when. old instances stay.
	leaving   map[string]time.Duration
	leavingOf string
	old       []string
	// fellows is how many new instances were Ready before this one. desired and min are the group's sizes.
	fellows, desired, min int
	// ill is until when the nodes of fellows are not Ready. If it is negative, the nodes do not exist.
	ill time.Duration
	// comes is until when i-coming launches, of the template version comesOf. template is the group's version.
	comes             time.Duration
	comesOf, template string
	// The node is not Ready from unwell until well. drained is how long the node of i-old is drained.
	unwell, well, drained time.Duration

	state    string
	lastBeat time.Time
	result   autoscaling.Result
	ended    time.Duration
	signals  []signal
	reads    int
	stack    string
	status   *status.Cluster
	// due has the requests to the sweep.
	due []string
}

// signal is a signal to CloudFormation, and when it was sent.
type signal struct {
	success bool
	after   time.Duration
}

const never = 1000 * time.Hour

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, start: time.Now(), kubelet: "v1.36.3", state: pool.PendingWait, lastBeat: time.Now(), leaving: map[string]time.Duration{},
		stack: "UPDATE_IN_PROGRESS", status: status.New("demo"),
	}
	w.status.Status.Phase, w.status.Status.Execution = status.Converging, "arn:converge:1"
	return w
}

// after changes the world after some time.
func (w *world) after(d time.Duration, happens func()) {
	time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		happens()
	})
}

func (w *world) since() time.Duration { return time.Since(w.start) }

// node returns the nodes that exist now.
func (w *world) node() []corev1.Node {
	if w.since() < w.registers {
		return nil
	}
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{kube.PoolLabel: "workers"}},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///eu-central-1a/i-new"},
		Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: w.kubelet,
			}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "no network"}},
		},
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
	old := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n0", Labels: n.Labels}, Spec: corev1.NodeSpec{ProviderID: "aws:///eu-central-1a/i-old"},
	}
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
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("n1%d", i), Labels: n.Labels,
			}, Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///eu-central-1a/i-fellow%d", i)},
			Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{
					{Type: corev1.NodeReady, Status: healthy, LastTransitionTime: metav1.NewTime(w.start.Add(-time.Minute))},
				},
			},
		})
	}
	return nodes
}

// ServeHTTP lists nodes. A watch ends after one second without an event, so the client lists again.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	away, nodes := w.since() < w.away, w.node()
	w.mu.Unlock()
	if away {
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
	_ = json.NewEncoder(rw).Encode(corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: nodes})
}

func (w *world) Open(context.Context, string) (*kube.Cluster, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
	if w.state == pool.PendingWait && (time.Since(w.lastBeat) > hookTimeout || w.since() > hookCap) {
		w.t.Errorf("the hook ran out of time after %s", w.since())
		w.state = ""
	}
}

func (w *world) State(context.Context, string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire()
	return w.state, nil
}

func (w *world) Describe(_ context.Context, group string) (pool.Group, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	require.Equal(w.t, "drover-demo-pool-workers", group)
	g := pool.Group{Desired: w.desired, Min: w.min, TemplateVersion: w.template}
	if w.state != "" {
		g.Instances = append(g.Instances, pool.Instance{ID: "i-new", State: w.state, TemplateVersion: "2"})
	}
	for id, until := range w.leaving {
		if w.since() < until {
			leaving := pool.Instance{ID: id, State: pool.TerminatingWait, TemplateVersion: cmp.Or(w.leavingOf, "1")}
			g.Instances = append(g.Instances, leaving)
		}
	}
	for i := range w.fellows {
		fellow := pool.Instance{ID: fmt.Sprintf("i-fellow%d", i), State: pool.InService, TemplateVersion: "2"}
		g.Instances = append(g.Instances, fellow)
	}
	if w.since() < w.comes {
		g.Instances = append(g.Instances, pool.Instance{ID: "i-coming", State: pool.PendingWait, TemplateVersion: w.comesOf})
	}
	for _, id := range w.old {
		g.Instances = append(g.Instances, pool.Instance{ID: id, State: pool.InService, TemplateVersion: "1"})
	}
	return g, true, nil
}

func (w *world) Heartbeat(context.Context, events.Lifecycle) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire()
	require.LessOrEqual(w.t, time.Since(w.lastBeat), hookTimeout/2, "each heartbeat is within half of the hook's timeout")
	w.lastBeat = time.Now()
	return w.state == pool.PendingWait, nil
}

func (w *world) Complete(_ context.Context, _ events.Lifecycle, result autoscaling.Result) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire()
	was := w.state == pool.PendingWait
	w.result, w.ended, w.state = result, w.since(), pool.InService
	if result == autoscaling.Abandon {
		w.state = ""
	}
	return was, nil
}

// Stacks.

type stackFake struct{ *world }

func (s stackFake) Describe(context.Context, string) (stack.Deployed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A group of three has four instances during the update.
	return stack.Deployed{Status: s.stack, Parameters: map[string]string{"MinInstancesInService": "3", "MaxBatchSize": "1"}}, nil
}

func (s stackFake) Signal(_ context.Context, stackName, resource, instance string, success bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(s.t, "drover-demo-pool-workers Group i-new", stackName+" "+resource+" "+instance)
	s.signals = append(s.signals, signal{success, s.since()})
	return nil
}

// State.

type state struct{ w *world }

func (s state) Status(context.Context, string) (*status.Cluster, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.w.status == nil {
		return nil, store.ErrNotFound
	}
	read := *s.w.status
	read.Status.Nodes = slices.Clone(read.Status.Nodes)
	return &read, nil
}

func (s state) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	change(&s.w.status.Status)
	return nil
}

func (s state) AddDue(_ context.Context, cluster string, at time.Time) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.due = append(s.w.due, names.Due(at, cluster))
	return nil
}

// run calls the function as the machine does, until it returns an end.
func (w *world) run(pool string) events.JoinResult {
	h := &Handler{
		Clusters: w, Groups: w, Stacks: stackFake{w}, State: state{w},
		Watch: 50 * time.Second, Limit: 14 * time.Minute, SignalLimit: time.Hour, HoldTimeout: 24 * time.Hour, Now: time.Now,
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
