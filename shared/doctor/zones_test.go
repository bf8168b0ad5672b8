package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestZonesAccepted(t *testing.T) {
	const others = "use other zones, for example us-east-1a, us-east-1b"
	const subnets = "name private subnets of that VPC in two of these zones: us-east-1a, us-east-1b"
	for name, test := range map[string]struct {
		network api.Network
		want    Finding
	}{
		"all are accepted": {
			api.Network{Zones: []string{"us-east-1a", "us-east-1b"}}, Finding{ZonesAccepted, OK, "EKS accepts the zones of the networks", ""},
		},
		"one is refused by its id": {
			api.Network{Zones: []string{"us-east-1a", "us-east-1e"}},
			Finding{ZonesAccepted, Blocks, "demo: EKS creates no control plane in zone us-east-1e (use1-az3)", others},
		},
		"one does not exist": {
			api.Network{Zones: []string{"us-east-1a", "us-east-1z"}},
			Finding{ZonesAccepted, Blocks, "demo: zone us-east-1z does not exist or is not available", others},
		},
		"those of existing subnets are accepted": {
			api.Network{Existing: &api.ExistingNetwork{VPCID: "vpc-1", Subnets: []string{"subnet-a", "subnet-b"}}},
			Finding{ZonesAccepted, OK, "EKS accepts the zones of the networks", ""},
		},
		"that of an existing subnet is refused": {
			api.Network{Existing: &api.ExistingNetwork{VPCID: "vpc-1", Subnets: []string{"subnet-a", "subnet-e"}}},
			Finding{ZonesAccepted, Blocks, "demo: EKS creates no control plane in zone us-east-1e (use1-az3) of subnet subnet-e", subnets},
		},
		"that of an existing subnet is a Local Zone": {
			api.Network{Existing: &api.ExistingNetwork{VPCID: "vpc-1", Subnets: []string{"subnet-a", "subnet-l"}}},
			Finding{ZonesAccepted, Blocks, "demo: EKS creates no control plane in zone us-east-1-bos-1a of subnet subnet-l: it is a Local Zone, " +
				"a Wavelength Zone or not available", subnets},
		},
		"a subnet does not exist": {
			api.Network{Existing: &api.ExistingNetwork{VPCID: "vpc-1", Subnets: []string{"subnet-a", "subnet-x"}}},
			Finding{ZonesAccepted, Blocks, "demo: vpc-1 has no subnet subnet-x", subnets},
		},
		"a subnet is of another VPC": {
			api.Network{Existing: &api.ExistingNetwork{VPCID: "vpc-1", Subnets: []string{"subnet-a", "subnet-o"}}},
			Finding{ZonesAccepted, Blocks, "demo: vpc-1 has no subnet subnet-o", subnets},
		},
		"the subnets are in one zone": {
			api.Network{Existing: &api.ExistingNetwork{VPCID: "vpc-1", Subnets: []string{"subnet-a", "subnet-a2"}}},
			Finding{ZonesAccepted, Blocks, "demo: its subnets are in one zone; EKS needs two", subnets},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := roomy()
			f.Zones = map[string]string{"us-east-1a": "use1-az1", "us-east-1b": "use1-az2", "us-east-1e": "use1-az3"}
			f.Subnets = map[string]Subnet{
				"subnet-a":  {VPC: "vpc-1", Zone: "us-east-1a", ZoneID: "use1-az1"},
				"subnet-a2": {VPC: "vpc-1", Zone: "us-east-1a", ZoneID: "use1-az1"},
				"subnet-b":  {VPC: "vpc-1", Zone: "us-east-1b", ZoneID: "use1-az2"},
				"subnet-e":  {VPC: "vpc-1", Zone: "us-east-1e", ZoneID: "use1-az3"},
				"subnet-l":  {VPC: "vpc-1", Zone: "us-east-1-bos-1a", ZoneID: "use1-bos1-az1"},
				"subnet-o":  {VPC: "vpc-2", Zone: "us-east-1b", ZoneID: "use1-az2"},
			}
			require.Equal(t, []Finding{test.want}, of(Examine(f, []Cluster{demo(func(s *api.ClusterSpec) {
				s.Network = test.network
			})}), ZonesAccepted))
		})
	}
}
