package ec2

// VPCs and subnets: valid address ranges, and the conditions of their deletion.
// https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html

import (
	"net/netip"
	"slices"

	"github.com/drover-run/drover/local/aws/iam"
)

type vpc struct {
	object
	// ranges of the VPC, primary first.
	ranges                     []addressRange
	tenancy                    string
	dnsSupport, dnsHostnames   bool
	mainRoutes, defaultGroupID string
}

// addressRange is a CIDR block associated with a VPC.
type addressRange struct {
	id     string
	prefix netip.Prefix
}

// The ranges that may not be added to a VPC whose primary range is in another of them.
var (
	class10   = netip.MustParsePrefix("10.0.0.0/8")
	class172  = netip.MustParsePrefix("172.16.0.0/12")
	class192  = netip.MustParsePrefix("192.168.0.0/16")
	reserved  = netip.MustParsePrefix("198.19.0.0/16")
	loopbacks = []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/4"),
		netip.MustParsePrefix("0.0.0.0/8"),
	}
)

// parseRange reads a block and clears its host bits, like EC2.
func parseRange(cidr, code string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil || !prefix.Addr().Is4() {
		return netip.Prefix{}, fail("InvalidParameterValue", "Value (%s) for parameter cidrBlock is invalid. "+
			"This is not a valid CIDR block.", cidr)
	}
	prefix = prefix.Masked()
	if prefix.Bits() < 16 || prefix.Bits() > 28 || slices.ContainsFunc(loopbacks, prefix.Overlaps) {
		return netip.Prefix{}, fail(code, "The CIDR '%s' is invalid.", cidr)
	}
	return prefix, nil
}

func (s *Service) createVPC(caller iam.Caller, cidr, tenancy string, dnsSupport, dnsHostnames bool, tags map[string]string) (*vpc, error) {
	if err := s.allowMaking(caller, "CreateVpc", "vpc", tags); err != nil {
		return nil, err
	}
	prefix, err := parseRange(cidr, "InvalidVpc.Range")
	if err != nil {
		return nil, err
	}
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	if tenancy == "" {
		tenancy = "default"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if isReached(s.config.Quotas.VPCs, len(s.vpcs.order)) {
		return nil, fail("VpcLimitExceeded", "The maximum number of VPCs has been reached.")
	}
	v := &vpc{object: s.newObject("vpc", "vpc", tags), tenancy: tenancy, dnsSupport: dnsSupport, dnsHostnames: dnsHostnames}
	v.ranges = []addressRange{{s.newID("vpc-cidr-assoc"), prefix}}
	s.vpcs.put(v.id, v)
	main := &routeTable{object: s.newObject("route-table", "rtb", nil), vpc: v.id, main: s.newID("rtbassoc")}
	s.routes.put(main.id, main)
	group := &securityGroup{
		object: s.newObject("security-group", "sg", nil), vpc: v.id, name: "default", description: "default VPC security group",
		egress: []rule{allowAll()},
	}
	s.groups.put(group.id, group)
	v.mainRoutes, v.defaultGroupID = main.id, group.id
	s.changes.Announce()
	return v, nil
}

// addRange associates another block.
func (s *Service) addRange(caller iam.Caller, vpcID, cidr string) (addressRange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.vpc(vpcID)
	if err != nil {
		return addressRange{}, err
	}
	if err := s.allow(caller, "AssociateVpcCidrBlock", on(v.object)); err != nil {
		return addressRange{}, err
	}
	prefix, err := parseRange(cidr, "InvalidVpc.Range")
	if err != nil {
		return addressRange{}, err
	}
	if isRestricted(v.ranges[0].prefix, prefix) {
		return addressRange{}, fail("InvalidVpc.Range", "The CIDR '%s' is restricted. "+
			"Use a CIDR from the same private address range as the current VPC CIDR, or use a publicly-routable CIDR.", cidr)
	}
	for _, r := range v.ranges {
		if r.prefix.Overlaps(prefix) {
			return addressRange{}, fail("InvalidVpc.Range", "The CIDR '%s' overlaps with the CIDR '%s' of the VPC.", cidr, r.prefix)
		}
	}
	// https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
	if len(v.ranges) >= 5 {
		return addressRange{}, fail("VpcCidrLimitExceeded", "This network '%s' has met its maximum number of allowed CIDRs: 5", vpcID)
	}
	added := addressRange{s.newID("vpc-cidr-assoc"), prefix}
	v.ranges = append(v.ranges, added)
	s.changes.Announce()
	return added, nil
}

// isRestricted reports whether a block may not be added to a VPC with that primary block.
// https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html#add-cidr-block-restrictions
func isRestricted(primary, added netip.Prefix) bool {
	private := []netip.Prefix{class10, class172, class192}
	for _, class := range private {
		if added.Overlaps(class) && !primary.Overlaps(class) {
			return true
		}
	}
	return added.Overlaps(reserved)
}

func (s *Service) removeRange(caller iam.Caller, vpcID, associationID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.vpc(vpcID)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "DisassociateVpcCidrBlock", on(v.object)); err != nil {
		return err
	}
	index := slices.IndexFunc(v.ranges, func(r addressRange) bool { return r.id == associationID })
	if index < 0 {
		return fail("InvalidVpcCidrBlockAssociationID.NotFound", "The vpc CIDR block association ID '%s' does not exist", associationID)
	}
	if index == 0 {
		return fail("OperationNotPermitted", "The vpc CIDR block with association ID %s may not be disassociated. "+
			"It is the primary IPv4 CIDR block of the VPC", associationID)
	}
	for _, sub := range s.subnets.all() {
		if sub.vpc == vpcID && v.ranges[index].prefix.Overlaps(sub.prefix) {
			return fail("DependencyViolation", "The vpc CIDR block with association ID %s has dependencies and cannot be disassociated.",
				associationID)
		}
	}
	v.ranges = slices.Delete(v.ranges, index, index+1)
	s.changes.Announce()
	return nil
}

