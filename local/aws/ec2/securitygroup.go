package ec2

// Security groups and VPC endpoints.

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
)

type securityGroup struct {
	object
	vpc, name, description string
	ingress, egress        []rule
}

// rule of a security group: ports of a protocol, and a peer.
type rule struct {
	protocol string // tcp, udp, icmp or -1
	from, to int    // -1 for all
	// Exactly one of these is the peer: a block, a security group or a prefix list.
	cidr, cidr6, group, prefixList string
	description                    string
}

func allowAll() rule { return rule{protocol: "-1", from: -1, to: -1, cidr: "0.0.0.0/0"} }

// same compares rules like EC2: by everything except their description.
func (r rule) same(other rule) bool {
	other.description = r.description
	return r == other
}

func (s *Service) createGroup(caller iam.Caller, vpcID, name, description string, tags map[string]string) (*securityGroup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.vpc(vpcID)
	if err != nil {
		return nil, err
	}
	if err := s.allowMaking(caller, "CreateSecurityGroup", "security-group", tags, on(v.object)); err != nil {
		return nil, err
	}
	return s.newGroup(v, name, description, tags)
}

// newGroup creates a group after its caller was authorized. The caller holds the lock.
func (s *Service) newGroup(v *vpc, name, description string, tags map[string]string) (*securityGroup, error) {
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	switch {
	case name == "" || len(name) > 255 || strings.HasPrefix(name, "sg-") || name == "default":
		return nil, fail("InvalidParameterValue", "Value (%s) for parameter groupName is invalid.", name)
	case description == "" || len(description) > 255:
		return nil, fail("MissingParameter", "The request must contain the parameter GroupDescription")
	}
	for _, g := range s.groups.all() {
		if g.vpc == v.id && g.name == name {
			return nil, fail("InvalidGroup.Duplicate", "The security group '%s' already exists for VPC '%s'", name, v.id)
		}
	}
	g := &securityGroup{
		object: s.newObject("security-group", "sg", tags), vpc: v.id, name: name, description: description, egress: []rule{allowAll()},
	}
	s.groups.put(g.id, g)
	s.changes.Announce()
	return g, nil
}

// CreateSecurityGroup creates a security group for another service that has authorized its caller, such as EKS's cluster security group.
// With selfIngress, its members may reach each other.
// https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html
func (s *Service) CreateSecurityGroup(vpcID, name, description string, selfIngress bool, tags map[string]string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.vpc(vpcID)
	if err != nil {
		return "", err
	}
	g, err := s.newGroup(v, name, description, tags)
	if err != nil {
		return "", err
	}
	if selfIngress {
		g.ingress = []rule{{protocol: "-1", from: -1, to: -1, group: g.id}}
	}
	return g.id, nil
}

// DeleteSecurityGroup deletes a group of CreateSecurityGroup. An absent group is no error.
func (s *Service) DeleteSecurityGroup(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.groups.get(id)
	if !ok {
		return nil
	}
	return s.dropGroup(g)
}

func (s *Service) group(id string) (*securityGroup, error) {
	g, ok := s.groups.get(id)
	if !ok {
		return nil, fail("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
	}
	return g, nil
}

func (s *Service) deleteGroup(caller iam.Caller, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(id)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "DeleteSecurityGroup", on(g.object)); err != nil {
		return err
	}
	return s.dropGroup(g)
}

// dropGroup deletes an unused group. The caller holds the lock.
// https://docs.aws.amazon.com/vpc/latest/userguide/deleting-security-groups.html
func (s *Service) dropGroup(g *securityGroup) error {
	inUse := fail("DependencyViolation", "resource %s has a dependent object", g.id)
	for _, i := range s.interfaces.all() {
		if slices.Contains(i.groups, g.id) {
			return inUse
		}
	}
	for _, other := range s.groups.all() {
		refers := func(r rule) bool { return r.group == g.id }
		if other.id != g.id && (slices.ContainsFunc(other.ingress, refers) || slices.ContainsFunc(other.egress, refers)) {
			return inUse
		}
	}
	if g.name == "default" {
		return fail("CannotDelete", "the specified group: \"%s\" name: \"default\" cannot be deleted by a user", g.id)
	}
	s.groups.delete(g.id)
	s.changes.Announce()
	return nil
}

