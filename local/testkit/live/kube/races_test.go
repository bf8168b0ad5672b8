package kube_test

// Changes between two requests of a drain. The proxy makes them before it forwards a request, so that they happen each
// time.

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube/drainer"
)

// before calls do before the n-th matching request is forwarded.
func before(n int32, match func(*http.Request) bool, do func()) func(http.ResponseWriter, *http.Request) bool {
	var seen atomic.Int32
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if match(r) && seen.Add(1) == n {
			do()
		}
		return false
	}
}

func eviction(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/eviction") }

func listOfPods(r *http.Request) bool {
	return r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("watch") == ""
}

func TestPodOfTheSameNameIsNotEvicted(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	from, to := w.node("a"), w.node("b")
	w.bare("db-0", from, "")
	p := w.through(t)
	p.behave(before(1, eviction, func() {
		grace := int64(0)
		require.NoError(t, w.api.Resource(pods).Namespace(w.name).Delete(context.Background(), "db-0", metav1.DeleteOptions{
			GracePeriodSeconds: &grace,
		}))
		w.bare("db-0", to, "")
	}))
	report := w.drain(from, policy(), patience)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.Zero(t, report.Evicted, "the API server refused because of the UID")
	other := w.podsOn(to)
	require.Len(t, other, 1)
	require.Nil(t, other[0].DeletionTimestamp)
}

// The API server responds with 500 if a second budget exists, which the drain has not seen yet.
func TestSecondBudgetDuringTheDrain(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := web(t, 2)
	w.budget("one", "{maxUnavailable: 1, selector: {matchLabels: {app: web}}}", 1)
	w.node("b")
	p := w.through(t)
	p.behave(before(1, eviction, func() {
		w.create(budgets, w.name, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: two}, spec: {maxUnavailable: 1, "+
			"selector: {matchLabels: {app: web}}}}")
	}))
	report := w.slices(from, policy(), func(report drain.Report) bool {
		require.Zero(t, report.Evicted)
		return len(report.Blocked) == 2 && len(report.Blocked[0].Budgets) == 2
	})
	for _, b := range report.Blocked {
		require.Equal(t, []string{w.name + "/one", w.name + "/two"}, b.Budgets)
	}
	require.NoError(t, w.api.Resource(budgets).Namespace(w.name).Delete(context.Background(), "two", metav1.DeleteOptions{}))
	require.Equal(t, drain.Done, w.drain(from, policy(), patience).Outcome)
}

// A pod that was bound just before the cordon appears after the first empty list.
func TestPodBetweenTwoEmptyLists(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	from := w.node("a")
	p := w.through(t)
	p.behave(before(3, listOfPods, func() { w.bare("late", from, "") })) // the list of the watch, and the two of the verification
	report := w.drain(from, policy(), patience)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.Equal(t, 1, report.Evicted)
	require.Empty(t, w.podsOn(from))
}

// Pods that are not Ready leave even if the budget is exhausted, while enough others are Ready.
func TestPodsThatAreNotReady(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	from := w.node("a")
	for _, name := range []string{"a", "b", "c"} {
		node := from
		if name != "a" {
			node = w.node("to" + name)
		}
		w.bare(name, node, "")
		require.NoError(t, w.patch(pods, w.name, name, `{"metadata":{"labels":{"app":"web"}}}`))
	}
	w.create(budgets, w.name, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 2, selector: "+
		"{matchLabels: {app: web}}}}")
	_, err := w.api.Resource(pods).Namespace(w.name).Patch(context.Background(), "a", "application/strategic-merge-patch+json",
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	w.eventually(func() bool {
		b, err := w.api.Resource(budgets).Namespace(w.name).Get(context.Background(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		s, _ := b.Object["status"].(map[string]any)
		return s["currentHealthy"] == int64(2) && s["disruptionsAllowed"] == int64(0)
	}, "the budget is not used up")
	report := w.drain(from, policy(), patience)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.Equal(t, 1, report.Evicted)
}

// After an aborted drain the node is as before: the settings of the drain are reverted, others stay.
func TestAbortedDrainLeavesNothing(t *testing.T) {
	t.Parallel() // it waits most of the time
	for name, c := range map[string]struct {
		before   string // a patch
		cordoned bool
		labeled  bool
		held     bool
	}{
		"the drain made all settings": {before: `{}`},
		"an operator had cordoned it": {before: `{"spec":{"unschedulable":true}}`, cordoned: true},
		"an operator had excluded it from load balancers, and held the autoscaler": {
			before: `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"true"},` +
				`"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"}}}`, labeled: true, held: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			node := w.node("a")
			w.heldPod("stays", node)
			require.NoError(t, w.patch(nodes, "", node, c.before))
			for range 2 { // the second slice finds the settings of the first
				w.slices(node, policy(), func(report drain.Report) bool { return report.Terminating == 1 })
			}
			require.True(t, w.readNode(node).Spec.Unschedulable)
			for range 2 {
				require.NoError(t, drainer.New(w.cluster).Restore(context.Background(), node, false))
			}
			n := w.readNode(node)
			require.Equal(t, c.cordoned, n.Spec.Unschedulable)
			_, labeled := n.Labels[corev1.LabelNodeExcludeBalancers]
			require.Equal(t, c.labeled, labeled)
			_, held := n.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"]
			require.Equal(t, c.held, held)
			for key := range n.Annotations {
				require.False(t, strings.HasPrefix(key, "drover.run/"), key)
			}
		})
	}
}
