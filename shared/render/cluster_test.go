package render

// The clusters and cells of the tests.

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func testCell() Cell {
	return Cell{Partition: "aws", Region: "eu-central-1", Account: "111122223333", StateBucket: "drover-state-111122223333-eu-central-1"}
}

func testRelease() *api.Release {
	return &api.Release{
		APIVersion: api.GroupVersion, Kind: api.KindRelease, Metadata: api.Metadata{Name: "1.36-1"},
		Spec: api.ReleaseSpec{
			KubernetesVersion: "1.36",
			Images: map[string]string{
				"amd64": "ami-0123456789abcdef0", "arm64": "ami-0fedcba9876543210", "bottlerocket-amd64-fips": "ami-0123456789abcdef3",
			},
			Addons: []api.Addon{
				{Name: "vpc-cni", Version: "v1.21.1-eksbuild.1"},
				{Name: "kube-proxy", Version: "v1.36.1-eksbuild.2"},
				{Name: "eks-pod-identity-agent", Version: "v1.3.10-eksbuild.1"},
				{Name: "coredns", Version: "v1.13.2-eksbuild.1"},
				{Name: "aws-ebs-csi-driver", Version: "v1.55.0-eksbuild.1"},
			},
			TemplateVersion: "v1",
		},
	}
}

// smallCluster has only required fields.
func smallCluster() *api.Cluster {
	return &api.Cluster{
		APIVersion: api.GroupVersion, Kind: api.KindCluster, Metadata: api.Metadata{Name: "demo"},
		Spec: api.ClusterSpec{
			Release: api.ReleaseRef{Name: "1.36-1"},
			Network: api.Network{CIDR: "10.0.0.0/16", Zones: []string{"eu-central-1a", "eu-central-1b"}},
			Pools:   []api.Pool{{Name: "workers", InstanceTypes: []string{"m7i.large", "m7a.large"}, MinSize: 2, MaxSize: 4}},
		},
	}
}

