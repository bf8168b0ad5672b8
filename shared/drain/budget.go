package drain

// What a PodDisruptionBudget allows, as the eviction API computes it.
// https://kubernetes.io/docs/concepts/workloads/pods/disruptions/ and, in detail, the API server's own
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

// Budget is the part of a PodDisruptionBudget that a drain needs.
type Budget struct {
	Key Key
	// Allowed is how many more pods may be disrupted now.
	Allowed int
	// Disrupted are the pods whose eviction the budget has already counted.
	Disrupted map[string]metav1.Time
	// slots is how many of the budget's pods may be unavailable at once if all others are healthy.
	slots int
	// evictsUnready reports that pods which are not ready may be evicted without a disruption.
	evictsUnready bool
	selector      labels.Selector
}

// NewBudget reads a budget. Without a selector it covers nothing, and with an empty one every pod of its namespace.
func NewBudget(b *policyv1.PodDisruptionBudget) *Budget {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Nothing() // like the API server
	}
	budget := &Budget{
		Key: Key(b.Namespace + "/" + b.Name), Disrupted: b.Status.DisruptedPods, selector: selector,
		slots: int(b.Status.ExpectedPods - b.Status.DesiredHealthy),
	}
	// The API server refuses all evictions while the status is about an older spec.
	if b.Status.ObservedGeneration >= b.Generation {
		budget.Allowed = int(max(0, b.Status.DisruptionsAllowed))
	}
	budget.evictsUnready = b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
	if policy := b.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		budget.evictsUnready = true
	}
	return budget
}

// Covers reports whether a pod is under the budget.
func (b *Budget) Covers(p *Pod) bool {
	return b.Key.namespace() == p.Namespace && b.selector.Matches(p.Labels)
}

// Counts reports whether the pod's eviction needs a disruption of the budget.
func (b *Budget) Counts(p *Pod) bool { return p.Ready || !b.evictsUnready }
