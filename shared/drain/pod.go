package drain

// What matters of a pod.

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Class of a pod.
type Class int

// The classes.
const (
	// Leaving pods must leave before the node does.
	Leaving Class = iota
	// Mirror pods are the kubelet's own: deleting them deletes nothing.
	Mirror
	// Daemon pods would be started on the node again, and end with it.
	Daemon
	// Finished pods run no more.
	Finished
)

// Pod is what matters of a pod on the node.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Labels          labels.Set
	Class           Class
	// Managed pods have a controller that starts another.
	Managed bool
	// EmptyDir pods have data on the node that goes with them.
	EmptyDir bool
	// Ready pods count towards their budgets; Pending ones may always be evicted.
	Ready, Pending bool
	Priority       int32
	// System pods are those that the cluster itself runs on, such as CoreDNS: see isSystem.
	System bool
	// Grace is the pod's own grace period.
	Grace time.Duration
	// Deleted is when the pod ought to be gone: its deletion timestamp; zero while nobody deleted it.
	Deleted time.Time
	// Created is when the API server took the pod in, in whole seconds. Tolerant pods may be started on a cordoned node.
	Created  time.Time
	Tolerant bool
	// Claims are the persistent volumes that may be attached for the pod. The one that a DaemonSet names is for its pods on all nodes: what
	// can be shared like that is a network's file system, or a disk of the node, and neither is attached.
	Claims int
}

// defaultGrace is Kubernetes' own when a pod states none.
const defaultGrace = 30 * time.Second

// NewPod reads a pod.
func NewPod(p *corev1.Pod) *Pod {
	pod := &Pod{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, Labels: p.Labels,
		Pending: p.Status.Phase == corev1.PodPending, Grace: defaultGrace, Created: p.CreationTimestamp.Time,
		Tolerant: slices.ContainsFunc(p.Spec.Tolerations, toleratesCordon),
	}
	if p.Spec.TerminationGracePeriodSeconds != nil {
		pod.Grace = time.Duration(*p.Spec.TerminationGracePeriodSeconds) * time.Second
	}
	if p.Spec.Priority != nil {
		pod.Priority = *p.Spec.Priority
	}
	if p.DeletionTimestamp != nil {
		pod.Deleted = p.DeletionTimestamp.Time
	}
	pod.System = isSystem(p)
	owner := metav1.GetControllerOf(p)
	pod.Managed = owner != nil
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case mirror, owner != nil && owner.Kind == "Node":
		pod.Class = Mirror
	case owner != nil && owner.Kind == "DaemonSet":
		pod.Class = Daemon
	case p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed:
		pod.Class = Finished
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			pod.Ready = c.Status == corev1.ConditionTrue
		}
	}
	for _, v := range p.Spec.Volumes {
		switch {
		case v.EmptyDir != nil:
			pod.EmptyDir = true
		case v.PersistentVolumeClaim != nil && pod.Class != Daemon, v.Ephemeral != nil:
			pod.Claims++
		}
	}
	return pod
}

// systemCritical is the least priority of the class system-cluster-critical.
// https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/
const systemCritical = 2_000_000_000

// isSystem says whether a pod belongs to what the cluster itself runs on: it is in kube-system, has no volume of its own, and is critical
// for the cluster or an add-on that EKS manages.
// https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-field-management.html
func isSystem(p *corev1.Pod) bool {
	critical := p.Spec.Priority != nil && *p.Spec.Priority >= systemCritical
	managed := p.Labels["app.kubernetes.io/managed-by"] == "EKS" || p.Labels["eks.amazonaws.com/component"] != ""
	claims := slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
	return p.Namespace == metav1.NamespaceSystem && (critical || managed) && !claims
}

// NeedsSystem says whether a pod may still need a cluster's system pods: it is neither one of those, nor a
// DaemonSet's or the kubelet's own, and runs on a node.
func NeedsSystem(p *corev1.Pod) bool {
	pod := NewPod(p)
	return pod.Class == Leaving && !pod.System && p.Spec.NodeName != ""
}

// ID is namespace/name, as people write it.
func (p *Pod) ID() string { return p.Namespace + "/" + p.Name }

// stuckAfter is how long after its deletion time a pod is waited for: the kubelet is dead, or something holds the object.
const stuckAfter = 60 * time.Second

// Stuck says that a pod ought to have been gone for so long that nobody waits for it any more.
func (p *Pod) Stuck(now time.Time) bool {
	return !p.Deleted.IsZero() && !now.Before(p.Deleted.Add(stuckAfter))
}

// toleratesCordon says whether a toleration is one of the taint that a cordoned node has, which has no value.
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#concepts
func toleratesCordon(t corev1.Toleration) bool {
	switch {
	case t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule, t.Key != "" && t.Key != corev1.TaintNodeUnschedulable:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	}
	return (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Key != "" && t.Value == ""
}

// skew is how far apart the clocks of whoever cordoned the node and of the API server may be.
const skew = time.Second

// returned says that a tolerant pod came when the node was cordoned already: it, or one in its place, would come again whenever it is
// evicted.
func (p *Pod) returned(cordoned time.Time) bool {
	return p.Tolerant && !cordoned.IsZero() && p.Created.After(cordoned.Add(skew))
}

// unsure is until when nobody can say of a tolerant pod whether one in its place would have returned, because clocks differ and
// pods are created in whole seconds; zero for pods that were certainly there before the node was cordoned. Whoever evicts it
// earlier may do so again and again, as fast as pods are started.
func (p *Pod) unsure(cordoned time.Time) time.Time {
	if !p.Tolerant || cordoned.IsZero() || p.Created.Before(cordoned.Add(-skew-time.Second)) {
		return time.Time{}
	}
	return cordoned.Add(2*skew + time.Second)
}

// gives is the grace period for an eviction or deletion under a policy. It is never 0, which would kill the pod in an
// instant and, on a dead node, let a second of the same name start beside it.
func (p *Pod) gives(policy Policy) (grace time.Duration, capped bool) {
	grace = p.Grace
	if limit := policy.PodGracePeriod.Duration(); limit > 0 && grace > limit {
		grace, capped = limit, true
	}
	if grace < time.Second {
		grace, capped = time.Second, true
	}
	return grace, capped
}