// fullCluster has every field except network.existing.
func fullCluster() *api.Cluster {
	on := true
	return &api.Cluster{
		APIVersion: api.GroupVersion, Kind: api.KindCluster,
		Metadata: api.Metadata{
			Name: "full", Labels: map[string]string{"environment": "test"}, Annotations: map[string]string{"example.com/owner": "somebody"},
		},
		Spec: api.ClusterSpec{
			Release:           api.ReleaseRef{Name: "1.36-1"},
			KubernetesVersion: "1.35",
			Network: api.Network{
				CIDR: "10.0.0.0/16", SecondaryCIDRs: []string{"100.64.0.0/16", "100.65.0.0/20"},
				Zones: []string{"eu-central-1a", "eu-central-1b", "eu-central-1c"}, NATGateways: api.NATPerZone,
				Endpoints: []string{"ssm", "ecr.api"}, FlowLogs: &api.FlowLogs{To: "arn:aws:s3:::flow-logs/full", Traffic: api.TrafficReject},
				NATAddresses: map[string]string{
					"eu-central-1a": "eipalloc-0123456789abcdef0", "eu-central-1b": "eipalloc-0123456789abcdef1",
					"eu-central-1c": "eipalloc-0123456789abcdef2",
				},
			},
			ControlPlane: api.ControlPlane{
				Endpoint:         api.Endpoint{Public: &on, PublicCIDRs: []string{"192.0.2.0/24", "198.51.100.7/32"}, Private: &on},
				Logs:             []string{"scheduler", "api", "audit"},
				EncryptionKeyARN: "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
				SupportType:      api.SupportExtended,
				ServiceCIDR:      "172.21.0.0/16",
				OIDCProvider:     true,
				SecurityGroups:   []string{"sg-0123456789abcdef1", "sg-0123456789abcdef0"},
				IdentityProvider: &api.IdentityProvider{
					IssuerURL: "https://login.example.com", ClientID: "k8s", UsernameClaim: "email", UsernamePrefix: "acme:", GroupsClaim: "groups",
					GroupsPrefix: "acme:", RequiredClaims: map[string]string{"org": "acme"},
				},
				Tier: "tier-xl",
				Settings: api.ControlPlaneSettings{
					EventTTL: "30m", NodePorts: "30000-31000", HPASyncPeriod: "10s", TerminatedPodThreshold: 500,
					Scoring: &api.Scoring{Type: api.MostAllocated, Weights: map[string]int{"memory": 1, "cpu": 2}},
				},
				ZonalShift:       &on,
				LogRetentionDays: 30,
				LogKeyARN:        "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ac",
				Access: []api.AccessEntry{
					{PrincipalARN: "arn:aws:iam::111122223333:role/admins", Policies: []api.AccessPolicy{{Name: "AmazonEKSClusterAdminPolicy"}}},
					{
						PrincipalARN: "arn:aws:iam::111122223333:role/developers", Groups: []string{"developers", "on-call"},
						Policies: []api.AccessPolicy{{Name: "AmazonEKSEditPolicy", Namespaces: []string{"dev-*", "shop"}}},
					},
				},
			},
			Pools: []api.Pool{
				{
					Name: "workers", InstanceTypes: []string{"m7g.large", "m6g.large"}, Architecture: api.ARM64, MinSize: 3, MaxSize: 12,
					Zones:          []string{"eu-central-1b", "eu-central-1a"},
					SecurityGroups: []string{"sg-0123456789abcdef1", "sg-0123456789abcdef0"},
					Spot:           &api.Spot{OnDemandBase: 1, OnDemandPercentage: 25},
					ImageID:        "ami-00000000000000001",
					RootVolume: api.RootVolume{
						SizeGiB: 80, Type: "gp3", IOPS: 4000, Throughput: 250, Encrypted: &on,
						KMSKeyARN: "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
					},
					Volumes: []api.Volume{
						{
							Device: "/dev/xvdb", SizeGiB: 200, Type: "io2", IOPS: 3000, Encrypted: &on,
							KMSKeyARN: "arn:aws:kms:eu-central-1:111122223333:key/2345bcde-12ab-34cd-56ef-1234567890ab",
						},
						{Device: "/dev/xvdc", SnapshotID: "snap-0123456789abcdef0", Type: "gp3", Throughput: 250},
					},
					LocalStorage: api.LocalRAID10,
					Labels:       map[string]string{"example.com/team": "shop", "tier": "web"},
					Tags:         map[string]string{"cost-center": "4712", "example.com/tier": "web"},
					Taints: []api.Taint{
						{Key: "example.com/dedicated", Value: "shop", Effect: "NoSchedule"}, {Key: "spot", Effect: "PreferNoSchedule"},
					},
					MaxPods: 58,
					// The second pool has the default.
					MetadataHopLimit: 2, DetailedMonitoring: true,
					Kubelet: map[string]any{
						"evictionHard": map[string]any{"memory.available": "5%"}, "imageGCLowThresholdPercent": float64(60), "seccompDefault": true,
						"reservedMemory": []any{map[string]any{"numaNode": float64(0), "limits": map[string]any{"memory": "1Gi"}}},
					},
					KubeletFlags: []string{"--v=2", "--image-gc-high-threshold=70"},
					Proxy:        &api.Proxy{URL: "http://proxy.example.com:3128", NoProxy: []string{".example.com", "192.168.0.0/16"}},
					CABundle:     rootCertificate,
					Files: []api.File{
						{Path: "/etc/motd", Mode: "0644", Content: "it's \"$HOME\" `here`\nand there\n"},
						{Path: "/etc/drover/secret", Mode: "0400", Content: "no newline at the end"},
					},
					Commands: []string{"sysctl --write vm.max_map_count=262144", "for i in 1 2; do\n  echo \"$i\"\ndone"},
					Update: api.Update{
						Strategy: api.InstanceRefresh, MaxUnavailable: "1", MaxSurge: "25%", PauseTime: "2m", Order: 1,
					},
					RollAt: "2026-11-20T22:00:00Z",
					Readiness: api.Readiness{
						Labels: map[string]string{"example.com/warm": "yes"}, Conditions: []string{"example.com/NetworkReady"},
					},
					Drain: api.Drain{
						Timeout: "2h", OnTimeout: api.OnTimeoutForce, PodGracePeriod: "10m", DeleteEmptyDirData: &on, UnmanagedPods: api.UnmanagedWait,
						LoadBalancerWait: "90s",
					},
				},
				{Name: "batch", InstanceTypes: []string{"c7i.xlarge"}, MaxSize: 20, Image: api.Image{
					Family: api.Bottlerocket, Variant: api.VariantFIPS, Settings: map[string]any{
						"kernel": map[string]any{"lockdown": "integrity", "sysctl": map[string]any{"net.core.somaxconn": "4096"}}, "motd": "hello",
						"kubernetes": map[string]any{"log-level": float64(3)},
						"container-registry": map[string]any{"mirrors": []any{map[string]any{
							"registry": "docker.io", "endpoint": []any{"https://mirror.example.com"},
						}}},
					},
				}, Kubelet: map[string]any{"evictionHard": map[string]any{"memory.available": "5%"}, "podPidsLimit": float64(1024)},
					Taints: []api.Taint{{Key: "example.com/dedicated", Value: "batch", Effect: "NoSchedule"}}, Update: api.Update{
						PauseTime: "90s",
					}, Readiness: api.Readiness{Conditions: []string{"Warm"}}},
			},
			Addons: []api.Addon{
				{Name: "vpc-cni", Version: "v1.22.0-eksbuild.1", Configuration: map[string]any{
					"enableNetworkPolicy": "true", "env": map[string]any{"WARM_IP_TARGET": "2", "ENABLE_PREFIX_DELEGATION": "true"},
				}},
				{Name: "metrics-server", Version: "v0.8.0-eksbuild.3", Configuration: map[string]any{
					"replicas": float64(3), "tolerations": []any{map[string]any{"operator": "Exists"}}, "hostNetwork": map[string]any{"enabled": false},
					"affinity": nil,
				}, PodIdentities: []api.AddonIdentity{
					{ServiceAccount: "metrics", RoleARN: "arn:aws:iam::111122223333:role/workloads/metrics"},
					{ServiceAccount: "metrics-server", Policies: []string{"CloudWatchAgentServerPolicy"}},
				}},
			},
			PodIdentities: []api.PodIdentity{
				{
					Namespace: "shop", ServiceAccount: "checkout", RoleARN: "arn:aws:iam::111122223333:role/workloads/checkout",
					TargetRoleARN: "arn:aws:iam::444455556666:role/orders",
				},
				{Namespace: "data", ServiceAccount: "export", Policies: []string{"AmazonS3ReadOnlyAccess", "service-role/AWSQuickSightListIAM"}},
				{Namespace: "kube-system", ServiceAccount: "autoscaler", Preset: api.PresetClusterAutoscaler},
				{Preset: api.PresetLoadBalancerController},
			},
			Capabilities: []api.Capability{
				{
					Name: "gitops", Type: api.CapabilityArgoCD, RoleARN: "arn:aws:iam::111122223333:role/capability-gitops", ArgoCD: &api.ArgoCD{
						IdentityCenterARN: "arn:aws:sso:::instance/ssoins-0123456789abcdef", Namespace: "gitops",
						Admins: []string{"1234567890-01234567-89ab-cdef-0123-456789abcdef"},
					},
				},
				{Name: "controllers", Type: api.CapabilityACK, RoleARN: "arn:aws:iam::111122223333:role/capability-ack"},
			},
			Tags:               map[string]string{"team": "platform", "cost-center": "4711"},
			TemplateVersion:    "v1",
			DeletionProtection: &on,
			Fleet:              api.Fleet{Release: api.FleetPinned},
			Upgrade: api.Upgrade{
				Channel:   api.ChannelNodes,
				Window:    &api.Window{Cron: "0 1 ? * MON *", Days: []string{"Mon"}, Start: "01:00", Duration: "4h", TimeZone: "Europe/Berlin"},
				NotBefore: "2026-12-01T00:00:00Z", Alarms: []string{"errors"},
				Exclusions: []api.Exclusion{{From: "2026-12-18T00:00:00Z", Until: "2027-01-04T00:00:00Z", Reason: "holidays"}},
				At:         &api.UpgradeAt{Time: "2027-01-12T05:00:00Z", Release: "1.37-1"},
			},
		},
	}
}

