package drain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/drain/handler"
	"github.com/drover-run/drover/local/engine/inprocess"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/drainer"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// world is a fake of a cluster with one node, and of Auto Scaling. Each method holds the lock.
type world struct {
	mu sync.Mutex
	// node of the cluster, or nil, and its pods.
	node *corev1.Node
	pods []corev1.Pod
	// opened lists the opened clusters. openErr is the error of opening one.
	opened  []string
	openErr error
	// down reports whether the API server does not answer.
	down func() bool
	// If again is true, each evicted pod is replaced at once by one with another name. evictions and deletions are counts.
	again                bool
	evictions, deletions int
	// listed is called when pods are listed.
	listed func()

	// groups by instance, pools by group, open hooks by instance, and completed hooks.
	groups    map[string]string
	states    map[string]string // lifecycle states, by instance
	pools     map[string]events.HookMetadata
	open      map[string]bool
	completed []string
	beats     int
	beatErr   error
	poolErr   error
	// attached are the volumes of the node.
	attached []storagev1.VolumeAttachment
	// status of the cluster, or nil, how often it was written, and the error of writing it.
	status    *status.Cluster
	wrote     int
	statusErr error
}

func newWorld() *world {
	return &world{
		node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", Labels: map[string]string{names.LabelPool: "workers"}},
			Spec:       corev1.NodeSpec{ProviderID: "aws:///eu-central-1a/i-1"},
		},
		groups: map[string]string{"i-1": "drover-demo-pool-workers", "i-web": "web"},
		pools: map[string]events.HookMetadata{"drover-demo-pool-workers": {Cluster: "demo", Pool: "workers", Drain: &drain.Policy{
			Timeout: 3600, OnTimeout: drain.Wait, DeleteEmptyDirData: true, UnmanagedPods: drain.EvictUnmanaged,
		}}},
		open: map[string]bool{"i-1": true}, status: status.New("demo"), down: func() bool { return false },
	}
}

// after changes the world after some time.
func (w *world) after(d time.Duration, happens func()) {
	time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		happens()
	})
}

// waiting adds a pod that nothing evicts: it is unmanaged, and the policy waits for those.
func (w *world) waiting() {
	w.pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "alone", UID: "p1"}}}
	pool := w.pools["drover-demo-pool-workers"]
	policy := *pool.Drain
	policy.UnmanagedPods = drain.WaitForUnmanaged
	pool.Drain = &policy
	w.pools["drover-demo-pool-workers"] = pool
}

// managedPod is a pod that a controller starts again.
func managedPod(kind, name string) corev1.Pod {
	yes := true
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: "x", Controller: &yes}},
	}}
}

// attach attaches a volume to the node.
func (w *world) attach() {
	pv := "pv-ebs"
	w.attached = append(w.attached, storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"},
		Spec: storagev1.VolumeAttachmentSpec{
			NodeName: "n1", Attacher: "ebs.csi.aws.com", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv},
		},
	})
}

// serve handles the requests of a drain.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down() {
		http.Error(rw, "away", http.StatusServiceUnavailable)
		return
	}
	var answer runtime.Object
	list := metav1.ListMeta{ResourceVersion: "1"}
	switch {
	case r.URL.Query().Get("watch") != "":
		rw.Header().Set("Content-Type", "application/json")
		rw.(http.Flusher).Flush()
		w.mu.Unlock()
		<-r.Context().Done()
		w.mu.Lock()
		return
	case r.Method == http.MethodPatch && w.node != nil:
		var patch struct {
			Metadata struct {
				Labels, Annotations map[string]*string
			}
			Spec map[string]*bool
		}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		w.node.Annotations = mergePatch(w.node.Annotations, patch.Metadata.Annotations)
		w.node.Labels = mergePatch(w.node.Labels, patch.Metadata.Labels)
		if value, ok := patch.Spec["unschedulable"]; ok {
			w.node.Spec.Unschedulable = value != nil && *value
		}
		answer = w.node
	case r.URL.Path == "/api/v1/nodes":
		nodes := &corev1.NodeList{ListMeta: list}
		if w.node != nil {
			nodes.Items = append(nodes.Items, *w.node)
		}
		answer = nodes
	case strings.HasPrefix(r.URL.Path, "/api/v1/nodes/") && w.node != nil && strings.HasSuffix(r.URL.Path, "/"+w.node.Name):
		answer = w.node
	case r.Method == http.MethodDelete && len(w.pods) > 0 && r.URL.Path == "/api/v1/namespaces/shop/pods/"+w.pods[0].Name:
		w.deletions++
		answer, w.pods = &w.pods[0], w.pods[1:]
	case r.Method == http.MethodPost && len(w.pods) > 0 && r.URL.Path == "/api/v1/namespaces/shop/pods/"+w.pods[0].Name+"/eviction":
		w.evictions++
		answer, w.pods = &w.pods[0], w.pods[1:]
		if w.again {
			next := w.replacementOf(answer.(*corev1.Pod))
			w.pods = append(w.pods, next)
		}
	case r.URL.Path == "/api/v1/pods":
		if w.listed != nil {
			w.listed()
		}
		answer = &corev1.PodList{ListMeta: list, Items: w.pods}
	case r.URL.Path == "/apis/policy/v1/poddisruptionbudgets":
		answer = &policyv1.PodDisruptionBudgetList{ListMeta: list}
	case r.URL.Path == "/apis/storage.k8s.io/v1/volumeattachments":
		answer = &storagev1.VolumeAttachmentList{ListMeta: list, Items: w.attached}
	default:
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusNotFound)
		fmt.Fprint(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		return
	}
	answer = answer.DeepCopyObject()
	kinds := map[string]string{
		"*v1.Node": "Node", "*v1.NodeList": "NodeList", "*v1.Pod": "Pod", "*v1.PodList": "PodList",
		"*v1.PodDisruptionBudgetList": "PodDisruptionBudgetList", "*v1.VolumeAttachmentList": "VolumeAttachmentList",
	}
	version := "v1"
	if group, found := strings.CutPrefix(r.URL.Path, "/apis/"); found {
		version = strings.Join(strings.SplitN(group, "/", 3)[:2], "/")
	}
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	rw.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(rw, `{"kind":%q,"apiVersion":%q,%s`, kinds[fmt.Sprintf("%T", answer)], version, body[1:])
}

