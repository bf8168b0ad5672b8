package drain

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// system is a system pod: of kube-system, and critical for the cluster.
func system(p *corev1.Pod) { in("kube-system")(p); important(p) }

func TestSystemPod(t *testing.T) {
	of := func(change ...func(*corev1.Pod)) []func(*corev1.Pod) { return change }
	priority := func(value int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &value } }
	volume := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{VolumeSource: source}) }
	}
	kube := in("kube-system")
	for name, test := range map[string]struct {
		change []func(*corev1.Pod)
		want   bool
	}{
		"critical for the cluster":    {of(kube, priority(2_000_000_000)), true},
		"critical for its node":       {of(kube, priority(2_000_001_000)), true},
		"of an add-on of EKS":         {of(kube, withLabel("app.kubernetes.io/managed-by", "EKS")), true},
		"a component of EKS":          {of(kube, withLabel("eks.amazonaws.com/component", "coredns")), true},
		"with a local volume":         {of(system, emptyDir), true},
		"not with a lower priority":   {of(kube, priority(1_999_999_999)), false},
		"not without a priority":      {of(kube), false},
		"not managed by another tool": {of(kube, withLabel("app.kubernetes.io/managed-by", "Helm")), false},
		"not in another namespace":    {of(important), false},
		"not with a claim": {
			of(system, volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}})), false,
		},
		"not with a claim of its own": {of(system, volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}})), false},
		"not with a claim after a local one": {
			of(system, emptyDir, volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}})), false,
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, NewPod(pod("a", test.change...)).System) })
	}
}

func TestNeedsSystem(t *testing.T) {
	placed := func(p *corev1.Pod) { p.Spec.NodeName = "node-1" }
	for name, test := range map[string]struct {
		change []func(*corev1.Pod)
		want   bool
	}{
		"a pod on a node":      {[]func(*corev1.Pod){placed}, true},
		"not one on no node":   {nil, false},
		"not a system pod":     {[]func(*corev1.Pod){placed, system}, false},
		"not a DaemonSet pod":  {[]func(*corev1.Pod){placed, withOwner("DaemonSet")}, false},
		"not a mirror pod":     {[]func(*corev1.Pod){placed, mirror}, false},
		"not a pod that ended": {[]func(*corev1.Pod){placed, phase(corev1.PodSucceeded)}, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, NeedsSystem(pod("a", test.change...))) })
	}
}

// A node of a cluster that is being deleted is terminated with system pods that their budgets keep.
func TestDecideServed(t *testing.T) {
	deletes := patient
	deletes.ClusterDeleting = true
	all := func(name string, allowed int32) *policyv1.PodDisruptionBudget {
		return budget(name, allowed, ofNamespace("kube-system"), selects(&metav1.LabelSelector{}))
	}
	for name, test := range map[string]struct {
		policy Policy
		view   View
		want   bool
	}{
		"only blocked system pods are left": {
			deletes, view([]*corev1.Pod{pod("a", system), pod("b", system)}, all("dns", 0)), true,
		},
		"not unless the cluster is deleted": {patient, view([]*corev1.Pod{pod("a", system)}, all("dns", 0)), false},
		"not while a system pod can leave": {
			deletes, view([]*corev1.Pod{pod("a", system), pod("b", system)}, all("dns", 1)), false,
		},
		"not while a system pod terminates": {
			deletes, view([]*corev1.Pod{pod("a", system), pod("b", system, deletedAt(0))}, all("dns", 0)), false,
		},
		"not while another pod is left": {
			deletes, view([]*corev1.Pod{pod("a", system), pod("b")}, all("dns", 0), budget("web", 0)), false,
		},
		"not when two budgets block": {
			deletes, view([]*corev1.Pod{pod("a", system)}, all("dns", 0), all("dns2", 0)), false,
		},
		"not when no pod is left": {deletes, view(nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, Decide(now, Task{Policy: test.policy, Started: now}, test.view, 9).OnlyBlockedSystemPods)
		})
	}
}
