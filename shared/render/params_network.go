package render

// The network stack: the subnets, and their places in the VPC's range.

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// networkParams are the parameters of network.yaml.tmpl.
type networkParams struct {
	Description, Name, PublicName string
	// Retain protects stateful resources against deletion.
	Retain    bool
	CIDR      string
	Secondary []secondaryRange
	Zones     []zone
	S3Service string
	// Endpoints of AWS services in the VPC.
	Endpoints []endpoint
	// FlowLogs is nil if there are none.
	FlowLogs *flowLogs
	// NATAddresses are allocation ids of the user, separated by commas. drover creates the addresses of the other gateways.
	NATAddresses string
}

// flowLogs are flow logs of the VPC.
type flowLogs struct{ To, Traffic string }

// secondaryRange is a further range of the VPC. Its id is derived from the range, so that the order in the spec does not matter.
type secondaryRange struct{ ID, CIDR string }

// zone is an availability zone with its subnets. Its id is its letter.
type zone struct {
	ID, Zone                string
	Public, Private         string
	PublicName, PrivateName string
	// Gateway reports whether the zone has a NAT gateway. GatewayOf is the zone whose gateway its nodes use, or "".
	Gateway   bool
	GatewayOf string
	// Address is the allocation id of the gateway's address, if it is the user's.
	Address string
	Pods    []podSubnet
}

// podSubnet is a zone's part of a secondary range. Its id is the range's.
type podSubnet struct{ ID, Name, CIDR string }

type endpoint struct{ ID, Service string }

// endpoints that nodes need without internet access, by logical id.
// https://docs.aws.amazon.com/eks/latest/userguide/private-clusters.html
var endpoints = []endpoint{
	{"Ec2", "ec2"}, {"EcrApi", "ecr.api"}, {"EcrDocker", "ecr.dkr"}, {"Sts", "sts"},
	{"Eks", "eks"}, {"EksAuth", "eks-auth"}, {"Logs", "logs"},
}

// chinese lists the endpoint services that are named cn.com.amazonaws in China.
// https://docs.amazonaws.cn/en_us/vpc/latest/privatelink/aws-services-privatelink-support.html
var chinese = []string{"ec2", "ecr.api", "ecr.dkr", "sts", "eks"}

// newNetworkParams computes the values of the network's template: zones, subnets and routes.
func newNetworkParams(cell Cell, cluster *api.Cluster) (*networkParams, error) {
	spec, name := cluster.Spec.Network, eksName(cluster)
	p := &networkParams{
		Description: "drover: network of cluster " + cluster.Metadata.Name,
		Name:        name,
		PublicName:  name + "-public",
		Retain:      isProtected(cluster),
		CIDR:        spec.CIDR,
		S3Service:   "com.amazonaws." + cell.Region + ".s3",
	}
	vpc, err := prefix("spec.network.cidr", spec.CIDR, 16, 24)
	if err != nil {
		return nil, err
	}
	secondary := make([]netip.Prefix, len(spec.SecondaryCIDRs))
	for i, cidr := range spec.SecondaryCIDRs {
		// A zone gets an eighth. EC2's smallest subnet is a /28.
		if secondary[i], err = prefix(fmt.Sprintf("spec.network.secondaryCIDRs[%d]", i), cidr, 16, 25); err != nil {
			return nil, err
		}
		if slices.Contains(secondary[:i], secondary[i]) {
			return nil, fmt.Errorf("spec.network.secondaryCIDRs[%d]: %q is there twice", i, cidr)
		}
		p.Secondary = append(p.Secondary, secondaryRange{ID: rangeID(secondary[i]), CIDR: cidr})
	}
	for i, zoneName := range spec.Zones {
		field := fmt.Sprintf("spec.network.zones[%d]", i)
		slot, err := zoneSlot(field, zoneName)
		if err != nil {
			return nil, err
		}
		z := zone{
			ID: string(rune('A' + slot)), Zone: zoneName,
			PublicName: name + "-public-" + zoneName, PrivateName: name + "-private-" + zoneName,
		}
		if slices.ContainsFunc(p.Zones, func(other zone) bool { return other.ID == z.ID }) {
			return nil, fmt.Errorf("%s: %q: another zone has the same letter", field, zoneName)
		}
		if z.Private, z.Public, err = zoneSubnets(vpc, slot); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", field, zoneName, err)
		}
		for _, r := range secondary {
			z.Pods = append(z.Pods, podSubnet{
				ID: rangeID(r), Name: name + "-pods-" + zoneName, CIDR: slice(r, r.Bits()+3, slot).String(),
			})
		}
		switch spec.NATGateways {
		case api.NATPerZone, "":
			z.Gateway, z.GatewayOf = true, z.ID
		case api.NATSingle:
			z.Gateway = i == 0
			z.GatewayOf = z.ID
			if i > 0 {
				z.GatewayOf = p.Zones[0].ID
			}
		case api.NATNone:
		default:
			return nil, fmt.Errorf("spec.network.natGateways: %q is not one of PerZone, Single, None", spec.NATGateways)
		}
		if z.Gateway {
			z.Address = spec.NATAddresses[zoneName]
		}
		p.Zones = append(p.Zones, z)
	}
	if len(p.Zones) == 0 {
		return nil, fmt.Errorf("spec.network.zones: none given")
	}
	for _, e := range endpointsOf(&spec) {
		p.Endpoints = append(p.Endpoints, endpoint{ID: e.ID, Service: EndpointService(cell, e.Service)})
	}
	if logs := spec.FlowLogs; logs != nil {
		p.FlowLogs = &flowLogs{To: logs.To, Traffic: string(logs.Traffic)}
	}
	var addresses []string
	for _, zone := range slices.Sorted(maps.Keys(spec.NATAddresses)) {
		if !slices.Contains(spec.GatewayZones(), zone) {
			return nil, fmt.Errorf("spec.network.natAddresses: %q is no zone with a NAT gateway", zone)
		}
		addresses = append(addresses, spec.NATAddresses[zone])
	}
	p.NATAddresses = strings.Join(addresses, ",")
	return p, nil
}

