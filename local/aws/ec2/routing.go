package ec2

// Internet gateways, Elastic IP addresses, NAT gateways and route tables.

import (
	"context"
	"net/netip"
	"slices"

	"github.com/drover-run/drover/local/aws/iam"
)

type internetGateway struct {
	object
	vpc string // "" if detached
}

func (s *Service) createGateway(caller iam.Caller, tags map[string]string) (*internetGateway, error) {
	if err := s.allowMaking(caller, "CreateInternetGateway", "internet-gateway", tags); err != nil {
		return nil, err
	}
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if isReached(s.config.Quotas.InternetGateways, len(s.gateways.order)) {
		return nil, fail("InternetGatewayLimitExceeded", "The maximum number of internet gateways has been reached.")
	}
	g := &internetGateway{object: s.newObject("internet-gateway", "igw", tags)}
	s.gateways.put(g.id, g)
	s.changes.Announce()
	return g, nil
}

func (s *Service) gateway(id string) (*internetGateway, error) {
	g, ok := s.gateways.get(id)
	if !ok {
		return nil, fail("InvalidInternetGatewayID.NotFound", "The internetGateway ID '%s' does not exist", id)
	}
	return g, nil
}

func (s *Service) attachGateway(caller iam.Caller, id, vpcID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.gateway(id)
	if err != nil {
		return err
	}
	v, err := s.vpc(vpcID)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "AttachInternetGateway", on(g.object), on(v.object)); err != nil {
		return err
	}
	if g.vpc != "" {
		return fail("Resource.AlreadyAssociated", "resource %s is already attached to network %s", id, g.vpc)
	}
	for _, other := range s.gateways.all() {
		if other.vpc == vpcID {
			return fail("InvalidParameterValue", "Network %s already has an internet gateway attached", vpcID)
		}
	}
	g.vpc = vpcID
	s.changes.Announce()
	return nil
}

func (s *Service) detachGateway(caller iam.Caller, id, vpcID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.gateway(id)
	if err != nil {
		return err
	}
	v, err := s.vpc(vpcID)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "DetachInternetGateway", on(g.object), on(v.object)); err != nil {
		return err
	}
	if g.vpc != vpcID {
		return fail("Gateway.NotAttached", "resource %s is not attached to network %s", id, vpcID)
	}
	for _, i := range s.interfaces.all() {
		if i.vpc == vpcID && s.publicAddress(i) != "" {
			return fail("DependencyViolation", "Network %s has some mapped public address(es). "+
				"Please unmap those public address(es) before detaching the gateway.", vpcID)
		}
	}
	g.vpc = ""
	s.changes.Announce()
	return nil
}

func (s *Service) deleteGateway(caller iam.Caller, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.gateway(id)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "DeleteInternetGateway", on(g.object)); err != nil {
		return err
	}
	if g.vpc != "" {
		return dependency("internetGateway", id)
	}
	s.gateways.delete(id)
	s.changes.Announce()
	return nil
}

// address is an Elastic IP address.
type address struct {
	object
	public netip.Addr
	// holder is the network interface it is associated with.
	holder string
}

// AddAddress allocates an address that no stack owns.
func (s *Service) AddAddress() (allocation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addAddress(nil).id
}

func (s *Service) allocateAddress(caller iam.Caller, domain string, tags map[string]string) (*address, error) {
	if err := s.allowMaking(caller, "AllocateAddress", "elastic-ip", tags); err != nil {
		return nil, err
	}
	if domain != "" && domain != "vpc" {
		return nil, fail("InvalidParameterValue", "Value (%s) for parameter domain is invalid.", domain)
	}
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if isReached(s.config.Quotas.Addresses, len(s.addresses.order)) {
		return nil, fail("AddressLimitExceeded", "The maximum number of addresses has been reached.")
	}
	return s.addAddress(tags), nil
}

func (s *Service) addAddress(tags map[string]string) *address {
	a := &address{object: s.newObject("elastic-ip", "eipalloc", tags)}
	// TEST-NET-2, https://www.rfc-editor.org/rfc/rfc5737: never a real host. The counter makes the address sufficiently unique.
	a.public = netip.AddrFrom4([4]byte{198, 51, 100, byte(s.counter)})
	for s.addressTaken(a.public) {
		a.public = a.public.Next()
	}
	s.addresses.put(a.id, a)
	s.changes.Announce()
	return a
}

func (s *Service) addressTaken(public netip.Addr) bool {
	return slices.ContainsFunc(s.addresses.all(), func(a *address) bool { return a.public == public })
}

func (s *Service) elastic(id string) (*address, error) {
	a, ok := s.addresses.get(id)
	if !ok {
		return nil, fail("InvalidAllocationID.NotFound", "The allocation ID '%s' does not exist", id)
	}
	return a, nil
}

func (s *Service) releaseAddress(caller iam.Caller, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.elastic(id)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "ReleaseAddress", on(a.object)); err != nil {
		return err
	}
	if a.holder != "" {
		return fail("InvalidIPAddress.InUse", "The allocation ID '%s' is in use.", id)
	}
	s.addresses.delete(id)
	s.changes.Announce()
	return nil
}