func (s *Service) setDNS(caller iam.Caller, vpcID string, support, hostnames *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.vpc(vpcID)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "ModifyVpcAttribute", on(v.object)); err != nil {
		return err
	}
	if support != nil {
		v.dnsSupport = *support
	}
	if hostnames != nil {
		v.dnsHostnames = *hostnames
	}
	return nil
}

func (s *Service) vpc(id string) (*vpc, error) {
	v, ok := s.vpcs.get(id)
	if !ok {
		return nil, fail("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", id)
	}
	return v, nil
}

func (s *Service) deleteVPC(caller iam.Caller, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.vpc(id)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "DeleteVpc", on(v.object)); err != nil {
		return err
	}
	if s.vpcInUse(v) {
		return dependency("vpc", id)
	}
	s.vpcs.delete(id)
	s.routes.delete(v.mainRoutes)
	s.groups.delete(v.defaultGroupID)
	s.changes.Announce()
	return nil
}

// vpcInUse reports whether a VPC has resources other than its default ones.
// https://docs.aws.amazon.com/vpc/latest/userguide/delete-vpc.html
func (s *Service) vpcInUse(v *vpc) bool {
	for _, x := range s.subnets.all() {
		if x.vpc == v.id {
			return true
		}
	}
	for _, x := range s.gateways.all() {
		if x.vpc == v.id {
			return true
		}
	}
	for _, x := range s.groups.all() {
		if x.vpc == v.id && x.id != v.defaultGroupID {
			return true
		}
	}
	for _, x := range s.routes.all() {
		if x.vpc == v.id && x.id != v.mainRoutes {
			return true
		}
	}
	for _, x := range s.endpoints.all() {
		if x.vpc == v.id {
			return true
		}
	}
	return false
}

type subnet struct {
	object
	vpc, zone string
	prefix    netip.Prefix
	mapPublic bool
	// next is the host part of the next address to try, so that a freed address is not reused at once.
	next int
	used map[netip.Addr]bool
}

func (s *Service) createSubnet(caller iam.Caller, vpcID, cidr, zone string, mapPublic bool, tags map[string]string) (*subnet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.vpc(vpcID)
	if err != nil {
		return nil, err
	}
	if err := s.allowMaking(caller, "CreateSubnet", "subnet", tags, on(v.object)); err != nil {
		return nil, err
	}
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	prefix, err := parseRange(cidr, "InvalidSubnet.Range")
	if err != nil {
		return nil, err
	}
	inside := func(r addressRange) bool {
		return r.prefix.Contains(prefix.Addr()) && r.prefix.Bits() <= prefix.Bits()
	}
	if !slices.ContainsFunc(v.ranges, inside) {
		return nil, fail("InvalidSubnet.Range", "The CIDR '%s' is invalid.", cidr)
	}
	for _, other := range s.subnets.all() {
		if other.vpc == vpcID && other.prefix.Overlaps(prefix) {
			return nil, fail("InvalidSubnet.Conflict", "The CIDR '%s' conflicts with another subnet", cidr)
		}
	}
	if zone == "" {
		zone = s.config.Zones[0]
	}
	if !slices.Contains(s.config.Zones, zone) {
		return nil, fail("InvalidParameterValue", "Value (%s) for parameter availabilityZone is invalid. Subnets can currently only be created "+
			"in the following availability zones: %s.", zone, join(s.config.Zones))
	}
	sub := &subnet{
		object: s.newObject("subnet", "subnet", tags), vpc: vpcID, zone: zone, prefix: prefix, mapPublic: mapPublic, next: 4,
		used: map[netip.Addr]bool{},
	}
	s.subnets.put(sub.id, sub)
	s.changes.Announce()
	return sub, nil
}

