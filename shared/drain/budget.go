package drain

// What a PodDisruptionBudget allows, as the eviction API reads it.
// https://kubernetes.io/docs/concepts/workloads/pods/disruptions/ and, to the letter, the API server's own
// pkg/registry/core/pod/storage/eviction.go.

import (
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Key is the namespace/name of a budget.
type Key string

func (k Key) namespace() string {
	namespace, _, _ := strings.Cut(string(k), "/")
	return namespace
}

// Budget is what matters of a PodDisruptionBudget.
type Budget struct {
	Key Key
	// Allowed is how many more pods may be disrupted now.
	Allowed int
	// Disrupted are the pods whose eviction the budget has counted already.
	Disrupted map[string]metav1.Time
	// slots is how many of the budget's pods may be out at once when all are healthy.
	slots int
	// unready says that pods which are not ready may go without being counted.
	unready  bool
	selector labels.Selector
}

// NewBudget reads a budget. Without a selector it covers nothing, and with an empty one every pod of its namespace.
func NewBudget(b *policyv1.PodDisruptionBudget) *Budget {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Nothing() // as the API server has it
	}
	budget := &Budget{
		Key: Key(b.Namespace + "/" + b.Name), Disrupted: b.Status.DisruptedPods, selector: selector,
		slots: int(b.Status.ExpectedPods - b.Status.DesiredHealthy),
	}
	// While its status is about an older spec, the API server refuses everything.
	if b.Status.ObservedGeneration >= b.Generation {
		budget.Allowed = int(max(0, b.Status.DisruptionsAllowed))
	}
	budget.unready = b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
	if policy := b.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		budget.unready = true
	}
	return budget
}

// Covers says whether a pod is under the budget.
func (b *Budget) Covers(p *Pod) bool {
	return b.Key.namespace() == p.Namespace && b.selector.Matches(p.Labels)
}

// Counts says whether the pod's eviction needs a disruption of the budget.
func (b *Budget) Counts(p *Pod) bool { return p.Ready || !b.unready }
