package lambda

// Functions in a VPC, and their network interfaces.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

const (
	// attachWork is how long the creation of network interfaces takes: "about a minute".
	// https://docs.aws.amazon.com/en_us/lambda/latest/dg/configuration-vpc.html
	attachWork = time.Minute
	// releaseWork is how long a network interface remains after its last function: "it can take up to 20 minutes".
	// https://repost.aws/knowledge-center/lambda-eni-find-delete
	releaseWork = 20 * time.Minute
	// A VPC configuration has at most 16 subnets and 5 security groups.
	// https://docs.aws.amazon.com/lambda/latest/api/API_VpcConfig.html
	maxSubnets, maxGroups = 16, 5
)

// States of a function, and statuses of its last update. https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html
const (
	statePending = "Pending"
	stateActive  = "Active"
	stateFailed  = "Failed"

	updateSuccessful = "Successful"
	updateInProgress = "InProgress"
	updateFailed     = "Failed"
)

// Network is EC2: the interfaces of functions in VPCs. *ec2.Service implements it.
type Network interface {
	Subnets(ids ...string) ([]ec2.Subnet, error)
	GroupVPCs(ids ...string) ([]string, error)
	MayAttach(role iam.Caller, subnets, groups []string) (lacks string)
	CreateFunctionInterface(subnetID string, groups []string, description, requester string) (string, error)
	DeleteNetworkInterface(id string)
}

// vpcConfig is the VPC configuration of a function. VPCID is set in responses only.
type vpcConfig struct {
	SubnetIDs               []string `json:"SubnetIds"`
	SecurityGroupIDs        []string `json:"SecurityGroupIds"`
	Ipv6AllowedForDualStack bool
	VPCID                   string `json:"VpcId,omitempty"`
}

// empty reports whether the configuration detaches a function from its VPC.
func (c *vpcConfig) empty() bool { return c == nil || len(c.SubnetIDs)+len(c.SecurityGroupIDs) == 0 }

func (c *vpcConfig) subnets() []string {
	if c == nil {
		return nil
	}
	return c.SubnetIDs
}

func (c *vpcConfig) groups() []string {
	if c == nil {
		return nil
	}
	return c.SecurityGroupIDs
}

func (c *vpcConfig) equal(other *vpcConfig) bool {
	if c.empty() || other.empty() {
		return c.empty() && other.empty()
	}
	return slices.Equal(c.slots(), other.slots())
}

// slot is a subnet and a set of security groups. All functions of a slot share one network interface.
type slot struct{ subnet, groups string }

func (c *vpcConfig) slots() []slot {
	if c.empty() {
		return nil
	}
	groups := strings.Join(slices.Sorted(slices.Values(c.SecurityGroupIDs)), ",")
	var slots []slot
	for _, subnet := range slices.Sorted(slices.Values(c.SubnetIDs)) {
		slots = append(slots, slot{subnet, groups})
	}
	return slots
}

// attachment is the network interface of a slot.
type attachment struct {
	id    string
	users int
	// role and function are those of the last function that was connected.
	role, function string
	// releases counts how often the last user left. Only the latest release deletes the interface.
	releases int
}

// placeInVPC checks a VPC configuration as the caller, and the permissions of the function's role. It sets the VPC.
func (s *Service) placeInVPC(caller iam.Caller, c *settings) error {
	v := c.VPCConfig
	if v.empty() {
		c.VPCConfig = nil
		return nil
	}
	switch {
	case s.config.Network == nil:
		return wire.Unsupported("lambda", "VpcConfig: there is no EC2")
	case v.Ipv6AllowedForDualStack:
		return wire.Unsupported("lambda", "Ipv6AllowedForDualStack")
	case len(v.SubnetIDs) == 0 || len(v.SecurityGroupIDs) == 0:
		return invalid("SubnetIds and SecurityIds must coexist or be both empty list.")
	case len(v.SubnetIDs) > maxSubnets || len(v.SecurityGroupIDs) > maxGroups:
		return invalid("VpcConfig has more than %d subnets or more than %d security groups", maxSubnets, maxGroups)
	}
	for _, action := range []string{"DescribeSubnets", "DescribeSecurityGroups", "DescribeVpcs"} {
		if err := caller.Authorize("ec2:"+action, "*", nil); err != nil {
			return invalid("Your access has been denied by EC2, please make sure your request credentials have permission to %s. "+
				"EC2 Error Code: UnauthorizedOperation. EC2 Error Message: %v", action, err)
		}
	}
	subnets, err := s.config.Network.Subnets(v.SubnetIDs...)
	if err != nil {
		return ofEC2("DescribeSubnets", err)
	}
	vpcs, err := s.config.Network.GroupVPCs(v.SecurityGroupIDs...)
	if err != nil {
		return ofEC2("DescribeSecurityGroups", err)
	}
	v.VPCID = subnets[0].VPCID
	for _, n := range subnets {
		vpcs = append(vpcs, n.VPCID)
	}
	if slices.ContainsFunc(vpcs, func(id string) bool { return id != v.VPCID }) {
		return invalid("The subnets and the security groups of a function must belong to the same VPC")
	}
	role, _, err := s.config.Roles.AssumeRoleAs(c.Role, sessionName(c.FunctionName), "lambda.amazonaws.com")
	if err != nil {
		return invalid("The role defined for the function cannot be assumed by Lambda.")
	}
	if lacks := s.config.Network.MayAttach(role, v.SubnetIDs, v.SecurityGroupIDs); lacks != "" {
		return invalid("The provided execution role does not have permissions to call %s on EC2", lacks)
	}
	return nil
}