// publicAddress returns the Elastic IP address of an interface, or the one that its subnet gave to the instance.
func (s *Service) publicAddress(i *networkInterface) string {
	for _, a := range s.addresses.all() {
		if a.holder == i.id {
			return a.public.String()
		}
	}
	if machine, ok := s.instances.get(i.owner); ok {
		return machine.publicAddress
	}
	return ""
}

type natGateway struct {
	object
	vpc, subnet, allocation, nic string
	connectivity, state          string
}

// natsIn counts the NAT gateways of a zone that count toward the quota: those that are pending, available or being deleted.
func (s *Service) natsIn(zone string) (count int) {
	for _, n := range s.nats.all() {
		sub, ok := s.subnets.get(n.subnet)
		if ok && sub.zone == zone && n.state != "deleted" && n.state != "failed" {
			count++
		}
	}
	return count
}

// createNAT creates a NAT gateway, which is pending at first: see awaitNAT.
// https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-basics.html
func (s *Service) createNAT(caller iam.Caller, subnetID, allocationID, connectivity string, tags map[string]string) (*natGateway, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, err := s.subnet(subnetID)
	if err != nil {
		return nil, err
	}
	if connectivity == "" {
		connectivity = "public"
	}
	targets := []target{on(sub.object)}
	var a *address
	if connectivity == "public" {
		if a, err = s.elastic(allocationID); err != nil {
			return nil, err
		}
		targets = append(targets, on(a.object))
	} else if allocationID != "" {
		return nil, fail("InvalidParameter", "AllocationId is not allowed for a private NAT gateway")
	}
	if err := s.allowMaking(caller, "CreateNatGateway", "natgateway", tags, targets...); err != nil {
		return nil, err
	}
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	if a != nil {
		if a.holder != "" {
			return nil, fail("Resource.AlreadyAssociated", "Elastic IP address [%s] is already associated", allocationID)
		}
		attached := slices.ContainsFunc(s.gateways.all(), func(g *internetGateway) bool { return g.vpc == sub.vpc })
		if !attached {
			return nil, fail("Gateway.NotAttached", "Network %s has no Internet gateway attached", sub.vpc)
		}
	}
	if used := s.natsIn(sub.zone); isReached(s.config.Quotas.NATGateways, used) {
		return nil, fail("NatGatewayLimitExceeded", "Performing this operation would exceed the limit of %d NAT gateways", used)
	}
	n := &natGateway{
		object: s.newObject("natgateway", "nat", tags), vpc: sub.vpc, subnet: subnetID, allocation: allocationID, connectivity: connectivity,
		state: "pending",
	}
	nic, err := s.newInterface(sub, nil, "nat_gateway", "Interface for NAT Gateway "+n.id, "nat", nil)
	if err != nil {
		return nil, err
	}
	n.nic = nic.id
	if a != nil {
		a.holder = nic.id
	}
	s.nats.put(n.id, n)
	s.changes.Announce()
	s.background(func(ctx context.Context) {
		if s.config.Clock.Work(ctx, natGatewayWork) == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if n.state == "pending" {
				n.state = "available"
				s.changes.Announce()
			}
		}
	})
	return n, nil
}

func (s *Service) nat(id string) (*natGateway, error) {
	n, ok := s.nats.get(id)
	if !ok {
		return nil, fail("NatGatewayNotFound", "NAT gateway %s was not found", id)
	}
	return n, nil
}

func (s *Service) awaitNAT(ctx context.Context, id, state string) error {
	return s.await(ctx, func() (bool, error) {
		n, err := s.nat(id)
		return err == nil && n.state == state, err
	})
}

func (s *Service) deleteNAT(caller iam.Caller, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.nat(id)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "DeleteNatGateway", on(n.object)); err != nil {
		return err
	}
	if n.state == "deleting" || n.state == "deleted" {
		return nil
	}
	n.state = "deleting"
	s.changes.Announce()
	s.background(func(ctx context.Context) {
		if s.config.Clock.Work(ctx, natGatewayWork/2) != nil {
			return
		}
		s.mu.Lock()
		if a, ok := s.addresses.get(n.allocation); ok {
			a.holder = ""
		}
		s.freeInterface(n.nic)
		n.state = "deleted"
		s.changes.Announce()
		s.mu.Unlock()
		if s.config.Clock.Work(ctx, graveWork) == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.nats.delete(id)
		}
	})
	return nil
}

type routeTable struct {
	object
	vpc          string
	main         string // the association that makes it the VPC's main table
	associations []association
	routes       []route
}

type association struct{ id, subnet string }

// route to a destination through a gateway, a NAT gateway or a gateway endpoint.
type route struct {
	destination netip.Prefix
	gateway     string // igw-…
	nat         string // nat-…
}

func (s *Service) createRouteTable(caller iam.Caller, vpcID string, tags map[string]string) (*routeTable, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.vpc(vpcID)
	if err != nil {
		return nil, err
	}
	if err := s.allowMaking(caller, "CreateRouteTable", "route-table", tags, on(v.object)); err != nil {
		return nil, err
	}
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	r := &routeTable{object: s.newObject("route-table", "rtb", tags), vpc: vpcID}
	s.routes.put(r.id, r)
	s.changes.Announce()
	return r, nil
}

