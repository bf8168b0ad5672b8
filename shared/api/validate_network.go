package api

// Rules about several fields of a network and of a control plane.

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Ranges in AWS's rules.
var (
	ten          = netip.MustParsePrefix("10.0.0.0/8")
	tenFirst     = netip.MustParsePrefix("10.0.0.0/16")
	tenFirstTwo  = netip.MustParsePrefix("10.0.0.0/15")
	private172   = netip.MustParsePrefix("172.16.0.0/12")
	default172   = netip.MustParsePrefix("172.31.0.0/16")
	private192   = netip.MustParsePrefix("192.168.0.0/16")
	benchmarking = netip.MustParsePrefix("198.19.0.0/16")

	privateRanges = []netip.Prefix{ten, private172, private192}
	// Not addresses of hosts: this network, loopback, link local, multicast and above.
	unusable = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
	}
)

func validateNetwork(path *field.Path, s *ClusterSpec) (errs field.ErrorList) {
	n := &s.Network
	if n.Existing != nil {
		for name, given := range map[string]bool{
			"cidr": n.CIDR != "", "secondaryCIDRs": len(n.SecondaryCIDRs) > 0, "zones": len(n.Zones) > 0, "natGateways": n.NATGateways != "",
			"natAddresses": n.NATAddresses != nil, "endpoints": len(n.Endpoints) > 0, "flowLogs": n.FlowLogs != nil,
		} {
			if given {
				errs = append(errs, field.Forbidden(path.Child(name), "drover does not change an existing network: "+
					"remove this field, or remove existing"))
			}
		}
		return errs
	}
	if n.CIDR == "" {
		errs = append(errs, field.Required(path.Child("cidr"), "unless existing is given"))
	}
	if n.Zones == nil {
		errs = append(errs, field.Required(path.Child("zones"), "unless existing is given"))
	}
	errs = append(errs, validateZones(path.Child("zones"), n)...)
	errs = append(errs, validateNATAddresses(path.Child("natAddresses"), n)...)
	if i := slices.Index(n.Endpoints, "s3"); i >= 0 {
		errs = append(errs, field.Invalid(path.Child("endpoints").Index(i), "s3", "the network has a gateway endpoint of S3: remove it"))
	}
	return append(errs, validateRanges(path, n)...)
}

// validateZones checks that all zones are in one region and fit into the VPC. A zone's letter determines its place in the VPC, so that
// zones can be added without moving a subnet. The smallest VPC has four places.
func validateZones(path *field.Path, n *Network) (errs field.ErrorList) {
	vpc, _ := netip.ParsePrefix(n.CIDR)
	for i, zone := range n.Zones {
		if len(formats["zone"].Wrong(zone)) > 0 {
			continue
		}
		if region := regionOf(zone); len(formats["zone"].Wrong(n.Zones[0])) == 0 && region != regionOf(n.Zones[0]) {
			errs = append(errs, field.Invalid(path.Index(i), zone, "must be in the region of the first zone, "+regionOf(n.Zones[0])))
		}
		if vpc.IsValid() && vpc.Bits() == smallestVPC && zone[len(zone)-1] > 'd' {
			errs = append(errs, field.Invalid(path.Index(i), zone, fmt.Sprintf("a VPC of /%d has room for zones a to d: use a larger cidr",
				smallestVPC)))
		}
	}
	return errs
}

// GatewayZones returns the zones that have a NAT gateway.
func (n *Network) GatewayZones() []string {
	switch {
	case n.NATGateways == NATNone:
		return nil
	case n.NATGateways == NATSingle && len(n.Zones) > 0:
		return n.Zones[:1]
	}
	return n.Zones
}

// validateNATAddresses checks that each NAT gateway has an address of its own, if one has.
func validateNATAddresses(path *field.Path, n *Network) (errs field.ErrorList) {
	if n.NATAddresses == nil {
		return nil
	}
	zones := n.GatewayZones()
	holders := map[string]string{}
	for _, zone := range sortedKeys(n.NATAddresses) {
		address := n.NATAddresses[zone]
		if !slices.Contains(zones, zone) {
			errs = append(errs, field.Invalid(path.Key(zone), address, "the network has no NAT gateway in this zone: remove it, or see zones and "+
				"natGateways"))
		}
		if holder, taken := holders[address]; taken {
			errs = append(errs, field.Invalid(path.Key(zone), address, "is the address of zone "+holder+" too: each gateway needs its own"))
		}
		holders[address] = zone
	}
	for _, zone := range zones {
		if n.NATAddresses[zone] == "" && len(formats["zone"].Wrong(zone)) == 0 {
			errs = append(errs, field.Required(path.Key(zone), "state an address for each NAT gateway, or none"))
		}
	}
	return errs
}

