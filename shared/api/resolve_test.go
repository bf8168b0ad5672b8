package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestResolveFillsInDefaults(t *testing.T) {
	yes := true
	cluster, errs := api.Resolve(readCluster(t, edit(t, good, pool("files: [{path: /a, content: b}]"))), readRelease(t, []byte(goodRelease)))
	require.Nil(t, errs)
	want := api.ClusterSpec{
		Release:           api.ReleaseRef{Name: "1.36-1"},
		KubernetesVersion: "1.36",
		Network:           api.Network{CIDR: "10.0.0.0/16", Zones: []string{"us-east-1a", "us-east-1b"}, NATGateways: api.NATPerZone},
		ControlPlane: api.ControlPlane{
			Endpoint:         api.Endpoint{Public: &yes, PublicCIDRs: []string{"0.0.0.0/0"}, Private: &yes},
			Logs:             []string{"audit", "authenticator"},
			SupportType:      api.SupportStandard,
			ServiceCIDR:      "172.20.0.0/16",
			LogRetentionDays: 90,
		},
		Pools: []api.Pool{{
			Name: "workers", InstanceTypes: []string{"m7i.large"}, Architecture: api.AMD64, MinSize: 1, MaxSize: 3,
			Image:            api.Image{Family: api.AL2023, Variant: api.VariantStandard},
			ImageID:          "ami-0123456789abcdef0",
			RootVolume:       api.RootVolume{SizeGiB: 50, Type: "gp3", Encrypted: &yes},
			Files:            []api.File{{Path: "/a", Mode: "0644", Content: "b"}},
			MetadataHopLimit: 1,
			Drain:            api.Drain{Timeout: "30m", OnTimeout: api.OnTimeoutWait, DeleteEmptyDirData: &yes, UnmanagedPods: api.UnmanagedEvict},
			Update:           api.Update{Strategy: api.RollingUpdate, MaxUnavailable: "0", MaxSurge: "1"},
		}},
		Addons: []api.Addon{
			{Name: "vpc-cni", Version: "v1.21.1-eksbuild.1", Configuration: map[string]any{"env": map[string]any{"WARM_IP_TARGET": "2"}}},
			{Name: "coredns", Version: "v1.13.2-eksbuild.1"},
		},
		Tags:               map[string]string{},
		Upgrade:            api.Upgrade{Channel: api.ChannelNone},
		Fleet:              api.Fleet{Release: api.FleetFollows},
		TemplateVersion:    "v1",
		DeletionProtection: &yes,
	}
	require.Empty(t, cmp.Diff(want, cluster.Spec))
	require.NoError(t, api.Validate(cluster, options).Err())
}

