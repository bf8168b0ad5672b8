package ec2

// The CloudFormation resource types of VPCs, subnets, gateways and routes.

import (
	"context"
	"fmt"
	"strings"

	"github.com/drover-run/drover/local/engine/resource"
)

func (s *Service) vpcProvider() provider {
	type properties struct {
		CidrBlock, InstanceTenancy           string
		EnableDnsSupport, EnableDnsHostnames *bool
		Tags                                 []resource.Tag
	}
	read := func(id string) (resource.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		v, err := s.vpc(id)
		if err != nil {
			return resource.Result{}, err
		}
		var associations []string
		for _, r := range v.ranges {
			associations = append(associations, r.id)
		}
		return resource.Result{PhysicalID: id, Attributes: map[string]any{
			"VpcId": id, "CidrBlock": v.ranges[0].prefix.String(), "CidrBlockAssociations": anyStrings(associations),
			"DefaultSecurityGroup": v.defaultGroupID,
		}}, nil
	}
	return provider{
		schema: schema("CidrBlock! InstanceTenancy! EnableDnsSupport EnableDnsHostnames Tags", "CidrBlock",
			"VpcId CidrBlock CidrBlockAssociations DefaultSecurityGroup"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{}, err
			}
			if err := s.mayRead(r.Caller, "DescribeVpcs"); err != nil {
				return resource.Result{}, err
			}
			tags := tagsOf(r, p.Tags)
			v, err := s.createVPC(r.Caller, p.CidrBlock, p.InstanceTenancy, true, false, tags)
			if err != nil {
				return resource.Result{}, err
			}
			s.keepTags(v.id, tags)
			if p.EnableDnsSupport != nil || p.EnableDnsHostnames != nil {
				if err := s.setDNS(r.Caller, v.id, p.EnableDnsSupport, p.EnableDnsHostnames); err != nil {
					return resource.Result{PhysicalID: v.id}, err
				}
			}
			return read(v.id)
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			support, hostnames := p.EnableDnsSupport == nil || *p.EnableDnsSupport, p.EnableDnsHostnames != nil && *p.EnableDnsHostnames
			if err := s.setDNS(r.Caller, r.PhysicalID, &support, &hostnames); err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			return s.updateTags(ctx, r, read)
		},
		delete: func(ctx context.Context, r resource.Request) error { return s.deleteVPC(r.Caller, r.PhysicalID) },
	}
}

func (s *Service) vpcCIDRBlockProvider() provider {
	type properties struct{ VpcId, CidrBlock string }
	result := func(id string) resource.Result {
		return resource.Result{PhysicalID: id, Attributes: map[string]any{"Id": id}}
	}
	return provider{
		schema: schema("VpcId! CidrBlock!", "VpcId CidrBlock", "Id"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{}, err
			}
			if err := s.mayRead(r.Caller, "DescribeVpcs"); err != nil {
				return resource.Result{}, err
			}
			added, err := s.addRange(r.Caller, p.VpcId, p.CidrBlock)
			return result(added.id), err
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			return result(r.PhysicalID), nil
		},
		delete: func(ctx context.Context, r resource.Request) error {
			var p properties
			if err := decode(r, &p); err != nil {
				return err
			}
			return s.removeRange(r.Caller, p.VpcId, r.PhysicalID)
		},
	}
}

func (s *Service) subnetProvider() provider {
	type properties struct {
		VpcId, CidrBlock, AvailabilityZone string
		MapPublicIpOnLaunch                *bool
		Tags                               []resource.Tag
	}
	read := func(id string) (resource.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		sub, err := s.subnet(id)
		if err != nil {
			return resource.Result{}, err
		}
		return resource.Result{PhysicalID: id, Attributes: map[string]any{
			"SubnetId": id, "VpcId": sub.vpc, "AvailabilityZone": sub.zone, "AvailabilityZoneId": s.zoneID(sub.zone),
			"CidrBlock": sub.prefix.String(),
		}}, nil
	}
	return provider{
		schema: schema("VpcId! CidrBlock! AvailabilityZone! MapPublicIpOnLaunch Tags", "VpcId CidrBlock",
			"SubnetId VpcId AvailabilityZone AvailabilityZoneId CidrBlock"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{}, err
			}
			if err := s.mayRead(r.Caller, "DescribeSubnets"); err != nil {
				return resource.Result{}, err
			}
			tags := tagsOf(r, p.Tags)
			sub, err := s.createSubnet(r.Caller, p.VpcId, p.CidrBlock, p.AvailabilityZone, false, tags)
			if err != nil {
				return resource.Result{}, err
			}
			s.keepTags(sub.id, tags)
			if p.MapPublicIpOnLaunch != nil && *p.MapPublicIpOnLaunch {
				if err := s.setMapPublic(r.Caller, sub.id, true); err != nil {
					return resource.Result{PhysicalID: sub.id}, err
				}
			}
			return read(sub.id)
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			if err := s.setMapPublic(r.Caller, r.PhysicalID, p.MapPublicIpOnLaunch != nil && *p.MapPublicIpOnLaunch); err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			return s.updateTags(ctx, r, read)
		},
		delete: func(ctx context.Context, r resource.Request) error { return s.deleteSubnet(r.Caller, r.PhysicalID) },
	}
}

