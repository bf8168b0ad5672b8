package ec2

// The API of networks: the Describe calls, and the calls for users who create their own network.

import (
	"context"
	"strconv"

	"github.com/drover-run/drover/local/engine/wire"
)

func (s *Service) networkOperations() map[string]wire.Operation {
	return map[string]wire.Operation{
		"CreateVpc":                 s.apiCreateVPC,
		"DeleteVpc":                 s.apiDeleteVPC,
		"ModifyVpcAttribute":        s.apiModifyVPCAttribute,
		"DescribeVpcs":              s.describeVPCs,
		"DescribeVpcAttribute":      s.describeVPCAttribute,
		"CreateSubnet":              s.apiCreateSubnet,
		"DeleteSubnet":              s.apiDeleteSubnet,
		"DescribeSubnets":           s.describeSubnets,
		"CreateSecurityGroup":       s.apiCreateGroup,
		"DeleteSecurityGroup":       s.apiDeleteGroup,
		"DescribeSecurityGroups":    s.describeGroups,
		"DescribeRouteTables":       s.describeRouteTables,
		"DescribeInternetGateways":  s.describeGateways,
		"DescribeNatGateways":       s.describeNATs,
		"DescribeAddresses":         s.describeAddresses,
		"DescribeVpcEndpoints":      s.describeEndpoints,
		"DescribeNetworkInterfaces": s.describeInterfaces,
		"CreateNetworkInterface":    s.apiCreateInterface,
		"DeleteNetworkInterface":    s.apiDeleteInterface,
	}
}

type cidrItem struct {
	AssociationId, CidrBlock string
	CidrBlockState           struct{ State string }
}

type vpcItem struct {
	VpcId, OwnerId, State, CidrBlock, InstanceTenancy string
	IsDefault                                         bool
	CidrBlockAssociationSet                           []cidrItem
	TagSet                                            []tagItem
}

func (s *Service) vpcItem(v *vpc) vpcItem {
	item := vpcItem{
		VpcId: v.id, OwnerId: s.config.Account, State: "available", CidrBlock: v.ranges[0].prefix.String(), InstanceTenancy: v.tenancy,
		TagSet: tagSet(v.tags),
	}
	for _, r := range v.ranges {
		c := cidrItem{AssociationId: r.id, CidrBlock: r.prefix.String()}
		c.CidrBlockState.State = "associated"
		item.CidrBlockAssociationSet = append(item.CidrBlockAssociationSet, c)
	}
	return item
}

func (s *Service) apiCreateVPC(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		CidrBlock, InstanceTenancy string
		TagSpecification           []tagSpecification
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	tags, err := specified(in.TagSpecification, "vpc")
	if err != nil {
		return nil, err
	}
	c.Resource = s.arn("vpc", "*")
	v, err := s.createVPC(c.Caller, in.CidrBlock, in.InstanceTenancy, true, false, tags)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return struct{ Vpc vpcItem }{s.vpcItem(v)}, nil
}

func (s *Service) apiDeleteVPC(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		VpcId string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.arn("vpc", in.VpcId)
	return returned{true}, s.deleteVPC(c.Caller, in.VpcId)
}

type boolValue struct{ Value *bool }

func (s *Service) apiModifyVPCAttribute(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		VpcId                                string
		EnableDnsSupport, EnableDnsHostnames boolValue
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.arn("vpc", in.VpcId)
	return returned{true}, s.setDNS(c.Caller, in.VpcId, in.EnableDnsSupport.Value, in.EnableDnsHostnames.Value)
}