func ofEC2(action string, err error) error {
	code, message := "InternalError", err.Error()
	var e *iam.Error
	if errors.As(err, &e) {
		code, message = e.Code, e.Message
	}
	return invalid("Error occurred while %s. EC2 Error Code: %s. EC2 Error Message: %s", action, code, message)
}

// attach gives a function its network interfaces. It waits if one of them is new.
func (s *Service) attach(ctx context.Context, function, role string, c *vpcConfig) error {
	if c.empty() {
		return nil
	}
	fresh, err := s.takeInterfaces(function, role, c)
	if err != nil {
		return err
	}
	if fresh && s.config.Clock.Work(ctx, attachWork) != nil {
		s.detach(c)
		return ctx.Err()
	}
	return nil
}

func (s *Service) takeInterfaces(function, role string, c *vpcConfig) (fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken []slot
	for _, at := range c.slots() {
		a := s.attachments[at]
		if a == nil {
			id, err := s.config.Network.CreateFunctionInterface(at.subnet, strings.Split(at.groups, ","),
				"AWS Lambda VPC ENI-"+function+"-"+uuid.NewString(), "lambda.amazonaws.com")
			if err != nil {
				s.leaveLocked(taken)
				return false, err
			}
			a, fresh = &attachment{id: id}, true
			s.attachments[at] = a
		}
		a.users++
		a.role, a.function = role, function
		taken = append(taken, at)
	}
	return fresh, nil
}

// detach returns the network interfaces of a function. An interface without functions remains for a while.
func (s *Service) detach(c *vpcConfig) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(c.slots())
}

func (s *Service) leaveLocked(slots []slot) {
	for _, at := range slots {
		a := s.attachments[at]
		if a.users--; a.users > 0 {
			continue
		}
		a.releases++
		release := a.releases
		s.laterLocked(func(ctx context.Context) {
			if s.config.Clock.Work(ctx, s.config.ReleaseTakes) != nil {
				return
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if a.users == 0 && a.releases == release && s.mayRelease(a) {
				s.config.Network.DeleteNetworkInterface(a.id)
				delete(s.attachments, at)
				s.changes.Announce()
			}
		})
	}
}

// mayRelease reports whether Lambda may delete an interface. It does so with the role of the function, so that the interface stays for ever
// if the role is deleted first. https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html#configuration-vpc-permissions
func (s *Service) mayRelease(a *attachment) bool {
	role, _, err := s.config.Roles.AssumeRoleAs(a.role, sessionName(a.function), "lambda.amazonaws.com")
	return err == nil && s.config.Network.MayAttach(role, nil, nil) == ""
}

// awaitRelease waits until the network interfaces of a deleted function are deleted or serve another function.
func (s *Service) awaitRelease(ctx context.Context, c *vpcConfig) error {
	return s.wait(ctx, func() (bool, error) {
		return !slices.ContainsFunc(c.slots(), func(at slot) bool {
			a := s.attachments[at]
			return a != nil && a.users == 0
		}), nil
	})
}

// settle gives a created or changed function its network interfaces, in the background.
func (s *Service) settle(f *function, name string, c *vpcConfig) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.laterLocked(func(ctx context.Context) {
		f.mu.Lock()
		role := f.settings.Role
		f.mu.Unlock()
		err := s.attach(ctx, name, role, c)
		if ctx.Err() != nil {
			return
		}
		old := f.endAttach(c, err)
		if !old.empty() {
			s.detach(old)
		}
		s.mu.Lock()
		s.changes.Announce()
		s.mu.Unlock()
	})
}

// endAttach records the end of attach. It returns the interfaces to detach.
func (f *function) endAttach(c *vpcConfig, err error) (old *vpcConfig) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.reasonCode, f.reason = "InvalidSubnet", err.Error()
		var e *iam.Error
		if errors.As(err, &e) && e.Code == "InsufficientFreeAddressesInSubnet" {
			f.reasonCode = "SubnetOutOfIPAddresses"
		}
		if f.state == statePending {
			f.state = stateFailed
		} else {
			f.update = updateFailed
		}
		return nil
	}
	if f.removed {
		return c
	}
	old, f.vpc = f.vpc, c
	f.state, f.update, f.reasonCode, f.reason = stateActive, updateSuccessful, "", ""
	f.invalidate()
	return old
}

// ready returns an error unless the function can be invoked or updated. The caller holds f.mu.
func (f *function) ready(update bool) error {
	switch {
	case f.state != stateActive:
		return conflict("The operation cannot be performed at this time. The function is currently in the following state: %s", f.state)
	case update && f.update == updateInProgress:
		return conflict("The operation cannot be performed at this time. An update is in progress for resource: %s", f.arn)
	}
	return nil
}

// SourceOf returns the VPC from which a caller connects, if it is a function with its execution role. Subnets and groups are empty for a
// function outside of a VPC.
func (s *Service) SourceOf(caller iam.Caller) (subnets, groups []string, isFunction bool) {
	s.mu.Lock()
	f := s.functions[strings.TrimSuffix(caller.SessionName(), "_")]
	s.mu.Unlock()
	if f == nil {
		return nil, nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.vpc.subnets(), f.vpc.groups(), f.settings.Role == caller.RoleARN()
}

// awaitSettled waits until a function is no longer Pending and its last update has ended. A failure is an error.
func (s *Service) awaitSettled(ctx context.Context, f *function) error {
	return s.wait(ctx, func() (bool, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case f.removed:
			return false, notFound(f.arn)
		case f.state == stateFailed || f.update == updateFailed:
			return false, &iam.Error{
				Code: "NotStabilized", Status: 400,
				Message: "Lambda function " + f.settings.FunctionName + " reached terminal FAILED state due to " + f.reasonCode + "(" + f.reason +
					") and failed to stabilize",
			}
		}
		return f.state == stateActive && f.update == updateSuccessful, nil
	})
}
