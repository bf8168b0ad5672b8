package drainer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-run/drover/shared/drain"
)

// drainWithView is a drain that has seen pods p1 and p2, and budgets shop/web and shop/old.
func drainWithView() *drainRun {
	c := &drainRun{
		view: drain.View{Pods: map[types.UID]*drain.Pod{}, Budgets: map[drain.Key]*drain.Budget{}, Tries: map[types.UID]drain.Try{}},
	}
	c.seePods(change[corev1.Pod]{items: []corev1.Pod{podOf("p1"), podOf("p2")}})
	c.seeBudgets(change[policyv1.PodDisruptionBudget]{items: []policyv1.PodDisruptionBudget{budgetOf("web"), budgetOf("old")}})
	return c
}

func podOf(name string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
}

func budgetOf(name string, disrupted ...string) policyv1.PodDisruptionBudget {
	b := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	b.Status.DisruptedPods = map[string]metav1.Time{}
	for _, pod := range disrupted {
		b.Status.DisruptedPods[pod] = metav1.Time{}
	}
	return b
}

func keys[K comparable, V any](m map[K]V) (list []K) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

// A list replaces all objects. An event of a watch adds, replaces or deletes one.
func TestChangesOfPodsAndBudgets(t *testing.T) {
	pods := func(names ...string) (list []corev1.Pod) {
		for _, name := range names {
			list = append(list, podOf(name))
		}
		return list
	}
	budgets := func(names ...string) (list []policyv1.PodDisruptionBudget) {
		for _, name := range names {
			list = append(list, budgetOf(name))
		}
		return list
	}
	for name, c := range map[string]struct {
		all, deleted bool
		pods         []types.UID
		budgets      []drain.Key
	}{
		"a list":            {all: true, pods: []types.UID{"p2", "p3"}, budgets: []drain.Key{"shop/old", "shop/new"}},
		"added or modified": {pods: []types.UID{"p1", "p2", "p3"}, budgets: []drain.Key{"shop/web", "shop/old", "shop/new"}},
		"deleted":           {deleted: true, pods: []types.UID{"p1"}, budgets: []drain.Key{"shop/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := drainWithView()
			d.seePods(change[corev1.Pod]{all: c.all, deleted: c.deleted, items: pods("p2", "p3")})
			d.seeBudgets(change[policyv1.PodDisruptionBudget]{all: c.all, deleted: c.deleted, items: budgets("old", "new")})
			require.ElementsMatch(t, c.pods, keys(d.view.Pods))
			require.ElementsMatch(t, c.budgets, keys(d.view.Budgets))
		})
	}
}

// An eviction counts against its budget until the budget itself has counted it: its status names the pod, or a list of it is newer
// than the result.
func TestBudgetCountsEvictions(t *testing.T) {
	answered := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
	seen := func(of string, disrupted ...string) change[policyv1.PodDisruptionBudget] {
		return change[policyv1.PodDisruptionBudget]{items: []policyv1.PodDisruptionBudget{budgetOf(of, disrupted...)}}
	}
	listed := func(after time.Duration) change[policyv1.PodDisruptionBudget] {
		c := seen("web")
		c.all, c.asked = true, answered.Add(after)
		return c
	}
	for name, c := range map[string]struct {
		change   change[policyv1.PodDisruptionBudget]
		accepted time.Time
		counted  bool
	}{
		"its status names the pod":                           {seen("web", "p1"), answered, true},
		"its status names the pod before the result arrives": {seen("web", "p1"), time.Time{}, true},
		"its status names another pod":                       {seen("web", "p2"), answered, false},
		"the status of another budget names the pod":         {seen("old", "p1"), answered, false},
		"its status changed for another reason":              {seen("web"), answered, false},
		"it was listed after the result":                     {listed(1), answered, true},
		"the list was requested before the result":           {listed(-1), answered, false},
		"it was listed without a result":                     {listed(1), time.Time{}, false},
		"the list does not contain it": {
			change[policyv1.PodDisruptionBudget]{all: true, asked: answered.Add(1), items: []policyv1.PodDisruptionBudget{budgetOf("old")}},
			answered, false,
		},
		"its status changed after the result": {
			change[policyv1.PodDisruptionBudget]{asked: answered.Add(1), items: []policyv1.PodDisruptionBudget{budgetOf("web")}}, answered, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := drainWithView()
			d.view.Tries["p1"] = drain.Try{Pod: "p1", Budget: "shop/web", Accepted: c.accepted}
			d.seeBudgets(c.change)
			require.Equal(t, c.counted, d.view.Tries["p1"].Counted)
			d.seeBudgets(seen("web"))
			require.Equal(t, c.counted, d.view.Tries["p1"].Counted, "it stays counted")
		})
	}
}
