package handler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
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
	// missing is how long the node has been missing at the first call.
	missing    time.Duration
	labels     map[string]string
	conditions []string
	kubelet    string
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
	// The node is not Ready from unwell until well. drained is how long the drain of the node of i-old takes.
	unwell, well, drained time.Duration

	state    string
	lastBeat time.Time
	result   pool.HookResult
	ended    time.Duration
	signals  []signal
	reads    int
	stack    string
	// parameters are those of the pool's stack.
	parameters map[string]string
	status     *status.Cluster
	// due has the requests to the sweep.
	due []string
	// failing has the error of a call, and before what happens before the first call, by name.
	failing map[string]error
	before  map[string]func()
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
		stack: "UPDATE_IN_PROGRESS", status: status.New("demo"), failing: map[string]error{}, before: map[string]func(){},
		// A group of three has four instances during the update.
		parameters: map[string]string{"MinInstancesInService": "3", "MaxBatchSize": "1"},
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

// call returns the error of a call.
func (w *world) call(name string) error {
	if do := w.before[name]; do != nil {
		delete(w.before, name)
		do()
	}
	return w.failing[name]
}

func (w *world) since() time.Duration { return time.Since(w.start) }

// nodes returns the nodes of the pool that exist now.
func (w *world) nodes() []pool.Node {
	if w.since() < w.registers {
		return nil
	}
	n := pool.Node{
		Name: "n1", Instance: "i-new", KubeletVersion: w.kubelet, Message: "no network", Ready: w.isReady(), Labels: map[string]string{},
	}
	if n.Ready {
		n.ReadySince, n.Labels, n.True = w.start.Add(w.ready), w.labels, append([]string{"Ready"}, w.conditions...)
	}
	nodes := []pool.Node{{Name: "n0", Instance: "i-old", Draining: w.since() < w.drained}, n}
	for i := range w.fellows {
		if w.ill < 0 {
			break
		}
		nodes = append(nodes, pool.Node{
			Name: fmt.Sprintf("n1%d", i), Instance: fmt.Sprintf("i-fellow%d", i), Labels: n.Labels,
			Ready: w.since() >= w.ill, ReadySince: w.start.Add(-time.Minute),
		})
	}
	return nodes
}

// isReady reports whether the node of the new instance is Ready.
func (w *world) isReady() bool {
	return w.since() >= w.ready && (w.since() < w.unwell || w.since() >= w.well)
}

func (w *world) Open(context.Context, string) (Cluster, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.openErr != nil {
		return nil, w.openErr
	}
	return w, nil
}

func (w *world) Version() string { return "1.36" }

func (w *world) PoolNodes(context.Context, string) ([]pool.Node, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since() < w.away {
		return nil, &fault.ClusterUnreachable{Cause: errors.New("listing the nodes of pool workers: away")}
	}
	return w.nodes(), nil
}

func (w *world) PoolNode(ctx context.Context, poolName, instance, _ string) (*pool.Node, error) {
	nodes, err := w.PoolNodes(ctx, poolName)
	for _, n := range nodes {
		if n.Instance == instance {
			return &n, err
		}
	}
	return nil, err
}

// hookTimeout and hookCap are the launch hook's, as in the pool's template.
const (
	hookTimeout = 7200 * time.Second
	hookCap     = 48 * time.Hour
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
	if err := w.call("state"); err != nil {
		return "", err
	}
	w.expire()
	return w.state, nil
}

func (w *world) Describe(_ context.Context, group string) (pool.Group, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.call("group"); err != nil {
		return pool.Group{}, false, err
	}
	w.reads++
	require.Less(w.t, w.reads, 100_000, "a day of waiting is not polled that often")
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
	if err := w.call("heartbeat"); err != nil {
		return false, err
	}
	w.expire()
	require.LessOrEqual(w.t, time.Since(w.lastBeat), hookTimeout/2, "each heartbeat is within half of the hook's timeout")
	w.lastBeat = time.Now()
	return w.state == pool.PendingWait, nil
}

func (w *world) Complete(_ context.Context, _ events.Lifecycle, result pool.HookResult) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.call("complete"); err != nil {
		return false, err
	}
	w.expire()
	was := w.state == pool.PendingWait
	w.result, w.ended, w.state = result, w.since(), pool.InService
	if result == pool.Abandon {
		w.state = ""
	}
	return was, nil
}

// Stacks.

type stackFake struct{ *world }

func (s stackFake) Describe(context.Context, string) (stack.Deployed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.call("stack"); err != nil {
		return stack.Deployed{}, err
	}
	return stack.Deployed{Status: s.stack, Parameters: s.parameters}, nil
}

func (s stackFake) Signal(_ context.Context, stackName, resource, instance string, success bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.call("signal"); err != nil {
		return err
	}
	require.Equal(s.t, "drover-demo-pool-workers Group i-new", stackName+" "+resource+" "+instance)
	s.signals = append(s.signals, signal{success, s.since()})
	return nil
}

// State.

type state struct{ w *world }

func (s state) Status(context.Context, string) (*status.Cluster, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if err := s.w.call("status"); err != nil {
		return nil, err
	}
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
	if err := s.w.call("write"); err != nil {
		return err
	}
	change(&s.w.status.Status)
	return nil
}

func (s state) AddDue(_ context.Context, cluster string, at time.Time) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if err := s.w.call("due"); err != nil {
		return err
	}
	s.w.due = append(s.w.due, names.Due(at, cluster))
	return nil
}

func (w *world) handler() *Handler {
	return &Handler{
		Clusters: w, Groups: w, Stacks: stackFake{w}, State: state{w},
		Limit: 14 * time.Minute, Grace: 50 * time.Second, SignalLimit: time.Hour, HoldTimeout: 24 * time.Hour, Now: time.Now,
	}
}

// request is that of the machine, which began elapsed before.
func (w *world) request(pool string, elapsed time.Duration) events.JoinRequest {
	return events.JoinRequest{Started: w.start.Add(-elapsed), Lifecycle: events.Lifecycle{
		AutoScalingGroupName: "drover-demo-pool-workers", LifecycleHookName: "launch", EC2InstanceID: "i-new", NotificationMetadata: pool,
	}}
}

// run calls the function as the machine does, until it returns an end.
func (w *world) run(pool string) events.JoinResult {
	h, in := w.handler(), w.request(pool, 0)
	for calls := 1; ; calls++ {
		require.Less(w.t, calls, 2000, "an execution has 25,000 events")
		result, err := h.Handle(w.t.Context(), in)
		require.NoError(w.t, err)
		if result.Outcome != events.JoinWaiting {
			return result
		}
		require.NotEmpty(w.t, result.Message)
		require.GreaterOrEqual(w.t, result.WaitSeconds, int64(1))
		time.Sleep(time.Duration(result.WaitSeconds) * time.Second)
		in.PausedSeconds, in.MissingSince, in.Node = result.PausedSeconds, result.MissingSince, result.Node
	}
}
