package kube_test

// Unusual nodes: the kubelet is dead, or the instance has not joined, or never joins.

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/drain/handler"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube/drainer"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// kubeletDies takes the lease of a node from KWOK, which then stops simulating the node. In some runs it still simulates
// the node's pods: it starts its controllers in the order of a Go map, and if that of pods is the first, it never reads
// leases (https://github.com/kubernetes-sigs/kwok/blob/v0.8.0/pkg/kwok/controllers/controller.go#L561). So pods that must
// stay need a finalizer. The node lifecycle controller would mark the node and its pods as not Ready within a minute.
// kubeletDies does so itself, so that the controller sets the taints at once.
func (w *world) kubeletDies(node string) {
	w.t.Helper()
	w.lease(node, 3600)
	w.kwokSawLeases()
	_, err := w.api.Resource(nodes).Patch(context.Background(), node, types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown",`+
			`"message":"Kubelet stopped posting node status."}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(w.t, err)
	for _, p := range w.podsOn(node) {
		_, err := w.api.Resource(pods).Namespace(w.name).Patch(context.Background(), p.Name, types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`), metav1.PatchOptions{}, "status")
		require.NoError(w.t, err)
	}
	w.eventually(func() bool {
		for _, taint := range w.readNode(node).Spec.Taints {
			if taint.Key == corev1.TaintNodeUnreachable && taint.Effect == corev1.TaintEffectNoExecute {
				return true
			}
		}
		return false
	}, "the node is not unreachable")
}

// lease takes the lease of a node for another holder, for some seconds.
func (w *world) lease(node string, seconds int) {
	w.t.Helper()
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	require.NoError(w.t, w.patch(leases, "kube-node-lease", node,
		fmt.Sprintf(`{"spec":{"holderIdentity":"absent","leaseDurationSeconds":%d,"renewTime":%q}}`, seconds, now)))
}

// kwokSawLeases waits until KWOK has seen all earlier changes of leases. Its watch may lag, but keeps their order. KWOK renews the lease of
// another node only after it has seen that lease expire.
func (w *world) kwokSawLeases() {
	w.t.Helper()
	other := w.node("other")
	w.lease(other, 1)
	w.eventually(func() bool {
		var l coordinationv1.Lease
		w.read(leases, "kube-node-lease", other, &l)
		return l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "absent"
	}, "KWOK does not take the lease back")
}

// dead creates a node with a dead kubelet. It has one of three pods under a budget that needs two.
func (w *world) dead(grace int) (node string) {
	w.t.Helper()
	node = w.node("a")
	for _, name := range []string{"a", "b", "c"} {
		on := node
		if name != "a" {
			on = w.node("to" + name)
		}
		w.slow(name, on, grace, "")
		require.NoError(w.t, w.patch(pods, w.name, name, `{"metadata":{"labels":{"app":"web"}}}`))
	}
	w.budget("web", "{minAvailable: 2, selector: {matchLabels: {app: web}}}", 1)
	w.kubeletDies(node)
	return node
}

// On a node with a dead kubelet, pods are evicted but do not end. The drain waits one minute for them.
func TestNodeWithADeadKubelet(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	node := w.dead(1)
	// Not even KWOK ends this pod.
	require.NoError(t, w.patch(pods, w.name, "a", `{"metadata":{"finalizers":["example.com/hold"]}}`))
	t.Cleanup(func() { _ = w.patch(pods, w.name, "a", `{"metadata":{"finalizers":null}}`) })
	began := time.Now()
	evicted := 0
	report := w.slices(node, policy(), func(report drain.Report) bool {
		evicted += report.Evicted
		return report.Terminating == 1
	})
	require.Equal(t, 1, evicted)
	require.Empty(t, report.Blocked)
	if testing.Short() {
		t.Skip("a minute must pass")
	}
	report = w.drain(node, policy(), patience)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.Equal(t, []string{w.name + "/a"}, report.Stuck)
	// The API's deletion time is in whole seconds: after a deletion by KWOK, it is up to one earlier.
	require.GreaterOrEqual(t, time.Since(began), time.Minute-time.Second)
	require.Len(t, w.podsOn(node), 1, "the pod is not deleted by force: its process may still run")
}

