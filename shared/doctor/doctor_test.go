package doctor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

// demo is a cluster with its own network of two zones.
func demo(change func(*api.ClusterSpec)) Cluster {
	c := &api.Cluster{Metadata: api.Metadata{Name: "demo"}, Spec: api.ClusterSpec{
		KubernetesVersion: "1.36",
		Network:           api.Network{CIDR: "10.0.0.0/16", Zones: []string{"eu-central-1a", "eu-central-1b"}, NATGateways: api.NATPerZone},
	}}
	if change != nil {
		change(&c.Spec)
	}
	return Cluster{Resolved: c}
}

// roomy are the facts about an account that takes many clusters.
func roomy() *Facts {
	limits := map[string]int{}
	for _, code := range []string{"L-F678F1CE", "L-A4707A72", "L-FE5A380F", "L-0263D0A3", "L-1194D53C", "L-1216C47A", "L-34B43A08"} {
		limits[code] = 5
	}
	limits["L-FE177D64"] = 1000
	return &Facts{
		Region: "eu-central-1", Limits: limits, Used: map[string]int{}, Unreadable: map[string]string{},
		InstanceTypes: map[string]preflight.InstanceType{"m7i.large": {VCPUs: 2}, "m7i.xlarge": {VCPUs: 4}},
		Zones:         map[string]string{"eu-central-1a": "euc1-az2", "eu-central-1b": "euc1-az3"},
		Concurrency:   1000, Unreserved: 1000,
		Account: "111122223333",
		Offered: preflight.Facts{
			Catalog: []preflight.Version{{Version: "1.36", Status: "STANDARD_SUPPORT"}, {Version: "1.37", Status: "STANDARD_SUPPORT"}},
			Compat:  upgrade.Compat{"coredns": {{Version: "v1", Kubernetes: []string{"1.36"}}}},
			Images: map[string]preflight.Image{
				"ami-1": {ID: "ami-1", Name: "amazon-eks-node-al2023-x86_64-standard-1.36-v20261101", Architecture: "x86_64", State: "available"},
			},
		},
	}
}

// of returns the findings of a check.
func of(found []Finding, check string) (out []Finding) {
	for _, f := range found {
		if f.Check == check {
			out = append(out, f)
		}
	}
	return out
}

func TestNetworkQuotas(t *testing.T) {
	increase := "aws service-quotas request-service-quota-increase --region eu-central-1 --service-code "
	for name, test := range map[string]struct {
		used map[string]int
		want Finding
	}{
		"the last VPC": {map[string]int{"L-F678F1CE": 4}, Finding{VPCQuota, OK, "4 of 5 VPCs are used; needed: 1", ""}},
		"one VPC too many": {
			map[string]int{
				"L-F678F1CE": 5,
			}, Finding{VPCQuota, Blocks, "5 of 5 VPCs are used; needed: 1", increase + "vpc --quota-code L-F678F1CE --desired-value 6"},
		},
		"one gateway too many": {
			map[string]int{
				"L-A4707A72": 5,
			}, Finding{GatewayQuota, Blocks, "5 of 5 internet gateways are used; needed: 1",
				increase + "vpc --quota-code L-F678F1CE --desired-value 6"},
		},
		"an address too many": {
			map[string]int{
				"L-0263D0A3": 4,
			}, Finding{AddressQuota, Blocks, "4 of 5 Elastic IP addresses are used; needed: 2",
				increase + "ec2 --quota-code L-0263D0A3 --desired-value 6"},
		},
		"a role too many": {
			map[string]int{
				"L-FE177D64": 999,
			}, Finding{RoleQuota, Blocks, "999 of 1000 IAM roles are used; needed: 2",
				"aws service-quotas request-service-quota-increase --region us-east-1 --service-code iam --quota-code L-FE177D64 --desired-value 1001"},
		},
		"a cluster too many": {
			map[string]int{
				"L-1194D53C": 5,
			}, Finding{ClusterQuota, Blocks, "5 of 5 EKS clusters are used; needed: 1",
				increase + "eks --quota-code L-1194D53C --desired-value 6"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := roomy()
			f.Used = test.used
			require.Equal(t, []Finding{test.want}, of(Examine(f, []Cluster{demo(nil)}), test.want.Check))
		})
	}
	t.Run("each zone has its own NAT gateways", func(t *testing.T) {
		f := roomy()
		f.Used = map[string]int{"L-FE5A380F/eu-central-1b": 5}
		found := of(Examine(f, []Cluster{demo(nil)}), NATGatewayQuota)
		require.Equal(t, []Level{OK, Blocks}, []Level{found[0].Level, found[1].Level})
		require.Contains(t, found[1].Message, "5 of 5 NAT gateways in eu-central-1b are used")
	})
	t.Run("clusters add up", func(t *testing.T) {
		f := roomy()
		f.Used = map[string]int{"L-F678F1CE": 4}
		require.Equal(t, Blocks, of(Examine(f, []Cluster{demo(nil), demo(nil)}), VPCQuota)[0].Level)
	})
}

