package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestWarningsOfMetadata(t *testing.T) {
	warnings := api.Warnings(&api.Cluster{Spec: api.ClusterSpec{Pools: []api.Pool{
		{Name: "a", MaxSize: 1}, {Name: "b", MaxSize: 1, MetadataHopLimit: 1}, {Name: "c", MaxSize: 1, MetadataHopLimit: 2},
	}}}, nil)
	require.Equal(t, []string{"spec.pools[2].metadataHopLimit: 2 gives the pods of pool c the credentials of the node's role; remove " +
		"the field, and give workloads roles of their own"}, warnings.Isolation)
	require.Equal(t, append(warnings.Access, warnings.Isolation...), warnings.Lines())
}

func TestWarningOfNoAccess(t *testing.T) {
	require.Equal(t, []string{"spec.controlPlane.access: it is empty, so no user can use the cluster with kubectl; add an entry with the " +
		"principalARN of your role and the policy AmazonEKSClusterAdminPolicy"}, api.Warnings(&api.Cluster{}, nil).Access)
	one := api.ControlPlane{Access: []api.AccessEntry{{PrincipalARN: "arn:aws:iam::111122223333:role/admin"}}}
	require.Empty(t, api.Warnings(&api.Cluster{Spec: api.ClusterSpec{ControlPlane: one}}, nil).Access)
}

