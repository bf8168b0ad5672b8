package drain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-run/drover/events"
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

func TestNewPodTolerant(t *testing.T) {
	for name, c := range map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"all taints":                 {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"all taints with NoSchedule": {corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, true},
		"all taints with NoExecute":  {corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
		"the taint": {
			corev1.Toleration{
				Key: "node.kubernetes.io/unschedulable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
			}, true,
		},
		"its key": {
			corev1.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: corev1.TolerationOpExists}, true,
		},
		"its empty value": {corev1.Toleration{Key: "node.kubernetes.io/unschedulable"}, true},
		"its empty value, with an operator": {
			corev1.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: corev1.TolerationOpEqual}, true,
		},
		"another value":        {corev1.Toleration{Key: "node.kubernetes.io/unschedulable", Value: "true"}, false},
		"a comparing operator": {corev1.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: "Gt", Value: "0"}, false},
		"another taint":        {corev1.Toleration{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists}, false},
		"nothing":              {corev1.Toleration{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, NewPod(pod("a", func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu"}, c.toleration}
			})).Tolerant)
		})
	}
}

func TestNewPodClaims(t *testing.T) {
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	own := corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
	for name, c := range map[string]struct {
		kind    string
		volumes []corev1.VolumeSource
		want    int
	}{
		"none": {"ReplicaSet", nil, 0},
		"volumes without claims": {
			"ReplicaSet", []corev1.VolumeSource{{HostPath: &corev1.HostPathVolumeSource{}}, {EmptyDir: &corev1.EmptyDirVolumeSource{}}}, 0,
		},
		"claims":                          {"StatefulSet", []corev1.VolumeSource{claim, {ConfigMap: &corev1.ConfigMapVolumeSource{}}, claim}, 2},
		"ephemeral volumes":               {"ReplicaSet", []corev1.VolumeSource{own, claim}, 2},
		"a daemon pod's shared claim":     {"DaemonSet", []corev1.VolumeSource{claim}, 0},
		"a daemon pod's ephemeral volume": {"DaemonSet", []corev1.VolumeSource{claim, own}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, NewPod(pod("a", withOwner(c.kind), func(p *corev1.Pod) {
				for _, v := range c.volumes {
					p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{VolumeSource: v})
				}
			})).Claims)
		})
	}
}

// A tolerant pod that was created before the cordon is evicted like others.
func TestDecideSparesReturnedPods(t *testing.T) {
	cordoned := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		created time.Duration // since the cordon
		after   time.Duration // the same, of the decision
		returns bool
		sent    bool
		next    time.Duration // since the cordon, 0: never
	}{
		"created before the cordon: evicted":                           {created: -2*time.Second - 1, sent: true},
		"created at most 2 s before the cordon: unknown yet":           {created: -2 * time.Second, next: 3 * time.Second},
		"created at most 1 s after the cordon: unknown yet":            {created: time.Second, after: 2 * time.Second, next: 3 * time.Second},
		"created at most 1 s after, and clocks cannot differ: evicted": {created: time.Second, after: 3 * time.Second, sent: true},
		"created after the cordon: spared":                             {created: time.Second + 1, after: 2 * time.Second, returns: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := view([]*corev1.Pod{
				pod("a", func(p *corev1.Pod) {
					p.CreationTimestamp, p.Spec.Tolerations = metav1.NewTime(cordoned.Add(c.created)), []corev1.Toleration{
						{Operator: corev1.TolerationOpExists},
					}
				}),
				pod("b", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(cordoned.Add(c.created)) }),
			})
			at := cordoned.Add(c.after)
			v.Cordoned = cordoned
			got := Decide(at, Task{Policy: patient, Started: cordoned}, v, 9)
			want := []string{"evict b"}
			if c.sent {
				want = []string{"evict a", "evict b"}
			}
			require.Equal(t, want, sentLines(got),
				"a pod without the toleration bypassed the scheduler, or was created while the node was not cordoned")
			next := time.Duration(0)
			if !got.Next.IsZero() {
				next = got.Next.Sub(cordoned)
			}
			require.Equal(t, c.next, next)
			var r Report
			Describe(&r, got)
			if c.returns {
				require.Equal(t, []string{"shop/a"}, r.Returned)
				require.Equal(t, 1, r.Left)
				require.Equal(t, "1 pod is left; pods that tolerate the cordon came back, and end with the node: shop/a", r.Summary())
			} else {
				require.Empty(t, r.Returned)
				require.Equal(t, 2, r.Left)
			}
			v.Cordoned = time.Time{}
			require.Len(t, Decide(at, Task{Policy: patient, Started: cordoned}, v, 9).Send, 2, "the node is not cordoned")
		})
	}
}

func TestGracePeriod(t *testing.T) {
	for name, test := range map[string]struct {
		own, limit, want time.Duration
		capped           bool
	}{
		"is the pod's own":                 {30 * time.Second, 0, 30 * time.Second, false},
		"is the pod's own below the limit": {30 * time.Second, 60 * time.Second, 30 * time.Second, false},
		"is the pod's own at the limit":    {30 * time.Second, 30 * time.Second, 30 * time.Second, false},
		"is the limit above it":            {31 * time.Second, 30 * time.Second, 30 * time.Second, true},
		"is never 0":                       {0, 0, time.Second, true},
		"is one second at least":           {time.Second, 0, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := Pod{Grace: test.own}
			got, capped := p.gracePeriod(Policy{PodGracePeriod: events.Seconds(test.limit / time.Second)})
			require.Equal(t, test.want, got)
			require.Equal(t, test.capped, capped)
		})
	}
}
