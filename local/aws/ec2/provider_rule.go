package ec2

// Rules of security groups as resources of their own.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-securitygroupingress.html

import (
	"context"
	"errors"

	"github.com/drover-run/drover/local/engine/resource"
)

// ruleProvider: every property replaces the rule, its description too, which AWS changes in place.
func (s *Service) ruleProvider(egress bool) provider {
	own := "SourceSecurityGroupId! SourcePrefixListId!"
	if egress {
		own = "DestinationSecurityGroupId! DestinationPrefixListId!"
	}
	change := func(r resource.Request, revoke bool) error {
		var p struct {
			GroupId string
			ruleProperties
		}
		if err := decode(r, &p); err != nil {
			return err
		}
		if err := s.mayRead(r.Caller, "DescribeSecurityGroupRules"); err != nil {
			return err
		}
		return s.changeRules(r.Caller, p.GroupId, egress, revoke, []rule{p.rule()})
	}
	return provider{
		schema: schema("GroupId! IpProtocol! CidrIp! CidrIpv6! Description! FromPort! ToPort! "+own, "IpProtocol GroupId", "Id"),
		create: func(_ context.Context, r resource.Request) (resource.Result, error) {
			if err := change(r, false); err != nil {
				return resource.Result{}, err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			id := s.newObject("security-group-rule", "sgr", nil).id
			return resource.Result{PhysicalID: id, Attributes: map[string]any{"Id": id}}, nil
		},
		update: func(context.Context, resource.Request) (resource.Result, error) {
			return resource.Result{}, errors.New("every property of a rule replaces it")
		},
		delete: func(_ context.Context, r resource.Request) error { return change(r, true) },
	}
}
