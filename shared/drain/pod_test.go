package drain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Only a controller starts a replacement. kubectl drain uses the same reference (controller: true), of any kind, so custom controllers
// count. Another owner only deletes the pod with itself.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
// https://github.com/kubernetes/kubectl/blob/master/pkg/drain/filters.go (unreplicatedFilter)
func TestManagedPod(t *testing.T) {
	yes, no := true, false
	owner := func(kind string, controller *bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: "x", UID: "u", Controller: controller}
	}
	for name, c := range map[string]struct {
		owners  []metav1.OwnerReference
		managed bool
		class   Class
	}{
		"has no owner":                             {nil, false, Leaving},
		"has a ReplicaSet":                         {[]metav1.OwnerReference{owner("ReplicaSet", &yes)}, true, Leaving},
		"has a StatefulSet":                        {[]metav1.OwnerReference{owner("StatefulSet", &yes)}, true, Leaving},
		"has a Job":                                {[]metav1.OwnerReference{owner("Job", &yes)}, true, Leaving},
		"has a ReplicationController":              {[]metav1.OwnerReference{owner("ReplicationController", &yes)}, true, Leaving},
		"has a controller of a custom resource":    {[]metav1.OwnerReference{owner("Rollout", &yes)}, true, Leaving},
		"has a DaemonSet":                          {[]metav1.OwnerReference{owner("DaemonSet", &yes)}, true, Daemon},
		"is a mirror pod":                          {[]metav1.OwnerReference{owner("Node", &yes)}, true, Mirror},
		"has an owner that controls nothing":       {[]metav1.OwnerReference{owner("ReplicaSet", &no)}, false, Leaving},
		"has an owner without the field":           {[]metav1.OwnerReference{owner("ReplicaSet", nil)}, false, Leaving},
		"has a ConfigMap as its owner":             {[]metav1.OwnerReference{owner("ConfigMap", nil)}, false, Leaving},
		"has owners, none a controller":            {[]metav1.OwnerReference{owner("ConfigMap", nil), owner("Node", &no)}, false, Leaving},
		"has owners, one a controller":             {[]metav1.OwnerReference{owner("ConfigMap", nil), owner("ReplicaSet", &yes)}, true, Leaving},
		"has a DaemonSet that does not control":    {[]metav1.OwnerReference{owner("DaemonSet", nil)}, false, Leaving},
		"has a DaemonSet and another controller":   {[]metav1.OwnerReference{owner("DaemonSet", nil), owner("ReplicaSet", &yes)}, true, Leaving},
		"has its Node as owner, not as controller": {[]metav1.OwnerReference{owner("Node", nil)}, false, Leaving},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod("a", func(p *corev1.Pod) { p.OwnerReferences = c.owners })
			read := NewPod(p)
			require.Equal(t, c.managed, read.Managed)
			require.Equal(t, c.class, read.Class)
			if c.class != Leaving {
				return
			}
			// With unmanagedPods: Wait the pod leaves only if a controller starts a replacement.
			careful := patient
			careful.UnmanagedPods = WaitForUnmanaged
			d := Decide(now, Task{Policy: careful, Started: now.Add(-time.Hour)}, view([]*corev1.Pod{p}), 9)
			require.Equal(t, c.managed, len(d.Send) == 1, "%+v", d)
			require.Equal(t, !c.managed, len(d.Blocked) == 1, "%+v", d)
		})
	}
}
