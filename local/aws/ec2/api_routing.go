package ec2

// The API of gateways, routes and network interfaces.

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/drover-run/drover/local/engine/wire"
)

func (s *Service) describeRouteTables(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		RouteTableId []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	notFound := func(id string) error { _, err := s.routeTable(id); return err }
	found, err := selected(s.routes.all(), in.RouteTableId, in.Filter, notFound, func(r *routeTable) values {
		var subnets []string
		for _, a := range r.associations {
			subnets = append(subnets, a.subnet)
		}
		return fixed(map[string][]string{
			"route-table-id": {r.id}, "vpc-id": {r.vpc}, "association.subnet-id": subnets, "association.main": {strconv.FormatBool(r.main != "")},
		})
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	type associationItem struct {
		RouteTableAssociationId, RouteTableId string
		SubnetId                              string `xml:",omitempty"`
		Main                                  bool
	}
	type routeItem struct {
		DestinationCidrBlock    string `xml:",omitempty"`
		DestinationPrefixListId string `xml:",omitempty"`
		GatewayId               string `xml:",omitempty"`
		NatGatewayId            string `xml:",omitempty"`
		State, Origin           string
	}
	type item struct {
		RouteTableId, VpcId, OwnerId string
		AssociationSet               []associationItem
		RouteSet                     []routeItem
		TagSet                       []tagItem
	}
	out := struct {
		RouteTableSet []item
		NextToken     string `xml:",omitempty"`
	}{NextToken: next}
	for _, r := range list {
		x := item{RouteTableId: r.id, VpcId: r.vpc, OwnerId: s.config.Account, TagSet: tagSet(r.tags)}
		if r.main != "" {
			x.AssociationSet = append(x.AssociationSet, associationItem{r.main, r.id, "", true})
		}
		for _, a := range r.associations {
			x.AssociationSet = append(x.AssociationSet, associationItem{a.id, r.id, a.subnet, false})
		}
		if v, ok := s.vpcs.get(r.vpc); ok {
			for _, block := range v.ranges {
				x.RouteSet = append(x.RouteSet, routeItem{
					DestinationCidrBlock: block.prefix.String(), GatewayId: "local", State: "active", Origin: "CreateRouteTable",
				})
			}
		}
		for _, to := range r.routes {
			x.RouteSet = append(x.RouteSet, routeItem{
				DestinationCidrBlock: to.destination.String(), GatewayId: to.gateway, NatGatewayId: to.nat, State: s.routeState(to),
				Origin: "CreateRoute",
			})
		}
		out.RouteTableSet = append(out.RouteTableSet, x)
	}
	return out, nil
}

// routeState returns blackhole for a route whose target does not exist.
func (s *Service) routeState(r route) string {
	if g, ok := s.gateways.get(r.gateway); ok && g.vpc != "" {
		return "active"
	}
	if n, ok := s.nats.get(r.nat); ok && n.state != "deleting" && n.state != "deleted" {
		return "active"
	}
	return "blackhole"
}

func (s *Service) describeGateways(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		InternetGatewayId []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	notFound := func(id string) error { _, err := s.gateway(id); return err }
	found, err := selected(s.gateways.all(), in.InternetGatewayId, in.Filter, notFound, func(g *internetGateway) values {
		return fixed(map[string][]string{
			"internet-gateway-id": {g.id}, "attachment.vpc-id": {g.vpc}, "owner-id": {s.config.Account},
		})
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	type attachment struct{ VpcId, State string }
	type item struct {
		InternetGatewayId, OwnerId string
		AttachmentSet              []attachment
		TagSet                     []tagItem
	}
	out := struct {
		InternetGatewaySet []item
		NextToken          string `xml:",omitempty"`
	}{NextToken: next}
	for _, g := range list {
		x := item{InternetGatewayId: g.id, OwnerId: s.config.Account, TagSet: tagSet(g.tags)}
		if g.vpc != "" {
			x.AttachmentSet = []attachment{{g.vpc, "available"}}
		}
		out.InternetGatewaySet = append(out.InternetGatewaySet, x)
	}
	return out, nil
}

func (s *Service) describeNATs(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		NatGatewayId []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	notFound := func(id string) error { _, err := s.nat(id); return err }
	found, err := selected(s.nats.all(), in.NatGatewayId, in.Filter, notFound, func(n *natGateway) values {
		return fixed(map[string][]string{"nat-gateway-id": {n.id}, "vpc-id": {n.vpc}, "subnet-id": {n.subnet}, "state": {n.state}})
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	type addressItem struct{ AllocationId, NetworkInterfaceId, PrivateIp, PublicIp string }
	type item struct {
		NatGatewayId, VpcId, SubnetId, State, ConnectivityType string
		NatGatewayAddressSet                                   []addressItem
		TagSet                                                 []tagItem
	}
	out := struct {
		NatGatewaySet []item
		NextToken     string `xml:",omitempty"`
	}{NextToken: next}
	for _, n := range list {
		x := item{n.id, n.vpc, n.subnet, n.state, n.connectivity, nil, tagSet(n.tags)}
		a := addressItem{AllocationId: n.allocation, NetworkInterfaceId: n.nic}
		if e, ok := s.addresses.get(n.allocation); ok {
			a.PublicIp = e.public.String()
		}
		if nic, ok := s.interfaces.get(n.nic); ok {
			a.PrivateIp = nic.address.String()
		}
		x.NatGatewayAddressSet = []addressItem{a}
		out.NatGatewaySet = append(out.NatGatewaySet, x)
	}
	return out, nil
}

func (s *Service) describeAddresses(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		AllocationId, PublicIp []string
		Filter                 []filter
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(in.PublicIp) > 0 {
		in.Filter = append(in.Filter, filter{"public-ip", in.PublicIp})
	}
	notFound := func(id string) error { _, err := s.elastic(id); return err }
	found, err := selected(s.addresses.all(), in.AllocationId, in.Filter, notFound, func(a *address) values {
		return fixed(map[string][]string{
			"allocation-id": {a.id}, "public-ip": {a.public.String()}, "domain": {"vpc"}, "network-interface-id": {a.holder},
		})
	})
	if err != nil {
		return nil, err
	}
	type item struct {
		PublicIp, AllocationId, Domain string
		NetworkInterfaceId             string `xml:",omitempty"`
		TagSet                         []tagItem
	}
	var out struct{ AddressesSet []item }
	for _, a := range found {
		out.AddressesSet = append(out.AddressesSet, item{a.public.String(), a.id, "vpc", a.holder, tagSet(a.tags)})
	}
	return out, nil
}

func (s *Service) describeEndpoints(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		VpcEndpointId []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	notFound := func(id string) error { _, err := s.endpoint(id); return err }
	found, err := selected(s.endpoints.all(), in.VpcEndpointId, in.Filter, notFound, func(e *endpoint) values {
		return fixed(map[string][]string{
			"vpc-endpoint-id": {e.id}, "vpc-id": {e.vpc}, "service-name": {e.service}, "vpc-endpoint-type": {e.typ}, "vpc-endpoint-state": {e.state},
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
		VpcEndpointId, VpcEndpointType, VpcId, ServiceName, State, OwnerId string
		PolicyDocument                                                     string `xml:",omitempty"`
		RouteTableIdSet, SubnetIdSet, NetworkInterfaceIdSet                []string
		GroupSet                                                           []groupItem
		PrivateDnsEnabled                                                  bool
		TagSet                                                             []tagItem
	}
	out := struct {
		VpcEndpointSet []item
		NextToken      string `xml:",omitempty"`
	}{NextToken: next}
	for _, e := range list {
		x := item{e.id, e.typ, e.vpc, e.service, e.state, s.config.Account, e.policy, e.routeTables, e.subnets, e.nics, nil, e.privateDNS,
			tagSet(e.tags)}
		for _, id := range e.groups {
			if g, ok := s.groups.get(id); ok {
				x.GroupSet = append(x.GroupSet, groupItem{id, g.name})
			}
		}
		out.VpcEndpointSet = append(out.VpcEndpointSet, x)
	}
	return out, nil
}

func (s *Service) describeInterfaces(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		NetworkInterfaceId []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	notFound := func(id string) error {
		return fail("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '%s' does not exist", id)
	}
	found, err := selected(s.interfaces.all(), in.NetworkInterfaceId, in.Filter, notFound, func(i *networkInterface) values {
		return fixed(map[string][]string{
			"network-interface-id": {i.id}, "vpc-id": {i.vpc}, "subnet-id": {i.subnet}, "group-id": i.groups, "description": {i.description},
			"interface-type": {i.typ}, "status": {"in-use"}, "attachment.instance-id": {i.owner}, "requester-id": {i.owner},
			"availability-zone":            {i.zone},
			"private-ip-address":           {i.address.String()},
			"attachment.instance-owner-id": i.attachedBy(),
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
		NetworkInterfaceId, SubnetId, VpcId, AvailabilityZone, Description string
		OwnerId, Status, InterfaceType, PrivateIpAddress, RequesterId      string
		RequesterManaged                                                   bool                 `xml:",omitempty"`
		Attachment                                                         *interfaceAttachment `xml:",omitempty"`
		GroupSet                                                           []groupItem
		TagSet                                                             []tagItem
	}
	out := struct {
		NetworkInterfaceSet []item
		NextToken           string `xml:",omitempty"`
	}{NextToken: next}
	for _, i := range list {
		x := item{NetworkInterfaceId: i.id, SubnetId: i.subnet, VpcId: i.vpc, AvailabilityZone: i.zone, Description: i.description,
			OwnerId: s.config.Account, Status: "in-use", InterfaceType: i.typ, PrivateIpAddress: i.address.String(),
			RequesterId: cmp.Or(i.owner, s.config.Account), TagSet: tagSet(i.tags)}
		if i.typ == functionInterface {
			x.RequesterManaged = true
			x.Attachment = &interfaceAttachment{"ela-attach-" + strings.TrimPrefix(i.id, "eni-"), "amazon-aws", "attached"}
		}
		for _, id := range i.groups {
			if g, ok := s.groups.get(id); ok {
				x.GroupSet = append(x.GroupSet, groupItem{id, g.name})
			}
		}
		out.NetworkInterfaceSet = append(out.NetworkInterfaceSet, x)
	}
	return out, nil
}