func (s *Service) routeTable(id string) (*routeTable, error) {
	r, ok := s.routes.get(id)
	if !ok {
		return nil, fail("InvalidRouteTableID.NotFound", "The routeTable ID '%s' does not exist", id)
	}
	return r, nil
}

func (s *Service) deleteRouteTable(caller iam.Caller, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.routeTable(id)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "DeleteRouteTable", on(r.object)); err != nil {
		return err
	}
	endpoint := slices.ContainsFunc(s.endpoints.all(), func(e *endpoint) bool { return slices.Contains(e.routeTables, id) })
	if r.main != "" || len(r.associations) > 0 || endpoint {
		return dependency("routeTable", id)
	}
	s.routes.delete(id)
	s.changes.Announce()
	return nil
}

// putRoute creates a route, or replaces the target of one.
func (s *Service) putRoute(caller iam.Caller, tableID, destination, gatewayID, natID string, replace bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	table, err := s.routeTable(tableID)
	if err != nil {
		return err
	}
	action := "CreateRoute"
	if replace {
		action = "ReplaceRoute"
	}
	if err := s.allow(caller, action, on(table.object)); err != nil {
		return err
	}
	prefix, err := netip.ParsePrefix(destination)
	if err != nil {
		return fail("InvalidParameterValue", "Value (%s) for parameter destinationCidrBlock is invalid. This is not a valid CIDR block.",
			destination)
	}
	switch {
	case (gatewayID == "") == (natID == ""):
		return fail("InvalidParameterCombination", "The parameters gatewayId and natGatewayId: exactly one is needed here")
	case gatewayID != "":
		g, err := s.gateway(gatewayID)
		if err != nil {
			return err
		}
		if g.vpc != table.vpc {
			return fail("InvalidParameterValue", "route table %s and network gateway %s belong to different networks", tableID, gatewayID)
		}
	default:
		n, err := s.nat(natID)
		if err != nil {
			return fail("InvalidNatGatewayID.NotFound", "The natGateway ID '%s' does not exist", natID)
		}
		if n.vpc != table.vpc {
			return fail("InvalidParameterValue", "route table %s and NAT gateway %s belong to different networks", tableID, natID)
		}
	}
	index := slices.IndexFunc(table.routes, func(r route) bool { return r.destination == prefix.Masked() })
	made := route{prefix.Masked(), gatewayID, natID}
	switch {
	case replace && index < 0:
		return noRoute(tableID, destination)
	case replace:
		table.routes[index] = made
	case index >= 0:
		return fail("RouteAlreadyExists", "The route identified by %s already exists.", destination)
	default:
		table.routes = append(table.routes, made)
	}
	s.changes.Announce()
	return nil
}

func noRoute(tableID, destination string) error {
	return fail("InvalidRoute.NotFound", "no route with destination-cidr-block %s in route table %s", destination, tableID)
}

func (s *Service) deleteRoute(caller iam.Caller, tableID, destination string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	table, err := s.routeTable(tableID)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "DeleteRoute", on(table.object)); err != nil {
		return err
	}
	before := len(table.routes)
	table.routes = slices.DeleteFunc(table.routes, func(r route) bool { return r.destination.String() == destination })
	if len(table.routes) == before {
		return noRoute(tableID, destination)
	}
	s.changes.Announce()
	return nil
}

func (s *Service) associateRouteTable(caller iam.Caller, tableID, subnetID string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	table, err := s.routeTable(tableID)
	if err != nil {
		return "", err
	}
	sub, err := s.subnet(subnetID)
	if err != nil {
		return "", err
	}
	if err := s.allow(caller, "AssociateRouteTable", on(table.object), on(sub.object)); err != nil {
		return "", err
	}
	if table.vpc != sub.vpc {
		return "", fail("InvalidParameterValue", "Route table %s and subnet %s belong to different networks", tableID, subnetID)
	}
	for _, other := range s.routes.all() {
		if slices.ContainsFunc(other.associations, func(a association) bool { return a.subnet == subnetID }) {
			return "", fail("Resource.AlreadyAssociated", "the specified association for route table %s conflicts with an existing association",
				tableID)
		}
	}
	a := association{s.newID("rtbassoc"), subnetID}
	table.associations = append(table.associations, a)
	s.changes.Announce()
	return a.id, nil
}

func (s *Service) disassociateRouteTable(caller iam.Caller, associationID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, table := range s.routes.all() {
		index := slices.IndexFunc(table.associations, func(a association) bool { return a.id == associationID })
		if index < 0 {
			continue
		}
		if err := s.allow(caller, "DisassociateRouteTable", on(table.object)); err != nil {
			return err
		}
		table.associations = slices.Delete(table.associations, index, index+1)
		s.changes.Announce()
		return nil
	}
	return fail("InvalidAssociationID.NotFound", "The association ID '%s' does not exist", associationID)
}
