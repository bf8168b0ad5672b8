package drainer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/shared/drain"
)

// create creates an object of a group, version and resource.
func (s *simulation) create(group, version, resource string, object map[string]any) {
	s.t.Helper()
	namespace, _ := object["metadata"].(map[string]any)["namespace"].(string)
	to := s.nodes.cluster.Dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
	var err error
	if namespace == "" {
		_, err = to.Create(s.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	} else {
		_, err = to.Namespace(namespace).Create(s.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	}
	require.NoError(s.t, err)
}

// pod creates a Ready pod on a node. Its label selects it for the budget of the test, which allows no disruption.
func (s *simulation) pod(namespace, name, node string, priority int64) {
	s.t.Helper()
	s.create("", "v1", "pods", map[string]any{
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"app": "dns"}},
		"spec": map[string]any{
			"nodeName": node, "priority": priority, "terminationGracePeriodSeconds": int64(1), "containers": []any{
				map[string]any{"name": "main", "image": "x"},
			},
		},
		"status": map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	})
}

func TestSystemPodsOfADeletedCluster(t *testing.T) {
	const critical = 2_000_000_000
	for name, test := range map[string]struct {
		keeps func(s *simulation)
		// namespace and priority of the pods that are left on the node.
		namespace string
		priority  int64
		deletes   bool
		done      bool
	}{
		"go when nothing else runs":   {namespace: "kube-system", priority: critical, deletes: true, done: true},
		"stay while the cluster does": {namespace: "kube-system", priority: critical},
		"must be in kube-system":      {namespace: "default", priority: critical, deletes: true},
		"must be critical":            {namespace: "kube-system", priority: 1000, deletes: true},
		"stay while a pod elsewhere needs them": {namespace: "kube-system", priority: critical, deletes: true, keeps: func(s *simulation) {
			s.pod("default", "web", "n2", 0)
		}},
		"do not need one another": {namespace: "kube-system", priority: critical, deletes: true, done: true, keeps: func(s *simulation) {
			s.pod("kube-system", "other", "n2", critical)
		}},
		"stay while a volume is attached": {namespace: "kube-system", priority: critical, deletes: true, keeps: func(s *simulation) {
			s.create("storage.k8s.io", "v1", "volumeattachments", map[string]any{
				"metadata": map[string]any{
					"name": "a",
				}, "spec": map[string]any{"nodeName": "n2", "attacher": "ebs.csi.aws.com", "source": map[string]any{"persistentVolumeName": "pv"}},
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t)
				s.node("n1")
				s.node("n2")
				time.Sleep(time.Minute)
				s.create("policy", "v1", "poddisruptionbudgets", map[string]any{
					"metadata": map[string]any{"name": "dns", "namespace": test.namespace, "generation": int64(1)},
					"spec":     map[string]any{"maxUnavailable": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": "dns"}}},
				})
				for i := range 2 {
					s.pod(test.namespace, fmt.Sprintf("dns-%d", i), "n1", test.priority)
				}
				if test.keeps != nil {
					test.keeps(s)
				}
				s.deletes = test.deletes
				report := s.drain(50 * time.Second)
				require.Equal(t, 2, report.Left, "no budget is broken")
				require.Empty(t, s.when("DELETE /api/v1/namespaces/"+test.namespace+"/pods/dns-0"))
				if !test.done {
					require.Equal(t, drain.Remaining, report.Outcome, report.Message)
					return
				}
				require.Equal(t, drain.Done, report.Outcome)
				require.Contains(t, report.Message, "only system pods run in it")
				require.Less(t, time.Since(s.began), 10*time.Second)
			})
		})
	}
}