func (s *Service) setMapPublic(caller iam.Caller, id string, mapPublic bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, err := s.subnet(id)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "ModifySubnetAttribute", on(sub.object)); err != nil {
		return err
	}
	sub.mapPublic = mapPublic
	return nil
}

func (s *Service) subnet(id string) (*subnet, error) {
	sub, ok := s.subnets.get(id)
	if !ok {
		return nil, fail("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	}
	return sub, nil
}

// available addresses. EC2 reserves the first four and the last of every subnet.
// https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
func (sub *subnet) available() int { return sub.size() - 5 - len(sub.used) }

func (sub *subnet) size() int { return 1 << (32 - sub.prefix.Bits()) }

func (sub *subnet) take() (netip.Addr, error) {
	if sub.available() <= 0 {
		return netip.Addr{}, fail("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s' "+
			"to satisfy the requested number of instances.", sub.id)
	}
	hosts := sub.size() - 5
	base := sub.prefix.Addr().As4()
	for {
		host := 4 + (sub.next-4)%hosts
		sub.next = host + 1
		b := base
		b[2] += byte(host >> 8)
		b[3] += byte(host)
		if addr := netip.AddrFrom4(b); !sub.used[addr] {
			sub.used[addr] = true
			return addr, nil
		}
	}
}

func (s *Service) deleteSubnet(caller iam.Caller, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, err := s.subnet(id)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "DeleteSubnet", on(sub.object)); err != nil {
		return err
	}
	for _, i := range s.interfaces.all() {
		if i.subnet == id {
			return dependency("subnet", id)
		}
	}
	// The route table association is deleted with the subnet.
	for _, r := range s.routes.all() {
		r.associations = slices.DeleteFunc(r.associations, func(a association) bool { return a.subnet == id })
	}
	s.subnets.delete(id)
	s.changes.Announce()
	return nil
}

// networkInterface is an address in a subnet that belongs to an instance, a NAT gateway, an endpoint or a service.
type networkInterface struct {
	object
	vpc, subnet, zone   string
	address             netip.Addr
	groups              []string
	description, owner  string // owner is the instance or the service that requested it
	typ                 string
	deleteOnTermination bool
}

// newInterface allocates an address. The caller holds the lock.
func (s *Service) newInterface(sub *subnet, groups []string, typ, description, owner string, tags map[string]string) (*networkInterface,
	error) {
	for _, id := range groups {
		if g, ok := s.groups.get(id); !ok {
			return nil, fail("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		} else if g.vpc != sub.vpc {
			return nil, fail("InvalidGroup.NotFound", "You have specified two resources that belong to different networks.")
		}
	}
	address, err := sub.take()
	if err != nil {
		return nil, err
	}
	i := &networkInterface{
		object: s.newObject("network-interface", "eni", tags), vpc: sub.vpc, subnet: sub.id, zone: sub.zone, address: address, groups: groups,
		typ: typ, description: description, owner: owner,
	}
	s.interfaces.put(i.id, i)
	return i, nil
}

// freeInterface releases the address. The caller holds the lock.
func (s *Service) freeInterface(id string) {
	if i, ok := s.interfaces.get(id); ok {
		if sub, ok := s.subnets.get(i.subnet); ok {
			delete(sub.used, i.address)
		}
		s.interfaces.delete(id)
		s.changes.Announce()
	}
}

// CreateNetworkInterface creates an interface for another service, such as those of an EKS control plane. Until it is deleted, its subnet
// and security groups cannot be deleted.
func (s *Service) CreateNetworkInterface(subnetID string, groups []string, description, requester string, tags map[string]string) (string,
	error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, err := s.subnet(subnetID)
	if err != nil {
		return "", err
	}
	i, err := s.newInterface(sub, groups, "interface", description, requester, tags)
	if err != nil {
		return "", err
	}
	s.changes.Announce()
	return i.id, nil
}

// DeleteNetworkInterface deletes an interface of CreateNetworkInterface. An absent interface is no error.
func (s *Service) DeleteNetworkInterface(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeInterface(id)
}

// Subnet is the view of a subnet for other services.
type Subnet struct {
	ID, VPCID, Zone  string
	CIDR             netip.Prefix
	AvailableAddress int
	Tags             map[string]string
}

// Subnets returns subnets by ID, in that order, or the error of DescribeSubnets.
func (s *Service) Subnets(ids ...string) ([]Subnet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Subnet
	for _, id := range ids {
		sub, err := s.subnet(id)
		if err != nil {
			return nil, err
		}
		found = append(found, Subnet{sub.id, sub.vpc, sub.zone, sub.prefix, sub.available(), clone(sub.tags)})
	}
	return found, nil
}