func TestResolve(t *testing.T) {
	cases := map[string]struct {
		spec, release pairs
		check         func(*testing.T, *api.ClusterSpec)
		errors        []string
	}{
		"what the spec states wins": {
			spec: append(pool("imageID: ami-11111111", "rootVolume: {encrypted: false, type: gp2}"),
				"  tags: {}", "  kubernetesVersion: \"1.35\"\n  templateVersion: v2\n  deletionProtection: false",
				"  controlPlane: {}", "  controlPlane: {logs: [], serviceCIDR: 10.100.0.0/16, supportType: Extended, endpoint: {private: false}}"),
			check: func(t *testing.T, s *api.ClusterSpec) {
				require.Equal(t, "1.35", s.KubernetesVersion)
				require.Equal(t, "v2", s.TemplateVersion)
				require.False(t, *s.DeletionProtection)
				require.Equal(t, "ami-11111111", s.Pools[0].ImageID)
				require.Equal(t, "gp2", s.Pools[0].RootVolume.Type)
				require.False(t, *s.Pools[0].RootVolume.Encrypted)
				require.Empty(t, s.ControlPlane.Logs)
				require.Equal(t, "10.100.0.0/16", s.ControlPlane.ServiceCIDR)
				require.Equal(t, api.SupportExtended, s.ControlPlane.SupportType)
				require.False(t, *s.ControlPlane.Endpoint.Private)
				require.True(t, *s.ControlPlane.Endpoint.Public)
			},
		},
		"add-ons are merged by name: the release's first, then the spec's own": {
			spec: pairs{
				"  tags: {}", "  addons: [{name: own, version: v1.0.0}, {name: coredns, configuration: {replicas: 3}}, {name: vpc-cni, " +
					"version: v2.0.0}]",
			},
			check: func(t *testing.T, s *api.ClusterSpec) {
				require.Empty(t, cmp.Diff([]api.Addon{
					{Name: "vpc-cni", Version: "v2.0.0", Configuration: map[string]any{"env": map[string]any{"WARM_IP_TARGET": "2"}}},
					{Name: "coredns", Version: "v1.13.2-eksbuild.1", Configuration: map[string]any{"replicas": int64(3)}},
					{Name: "own", Version: "v1.0.0"},
				}, s.Addons))
			},
		},
		"an existing network has no gateways of drover's": {
			spec: pairs{
				"    cidr: 10.0.0.0/16\n    zones: [us-east-1a, us-east-1b]",
				"    existing: {vpcID: vpc-12345678, subnets: [subnet-12345678, subnet-12345679]}",
			},
			check: func(t *testing.T, s *api.ClusterSpec) {
				require.Empty(t, s.Network.NATGateways)
			},
		},
		"a release without images for an architecture": {
			spec: append(pool("architecture: arm64"), "m7i.large", "m7g.large"),
			errors: []string{`spec.pools[0].imageID: Required value: the release 1.36-1 has no image arm64 either: ` +
				"add it to spec.images of the release (`drover release new --images arm64` prints one), or state imageID"},
		},
		"an add-on without a version": {
			spec:   pairs{"  tags: {}", "  addons: [{name: coredns}, {name: own}]"},
			errors: []string{`spec.addons[1].version: Required value: the release 1.36-1 has no version of own either`},
		},
		"another release": {
			release: pairs{`"1.36-1"`, `"1.36-2"`},
			errors:  []string{`spec.release.name: Invalid value: "1.36-1": the release read is "1.36-2"`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, release := readCluster(t, edit(t, good, c.spec)), readRelease(t, edit(t, goodRelease, c.release))
			resolved, errs := api.Resolve(cluster, release)
			require.Equal(t, c.errors, lines(errs))
			if c.check != nil {
				c.check(t, &resolved.Spec)
				require.NoError(t, api.Validate(resolved, options).Err())
			}

			again, errs := api.Resolve(resolved, release)
			require.Equal(t, len(c.errors), len(errs))
			require.Empty(t, cmp.Diff(resolved, again), "resolving twice changes nothing")
		})
	}
}

func TestResolveChangesNeitherSpecNorRelease(t *testing.T) {
	spec := edit(t, good, pairs{"  tags: {}", "  tags: {a: b}\n  addons: [{name: coredns, configuration: {a: [{b: c}]}}]"})
	cluster, release := readCluster(t, spec), readRelease(t, []byte(goodRelease))
	resolved, errs := api.Resolve(cluster, release)
	require.NoError(t, errs.Err())

	resolved.Spec.Tags["a"] = "x"
	resolved.Spec.Network.Zones[0] = "x"
	resolved.Spec.Pools[0].InstanceTypes[0] = "x"
	resolved.Spec.Addons[0].Configuration["env"].(map[string]any)["WARM_IP_TARGET"] = "x"
	resolved.Spec.Addons[1].Configuration["a"].([]any)[0].(map[string]any)["b"] = "x"
	require.Empty(t, cmp.Diff(readCluster(t, spec), cluster))
	require.Empty(t, cmp.Diff(readRelease(t, []byte(goodRelease)), release))
}

func TestNodesNeed(t *testing.T) {
	for _, addon := range []string{"vpc-cni", "kube-proxy", "eks-pod-identity-agent"} {
		require.True(t, api.NodesNeed(addon), addon)
	}
	for _, addon := range []string{"coredns", "aws-ebs-csi-driver", "metrics-server", "eks-node-monitoring-agent", "anything"} {
		require.False(t, api.NodesNeed(addon), addon)
	}
}