func TestWarnings(t *testing.T) {
	release := &api.Release{Spec: api.ReleaseSpec{Addons: []api.Addon{{Name: "vpc-cni"}, {Name: "coredns"}, {Name: "aws-ebs-csi-driver"}}}}
	pool := func(name string, taints ...api.Taint) api.Pool {
		return api.Pool{Name: name, MaxSize: 3, Taints: taints}
	}
	taint := func(key, value, effect string) api.Taint { return api.Taint{Key: key, Value: value, Effect: effect} }
	batch := taint("dedicated", "batch", "NoSchedule")
	tolerating := func(tolerations ...any) map[string]any { return map[string]any{"tolerations": tolerations} }
	exists := map[string]any{"operator": "Exists"}
	for name, test := range map[string]struct {
		pools   []api.Pool
		addons  []api.Addon
		release *api.Release
		// names of the add-ons in warnings, or empty.
		names string
	}{
		"no taint":                 {pools: []api.Pool{pool("a")}, release: release},
		"a taint on the only pool": {pools: []api.Pool{pool("a", batch)}, release: release, names: "coredns, aws-ebs-csi-driver"},
		"NoExecute on the only pool": {
			pools: []api.Pool{pool("a", taint("x", "", "NoExecute"))}, release: release, names: "coredns, aws-ebs-csi-driver",
		},
		"PreferNoSchedule repels nothing": {pools: []api.Pool{pool("a", taint("x", "", "PreferNoSchedule"))}, release: release},
		"another pool has no taint":       {pools: []api.Pool{pool("a", batch), pool("b")}, release: release},
		"another pool without room": {
			pools: []api.Pool{pool("a", batch), {Name: "b"}}, release: release, names: "coredns, aws-ebs-csi-driver",
		},
		"every pool has a taint of its own": {
			pools: []api.Pool{pool("a", batch), pool("b", taint("gpu", "", "NoSchedule"))}, release: release, names: "coredns, aws-ebs-csi-driver",
		},
		"the taint for critical add-ons": {
			pools: []api.Pool{pool("a", taint("CriticalAddonsOnly", "true", "NoSchedule"))}, release: release,
		},
		"another next to it": {
			pools: []api.Pool{pool("a", taint("CriticalAddonsOnly", "true", "NoSchedule"), batch)}, release: release,
			names: "coredns, aws-ebs-csi-driver",
		},
		"one that CoreDNS alone tolerates": {
			pools: []api.Pool{pool("a", taint("node-role.kubernetes.io/control-plane", "", "NoSchedule"))}, release: release,
			names: "aws-ebs-csi-driver",
		},
		"the same key with another effect": {
			pools: []api.Pool{pool("a", taint("node-role.kubernetes.io/control-plane", "", "NoExecute"))}, release: release,
			names: "coredns, aws-ebs-csi-driver",
		},
		"no release, CoreDNS anyway": {pools: []api.Pool{pool("a", batch)}, names: "coredns"},
		"no release, an add-on of the spec": {
			pools: []api.Pool{pool("a", batch)}, addons: []api.Addon{{Name: "metrics-server"}}, names: "coredns, metrics-server",
		},
		"an unknown add-on": {pools: []api.Pool{pool("a")}, addons: []api.Addon{{Name: "adot"}}, release: release},
		"no pool":           {release: release, names: "coredns, aws-ebs-csi-driver"},
		"tolerations in the configuration": {
			pools: []api.Pool{pool("a", batch)}, release: release, names: "aws-ebs-csi-driver",
			addons: []api.Addon{{Name: "coredns", Configuration: tolerating(map[string]any{"key": "dedicated", "value": "batch"})}},
		},
		"another value": {
			pools: []api.Pool{pool("a", batch)}, release: release, names: "coredns, aws-ebs-csi-driver",
			addons: []api.Addon{
				{Name: "coredns", Configuration: tolerating(map[string]any{"key": "dedicated", "operator": "Equal", "value": "web"})},
			},
		},
		"all of them in both": {
			pools: []api.Pool{pool("a", batch)}, release: release,
			addons: []api.Addon{
				{Name: "coredns", Configuration: tolerating(exists)}, {
					Name: "aws-ebs-csi-driver", Configuration: map[string]any{"controller": tolerating(exists)},
				},
			},
		},
		"those of the driver's node pods only": {
			pools: []api.Pool{pool("a", batch)}, release: release, names: "coredns, aws-ebs-csi-driver",
			addons: []api.Addon{{Name: "aws-ebs-csi-driver", Configuration: map[string]any{"node": tolerating(exists)}}},
		},
		"an empty list takes the defaults away": {
			pools: []api.Pool{pool("a", taint("CriticalAddonsOnly", "", "NoSchedule"))}, release: release, names: "coredns",
			addons: []api.Addon{{Name: "coredns", Configuration: tolerating()}},
		},
		"a toleration that ends": {
			pools: []api.Pool{pool("a", taint("x", "", "NoExecute"))}, release: release, names: "coredns, aws-ebs-csi-driver",
			addons: []api.Addon{{Name: "coredns", Configuration: tolerating(map[string]any{"operator": "Exists", "tolerationSeconds": 60})}},
		},
		"what is no list of tolerations": {
			pools: []api.Pool{pool("a", batch)}, release: release, names: "aws-ebs-csi-driver",
			addons: []api.Addon{{Name: "coredns", Configuration: map[string]any{"tolerations": "all"}}},
		},
		"configuration of the release": {
			pools: []api.Pool{pool("a", batch)}, release: &api.Release{
				Spec: api.ReleaseSpec{Addons: []api.Addon{{Name: "coredns", Configuration: tolerating(exists)}}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			warnings := api.Warnings(&api.Cluster{Spec: api.ClusterSpec{Pools: test.pools, Addons: test.addons}}, test.release)
			require.Empty(t, warnings.Network)
			if test.names == "" {
				require.Empty(t, warnings.Addons)
				return
			}
			require.Len(t, warnings.Addons, 1)
			_, named, _ := strings.Cut(warnings.Addons[0], "the pods of ")
			require.True(t, strings.HasPrefix(named, test.names+", which") || strings.HasPrefix(named, test.names+" have"), warnings.Addons[0])
		})
	}
	t.Run("names the taints and what to do", func(t *testing.T) {
		require.Equal(t, []string{"spec.pools: no pool can run the pods of coredns, aws-ebs-csi-driver, " +
			"which do not tolerate its taints (a has dedicated=batch:NoSchedule): " +
			"they stay Pending, and drains of the nodes that they run on now cannot end; keep a pool without such a taint, or add tolerations to " +
			"spec.addons[].configuration first"},
			api.Warnings(&api.Cluster{Spec: api.ClusterSpec{Pools: []api.Pool{pool("a", batch)}}}, release).Addons)
	})
}
