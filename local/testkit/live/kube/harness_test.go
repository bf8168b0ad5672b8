// Package kube_test drains nodes of a real control plane: with real evictions, budgets and watches, and nodes by KWOK. It needs
// the programs that `make kubernetes` builds, so it is not in shared/kube.
package kube_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/drover-run/drover/local/kubernetes"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/drainer"
)

var (
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	daemonSets  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	statefuls   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	budgets     = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	attachments = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
)

// plane is the control plane of all tests.
var plane *kubernetes.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "drover-drain-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		bin, err := filepath.Abs(kubernetes.BinDir("../../../.."))
		if err != nil {
			panic(err)
		}
		if missing := kubernetes.Missing(bin); len(missing) > 0 {
			fmt.Fprintf(os.Stderr, "%s not built in %s: run `make kubernetes` first\n", strings.Join(missing, ", "), bin)
			return 1
		}
		plane, err = kubernetes.Start(context.Background(), kubernetes.Options{
			Name: "drain", Dir: filepath.Join(dir, "plane"), BinDir: bin, ServiceCIDR: "172.20.0.0/16",
		})
		if err != nil {
			panic(err)
		}
		defer plane.Stop()
		return m.Run()
	}())
}

// world is a namespace and nodes for one test.
type world struct {
	t       testing.TB
	api     dynamic.Interface
	cluster *kube.Cluster
	// name of the namespace, and prefix of the nodes.
	name string
}

func config() *rest.Config {
	return &rest.Config{Host: plane.Endpoint, QPS: -1, BearerToken: plane.AdminToken, TLSClientConfig: rest.TLSClientConfig{CAData: plane.CA}}
}

var worlds atomic.Int64

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, name: fmt.Sprintf("w%d", worlds.Add(1))}
	var err error
	w.api, err = dynamic.NewForConfig(config())
	require.NoError(t, err)
	w.cluster, err = kube.Connect(config())
	require.NoError(t, err)
	w.create(namespaces, "", fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", w.name))
	t.Cleanup(func() {
		ctx := context.Background()
		grace := int64(0)
		now := metav1.DeleteOptions{GracePeriodSeconds: &grace}
		// Controllers go before their pods. Otherwise they create pods again in a namespace that is being deleted, and write
		// their status and an event for each pod. That was a third of the work of the control plane.
		for _, resource := range []schema.GroupVersionResource{deployments, statefuls, daemonSets, replicaSets, pods} {
			_ = w.api.Resource(resource).Namespace(w.name).DeleteCollection(ctx, now, metav1.ListOptions{})
		}
		_ = w.api.Resource(namespaces).Delete(ctx, w.name, now)
		_ = w.api.Resource(nodes).DeleteCollection(ctx, now, metav1.ListOptions{LabelSelector: "world=" + w.name})
	})
	return w
}

