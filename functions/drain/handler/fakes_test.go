package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

const (
	hookSample   = "drain-request-hook"
	spotSample   = "drain-request-spot"
	byHandSample = "drain-request-by-hand"
	group        = "drover-demo-pool-workers"
	// absent is the outcome if there is nothing to drain.
	absent = drain.Gone
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	m.Run()
}

// world is the cluster demo with the node n1 on the instance i-1, and its Auto Scaling group. It implements Clusters, Cluster and Groups.
type world struct {
	objects *storetest.Bucket
	state   *store.State
	metrics bytes.Buffer

	openErr, findErr, restoreErr error
	// nodes by instance. The node of i-1 registers after some polls.
	nodes map[string]string
	polls int
	// report is the result of a slice. during is reported in the middle of it, and pods are forced.
	report drain.Report
	during *drain.Report
	pods   []string
	// opened are the clusters that were opened. drains and restores are the calls about nodes, with their results.
	opened, drains, restores []string
	policy                   drain.Policy
	deadline                 time.Duration

	pools                                        map[string]events.HookMetadata // by group
	groups, states                               map[string]string              // by instance
	waiting                                      map[string]bool                // at the hook, by instance
	poolErr, stateErr, heartbeatErr, completeErr error
	heartbeats                                   int
	completed                                    []string
}

// deployedPolicy is the policy of the pool in its stack. The event of the hook has another timeout.
var deployedPolicy = drain.Policy{Timeout: 7200, OnTimeout: drain.Wait, DeleteEmptyDirData: true, UnmanagedPods: drain.EvictUnmanaged}

func newWorld(t *testing.T) *world {
	policy := deployedPolicy
	w := &world{
		objects: storetest.NewBucket("state"), report: drain.Report{Outcome: drain.Done},
		nodes: map[string]string{"i-1": "n1"}, waiting: map[string]bool{"i-1": true}, states: map[string]string{"i-1": pool.InService},
		groups: map[string]string{"i-1": group, "i-web": "web"},
		pools:  map[string]events.HookMetadata{group: {Cluster: "demo", Pool: "workers", Drain: &policy}},
	}
	w.state = store.NewState(w.objects, store.Silent, func() time.Time { return noon })
	w.set(t, func(s *status.Status) { s.Phase = status.Ready })
	return w
}

func (w *world) set(t *testing.T, change func(*status.Status)) {
	t.Helper()
	require.NoError(t, w.state.UpdateStatus(t.Context(), "demo", change))
}

// recordedNodes are the nodes in the status.
func (w *world) recordedNodes(t *testing.T) []status.Node {
	t.Helper()
	document, err := w.state.Status(t.Context(), "demo")
	require.NoError(t, err)
	return document.Status.Nodes
}

// refuse refuses an operation on the status.
func (w *world) refuse(operation string) {
	w.objects.OnCall = func(call storetest.Call) error {
		if call.Operation == operation && call.Key == names.Status("demo") {
			return storetest.Refusal("AccessDenied")
		}
		return nil
	}
}

func (w *world) handler() *Handler {
	return &Handler{
		Clusters: w, Groups: w, State: w.state, Slice: 50 * time.Second, JoinGrace: 10 * time.Second, Now: func() time.Time { return noon },
		Metrics: &w.metrics,
	}
}

// handle handles a sample of a request after a change.
func (w *world) handle(t *testing.T, name string, change func(*events.DrainRequest)) (events.DrainResult, error) {
	t.Helper()
	return w.handler().Handle(t.Context(), sample(t, name, change))
}

// sample reads a request of events/samples, about the node n1 on the instance i-1.
func sample(t *testing.T, name string, change func(*events.DrainRequest)) events.DrainRequest {
	t.Helper()
	body, err := os.ReadFile("../../../events/samples/" + name + ".json")
	require.NoError(t, err)
	var in events.DrainRequest
	require.NoError(t, json.Unmarshal(body, &in))
	in.Started = noon
	switch {
	case in.Lifecycle != nil:
		in.EC2InstanceID = "i-1"
	case in.InstanceID != "":
		in.InstanceID = "i-1"
	default:
		in.Node = "n1"
	}
	if change != nil {
		change(&in)
	}
	return in
}

func (w *world) Open(_ context.Context, cluster string) (Cluster, error) {
	w.opened = append(w.opened, cluster)
	return w, w.openErr
}

func (w *world) NodeOf(_ context.Context, pool, instance string) (string, error) {
	if pool != "workers" {
		return "", fmt.Errorf("unexpected pool %q", pool)
	}
	if w.polls--; w.polls >= 0 {
		return "", w.findErr
	}
	return w.nodes[instance], w.findErr
}

func (w *world) InstanceOf(_ context.Context, node string) (string, error) {
	for instance, name := range w.nodes {
		if name == node && w.findErr == nil {
			return instance, nil
		}
	}
	return "", w.findErr
}

func (w *world) Drain(ctx context.Context, node string, task drain.Task, forced func(string),
	blocked func(context.Context, drain.Report)) drain.Report {
	w.drains, w.policy = append(w.drains, node), task.Policy
	if at, ok := ctx.Deadline(); ok {
		w.deadline = time.Until(at).Round(time.Second)
	}
	if w.during != nil {
		blocked(ctx, *w.during)
	}
	for _, pod := range w.pods {
		forced(pod)
	}
	return w.report
}

func (w *world) Restore(ctx context.Context, node string, drained bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.restores = append(w.restores, fmt.Sprintf("%s drained=%t", node, drained))
	return w.restoreErr
}

func (w *world) PoolOfInstance(ctx context.Context, instance string) (events.HookMetadata, error) {
	return w.PoolOfGroup(ctx, w.groups[instance])
}

func (w *world) PoolOfGroup(_ context.Context, group string) (events.HookMetadata, error) {
	return w.pools[group], w.poolErr
}

func (w *world) State(_ context.Context, instance string) (string, error) {
	return w.states[instance], w.stateErr
}

func (w *world) Heartbeat(_ context.Context, hook events.Lifecycle) (bool, error) {
	w.heartbeats++
	return w.waiting[hook.EC2InstanceID], w.heartbeatErr
}

func (w *world) Complete(_ context.Context, hook events.Lifecycle, result pool.HookResult) (bool, error) {
	w.completed = append(w.completed, hook.EC2InstanceID+" "+string(result))
	return true, w.completeErr
}

// failing is a writer that fails.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errThrottled }