// changeRules authorizes or revokes rules of one direction.
func (s *Service) changeRules(caller iam.Caller, groupID string, egress, revoke bool, rules []rule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(groupID)
	if err != nil {
		return err
	}
	action, direction, list := "Authorize", "Ingress", &g.ingress
	if revoke {
		action = "Revoke"
	}
	if egress {
		direction, list = "Egress", &g.egress
	}
	// Rules are separate resources for IAM.
	if err := s.allow(caller, action+"SecurityGroup"+direction, on(g.object), target{kind: "security-group-rule", id: "*"}); err != nil {
		return err
	}
	changed := slices.Clone(*list)
	for _, r := range rules {
		if err := s.checkRule(r); err != nil {
			return err
		}
		index := slices.IndexFunc(changed, r.same)
		switch {
		case revoke && index < 0:
			return fail("InvalidPermission.NotFound", "The specified rule does not exist in this security group.")
		case revoke:
			changed = slices.Delete(changed, index, index+1)
		case index >= 0:
			return fail("InvalidPermission.Duplicate", "the specified rule \"peer: %s, %s, from port: %d, to port: %d, ALLOW\" already exists",
				cmp.Or(r.cidr, r.cidr6, r.group, r.prefixList), strings.ToUpper(r.protocol), r.from, r.to)
		default:
			changed = append(changed, r)
		}
	}
	*list = changed
	s.changes.Announce()
	return nil
}

func (s *Service) checkRule(r rule) error {
	peers := 0
	for _, peer := range []string{r.cidr, r.cidr6, r.group, r.prefixList} {
		if peer != "" {
			peers++
		}
	}
	switch {
	case peers != 1:
		return fail("InvalidParameterCombination", "A rule needs exactly one of CidrIp, CidrIpv6, a security group or a prefix list")
	case !slices.Contains([]string{"tcp", "udp", "icmp", "-1"}, r.protocol):
		return fail("InvalidParameterValue", "Invalid value '%s' for IP protocol. Unknown protocol.", r.protocol)
	case r.protocol != "-1" && (r.from < -1 || r.to > 65535 || r.from > r.to):
		return fail("InvalidParameterValue", "Invalid value for portRange. Must specify both from and to ports with TCP/UDP.")
	}
	if cidr := cmp.Or(r.cidr, r.cidr6); cidr != "" {
		if prefix, err := netip.ParsePrefix(cidr); err != nil || prefix.Masked() != prefix {
			return fail("InvalidParameterValue", "CIDR block %s is malformed", cidr)
		}
	}
	if r.group != "" {
		if _, err := s.group(r.group); err != nil {
			return err
		}
	}
	return nil
}

// endpoint is a VPC endpoint. A gateway endpoint is a route in its tables, an interface endpoint an address in each subnet.
// https://docs.aws.amazon.com/vpc/latest/privatelink/create-interface-endpoint.html
type endpoint struct {
	object
	vpc, service, typ, state           string
	routeTables, subnets, groups, nics []string
	policy                             string
	privateDNS                         bool
}

type endpointRequest struct {
	vpc, service, typ            string
	routeTables, subnets, groups []string
	policy                       string
	privateDNS                   *bool
	tags                         map[string]string
}

