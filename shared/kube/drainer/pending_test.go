package drainer

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
)

// A drain reports replacements that no node can run, with the scheduler's message.
func TestPendingReplacements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t)
		s.node("n1")
		time.Sleep(time.Minute)
		s.server.Run(apiserver.App{Name: "dns", Replicas: 2, MaxUnavailable: 1, Start: time.Second, Stop: time.Second, Grace: 5 * time.Second})
		s.server.Run(apiserver.App{Name: "other", Replicas: 2, MaxUnavailable: -1, Start: time.Second, Stop: time.Second, Grace: 5 * time.Second})
		time.Sleep(time.Minute)
		_, err := s.nodes.cluster.Dynamic.Resource(schema.GroupVersionResource{
			Version: "v1", Resource: "nodes",
		}).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "n2", "annotations": map[string]any{"local.drover.run/network": "ready"}},
			"spec": map[string]any{"providerID": "aws:///zone/i-n2", "taints": []any{
				map[string]any{"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
			}},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		time.Sleep(time.Minute)

		first := s.drain(50 * time.Second)
		require.Equal(t, 1, first.Left, "the budget allows one of two")
		require.Empty(t, first.Pending, "pods left in this slice, so the drain is not blocked yet")
		require.Len(t, s.reported, 1)
		const why = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
		check := func(pending []events.PendingPod) {
			t.Helper()
			require.Len(t, pending, 1, "only pods under the blocking budgets")
			require.True(t, strings.HasPrefix(pending[0].Pod, "default/dns-"), pending[0].Pod)
			require.Equal(t, why, pending[0].Why)
		}
		check(s.reported[0].report.Pending)

		second := s.drain(50 * time.Second)
		check(second.Pending)
		require.Contains(t, second.Summary(), "; their replacements are Pending: "+second.Pending[0].Pod+": "+why)
		require.Len(t, s.when("GET /api/v1/pods"), 2, "the pods of the node, and the pods without a node")
		require.Empty(t, s.reported, "the blockers are the same")
	})
}

func TestUnschedulable(t *testing.T) {
	pod := func(conditions ...corev1.PodCondition) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: conditions}}
	}
	require.Empty(t, unschedulable(pod()))
	require.Empty(t, unschedulable(pod(corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated", Message: "x",
	})))
	require.Empty(t, unschedulable(pod(corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})))
	long := pod(corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: strings.Repeat("x", 1000),
	})
	require.Len(t, unschedulable(long), maxWhy+len("…"))
}