// Region returns the region of the cluster by its zones. It is empty if the cluster uses an existing network.
func (c *Cluster) Region() string {
	if len(c.Spec.Network.Zones) == 0 {
		return ""
	}
	return regionOf(c.Spec.Network.Zones[0])
}

// regionOf returns us-east-1 for us-east-1a.
func regionOf(zone string) string { return strings.TrimRight(zone, "abcdefghijklmnopqrstuvwxyz") }

// Sizes of ranges, as prefix lengths. AWS allows VPCs down to /28. drover needs room for subnets in several zones, each at least a /28.
// https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html
const (
	largestVPC        = 16
	smallestVPC       = 24
	smallestSecondary = 25
	largestServices   = 12
	smallestServices  = 24
)

func validateRanges(path *field.Path, n *Network) (errs field.ErrorList) {
	at := path.Child("cidr")
	vpc, ok := parseRange(n.CIDR)
	if ok {
		errs = append(errs, validateSize(at, vpc, largestVPC, smallestVPC)...)
		errs = append(errs, validateUsable(at, vpc)...)
	}
	var before []netip.Prefix
	for i, cidr := range n.SecondaryCIDRs {
		at := path.Child("secondaryCIDRs").Index(i)
		secondary, good := parseRange(cidr)
		if !good {
			continue
		}
		errs = append(errs, validateSize(at, secondary, largestVPC, smallestSecondary)...)
		errs = append(errs, validateUsable(at, secondary)...)
		switch clash := slices.IndexFunc(before, secondary.Overlaps); {
		case ok && vpc.Overlaps(secondary):
			errs = append(errs, field.Invalid(at, cidr, "overlaps with the cidr of the VPC, "+n.CIDR))
		case clash >= 0 && before[clash] != secondary: // an equal value is reported as a duplicate
			errs = append(errs, field.Invalid(at, cidr, "overlaps with "+before[clash].String()))
		case ok:
			if refused := whyNotWith(vpc, secondary); refused != "" {
				errs = append(errs, field.Invalid(at, cidr, refused))
			}
		}
		before = append(before, secondary)
	}
	return errs
}

// whyNotWith returns why AWS would not add a range to a VPC.
// https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html#add-cidr-block-restrictions
func whyNotWith(vpc, secondary netip.Prefix) string {
	for _, private := range privateRanges {
		if private.Overlaps(secondary) && !private.Overlaps(vpc) {
			return fmt.Sprintf("AWS does not add a range within %s to a VPC of %s", private, vpc)
		}
	}
	switch {
	case benchmarking.Overlaps(secondary) && !benchmarking.Overlaps(vpc):
		return fmt.Sprintf("AWS does not add a range within %s to a VPC of %s", benchmarking, vpc)
	case tenFirstTwo.Overlaps(vpc) && tenFirst.Overlaps(secondary):
		return fmt.Sprintf("AWS does not add a range within %s to a VPC within %s", tenFirst, tenFirstTwo)
	case private172.Overlaps(vpc) && default172.Overlaps(secondary):
		return fmt.Sprintf("AWS does not add a range within %s to a VPC within %s", default172, private172)
	}
	return ""
}

// parseRange parses a range. Ranges in the wrong form have their own error.
func parseRange(cidr string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(cidr)
	return p, err == nil && len(formats["cidr"].Wrong(cidr)) == 0
}

func validateSize(path *field.Path, p netip.Prefix, largest, smallest int) field.ErrorList {
	if p.Bits() >= largest && p.Bits() <= smallest {
		return nil
	}
	return field.ErrorList{field.Invalid(path, p.String(), fmt.Sprintf("must be between /%d and /%d", largest, smallest))}
}

func validateUsable(path *field.Path, p netip.Prefix) field.ErrorList {
	if i := slices.IndexFunc(unusable, p.Overlaps); i >= 0 {
		return field.ErrorList{
			field.Invalid(path, p.String(), fmt.Sprintf("must not overlap with %s: hosts cannot have these addresses", unusable[i])),
		}
	}
	return nil
}

