package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/inprocess"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/drainer"
)

var (
	nodeResource   = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	podResource    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	budgetResource = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
)

func serve(t *testing.T) (*Server, dynamic.Interface, *kube.Cluster) {
	s := New(&clock.Clock{})
	t.Cleanup(s.Close)
	config := &rest.Config{Host: "http://api", Transport: inprocess.Transport(s), QPS: -1}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	cluster, err := kube.Connect(config)
	require.NoError(t, err)
	return s, client, cluster
}

func addNode(t *testing.T, client dynamic.Interface, name string) {
	_, err := client.Resource(nodeResource).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name, "annotations": map[string]any{networkAnnotation: "ready"}},
		"spec":     map[string]any{"providerID": "aws:///zone/i-" + name},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func evict(t *testing.T, client dynamic.Interface, pod string, uid *types.UID) error {
	_, err := client.Resource(podResource).Namespace("default").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": pod, "namespace": "default"},
		"deleteOptions": map[string]any{"preconditions": map[string]any{"uid": orEmpty(uid)}},
	}}, metav1.CreateOptions{}, "eviction")
	return err
}

func orEmpty(uid *types.UID) any {
	if uid == nil {
		return nil
	}
	return string(*uid)
}

func TestEvictions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client, _ := serve(t)
		addNode(t, client, "n1")
		addNode(t, client, "n2")
		s.Run(App{Name: "web", Replicas: 3, MaxUnavailable: 1, Start: 10 * time.Second, Stop: 5 * time.Second, Grace: 30 * time.Second})
		time.Sleep(time.Minute)
		all := s.Pods()
		require.Len(t, all, 3)
		for _, p := range all {
			require.True(t, p.Ready)
		}
		require.True(t, apierrors.IsNotFound(evict(t, client, "absent", nil)))
		other := types.UID("other")
		require.True(t, apierrors.IsConflict(evict(t, client, all[0].Name, &other)), "another pod of that name")

		require.NoError(t, evict(t, client, all[0].Name, nil))
		err := evict(t, client, all[1].Name, nil)
		require.True(t, apierrors.IsTooManyRequests(err), err)
		require.True(t, apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause))
		require.NoError(t, evict(t, client, all[0].Name, nil), "the pod is terminating already")
		time.Sleep(4 * time.Second)
		require.Len(t, s.Pods(), 4, "it ends, and its successor starts")
		time.Sleep(5 * time.Second)
		require.Len(t, s.Pods(), 3)
		require.Error(t, evict(t, client, all[1].Name, nil), "the successor is not ready")
		time.Sleep(10 * time.Second)
		require.NoError(t, evict(t, client, all[1].Name, nil))

		b, err := client.Resource(budgetResource).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		allowed, _, _ := unstructured.NestedInt64(b.Object, "status", "disruptionsAllowed")
		require.Zero(t, allowed)
	})
}

func TestDrainWithBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client, cluster := serve(t)
		addNode(t, client, "n1")
		s.Run(App{Name: "web", Replicas: 4, MaxUnavailable: 1, Start: 10 * time.Second, Stop: 5 * time.Second, Grace: 30 * time.Second})
		s.Run(App{Name: "free", Replicas: 2, MaxUnavailable: -1, Start: time.Second, Stop: time.Second, Grace: time.Second})
		time.Sleep(time.Minute)
		addNode(t, client, "n2")
		time.Sleep(time.Minute)
		var removed []Removal
		s.OnRemoval(func(r Removal) { removed = append(removed, r) })
		began := time.Now()
		report := drainer.New(cluster).Drain(t.Context(), "n1", drain.Task{
			Policy: drain.Policy{Timeout: 3600, OnTimeout: drain.Wait}, Started: time.Now(),
		},
			func(string) {}, dropReports)
		require.Equal(t, drain.Done, report.Outcome, report.Message)
		require.Greater(t, time.Since(began), 30*time.Second, "one after the other")
		require.Len(t, removed, 6)
		for _, r := range removed {
			require.Equal(t, "evicted", r.How)
			require.GreaterOrEqual(t, r.Healthy, r.Desired)
		}
		for _, p := range s.Pods() {
			require.Equal(t, "n2", p.Node)
		}
		require.NoError(t, client.Resource(nodeResource).Delete(t.Context(), "n2", metav1.DeleteOptions{}))
		require.Len(t, removed, 12)
		require.Equal(t, "lost with its node", removed[11].How)
	})
}

func TestObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client, _ := serve(t)
		api := client.Resource(nodeResource)
		addNode(t, client, "n1")
		_, err := api.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "n1"}}},
			metav1.CreateOptions{})
		require.True(t, apierrors.IsAlreadyExists(err))
		list, err := api.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
		require.NoError(t, err)
		require.Empty(t, list.Items)

		w, err := api.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		require.NoError(t, err)
		patched, err := api.Patch(t.Context(), "n1", types.MergePatchType,
			[]byte(`{"metadata": {"labels": {"a": "b"}, "annotations": {"local.drover.run/network": null}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.Empty(t, patched.GetAnnotations())
		event := <-w.ResultChan()
		require.EqualValues(t, "MODIFIED", event.Type)
		require.Equal(t, "b", event.Object.(*unstructured.Unstructured).GetLabels()["a"])
		w.Stop()
		_, err = api.Patch(t.Context(), "n1", types.MergePatchType, []byte(`{"metadata": {"uid": "another"}}`), metav1.PatchOptions{})
		require.True(t, apierrors.IsConflict(err))
		stale := patched.DeepCopy()
		stale.SetResourceVersion("1")
		_, err = api.Update(t.Context(), stale, metav1.UpdateOptions{})
		require.True(t, apierrors.IsConflict(err))

		s.Down(time.Minute)
		_, err = api.Get(t.Context(), "n1", metav1.GetOptions{})
		require.True(t, apierrors.IsServiceUnavailable(err), err)
		time.Sleep(time.Minute)
		require.NoError(t, api.Delete(t.Context(), "n1", metav1.DeleteOptions{}))
		_, err = api.Get(t.Context(), "n1", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
	})
}

func TestUnsupported(t *testing.T) {
	s := New(&clock.Clock{})
	defer s.Close()
	for _, path := range []string{"/api/v1/secrets", "/apis/batch/v1/jobs", "/version", "/api/v1/nodes/a/b/c"} {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://api"+path, nil)
		require.NoError(t, err)
		response, err := inprocess.Transport(s).RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, response.StatusCode, fmt.Sprint(path))
		_ = response.Body.Close()
	}
}

// dropReports drops a drain's reports.
func dropReports(context.Context, drain.Report) {}