func TestNeedsOfNetworks(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*api.ClusterSpec)
		want   string
	}{
		"a gateway in each zone": {
			nil, "VPCQuota 1, GatewayQuota 1, AddressQuota 2, NATGatewayQuota 1, NATGatewayQuota 1, ClusterQuota 1, RoleQuota 2",
		},
		"a single gateway": {
			func(s *api.ClusterSpec) { s.Network.NATGateways = api.NATSingle },
			"VPCQuota 1, GatewayQuota 1, AddressQuota 1, NATGatewayQuota 1, ClusterQuota 1, RoleQuota 2",
		},
		"no gateway": {func(s *api.ClusterSpec) {
			s.Network.NATGateways = api.NATNone
		}, "VPCQuota 1, GatewayQuota 1, ClusterQuota 1, RoleQuota 2"},
		"an existing network": {
			func(s *api.ClusterSpec) { s.Network = api.Network{Existing: &api.ExistingNetwork{}} }, "ClusterQuota 1, RoleQuota 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, n := range Needs([]Cluster{demo(test.change)}, nil) {
				require.Equal(t, n.Least, n.Most)
				got = append(got, n.Check+" "+string(rune('0'+n.Least)))
			}
			require.Equal(t, test.want, strings.Join(got, ", "))
		})
	}
}

func TestInstanceQuotas(t *testing.T) {
	pool := func(p api.Pool) func(*api.ClusterSpec) {
		p.Name = "a"
		return func(s *api.ClusterSpec) { s.Pools = []api.Pool{p} }
	}
	both := []string{"m7i.xlarge", "m7i.large"}
	for name, test := range map[string]struct {
		pool                api.Pool
		used, limit         int
		onDemand, spot      Level
		wantOnDemand, fixed string
	}{
		"fits at its maximum": {
			pool: api.Pool{InstanceTypes: both, MinSize: 1, MaxSize: 3}, limit: 12, onDemand: OK,
			wantOnDemand: "0 of 12 vCPUs of on-demand instances are used; needed: up to 12",
		},
		"does not fit at its maximum": {
			pool: api.Pool{InstanceTypes: both, MinSize: 1, MaxSize: 3}, used: 1, limit: 12, onDemand: Warning,
			wantOnDemand: "; needed: 2 now, 12 at the maximum size", fixed: "--desired-value 13",
		},
		"does not fit with its smallest type": {
			pool: api.Pool{InstanceTypes: both, MinSize: 3, MaxSize: 3}, used: 7, limit: 12, onDemand: Blocks, wantOnDemand: "; needed: 6",
			fixed: "--desired-value 13",
		},
		"spot takes from its own quota": {
			pool: api.Pool{InstanceTypes: both, MinSize: 4, MaxSize: 4, Spot: &api.Spot{OnDemandBase: 1, OnDemandPercentage: 33}}, limit: 5,
			onDemand: Warning, spot: Warning, wantOnDemand: "; needed: 4 now", fixed: "--desired-value 8",
		},
		"all spot": {
			pool: api.Pool{InstanceTypes: both[1:], MinSize: 3, MaxSize: 3, Spot: &api.Spot{}}, limit: 5, spot: Blocks,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := roomy()
			for _, code := range []string{"L-1216C47A", "L-34B43A08"} {
				f.Limits[code], f.Used[code] = test.limit, test.used
			}
			found := Examine(f, []Cluster{demo(pool(test.pool))})
			levels := func(check string) Level {
				for _, f := range of(found, check) {
					return f.Level
				}
				return ""
			}
			require.Equal(t, test.onDemand, levels(OnDemandQuota), found)
			require.Equal(t, test.spot, levels(SpotQuota), found)
			if test.wantOnDemand != "" {
				require.Contains(t, of(found, OnDemandQuota)[0].Message, test.wantOnDemand)
				require.True(t, strings.HasSuffix(of(found, OnDemandQuota)[0].Fix, test.fixed), found)
			}
		})
	}
}