func validateControlPlane(path *field.Path, s *ClusterSpec) (errs field.ErrorList) {
	c := &s.ControlPlane
	errs = append(errs, validateServiceCIDR(path.Child("serviceCIDR"), s)...)
	errs = append(errs, validateEndpoint(path.Child("endpoint"), s)...)
	errs = append(errs, validateKeyRegion(path.Child("encryptionKeyARN"), c.EncryptionKeyARN, &s.Network)...)
	errs = append(errs, validateKeyRegion(path.Child("logKeyARN"), c.LogKeyARN, &s.Network)...)
	return append(errs, validateSettingsOf(path, s)...)
}

// validateKeyRegion checks that a key is in the region of the cluster.
func validateKeyRegion(path *field.Path, key string, n *Network) field.ErrorList {
	if parts := strings.Split(key, ":"); len(parts) > 3 && len(n.Zones) > 0 {
		if region := regionOf(n.Zones[0]); parts[3] != region {
			return field.ErrorList{field.Invalid(path, key, "must be in the region of the zones, "+region)}
		}
	}
	return nil
}

// https://docs.aws.amazon.com/eks/latest/APIReference/API_KubernetesNetworkConfigRequest.html
func validateServiceCIDR(path *field.Path, s *ClusterSpec) (errs field.ErrorList) {
	services, ok := parseRange(s.ControlPlane.ServiceCIDR)
	if !ok {
		return nil
	}
	errs = append(errs, validateSize(path, services, largestServices, smallestServices)...)
	within := func(p netip.Prefix) bool { return p.Bits() <= services.Bits() && p.Contains(services.Addr()) }
	if !slices.ContainsFunc(privateRanges, within) {
		errs = append(errs, field.Invalid(path, services.String(), "must be within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16: "+
			"choose another range"+s.freeServiceCIDR()))
	}
	for _, cidr := range s.Network.ranges() {
		p, ok := parseRange(cidr)
		switch {
		case !ok || !p.Overlaps(services):
		case services == defaultServices:
			errs = append(errs, field.Invalid(path, services.String(), "the default range of services overlaps with the network's "+cidr+": set "+
				path.String()+" to another"+s.freeServiceCIDR()))
		default:
			errs = append(errs, field.Invalid(path, services.String(), "overlaps with the network's "+cidr+": choose another range"+
				s.freeServiceCIDR()))
		}
	}
	return errs
}

// ranges returns all ranges of the VPC.
func (n *Network) ranges() []string { return append([]string{n.CIDR}, n.SecondaryCIDRs...) }

// defaultServices is the default of serviceCIDR. EKS itself uses the other one if the VPC has addresses of 172.16.0.0/12.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_KubernetesNetworkConfigRequest.html
var (
	defaultServices = netip.MustParsePrefix("172.20.0.0/16")
	otherServices   = netip.MustParsePrefix("10.100.0.0/16")
)

// freeServiceCIDR completes a message with a range of services that does not overlap with the network. It is "" if both of EKS's ranges
// overlap.
func (s *ClusterSpec) freeServiceCIDR() string {
	for _, free := range []netip.Prefix{defaultServices, otherServices} {
		overlaps := func(cidr string) bool {
			p, ok := parseRange(cidr)
			return ok && p.Overlaps(free)
		}
		if !slices.ContainsFunc(s.Network.ranges(), overlaps) {
			return ", such as " + free.String()
		}
	}
	return ""
}

// validateEndpoint checks that drover's functions and the nodes can reach the API.
// https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html
func validateEndpoint(path *field.Path, s *ClusterSpec) (errs field.ErrorList) {
	e := &s.ControlPlane.Endpoint
	if e.Private != nil && !*e.Private {
		switch {
		case e.Public != nil && !*e.Public:
			errs = append(errs, field.Forbidden(path.Child("private"), "the API would be unreachable: set public or private to true"))
		case e.NeedsRelay():
			errs = append(errs, field.Forbidden(path.Child("private"), "nodes and drover reach a public endpoint that is not open to everyone "+
				"from the VPC: leave private on, or add 0.0.0.0/0 to publicCIDRs"))
		case s.Network.Existing == nil && s.Network.NATGateways == NATNone:
			errs = append(errs, field.Forbidden(path.Child("private"),
				"without NAT gateways, nodes reach the API through the private endpoint only"))
		}
	}
	for i, cidr := range e.PublicCIDRs {
		p, ok := parseRange(cidr)
		if ok && p.Bits() > 0 && slices.ContainsFunc(append(unusable, privateRanges...), p.Overlaps) {
			errs = append(errs, field.Invalid(path.Child("publicCIDRs").Index(i), cidr,
				"must be addresses of the internet: no request to the public endpoint comes from these; "+
					"name those of your NAT gateways or your office, as a /32 or larger"))
		}
	}
	return errs
}
