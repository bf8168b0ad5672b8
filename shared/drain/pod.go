package drain

// What matters of a pod.

import (
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
	// Grace is the pod's own grace period.
	Grace time.Duration
	// Deleted is when the pod ought to be gone: its deletion timestamp; zero while nobody deleted it.
	Deleted time.Time
	// Claims are the persistent volumes that the pod uses.
	Claims int
}

// defaultGrace is Kubernetes' own when a pod states none.
const defaultGrace = 30 * time.Second

// NewPod reads a pod.
func NewPod(p *corev1.Pod) *Pod {
	pod := &Pod{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, Labels: p.Labels,
		Pending: p.Status.Phase == corev1.PodPending, Grace: defaultGrace,
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
		case v.PersistentVolumeClaim != nil, v.Ephemeral != nil:
			pod.Claims++
		}
	}
	return pod
}

// ID is namespace/name, as people write it.
func (p *Pod) ID() string { return p.Namespace + "/" + p.Name }

// stuckAfter is how long after its deletion time a pod is waited for: the kubelet is dead, or something holds the object.
const stuckAfter = 60 * time.Second

// Stuck says that a pod ought to have been gone for so long that nobody waits for it any more.
func (p *Pod) Stuck(now time.Time) bool {
	return !p.Deleted.IsZero() && !now.Before(p.Deleted.Add(stuckAfter))
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