// create creates an object from YAML, in the world's namespace if it is namespaced.
func (w *world) create(resource schema.GroupVersionResource, namespace, text string) *unstructured.Unstructured {
	w.t.Helper()
	var object map[string]any
	require.NoError(w.t, yaml.Unmarshal([]byte(text), &object))
	var out *unstructured.Unstructured
	var err error
	if namespace == "" {
		out, err = w.api.Resource(resource).Create(context.Background(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	} else {
		out, err = w.api.Resource(resource).Namespace(namespace).Create(context.Background(), &unstructured.Unstructured{Object: object},
			metav1.CreateOptions{})
	}
	require.NoError(w.t, err)
	return out
}

// node creates a Ready node with room for many pods. Its name starts with the world's.
func (w *world) node(name string) string {
	w.t.Helper()
	full := w.name + "-" + name
	w.create(nodes, "", fmt.Sprintf(`{apiVersion: v1, kind: Node,
		metadata: {name: %[1]s, labels: {world: %[2]s, node: %[3]s}, annotations: {local.drover.run/network: ready}},
		spec: {providerID: "aws:///eu-central-1a/i-%[1]s"},
		status: {capacity: {cpu: "64", memory: 256Gi, pods: "500"}, allocatable: {cpu: "64", memory: 256Gi, pods: "500"}}}`, full, w.name, name))
	w.eventually(func() bool {
		n := w.readNode(full)
		return len(n.Spec.Taints) == 0 && ready(n.Status.Conditions)
	}, "the node is not Ready")
	return full
}

func ready(conditions []corev1.NodeCondition) bool {
	for _, c := range conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (w *world) readNode(name string) corev1.Node {
	w.t.Helper()
	var n corev1.Node
	w.read(nodes, "", name, &n)
	return n
}

func (w *world) read(resource schema.GroupVersionResource, namespace, name string, into any) {
	w.t.Helper()
	object, err := w.api.Resource(resource).Namespace(namespace).Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	require.NoError(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into))
}

// podsOn lists the pods of the world on a node.
func (w *world) podsOn(node string) []corev1.Pod {
	w.t.Helper()
	list, err := w.api.Resource(pods).Namespace(w.name).List(context.Background(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	require.NoError(w.t, err)
	var out corev1.PodList
	require.NoError(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), &out))
	return out.Items
}

// deploy creates a Deployment for the nodes of the world. extra has further fields of the pods' spec.
func (w *world) deploy(name string, replicas int, node, extra string) {
	w.t.Helper()
	w.create(deployments, w.name, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s},
		spec: {replicas: %[2]d, selector: {matchLabels: {app: %[1]s}},
			template: {metadata: {labels: {app: %[1]s}}, spec: {terminationGracePeriodSeconds: 1, nodeSelector: {world: %[3]s},
				affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, `+
		`preference: {matchExpressions: [{key: node, operator: In, values: [%[4]s]}]}}]}},
				containers: [{name: c, image: c}]%[5]s}}}}`, name, replicas, w.name, node, extra))
	w.eventually(func() bool {
		running := 0
		for _, p := range w.podsOn(w.name + "-" + node) {
			if p.Labels["app"] == name && podReady(&p) {
				running++
			}
		}
		return running == replicas
	}, "the pods of "+name+" do not run")
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

// web is a world with an app whose pods all run on one node.
func web(t testing.TB, pods int) (w *world, from string) {
	t.Helper()
	w = newWorld(t)
	from = w.node("a")
	w.deploy("web", pods, "a", "")
	return w, from
}

// startWithBudget is such a world with a budget, and a second node.
func startWithBudget(t testing.TB, pods, out int) (w *world, from string) {
	t.Helper()
	w, from = web(t, pods)
	w.budget("web", fmt.Sprintf("{maxUnavailable: %d, selector: {matchLabels: {app: web}}}", out), out)
	w.node("b")
	return w, from
}

// budget creates a budget and waits until it allows the expected number of evictions.
func (w *world) budget(name, spec string, allowed int) {
	w.t.Helper()
	w.create(budgets, w.name, fmt.Sprintf("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: %s}, spec: %s}", name, spec))
	w.eventually(func() bool {
		b, err := w.api.Resource(budgets).Namespace(w.name).Get(context.Background(), name, metav1.GetOptions{})
		require.NoError(w.t, err)
		n, _, _ := unstructured.NestedInt64(b.Object, "status", "disruptionsAllowed")
		seen, _, _ := unstructured.NestedInt64(b.Object, "status", "observedGeneration")
		return seen == b.GetGeneration() && int(n) == allowed
	}, "the budget does not allow the expected evictions")
}

// patience limits every wait. It is long enough for a machine at a tenth of the speed.
const patience = 3 * time.Minute

// poll is the time between two checks of a condition.
const poll = 50 * time.Millisecond

func (w *world) eventually(is func() bool, message string) {
	w.t.Helper()
	require.Eventually(w.t, is, patience, poll, message)
}

func (w *world) patch(resource schema.GroupVersionResource, namespace, name, body string) error {
	_, err := w.api.Resource(resource).Namespace(namespace).Patch(context.Background(), name, types.MergePatchType, []byte(body),
		metav1.PatchOptions{})
	return err
}

func (w *world) isDeleted(resource schema.GroupVersionResource, namespace, name string) bool {
	_, err := w.api.Resource(resource).Namespace(namespace).Get(context.Background(), name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// policy evicts everything, without a timeout.
func policy() drain.Policy {
	return drain.Policy{OnTimeout: drain.Wait, DeleteEmptyDirData: true, UnmanagedPods: drain.EvictUnmanaged}
}

func task(p drain.Policy) drain.Task { return drain.Task{Policy: p} }

// drain drains a node within a time.
func (w *world) drain(node string, p drain.Policy, within time.Duration) drain.Report {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return drainer.New(w.cluster).Drain(ctx, node, task(p), func(string) {}, ignoreReports)
}

// ignoreReports ignores the reports of a drain.
func ignoreReports(context.Context, drain.Report) {}

// slices runs slices of a blocked drain, as the function does, until a report satisfies the condition. On a busy machine that may need
// several.
func (w *world) slices(node string, p drain.Policy, is func(drain.Report) bool) drain.Report {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		report := w.drain(node, p, 2*time.Second)
		require.Equal(w.t, drain.Remaining, report.Outcome, "%+v", report)
		if is(report) {
			return report
		}
		require.True(w.t, time.Now().Before(deadline), "%+v", report)
	}
}
