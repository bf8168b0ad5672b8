package ec2

// Which addresses a network interface reaches: security groups inside its VPC, and NAT gateways outside.

import (
	"net/netip"
	"slices"
)

// Connects reports whether a function in a subnet with security groups can connect to a TCP port of one of these network interfaces of its
// VPC. Security groups decide; routes inside a VPC are always there, and there are no network ACLs.
// https://docs.aws.amazon.com/vpc/latest/userguide/security-group-rules.html
func (s *Service) Connects(subnetID string, groups, interfaces []string, port int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, ok := s.subnets.get(subnetID)
	if !ok {
		return false
	}
	from := s.functionInterfaceLocked(subnetID, groups)
	return slices.ContainsFunc(interfaces, func(id string) bool {
		to, ok := s.interfaces.get(id)
		return ok && to.vpc == sub.vpc && s.allows(groups, false, port, to.groups, to.address) && s.allows(to.groups, true, port, groups, from)
	})
}

// functionInterfaceLocked returns the address of the interface of functions in a subnet.
func (s *Service) functionInterfaceLocked(subnetID string, groups []string) netip.Addr {
	want := slices.Sorted(slices.Values(groups))
	for _, i := range s.interfaces.all() {
		if i.typ == functionInterface && i.subnet == subnetID && slices.Equal(slices.Sorted(slices.Values(i.groups)), want) {
			return i.address
		}
	}
	return netip.Addr{}
}

// allows reports whether a rule of one of the groups allows a TCP port from or to a peer.
func (s *Service) allows(groups []string, ingress bool, port int, peerGroups []string, peer netip.Addr) bool {
	for _, id := range groups {
		g, ok := s.groups.get(id)
		if !ok {
			continue
		}
		rules := g.egress
		if ingress {
			rules = g.ingress
		}
		for _, r := range rules {
			if r.matches(port, peerGroups, peer) {
				return true
			}
		}
	}
	return false
}

func (r rule) matches(port int, groups []string, peer netip.Addr) bool {
	if r.protocol != "-1" && (r.protocol != "tcp" || port < r.from || port > r.to) {
		return false
	}
	if r.group != "" {
		return slices.Contains(groups, r.group)
	}
	block, err := netip.ParsePrefix(r.cidr)
	return err == nil && block.Contains(peer)
}

// NATAddress returns the public address with which a function in a subnet connects to the internet. Its interfaces have no public address
// of their own. https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc-internet.html
func (s *Service) NATAddress(subnetID string) (public netip.Addr, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, ok := s.subnets.get(subnetID)
	if !ok {
		return public, false
	}
	for _, r := range s.routesOf(sub) {
		if r.destination.Bits() != 0 || r.nat == "" {
			continue
		}
		n, ok := s.nats.get(r.nat)
		if !ok || n.state != "available" {
			continue
		}
		for _, a := range s.addresses.all() {
			if a.holder == n.nic {
				return a.public, true
			}
		}
	}
	return public, false
}

// routesOf returns the routes of a subnet: those of its own table or of the VPC's main table.
func (s *Service) routesOf(sub *subnet) []route {
	var main []route
	for _, table := range s.routes.all() {
		if slices.ContainsFunc(table.associations, func(a association) bool { return a.subnet == sub.id }) {
			return table.routes
		}
		if table.vpc == sub.vpc && table.main != "" {
			main = table.routes
		}
	}
	return main
}

// Changed returns a channel that is closed at the next change of the network.
func (s *Service) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes.Next()
}