func (s *Service) internetGatewayProvider() provider {
	read := func(id string) (resource.Result, error) {
		return resource.Result{PhysicalID: id, Attributes: map[string]any{"InternetGatewayId": id}}, nil
	}
	return provider{
		schema: schema("Tags", "", "InternetGatewayId"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p struct{ Tags []resource.Tag }
			if err := decode(r, &p); err != nil {
				return resource.Result{}, err
			}
			if err := s.mayRead(r.Caller, "DescribeInternetGateways"); err != nil {
				return resource.Result{}, err
			}
			tags := tagsOf(r, p.Tags)
			g, err := s.createGateway(r.Caller, tags)
			if err != nil {
				return resource.Result{}, err
			}
			s.keepTags(g.id, tags)
			return read(g.id)
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			return s.updateTags(ctx, r, read)
		},
		delete: func(ctx context.Context, r resource.Request) error { return s.deleteGateway(r.Caller, r.PhysicalID) },
	}
}

func (s *Service) gatewayAttachmentProvider() provider {
	type properties struct{ VpcId, InternetGatewayId string }
	attach := func(r resource.Request) (resource.Result, error) {
		var p properties
		if err := decode(r, &p); err != nil {
			return resource.Result{}, err
		}
		id := "IGW|" + p.VpcId
		if err := s.attachGateway(r.Caller, p.InternetGatewayId, p.VpcId); err != nil {
			return resource.Result{}, err
		}
		return resource.Result{PhysicalID: id, Attributes: map[string]any{"AttachmentType": "IGW"}}, nil
	}
	return provider{
		schema: schema("VpcId! InternetGatewayId", "VpcId InternetGatewayId", "AttachmentType"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			if err := s.mayRead(r.Caller, "DescribeInternetGateways"); err != nil {
				return resource.Result{}, err
			}
			return attach(r)
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			old, vpcID := r.Old["InternetGatewayId"], strings.TrimPrefix(r.PhysicalID, "IGW|")
			if old != r.Properties["InternetGatewayId"] {
				if err := s.detachGateway(r.Caller, fmt.Sprint(old), vpcID); err != nil {
					return resource.Result{PhysicalID: r.PhysicalID}, err
				}
				return attach(r)
			}
			return resource.Result{PhysicalID: r.PhysicalID, Attributes: map[string]any{"AttachmentType": "IGW"}}, nil
		},
		delete: func(ctx context.Context, r resource.Request) error {
			var p properties
			if err := decode(r, &p); err != nil {
				return err
			}
			return s.detachGateway(r.Caller, p.InternetGatewayId, p.VpcId)
		},
	}
}

// addressProvider: Ref and the physical ID of an EIP are its public address.
func (s *Service) addressProvider() provider {
	type properties struct {
		Domain string
		Tags   []resource.Tag
	}
	allocation := func(public string) (string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, a := range s.addresses.all() {
			if a.public.String() == public {
				return a.id, nil
			}
		}
		return "", fail("InvalidAddress.NotFound", "Address '%s' not found.", public)
	}
	read := func(id string) (resource.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		a, err := s.elastic(id)
		if err != nil {
			return resource.Result{}, err
		}
		public := a.public.String()
		return resource.Result{PhysicalID: public, Attributes: map[string]any{"AllocationId": id, "PublicIp": public}}, nil
	}
	return provider{
		schema: schema("Domain Tags", "", "AllocationId PublicIp"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{}, err
			}
			if err := s.mayRead(r.Caller, "DescribeAddresses"); err != nil {
				return resource.Result{}, err
			}
			tags := tagsOf(r, p.Tags)
			a, err := s.allocateAddress(r.Caller, p.Domain, tags)
			if err != nil {
				return resource.Result{}, err
			}
			s.keepTags(a.id, tags)
			return read(a.id)
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			id, err := allocation(r.PhysicalID)
			if err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			r.PhysicalID = id
			return s.updateTags(ctx, r, read)
		},
		delete: func(ctx context.Context, r resource.Request) error {
			id, err := allocation(r.PhysicalID)
			if err != nil {
				return err
			}
			return s.releaseAddress(r.Caller, id)
		},
	}
}

