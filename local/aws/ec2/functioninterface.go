package ec2

// Network interfaces of Lambda functions in a VPC.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html#configuration-vpc-enis

import (
	"github.com/drover-run/drover/local/aws/iam"
)

// functionInterface is the type of such an interface. Its tags are empty: Lambda sets none, and the user cannot.
const functionInterface = "lambda"

// functionPermissions are the actions that the execution role of a function in a VPC needs.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html#configuration-vpc-permissions
var functionPermissions = []string{
	"CreateNetworkInterface", "DescribeNetworkInterfaces", "DescribeSubnets", "DeleteNetworkInterface", "AssignPrivateIpAddresses",
	"UnassignPrivateIpAddresses",
}

// interfaceAttachment of a network interface that an AWS service manages.
type interfaceAttachment struct{ AttachmentId, InstanceOwnerId, Status string }

// attachedBy returns the owner of what an interface of Lambda is attached to.
func (i *networkInterface) attachedBy() []string {
	if i.typ == functionInterface {
		return []string{"amazon-aws"}
	}
	return nil
}

// MayAttach checks that the execution role of a function may manage interfaces in subnets with security groups. It returns the action
// that the role lacks, or an empty string.
func (s *Service) MayAttach(role iam.Caller, subnets, groups []string) (lacks string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := func(action string) []target {
		if action == "DescribeNetworkInterfaces" || action == "DescribeSubnets" {
			return nil
		}
		targets := []target{{kind: "network-interface", id: "*"}}
		if action != "CreateNetworkInterface" {
			return targets
		}
		for _, id := range subnets {
			if sub, ok := s.subnets.get(id); ok {
				targets = append(targets, on(sub.object))
			}
		}
		for _, id := range groups {
			if g, ok := s.groups.get(id); ok {
				targets = append(targets, on(g.object))
			}
		}
		return targets
	}
	for _, action := range functionPermissions {
		if s.allow(role, action, of(action)...) != nil {
			return action
		}
	}
	return ""
}

// GroupVPCs returns the VPCs of security groups, in that order, or the error of DescribeSecurityGroups.
func (s *Service) GroupVPCs(ids ...string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var vpcs []string
	for _, id := range ids {
		g, err := s.group(id)
		if err != nil {
			return nil, err
		}
		vpcs = append(vpcs, g.vpc)
	}
	return vpcs, nil
}

// CreateFunctionInterface creates the interface of functions in a subnet with security groups. Until DeleteNetworkInterface, neither can
// be deleted.
func (s *Service) CreateFunctionInterface(subnetID string, groups []string, description, requester string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, err := s.subnet(subnetID)
	if err != nil {
		return "", err
	}
	i, err := s.newInterface(sub, groups, functionInterface, description, requester, nil)
	if err != nil {
		return "", err
	}
	s.changes.Announce()
	return i.id, nil
}