// NATAddresses is the output of the network's stack with the allocation ids of the user, separated by commas.
const NATAddresses = "NatAddresses"

// EndpointService returns the full name of a service for endpoints.
func EndpointService(cell Cell, service string) string {
	vendor := "com.amazonaws."
	if cell.Partition == "aws-cn" && slices.Contains(chinese, service) {
		vendor = "cn.com.amazonaws."
	}
	return vendor + cell.Region + "." + service
}

// endpointsOf returns the interface endpoints of a network: those that nodes need without NAT, and then those of the spec.
func endpointsOf(n *api.Network) (list []endpoint) {
	if n.NATGateways == api.NATNone {
		list = slices.Clone(endpoints)
	}
	for _, service := range n.Endpoints {
		if slices.ContainsFunc(list, func(e endpoint) bool { return e.Service == service }) {
			continue
		}
		e := endpoint{"Service" + digest(service), service}
		if i := slices.IndexFunc(endpoints, func(e endpoint) bool { return e.Service == service }); i >= 0 {
			e = endpoints[i]
		}
		list = append(list, e)
	}
	return list
}

// zones is how many zones a VPC has room for: a to f, the most in any AWS region.
const zones = 6

// zoneSlot returns the place of a zone in a VPC, by its letter. It does not depend on other zones. So zones can be added, and written in
// any order, without moving a subnet.
func zoneSlot(field, zoneName string) (int, error) {
	if n := len(zoneName); n >= 2 && zoneName[n-2] >= '0' && zoneName[n-2] <= '9' {
		if slot := int(zoneName[n-1]) - 'a'; slot >= 0 && slot < zones {
			return slot, nil
		}
	}
	return 0, fmt.Errorf("%s: %q: a zone's name ends in a digit and a letter from a to f", field, zoneName)
}

// zoneSubnets divides a VPC. Each of six zones has an eighth for its private subnet. The last two eighths hold the public subnets, a 64th
// each, but at least a /28, EC2's smallest. For a /16 that is a /19 and a /22, for a /24 a /27 and a /28 (which leaves no room for a
// fifth zone).
func zoneSubnets(vpc netip.Prefix, slot int) (private, public string, err error) {
	publicBits := min(vpc.Bits()+6, 28)
	first := zones << (publicBits - vpc.Bits() - 3) // the place of the first public subnet
	if first+slot >= 1<<(publicBits-vpc.Bits()) {
		return "", "", fmt.Errorf("a VPC of %s has no room for it", vpc)
	}
	return slice(vpc, vpc.Bits()+3, slot).String(), slice(vpc, publicBits, first+slot).String(), nil
}

// slice returns the n-th part of a range, with the given prefix length.
func slice(r netip.Prefix, bits, n int) netip.Prefix {
	start := r.Masked().Addr().As4()
	address := binary.BigEndian.Uint32(start[:]) + uint32(n)<<(32-bits)
	var out [4]byte
	binary.BigEndian.PutUint32(out[:], address)
	return netip.PrefixFrom(netip.AddrFrom4(out), bits)
}

// prefix parses an IPv4 range whose length is within bounds.
func prefix(field, cidr string, longest, shortest int) (netip.Prefix, error) {
	r, err := netip.ParsePrefix(cidr)
	if err != nil || !r.Addr().Is4() || r != r.Masked() {
		return r, fmt.Errorf("%s: %q is not an IPv4 range such as 10.0.0.0/16", field, cidr)
	}
	if r.Bits() < longest || r.Bits() > shortest {
		return r, fmt.Errorf("%s: %q is not between /%d and /%d", field, cidr, longest, shortest)
	}
	return r, nil
}

// rangeID returns a range as part of a logical id: 100.64.0.0/16 is 100x64x0x0x16.
func rangeID(r netip.Prefix) string {
	return strings.NewReplacer(".", "x", "/", "x").Replace(r.String())
}
