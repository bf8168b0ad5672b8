package eks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The programs of a cluster are real. On a busy machine their pods start late, however fast simulated time passes.
func TestLateAddon(t *testing.T) {
	// one is an EBS driver on four nodes, half a minute after its creation. The pod of one node is not available.
	one := func(t *testing.T) (*testbed, func() *Addon) {
		b := newTestbed(t, 60)
		b.cluster(t, "demo")
		_, err := b.CreateAddon(t.Context(), b.admin, CreateAddonInput{ClusterName: "demo", AddonName: "aws-ebs-csi-driver"})
		require.NoError(t, err)
		time.Sleep(time.Second)
		b.planes["demo"].makeAvailable(t, "ebs-csi-controller")
		b.planes["demo"].setStatus(t, daemonSetResource, "ebs-csi-node", nodes(3))
		time.Sleep(29 * time.Second)
		return b, func() *Addon {
			out, err := b.DescribeAddon(t.Context(), b.admin, AddonInput{"demo", "aws-ebs-csi-driver"})
			require.NoError(t, err)
			return out.Addon
		}
	}
	tests := map[string]func(t *testing.T, b *testbed, addon func() *Addon){
		"is ACTIVE when its last pod comes late": func(t *testing.T, b *testbed, addon func() *Addon) {
			require.Equal(t, creating, addon().Status, "%+v", addon().Health)
			time.Sleep(time.Minute)
			require.Equal(t, creating, addon().Status, "%+v", addon().Health)
			b.planes["demo"].setStatus(t, daemonSetResource, "ebs-csi-node", nodes(4))
			time.Sleep(time.Second)
			require.Equal(t, active, addon().Status)
		},
		"is DEGRADED when its last pod never comes": func(t *testing.T, _ *testbed, addon func() *Addon) {
			time.Sleep(2 * time.Minute)
			require.Equal(t, degraded, addon().Status)
			require.Equal(t, []string{"ebs-csi-node"}, addon().Health.Issues[0].ResourceIDs)
		},
		"is DEGRADED soon when the scheduler rejects a pod": func(t *testing.T, b *testbed, addon func() *Addon) {
			_, err := b.planes["demo"].client.Resource(podResource).Namespace("kube-system").Create(t.Context(),
				&unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "Pod",
					"metadata": map[string]any{
						"name": "ebs-csi-node-x", "namespace": "kube-system", "labels": map[string]any{"app.kubernetes.io/name": "ebs-csi-node"},
					},
					"status": map[string]any{"conditions": []any{map[string]any{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}}},
				}}, metav1.CreateOptions{})
			require.NoError(t, err)
			time.Sleep(time.Second)
			require.Equal(t, degraded, addon().Status)
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, addon := one(t)
				test(t, b, addon)
			})
		})
	}
}

// nodes is the status of a DaemonSet with available pods on some of four nodes.
func nodes(available int64) map[string]any {
	return map[string]any{"desiredNumberScheduled": int64(4), "numberAvailable": available, "updatedNumberScheduled": int64(4)}
}