func (s *Service) describeVPCs(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		VpcId []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	notFound := func(id string) error { _, err := s.vpc(id); return err }
	found, err := selected(s.vpcs.all(), in.VpcId, in.Filter, notFound, func(v *vpc) values {
		var ranges []string
		for _, r := range v.ranges {
			ranges = append(ranges, r.prefix.String())
		}
		return fixed(map[string][]string{
			"vpc-id": {v.id}, "cidr": ranges[:1], "cidr-block-association.cidr-block": ranges, "state": {"available"}, "is-default": {"false"},
			"owner-id": {s.config.Account},
		})
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	out := struct {
		VpcSet    []vpcItem
		NextToken string `xml:",omitempty"`
	}{NextToken: next}
	for _, v := range list {
		out.VpcSet = append(out.VpcSet, s.vpcItem(v))
	}
	return out, nil
}

func (s *Service) describeVPCAttribute(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		VpcId, Attribute string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.vpc(in.VpcId)
	if err != nil {
		return nil, err
	}
	c.Resource = s.arn("vpc", v.id)
	if err := s.allow(c.Caller, "DescribeVpcAttribute", on(v.object)); err != nil {
		return nil, err
	}
	out := struct {
		VpcId                                string
		EnableDnsSupport, EnableDnsHostnames *boolValue
	}{VpcId: v.id}
	switch in.Attribute {
	case "enableDnsSupport":
		out.EnableDnsSupport = &boolValue{&v.dnsSupport}
	case "enableDnsHostnames":
		out.EnableDnsHostnames = &boolValue{&v.dnsHostnames}
	default:
		return nil, fail("InvalidParameterValue", "Value (%s) for parameter attribute is invalid.", in.Attribute)
	}
	return out, nil
}

type subnetItem struct {
	SubnetId, SubnetArn, VpcId, OwnerId, State, CidrBlock, AvailabilityZone, AvailabilityZoneId string
	AvailableIpAddressCount                                                                     int
	DefaultForAz, MapPublicIpOnLaunch                                                           bool
	TagSet                                                                                      []tagItem
}

func (s *Service) subnetItem(sub *subnet) subnetItem {
	return subnetItem{
		SubnetId: sub.id, SubnetArn: s.arn("subnet", sub.id), VpcId: sub.vpc, OwnerId: s.config.Account, State: "available",
		CidrBlock:        sub.prefix.String(),
		AvailabilityZone: sub.zone, AvailabilityZoneId: s.zoneID(sub.zone), AvailableIpAddressCount: sub.available(),
		MapPublicIpOnLaunch: sub.mapPublic, TagSet: tagSet(sub.tags),
	}
}

func (s *Service) apiCreateSubnet(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		VpcId, CidrBlock, AvailabilityZone string
		TagSpecification                   []tagSpecification
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	tags, err := specified(in.TagSpecification, "subnet")
	if err != nil {
		return nil, err
	}
	c.Resource = s.arn("subnet", "*")
	sub, err := s.createSubnet(c.Caller, in.VpcId, in.CidrBlock, in.AvailabilityZone, false, tags)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return struct{ Subnet subnetItem }{s.subnetItem(sub)}, nil
}

func (s *Service) apiDeleteSubnet(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		SubnetId string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.arn("subnet", in.SubnetId)
	return returned{true}, s.deleteSubnet(c.Caller, in.SubnetId)
}

func (s *Service) describeSubnets(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		SubnetId []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	notFound := func(id string) error { _, err := s.subnet(id); return err }
	found, err := selected(s.subnets.all(), in.SubnetId, in.Filter, notFound, func(sub *subnet) values {
		return fixed(map[string][]string{
			"subnet-id": {sub.id}, "vpc-id": {sub.vpc}, "availability-zone": {sub.zone}, "availability-zone-id": {s.zoneID(sub.zone)},
			"cidr-block": {sub.prefix.String()},
			"cidr":       {sub.prefix.String()}, "state": {"available"}, "map-public-ip-on-launch": {strconv.FormatBool(sub.mapPublic)},
			"owner-id": {s.config.Account},
		})
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	out := struct {
		SubnetSet []subnetItem
		NextToken string `xml:",omitempty"`
	}{NextToken: next}
	for _, sub := range list {
		out.SubnetSet = append(out.SubnetSet, s.subnetItem(sub))
	}
	return out, nil
}

func (s *Service) apiCreateGroup(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		VpcId, GroupName, GroupDescription string
		TagSpecification                   []tagSpecification
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	tags, err := specified(in.TagSpecification, "security-group")
	if err != nil {
		return nil, err
	}
	c.Resource = s.arn("security-group", "*")
	g, err := s.createGroup(c.Caller, in.VpcId, in.GroupName, in.GroupDescription, tags)
	if err != nil {
		return nil, err
	}
	return struct {
		Return           bool
		GroupId          string
		SecurityGroupArn string
		TagSet           []tagItem
	}{true, g.id, s.arn("security-group", g.id), tagSet(tags)}, nil
}

func (s *Service) apiDeleteGroup(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		GroupId string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.arn("security-group", in.GroupId)
	return returned{true}, s.deleteGroup(c.Caller, in.GroupId)
}

type permissionItem struct {
	IpProtocol       string
	FromPort, ToPort *int
	Groups           []struct{ GroupId, UserId string }
	IpRanges         []struct {
		CidrIp      string
		Description string `xml:",omitempty"`
	}
	Ipv6Ranges    []struct{ CidrIpv6 string }
	PrefixListIds []struct{ PrefixListId string }
}

func (s *Service) permissions(rules []rule) []permissionItem {
	var items []permissionItem
	for _, r := range rules {
		item := permissionItem{IpProtocol: r.protocol}
		if r.protocol != "-1" {
			item.FromPort, item.ToPort = &r.from, &r.to
		}
		switch {
		case r.group != "":
			item.Groups = []struct{ GroupId, UserId string }{{r.group, s.config.Account}}
		case r.cidr != "":
			item.IpRanges = []struct {
				CidrIp      string
				Description string `xml:",omitempty"`
			}{{r.cidr, r.description}}
		case r.cidr6 != "":
			item.Ipv6Ranges = []struct{ CidrIpv6 string }{{r.cidr6}}
		default:
			item.PrefixListIds = []struct{ PrefixListId string }{{r.prefixList}}
		}
		items = append(items, item)
	}
	return items
}

func (s *Service) describeGroups(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		GroupId, GroupName []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(in.GroupName) > 0 {
		in.Filter = append(in.Filter, filter{"group-name", in.GroupName})
	}
	notFound := func(id string) error { _, err := s.group(id); return err }
	found, err := selected(s.groups.all(), in.GroupId, in.Filter, notFound, func(g *securityGroup) values {
		return fixed(map[string][]string{
			"group-id": {g.id}, "group-name": {g.name}, "vpc-id": {g.vpc}, "description": {g.description}, "owner-id": {s.config.Account},
		})
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	type item struct {
		GroupId, GroupName, GroupDescription, VpcId, OwnerId, SecurityGroupArn string
		IpPermissions, IpPermissionsEgress                                     []permissionItem
		TagSet                                                                 []tagItem
	}
	out := struct {
		SecurityGroupInfo []item
		NextToken         string `xml:",omitempty"`
	}{NextToken: next}
	for _, g := range list {
		out.SecurityGroupInfo = append(out.SecurityGroupInfo, item{
			g.id, g.name, g.description, g.vpc, s.config.Account, s.arn("security-group", g.id), s.permissions(g.ingress), s.permissions(g.egress),
			tagSet(g.tags),
		})
	}
	return out, nil
}