// An operator marks a stopped machine with the taint, and Kubernetes deletes its pods. The drain does not wait for them any longer.
// https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown
func TestNodeOutOfService(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	node := w.dead(600)
	_, err := w.api.Resource(nodes).Patch(context.Background(), node, types.StrategicMergePatchType,
		[]byte(`{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","value":"nodeshutdown","effect":"NoExecute"}]}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
	report := w.drain(node, policy(), patience) // Kubernetes checks every 20 seconds; without the taint the drain would wait eleven minutes
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.Empty(t, report.Stuck)
	// Kubernetes sets the phase Failed before it deletes a pod.
	w.eventually(func() bool { return len(w.podsOn(node)) == 0 }, "the pod is still there")
}

// instance is an instance of a pool at its terminate hook, for the drain function.
type instance struct {
	*world
	completed []pool.HookResult
}

func (i *instance) Open(context.Context, string) (handler.Cluster, error) {
	return drainer.NewCluster(i.cluster), nil
}

func (i *instance) PoolOfInstance(ctx context.Context, _ string) (events.HookMetadata, error) {
	return i.PoolOfGroup(ctx, "drover-demo-pool-a")
}

func (i *instance) PoolOfGroup(context.Context, string) (events.HookMetadata, error) {
	p := policy()
	return events.HookMetadata{Cluster: "demo", Pool: i.name, Drain: &p}, nil
}

func (i *instance) State(context.Context, string) (string, error) {
	return pool.TerminatingWait, nil
}

func (i *instance) Heartbeat(context.Context, events.Lifecycle) (bool, error) {
	return len(i.completed) == 0, nil
}

func (i *instance) Complete(_ context.Context, _ events.Lifecycle, result pool.HookResult) (bool, error) {
	i.completed = append(i.completed, result)
	return true, nil
}

func (i *instance) Status(context.Context, string) (*status.Cluster, error) {
	return nil, store.ErrNotFound
}

func (i *instance) UpdateStatus(context.Context, string, func(*status.Status)) error { return nil }

// end calls the drain function until the instance may be terminated.
func (i *instance) end(t *testing.T, late time.Duration) events.DrainResult {
	t.Helper()
	h := &handler.Handler{Clusters: i, Groups: i, State: i, Slice: 10 * time.Second, JoinGrace: late, Now: time.Now, Metrics: io.Discard}
	in := events.DrainRequest{
		Started: time.Now(), Lifecycle: &events.Lifecycle{
			AutoScalingGroupName: "drover-demo-pool-a", LifecycleHookName: "terminate", EC2InstanceID: "i-" + i.name + "-a",
		},
	}
	for calls := 0; ; calls++ {
		require.Less(t, calls, 18)
		result, err := h.Handle(context.Background(), in)
		require.NoError(t, err)
		if result.Outcome != drain.Remaining {
			return result
		}
	}
}

func TestInstanceThatNeverJoined(t *testing.T) {
	t.Parallel() // it waits most of the time
	i := &instance{world: newWorld(t)}
	result := i.end(t, 3*time.Second)
	require.Equal(t, drain.Gone, result.Outcome)
	require.Contains(t, result.Message, "never joined")
	require.Equal(t, []pool.HookResult{pool.Continue}, i.completed)
}

// A node that joins during its drain gets pods at once. It is cordoned, and they are evicted.
func TestNodeJoinsDuringItsDrain(t *testing.T) {
	t.Parallel() // it waits most of the time
	i := &instance{world: newWorld(t)}
	i.create(deployments, i.name,
		fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 5, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: 1, nodeSelector: {world: %s}, `+
			`containers: [{name: c, image: c}]}}}}`, i.name))
	ended := make(chan events.DrainResult, 1)
	go func() { ended <- i.end(t, 30*time.Second) }()
	late := i.name + "-a"
	i.create(nodes, "", fmt.Sprintf(`{apiVersion: v1, kind: Node,
		metadata: {name: %[1]s, labels: {world: %[2]s, drover.run/pool: %[2]s}, annotations: {local.drover.run/network: ready}},
		spec: {providerID: "aws:///eu-central-1a/i-%[1]s"},
		status: {capacity: {cpu: "64", memory: 256Gi, pods: "500"}, allocatable: {cpu: "64", memory: 256Gi, pods: "500"}}}`, late, i.name))
	result := <-ended
	require.Equal(t, drain.Done, result.Outcome, "%+v", result)
	require.Equal(t, late, result.Node)
	require.True(t, i.readNode(late).Spec.Unschedulable)
	require.Empty(t, i.podsOn(late))
	require.Equal(t, []pool.HookResult{pool.Continue}, i.completed)
}
