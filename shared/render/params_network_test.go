package render

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

func TestSubnetsDoNotOverlap(t *testing.T) {
	for _, cidr := range []string{"10.0.0.0/16", "10.0.128.0/17", "172.31.0.0/20", "192.168.4.0/22", "192.168.4.0/23", "192.168.4.0/24"} {
		t.Run(cidr, func(t *testing.T) {
			vpc := netip.MustParsePrefix(cidr)
			letters := "abcdef"
			if vpc.Bits() == 24 {
				letters = "abcd"
			}
			c := smallCluster()
			c.Spec.Network.CIDR, c.Spec.Network.Zones = cidr, zonesOf("eu-central-1", letters)
			p, err := newNetworkParams(testCell(), c)
			require.NoError(t, err)
			var subnets []netip.Prefix
			for _, z := range p.Zones {
				private, public := netip.MustParsePrefix(z.Private), netip.MustParsePrefix(z.Public)
				require.Equal(t, vpc.Bits()+3, private.Bits(), "a private subnet is an eighth")
				subnets = append(subnets, private, public)
			}
			for i, a := range subnets {
				require.True(t, vpc.Contains(a.Addr()) && a.Bits() >= vpc.Bits() && a.Bits() <= 28, "%s in %s", a, vpc)
				require.Equal(t, a.Masked(), a)
				for _, b := range subnets[:i] {
					require.False(t, a.Overlaps(b), "%s and %s", a, b)
				}
			}
		})
	}
}

func TestNewZoneKeepsOtherSubnets(t *testing.T) {
	before := smallCluster()
	before.Spec.Network.SecondaryCIDRs = []string{"100.64.0.0/16"}
	after := smallCluster()
	after.Spec.Network.SecondaryCIDRs = []string{"100.65.0.0/16", "100.64.0.0/16"}
	after.Spec.Network.Zones = []string{"eu-central-1c", "eu-central-1b", "eu-central-1a"}
	was := resources(t, stackOf(t, render(t, resolve(t, before)), names.Network))
	is := resources(t, stackOf(t, render(t, resolve(t, after)), names.Network))
	for id, resource := range was {
		if id != "S3Endpoint" { // it is attached to all route tables
			require.Equal(t, resource, is[id], id)
		}
	}
	require.Contains(t, is, "PrivateSubnetC")
	require.Contains(t, is, "PodSubnet100x65x0x0x16C")
}

func TestGatewaysSurviveANewNumber(t *testing.T) {
	perZone, single := smallCluster(), smallCluster()
	single.Spec.Network.NATGateways = api.NATSingle
	was := resources(t, stackOf(t, render(t, resolve(t, perZone)), names.Network))
	is := resources(t, stackOf(t, render(t, resolve(t, single)), names.Network))
	require.Contains(t, was, "NatGatewayB")
	require.NotContains(t, is, "NatGatewayB")
	require.Equal(t, was["NatGatewayA"], is["NatGatewayA"])
	require.Equal(t, was["NatAddressA"], is["NatAddressA"])
}

func TestInvalidNetworks(t *testing.T) {
	tests := map[string]struct {
		change func(*api.Network)
		says   string
	}{
		"no range":                  {func(n *api.Network) { n.CIDR = "" }, "spec.network.cidr"},
		"a range that is too small": {func(n *api.Network) { n.CIDR = "10.0.0.0/25" }, "not between /16 and /24"},
		"a range that is too large": {func(n *api.Network) { n.CIDR = "10.0.0.0/8" }, "not between /16 and /24"},
		"a range with host bits":    {func(n *api.Network) { n.CIDR = "10.0.0.1/16" }, "not an IPv4 range"},
		"IPv6":                      {func(n *api.Network) { n.CIDR = "fd00::/16" }, "not an IPv4 range"},
		"more zones than a /24 has room": {func(n *api.Network) {
			n.CIDR, n.Zones = "10.0.0.0/24", zonesOf("us-east-1", "ae")
		}, `zones[1]: "us-east-1e": a VPC of 10.0.0.0/24 has no room`},
		"no zones":                    {func(n *api.Network) { n.Zones = nil }, "spec.network.zones"},
		"an empty zone":               {func(n *api.Network) { n.Zones = []string{""} }, "zones[0]"},
		"a zone without a letter":     {func(n *api.Network) { n.Zones = []string{"eu-central-1"} }, "a digit and a letter from a to f"},
		"a zone twice":                {func(n *api.Network) { n.Zones = zonesOf("eu-central-1", "aba") }, "zones[2]"},
		"a secondary range too small": {func(n *api.Network) { n.SecondaryCIDRs = []string{"100.64.0.0/26"} }, "secondaryCIDRs[0]"},
		"a secondary range twice": {func(n *api.Network) {
			n.SecondaryCIDRs = []string{"100.64.0.0/16", "100.64.0.0/16"}
		}, "secondaryCIDRs[1]"},
		"a number of gateways not known": {func(n *api.Network) { n.NATGateways = "Two" }, "natGateways"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := resolve(t, smallCluster())
			tt.change(&in.Resolved.Spec.Network)
			_, err := Render(in)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

func TestExistingNetworkHasNoStack(t *testing.T) {
	c := smallCluster()
	c.Spec.Network = existingNetwork()
	out := render(t, resolve(t, c))
	require.Equal(t, names.ControlPlane, out.Stacks[0].Name)
	for _, name := range []string{names.ControlPlane, names.PoolStack("workers")} {
		for _, p := range stackOf(t, out, name).Parameters {
			if p.Name == "SubnetIds" {
				require.Equal(t, Parameter{Name: "SubnetIds", Value: strings.Join(c.Spec.Network.Existing.Subnets, ",")}, p)
			}
		}
	}
}