func (s *Service) createEndpoint(caller iam.Caller, r endpointRequest) (*endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.vpc(r.vpc)
	if err != nil {
		return nil, err
	}
	if r.typ == "" {
		r.typ = "Gateway"
	}
	targets := []target{on(v.object)}
	e := &endpoint{vpc: r.vpc, service: r.service, typ: r.typ, policy: r.policy, state: "pending"}
	for _, id := range r.routeTables {
		table, err := s.routeTable(id)
		if err != nil {
			return nil, err
		}
		targets = append(targets, on(table.object))
	}
	for _, id := range r.subnets {
		sub, err := s.subnet(id)
		if err != nil {
			return nil, err
		}
		targets = append(targets, on(sub.object))
	}
	for _, id := range r.groups {
		g, err := s.group(id)
		if err != nil {
			return nil, err
		}
		targets = append(targets, on(g.object))
	}
	if err := s.allowMaking(caller, "CreateVpcEndpoint", "vpc-endpoint", r.tags, targets...); err != nil {
		return nil, err
	}
	if err := checkTags(r.tags); err != nil {
		return nil, err
	}
	name, ok := strings.CutPrefix(r.service, "com.amazonaws."+s.config.Region+".")
	if !ok || name == "" {
		return nil, fail("InvalidServiceName", "The Vpc Endpoint Service '%s' does not exist", r.service)
	}
	switch r.typ {
	case "Gateway":
		if name != "s3" && name != "dynamodb" {
			return nil, fail("InvalidParameter", "VPC endpoint type (Gateway) is not available for the service %s.", r.service)
		}
		if len(r.subnets) > 0 || len(r.groups) > 0 {
			return nil, fail("InvalidParameter", "Subnet IDs and security groups are only supported for Interface type VPC Endpoint")
		}
		for _, other := range s.endpoints.all() {
			for _, id := range r.routeTables {
				if other.service == r.service && slices.Contains(other.routeTables, id) {
					return nil, fail("RouteAlreadyExists", "route table %s already has a route with destination-prefix-list-id for %s", id, r.service)
				}
			}
		}
		e.routeTables = r.routeTables
	case "Interface":
		if len(r.routeTables) > 0 {
			return nil, fail("InvalidParameter", "Route table IDs are only supported for Gateway type VPC Endpoint")
		}
		if len(r.groups) == 0 {
			r.groups = []string{v.defaultGroupID}
		}
		e.privateDNS = r.privateDNS == nil || *r.privateDNS
		if e.privateDNS && !(v.dnsSupport && v.dnsHostnames) {
			return nil, fail("InvalidParameter", "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC attributes set "+
				"to true for %s", r.vpc)
		}
		e.subnets, e.groups = r.subnets, r.groups
	default:
		return nil, fail("InvalidParameter", "VPC endpoint type (%s) is not supported by the local account", r.typ)
	}
	e.object = s.newObject("vpc-endpoint", "vpce", r.tags)
	for _, id := range e.subnets {
		sub, _ := s.subnets.get(id)
		nic, err := s.newInterface(sub, e.groups, "vpc_endpoint", "VPC Endpoint Interface "+e.id, "vpce", nil)
		if err != nil {
			for _, made := range e.nics {
				s.freeInterface(made)
			}
			return nil, err
		}
		e.nics = append(e.nics, nic.id)
	}
	s.endpoints.put(e.id, e)
	if e.typ == "Gateway" {
		e.state = "available"
	} else {
		s.background(func(ctx context.Context) {
			if s.config.Clock.Work(ctx, endpointWork) == nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				e.state = "available"
				s.changes.Announce()
			}
		})
	}
	s.changes.Announce()
	return e, nil
}

func (s *Service) endpoint(id string) (*endpoint, error) {
	e, ok := s.endpoints.get(id)
	if !ok {
		return nil, fail("InvalidVpcEndpointId.NotFound", "The Vpc Endpoint Id '%s' does not exist", id)
	}
	return e, nil
}

func (s *Service) awaitEndpoint(ctx context.Context, id string) error {
	return s.await(ctx, func() (bool, error) {
		e, err := s.endpoint(id)
		return err == nil && e.state == "available", err
	})
}

// modifyEndpoint applies a request to an endpoint. VPC, service and type cannot change.
func (s *Service) modifyEndpoint(caller iam.Caller, id string, r endpointRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.endpoint(id)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "ModifyVpcEndpoint", on(e.object)); err != nil {
		return err
	}
	e.policy = r.policy
	if e.typ == "Gateway" {
		for _, table := range r.routeTables {
			if _, err := s.routeTable(table); err != nil {
				return err
			}
		}
		e.routeTables = r.routeTables
		s.changes.Announce()
		return nil
	}
	if len(r.groups) == 0 {
		v, err := s.vpc(e.vpc)
		if err != nil {
			return err
		}
		r.groups = []string{v.defaultGroupID}
	}
	e.groups, e.privateDNS = r.groups, r.privateDNS == nil || *r.privateDNS
	kept := e.nics[:0]
	for _, nic := range e.nics {
		i, _ := s.interfaces.get(nic)
		if !slices.Contains(r.subnets, i.subnet) {
			s.freeInterface(nic)
			continue
		}
		i.groups = e.groups
		kept = append(kept, nic)
	}
	e.nics = kept
	for _, subnetID := range r.subnets {
		if slices.Contains(e.subnets, subnetID) {
			continue
		}
		sub, err := s.subnet(subnetID)
		if err != nil {
			return err
		}
		nic, err := s.newInterface(sub, e.groups, "vpc_endpoint", "VPC Endpoint Interface "+e.id, "vpce", nil)
		if err != nil {
			return err
		}
		e.nics = append(e.nics, nic.id)
	}
	e.subnets = r.subnets
	s.changes.Announce()
	return nil
}

func (s *Service) deleteEndpoint(caller iam.Caller, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.endpoint(id)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "DeleteVpcEndpoints", on(e.object)); err != nil {
		return err
	}
	for _, nic := range e.nics {
		s.freeInterface(nic)
	}
	s.endpoints.delete(id)
	s.changes.Announce()
	return nil
}
