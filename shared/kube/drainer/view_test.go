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

// seeing is a drain that knows of pods p1 and p2, and of budgets shop/web and shop/old.
func seeing() *operation {
	d := &operation{
		view: drain.View{Pods: map[types.UID]*drain.Pod{}, Budgets: map[drain.Key]*drain.Budget{}, Tries: map[types.UID]drain.Try{}},
	}
	d.seePods(change[corev1.Pod]{items: []corev1.Pod{podOf("p1"), podOf("p2")}})
	d.seeBudgets(change[policyv1.PodDisruptionBudget]{items: []policyv1.PodDisruptionBudget{budgetOf("web"), budgetOf("old")}})
	return d
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

// A list is all there is, and what a watch tells is of one object: that it is as it says, or gone.
func TestWhatIsSeenOfPodsAndBudgets(t *testing.T) {
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
		all, gone bool
		pods      []types.UID
		budgets   []drain.Key
	}{
		"a list":                {all: true, pods: []types.UID{"p2", "p3"}, budgets: []drain.Key{"shop/old", "shop/new"}},
		"what is there":         {pods: []types.UID{"p1", "p2", "p3"}, budgets: []drain.Key{"shop/web", "shop/old", "shop/new"}},
		"what is there no more": {gone: true, pods: []types.UID{"p1"}, budgets: []drain.Key{"shop/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := seeing()
			d.seePods(change[corev1.Pod]{all: c.all, gone: c.gone, items: pods("p2", "p3")})
			d.seeBudgets(change[policyv1.PodDisruptionBudget]{all: c.all, gone: c.gone, items: budgets("old", "new")})
			require.ElementsMatch(t, c.pods, keys(d.view.Pods))
			require.ElementsMatch(t, c.budgets, keys(d.view.Budgets))
		})
	}
}

// An eviction counts against its budget until the budget itself has counted it: it says so, or a list of it is newer than the answer.
func TestWhatABudgetHasCounted(t *testing.T) {
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
		"it says so":                            {seen("web", "p1"), answered, true},
		"it says so before the answer is there": {seen("web", "p1"), time.Time{}, true},
		"it says so of another pod":             {seen("web", "p2"), answered, false},
		"another budget says so":                {seen("old", "p1"), answered, false},
		"it changed for another reason":         {seen("web"), answered, false},
		"it was listed after the answer":        {listed(1), answered, true},
		"it was asked for before the answer":    {listed(-1), answered, false},
		"it was listed, and there is no answer": {listed(1), time.Time{}, false},
		"another was listed, without this": {
			change[policyv1.PodDisruptionBudget]{all: true, asked: answered.Add(1), items: []policyv1.PodDisruptionBudget{budgetOf("old")}},
			answered, false,
		},
		"it changed, newer than every list there": {
			change[policyv1.PodDisruptionBudget]{asked: answered.Add(1), items: []policyv1.PodDisruptionBudget{budgetOf("web")}}, answered, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := seeing()
			d.view.Tries["p1"] = drain.Try{Pod: "p1", Budget: "shop/web", Accepted: c.accepted}
			d.seeBudgets(c.change)
			require.Equal(t, c.counted, d.view.Tries["p1"].Counted)
			d.seeBudgets(seen("web"))
			require.Equal(t, c.counted, d.view.Tries["p1"].Counted, "and that for good")
		})
	}
}
