package survey

// Pods: the resources that they request, those that do not run, and the budgets that cover them.

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/preflight"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// over reports whether a pod has ended.
func over(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// load adds a pod's requests to its node.
func (s *surveyor) load(node *preflight.Node, p *corev1.Pod) {
	if node == nil || over(p) {
		return
	}
	cpu, memory := requests(p)
	node.Requested.MilliCPU += cpu.MilliValue()
	node.Requested.Memory += memory.Value()
	node.Requested.Pods++
	if p.Namespace == metav1.NamespaceSystem && p.Labels["k8s-app"] == "kube-proxy" {
		for _, c := range p.Spec.Containers {
			image, _, _ := strings.Cut(c.Image[strings.LastIndex(c.Image, "/")+1:], "@")
			if _, tag, tagged := strings.Cut(image, ":"); tagged && c.Name == "kube-proxy" {
				s.proxies[tag] = true
			}
		}
	}
}

// requests of a pod as the scheduler counts them: the sum of its containers, or the largest init container.
// https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
func requests(p *corev1.Pod) (cpu, memory resource.Quantity) {
	sum, most := corev1.ResourceList{}, corev1.ResourceList{}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(sum, c.Resources.Requests)
			raise(most, sum)
			continue
		}
		together := corev1.ResourceList{}
		add(together, sum)
		add(together, c.Resources.Requests)
		raise(most, together)
	}
	for _, c := range p.Spec.Containers {
		add(sum, c.Resources.Requests)
	}
	raise(sum, most)
	add(sum, p.Spec.Overhead)
	return *sum.Cpu(), *sum.Memory()
}

func add(to, what corev1.ResourceList) {
	for name, quantity := range what {
		so := to[name]
		so.Add(quantity)
		to[name] = so
	}
}

func raise(to, least corev1.ResourceList) {
	for name, quantity := range least {
		if so, found := to[name]; !found || so.Cmp(quantity) < 0 {
			to[name] = quantity.DeepCopy()
		}
	}
}

// standOut records a pod that should run and does not. A pod that ends or has ended is normal.
func (s *surveyor) standOut(p *corev1.Pod) {
	if over(p) || !p.DeletionTimestamp.IsZero() {
		return
	}
	state, since := stateOf(p)
	if state == "" {
		return
	}
	s.found.Pods = append(s.found.Pods, preflight.Pod{
		Namespace: p.Namespace, Name: p.Name, Node: p.Spec.NodeName, Workload: workloadOf(p), State: state, Since: since,
	})
}

// stateOf returns why a pod does not run, or "". A container that waits counts as waiting since the pod was created: its
// conditions change with each restart, so they do not show the true time.
func stateOf(p *corev1.Pod) (string, time.Time) {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return w.Reason, p.CreationTimestamp.Time
		}
	}
	if p.Status.Phase == corev1.PodPending {
		return string(corev1.PodPending), p.CreationTimestamp.Time
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			return preflight.NotReady, c.LastTransitionTime.Time
		}
	}
	return "", time.Time{}
}

// workloadOf returns the workload of a pod, such as "Deployment coredns". The name of a ReplicaSet is that of its
// Deployment, with a hash that its pods have too.
func workloadOf(p *corev1.Pod) string {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return ""
	}
	if hash := p.Labels["pod-template-hash"]; owner.Kind == "ReplicaSet" && hash != "" {
		if name, of := strings.CutSuffix(owner.Name, "-"+hash); of {
			return "Deployment " + name
		}
	}
	return owner.Kind + " " + owner.Name
}

// watchedBudget is a budget and its pods.
type watchedBudget struct {
	drain *drain.Budget
	found preflight.Budget
}

func newWatchedBudget(b *policyv1.PodDisruptionBudget) *watchedBudget {
	w := &watchedBudget{drain: drain.NewBudget(b), found: preflight.Budget{
		Namespace: b.Namespace, Name: b.Name, Rule: "no rule",
		Expected: int(b.Status.ExpectedPods), Desired: int(b.Status.DesiredHealthy), Healthy: int(b.Status.CurrentHealthy),
		Stale: b.Status.ObservedGeneration < b.Generation, Covered: map[string]int{},
	}}
	w.found.Allowed = w.drain.Allowed
	switch {
	case b.Spec.MinAvailable != nil:
		w.found.Rule = "minAvailable " + b.Spec.MinAvailable.String()
	case b.Spec.MaxUnavailable != nil:
		w.found.Rule = "maxUnavailable " + b.Spec.MaxUnavailable.String()
	}
	for _, c := range b.Status.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Reason == policyv1.SyncFailedReason {
			w.found.Failed = c.Message
		}
	}
	return w
}

// overlapsAtMost limits the pods under several budgets that are listed: more of them have one cause.
const overlapsAtMost = 100

// cover counts a pod for the budgets of its namespace that select it: pods on nodes of a pool, which must be evicted, and
// pods that are not Ready.
func (s *surveyor) cover(node *preflight.Node, p *corev1.Pod) {
	pod := drain.NewPod(p)
	var covering []string
	for _, b := range s.budgets[p.Namespace] {
		if !b.drain.Covers(pod) {
			continue
		}
		covering = append(covering, b.found.Name)
		if !over(p) && !pod.Ready {
			b.unready(p)
		}
		if node != nil && node.Pool != "" && pod.Class == drain.Leaving && !pod.Pending && pod.Deleted.IsZero() && b.drain.Counts(pod) {
			b.found.Covered[node.Pool]++
		}
	}
	if len(covering) > 1 && node != nil && node.Pool != "" && pod.Class == drain.Leaving && !pod.Pending && pod.Deleted.IsZero() &&
		len(s.found.Overlaps) < overlapsAtMost {
		s.found.Overlaps = append(s.found.Overlaps, preflight.Overlap{Namespace: p.Namespace, Pod: p.Name, Pool: node.Pool, Budgets: covering})
	}
}

func (b *watchedBudget) unready(p *corev1.Pod) {
	since := p.CreationTimestamp.Time
	if _, at := stateOf(p); !at.IsZero() {
		since = at
	}
	b.found.Unhealthy++
	if b.found.Since.IsZero() || since.Before(b.found.Since) {
		b.found.Since = since
	}
}

func (s *surveyor) budgetsFound() []preflight.Budget {
	var found []preflight.Budget
	for _, namespace := range sortedKeys(s.budgets) {
		for _, b := range s.budgets[namespace] {
			found = append(found, b.found)
		}
	}
	return found
}