// resolve fills in the defaults.
func resolve(t testing.TB, c *api.Cluster) Cluster {
	t.Helper()
	resolved, errs := api.Resolve(c, testRelease())
	require.Empty(t, errs)
	return Cluster{Cell: testCell(), Resolved: resolved, Relay: testRelay, WorkloadBoundary: testWorkloadBoundary}
}

// testWorkloadBoundary is the boundary of roles with policies of the spec.
const testWorkloadBoundary = "arn:aws:iam::111122223333:policy/workloads"

func render(t testing.TB, in Cluster) *Output {
	t.Helper()
	out, err := Render(in)
	require.NoError(t, err)
	return out
}

// stackOf returns one of the rendered stacks.
func stackOf(t testing.TB, out *Output, name string) Stack {
	t.Helper()
	for _, stack := range out.Stacks {
		if stack.Name == name {
			return stack
		}
	}
	require.Fail(t, "no such stack", name)
	return Stack{}
}

// threePools is the cluster of the benchmarks: three pools, one with files.
func threePools() *api.Cluster {
	c := smallCluster()
	c.Spec.Network.Zones = append(c.Spec.Network.Zones, "eu-central-1c")
	c.Spec.Tags = maps.Clone(fullCluster().Spec.Tags)
	for i := range 2 {
		pool := c.Spec.Pools[0]
		pool.Name = fmt.Sprintf("pool-%d", i)
		pool.Labels = map[string]string{"example.com/team": strings.Repeat("x", i+1)}
		c.Spec.Pools = append(c.Spec.Pools, pool)
	}
	c.Spec.Pools[2].Files = []api.File{{Path: "/etc/motd", Mode: "0644", Content: "hello\n"}}
	return c
}

// testRelay is the code of relays.
var testRelay = RelayCode{Architecture: "arm64", SHA256: strings.Repeat("1a", 32)}