// replacementOf returns the pod that replaces an evicted one.
func (w *world) replacementOf(p *corev1.Pod) corev1.Pod {
	next := *p.DeepCopy()
	next.Name, next.CreationTimestamp = fmt.Sprintf("web-%d", w.evictions), metav1.Now()
	next.UID = types.UID(next.Name)
	return next
}

func mergePatch(into map[string]string, patch map[string]*string) map[string]string {
	into = maps.Clone(into)
	if into == nil {
		into = map[string]string{}
	}
	for key, value := range patch {
		if value == nil {
			delete(into, key)
		} else {
			into[key] = *value
		}
	}
	return into
}

// Open is Clusters.
func (w *world) Open(_ context.Context, cluster string) (handler.Cluster, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = append(w.opened, cluster)
	if w.openErr != nil {
		return nil, w.openErr
	}
	opened, err := kube.Connect(&rest.Config{Host: "http://api", Transport: inprocess.Transport(http.HandlerFunc(w.serve))})
	return drainer.NewCluster(opened), err
}

// Groups.

func (w *world) PoolOfInstance(ctx context.Context, instance string) (events.HookMetadata, error) {
	w.mu.Lock()
	group := w.groups[instance]
	w.mu.Unlock()
	return w.PoolOfGroup(ctx, group)
}

func (w *world) PoolOfGroup(_ context.Context, group string) (events.HookMetadata, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pools[group], w.poolErr
}

func (w *world) State(_ context.Context, instance string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states[instance], nil
}

func (w *world) Heartbeat(_ context.Context, hook events.Lifecycle) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beats++
	return w.open[hook.EC2InstanceID], w.beatErr
}

func (w *world) Complete(_ context.Context, hook events.Lifecycle, result pool.HookResult) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.open[hook.EC2InstanceID]
	w.open[hook.EC2InstanceID] = false
	w.completed = append(w.completed, hook.EC2InstanceID+" "+string(result))
	return was, nil
}

// State.

func (w *world) Status(context.Context, string) (*status.Cluster, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status == nil {
		return nil, store.ErrNotFound
	}
	read := *w.status
	read.Status.Nodes = slices.Clone(read.Status.Nodes)
	return &read, nil
}

func (w *world) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.statusErr != nil {
		return w.statusErr
	}
	before, _ := json.Marshal(w.status)
	change(&w.status.Status)
	if after, _ := json.Marshal(w.status); string(after) != string(before) { // as the store does
		w.wrote++
	}
	return nil
}

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func (w *world) handler(now time.Time) *handler.Handler {
	return &handler.Handler{Clusters: w, Groups: w, State: w, Slice: 400 * time.Millisecond, Now: func() time.Time {
		return now
	}, Metrics: io.Discard}
}

// sample reads a request of events/samples.
func sample(t *testing.T, name string, change func(*events.DrainRequest)) events.DrainRequest {
	t.Helper()
	body, err := os.ReadFile("../../../../events/samples/" + name + ".json")
	require.NoError(t, err)
	var in events.DrainRequest
	require.NoError(t, json.Unmarshal(body, &in))
	in.Started = start
	if in.Lifecycle != nil {
		in.EC2InstanceID = "i-1"
	}
	if in.InstanceID != "" {
		in.InstanceID = "i-1"
	}
	if in.Node != "" {
		in.Node = "n1"
	}
	if change != nil {
		change(&in)
	}
	return in
}