func TestInstanceTypesExist(t *testing.T) {
	with := func(types ...string) []Cluster {
		return []Cluster{demo(func(s *api.ClusterSpec) {
			s.Pools = []api.Pool{{Name: "a", InstanceTypes: types, MinSize: 1, MaxSize: 1}}
		})}
	}
	require.Equal(t, OK, of(Examine(roomy(), with("m7i.large")), InstanceTypesExist)[0].Level)
	require.Equal(t, Warning, of(Examine(roomy(), with("m7i.large", "z9.large")), InstanceTypesExist)[0].Level)
	blocked := of(Examine(roomy(), with("z9.large")), InstanceTypesExist)
	require.Equal(t, Blocks, blocked[0].Level)
	require.Contains(t, blocked[0].Message, "pool a of demo")
}

func TestAccountWithoutClusters(t *testing.T) {
	require.Equal(t, Finding{VPCQuota, OK, "0 of 5 VPCs are used; needed: up to 1", ""}, of(Examine(roomy(), nil), VPCQuota)[0])
	f := roomy()
	f.Used["L-F678F1CE"] = 5
	found := Examine(f, nil)
	require.Equal(t, Warning, of(found, VPCQuota)[0].Level, "no cluster was named")
	require.Equal(t, "5 of 5 VPCs are used; a cluster may need 1", of(found, VPCQuota)[0].Message)
	require.Empty(t, of(found, InstanceTypesExist))
}

func TestUnknownFacts(t *testing.T) {
	t.Run("a quota without a value is a warning", func(t *testing.T) {
		f := roomy()
		delete(f.Limits, "L-F678F1CE")
		require.Equal(t, Warning, of(Examine(f, []Cluster{demo(nil)}), VPCQuota)[0].Level)
	})
	t.Run("a call that is denied is a warning", func(t *testing.T) {
		f := roomy()
		f.Unreadable[VPCQuota], f.Used["L-F678F1CE"] = "you may not call DescribeVpcs", 9
		found := of(Examine(f, []Cluster{demo(nil)}), VPCQuota)
		require.Equal(t, []Finding{
			{VPCQuota, Warning, "it could not be checked: you may not call DescribeVpcs", "allow the call, or check it yourself"},
		}, found)
	})
}

func TestOrderOfFindings(t *testing.T) {
	found := Examine(roomy(), []Cluster{demo(func(s *api.ClusterSpec) {
		s.Pools = []api.Pool{{Name: "a", InstanceTypes: []string{"m7i.large"}, MaxSize: 1, ImageID: "ami-1", Architecture: api.AMD64}}
	})})
	last := -1
	for _, f := range found {
		at := -1
		for i, name := range Names() {
			if name == f.Check {
				at = i
			}
		}
		require.GreaterOrEqual(t, at, last, f.Check)
		last = at
	}
	require.Empty(t, Blocking(found))
}
