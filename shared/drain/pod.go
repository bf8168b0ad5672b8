package drain

// The part of a pod that a drain needs.

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
	// Leaving pods must leave before the node is terminated.
	Leaving Class = iota
	// Mirror pods are the kubelet's own. Deleting them has no effect.
	Mirror
	// Daemon pods would be started on the node again. They end with it.
	Daemon
	// Finished pods no longer run.
	Finished
)

// Pod is the part of a pod on the node that a drain needs.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Labels          labels.Set
	Class           Class
	// Managed pods have a controller. Most controllers start a replacement at once; a Job does so while it has retries left.
	Managed bool
	// EmptyDir pods lose data that is on the node.
	EmptyDir bool
	// Ready pods count toward their budgets. Pending ones may always be evicted.
	Ready, Pending bool
	Priority       int32
	// System pods are those on which the cluster itself depends, such as CoreDNS: see isSystem.
	System bool
	// Grace is the pod's own grace period.
	Grace time.Duration
	// Deleted is the deletion timestamp: when the pod should have ended. It is zero if the pod is not deleted.
	Deleted time.Time
	// Created is when the API server created the pod, in whole seconds. Tolerant pods may be started on a cordoned node.
	Created  time.Time
	Tolerant bool
	// Claims counts the persistent volumes that may be attached for the pod. A claim that a DaemonSet names serves its pods on all nodes.
	// Only network file systems and local disks can be shared like that, and neither is attached.
	Claims int
}

// defaultGrace is the grace period of a pod that sets none.
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

// systemCritical is the lowest priority of the class system-cluster-critical.
// https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/
const systemCritical = 2_000_000_000

// isSystem reports whether the cluster itself depends on a pod. Such a pod is in kube-system, has no persistent volume, and is critical
// for the cluster or part of an add-on that EKS manages.
// https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-field-management.html
func isSystem(p *corev1.Pod) bool {
	critical := p.Spec.Priority != nil && *p.Spec.Priority >= systemCritical
	managed := p.Labels["app.kubernetes.io/managed-by"] == "EKS" || p.Labels["eks.amazonaws.com/component"] != ""
	claims := slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
	return p.Namespace == metav1.NamespaceSystem && (critical || managed) && !claims
}

// NeedsSystem reports whether a pod may still need a cluster's system pods. It runs on a node, and is no system pod, DaemonSet pod or
// mirror pod.
func NeedsSystem(p *corev1.Pod) bool {
	pod := NewPod(p)
	return pod.Class == Leaving && !pod.System && p.Spec.NodeName != ""
}

// ID returns namespace/name.
func (p *Pod) ID() string { return p.Namespace + "/" + p.Name }

// stuckAfter is how long after its deletion timestamp a pod is waited for. After that, the kubelet is dead or a finalizer holds the
// object.
const stuckAfter = 60 * time.Second

// Stuck reports whether the drain no longer waits for a deleted pod.
func (p *Pod) Stuck(now time.Time) bool {
	return !p.Deleted.IsZero() && !now.Before(p.Deleted.Add(stuckAfter))
}

// toleratesCordon reports whether a toleration matches the taint of a cordoned node, which has no value.
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

// skew is the largest difference between the clocks of the component that cordoned the node and of the API server.
const skew = time.Second

// returned reports whether a tolerant pod was created after the node was cordoned. It, or its replacement, would return after each
// eviction.
func (p *Pod) returned(cordoned time.Time) bool {
	return p.Tolerant && !cordoned.IsZero() && p.Created.After(cordoned.Add(skew))
}

// unsure returns until when it is unknown whether the replacement of a tolerant pod would count as returned. Clocks differ, and creation
// times are whole seconds. An eviction before that time could repeat as fast as pods start. It is zero for pods that certainly existed
// before the cordon.
func (p *Pod) unsure(cordoned time.Time) time.Time {
	if !p.Tolerant || cordoned.IsZero() || p.Created.Before(cordoned.Add(-skew-time.Second)) {
		return time.Time{}
	}
	return cordoned.Add(2*skew + time.Second)
}

// gracePeriod returns the grace period for an eviction or deletion under a policy. It is never 0. That would kill the pod at once and, on
// a dead node, let a second pod of the same name start while the first runs.
func (p *Pod) gracePeriod(policy Policy) (grace time.Duration, capped bool) {
	grace = p.Grace
	if limit := policy.PodGracePeriod.Duration(); limit > 0 && grace > limit {
		grace, capped = limit, true
	}
	if grace < time.Second {
		grace, capped = time.Second, true
	}
	return grace, capped
}