func (s *Service) natGatewayProvider() provider {
	type properties struct {
		SubnetId, AllocationId, ConnectivityType string
		Tags                                     []resource.Tag
	}
	read := func(id string) (resource.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		n, err := s.nat(id)
		if err != nil {
			return resource.Result{}, err
		}
		return resource.Result{PhysicalID: id, Attributes: map[string]any{"NatGatewayId": id, "EniId": n.nic}}, nil
	}
	return provider{
		schema: schema("SubnetId! AllocationId! ConnectivityType! Tags", "SubnetId", "NatGatewayId EniId"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{}, err
			}
			if err := s.mayRead(r.Caller, "DescribeNatGateways"); err != nil {
				return resource.Result{}, err
			}
			tags := tagsOf(r, p.Tags)
			n, err := s.createNAT(r.Caller, p.SubnetId, p.AllocationId, p.ConnectivityType, tags)
			if err != nil {
				return resource.Result{}, err
			}
			s.keepTags(n.id, tags)
			if err := s.awaitNAT(ctx, n.id, "available"); err != nil {
				return resource.Result{PhysicalID: n.id}, err
			}
			return read(n.id)
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			return s.updateTags(ctx, r, read)
		},
		delete: func(ctx context.Context, r resource.Request) error {
			if err := s.deleteNAT(r.Caller, r.PhysicalID); err != nil {
				return err
			}
			return s.awaitNAT(ctx, r.PhysicalID, "deleted")
		},
	}
}

func (s *Service) routeTableProvider() provider {
	read := func(id string) (resource.Result, error) {
		return resource.Result{PhysicalID: id, Attributes: map[string]any{"RouteTableId": id}}, nil
	}
	return provider{
		schema: schema("VpcId! Tags", "VpcId", "RouteTableId"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p struct {
				VpcId string
				Tags  []resource.Tag
			}
			if err := decode(r, &p); err != nil {
				return resource.Result{}, err
			}
			if err := s.mayRead(r.Caller, "DescribeRouteTables"); err != nil {
				return resource.Result{}, err
			}
			tags := tagsOf(r, p.Tags)
			table, err := s.createRouteTable(r.Caller, p.VpcId, tags)
			if err != nil {
				return resource.Result{}, err
			}
			s.keepTags(table.id, tags)
			return read(table.id)
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			return s.updateTags(ctx, r, read)
		},
		delete: func(ctx context.Context, r resource.Request) error { return s.deleteRouteTable(r.Caller, r.PhysicalID) },
	}
}

func (s *Service) routeProvider() provider {
	type properties struct{ RouteTableId, DestinationCidrBlock, GatewayId, NatGatewayId string }
	put := func(r resource.Request, replace bool) (resource.Result, error) {
		var p properties
		if err := decode(r, &p); err != nil {
			return resource.Result{PhysicalID: r.PhysicalID}, err
		}
		if err := s.mayRead(r.Caller, "DescribeRouteTables"); err != nil {
			return resource.Result{PhysicalID: r.PhysicalID}, err
		}
		if err := s.putRoute(r.Caller, p.RouteTableId, p.DestinationCidrBlock, p.GatewayId, p.NatGatewayId, replace); err != nil {
			return resource.Result{PhysicalID: r.PhysicalID}, err
		}
		return resource.Result{
			PhysicalID: p.RouteTableId + "|" + p.DestinationCidrBlock, Attributes: map[string]any{"CidrBlock": p.DestinationCidrBlock},
		}, nil
	}
	return provider{
		schema: schema("RouteTableId! DestinationCidrBlock! GatewayId NatGatewayId", "RouteTableId DestinationCidrBlock", "CidrBlock"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) { return put(r, false) },
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) { return put(r, true) },
		delete: func(ctx context.Context, r resource.Request) error {
			table, destination, _ := strings.Cut(r.PhysicalID, "|")
			return s.deleteRoute(r.Caller, table, destination)
		},
	}
}

func (s *Service) associationProvider() provider {
	result := func(id string) resource.Result {
		return resource.Result{PhysicalID: id, Attributes: map[string]any{"Id": id}}
	}
	return provider{
		schema: schema("RouteTableId! SubnetId!", "RouteTableId SubnetId", "Id"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p struct{ RouteTableId, SubnetId string }
			if err := decode(r, &p); err != nil {
				return resource.Result{}, err
			}
			if err := s.mayRead(r.Caller, "DescribeSubnets", "DescribeRouteTables"); err != nil {
				return resource.Result{}, err
			}
			id, err := s.associateRouteTable(r.Caller, p.RouteTableId, p.SubnetId)
			return result(id), err
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			return result(r.PhysicalID), nil
		},
		delete: func(ctx context.Context, r resource.Request) error {
			return s.disassociateRouteTable(r.Caller, r.PhysicalID)
		},
	}
}
