package ec2

// The CloudFormation resource types of endpoints, security groups and launch templates.

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/drover-run/drover/local/engine/resource"
)

func (s *Service) endpointProvider() provider {
	type properties struct {
		VpcId, ServiceName, VpcEndpointType        string
		PolicyDocument                             any
		RouteTableIds, SubnetIds, SecurityGroupIds []string
		PrivateDnsEnabled                          *bool
		Tags                                       []resource.Tag
	}
	read := func(id string) (resource.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		e, err := s.endpoint(id)
		if err != nil {
			return resource.Result{}, err
		}
		return resource.Result{PhysicalID: id, Attributes: map[string]any{"Id": id, "NetworkInterfaceIds": anyStrings(e.nics)}}, nil
	}
	reads := []string{"DescribeVpcEndpoints", "DescribeSubnets", "DescribeSecurityGroups", "DescribeVpcs"}
	return provider{
		schema: schema("VpcId! ServiceName! VpcEndpointType! PolicyDocument RouteTableIds SubnetIds SecurityGroupIds PrivateDnsEnabled Tags",
			"VpcId ServiceName", "Id NetworkInterfaceIds"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{}, err
			}
			if err := s.mayRead(r.Caller, reads...); err != nil {
				return resource.Result{}, err
			}
			policy, err := policyText(p.PolicyDocument)
			if err != nil {
				return resource.Result{}, err
			}
			tags := tagsOf(r, p.Tags)
			e, err := s.createEndpoint(r.Caller, endpointRequest{
				p.VpcId, p.ServiceName, p.VpcEndpointType, p.RouteTableIds, p.SubnetIds, p.SecurityGroupIds, policy, p.PrivateDnsEnabled, tags,
			})
			if err != nil {
				return resource.Result{}, err
			}
			s.keepTags(e.id, tags)
			if err := s.awaitEndpoint(ctx, e.id); err != nil {
				return resource.Result{PhysicalID: e.id}, err
			}
			return read(e.id)
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			policy, err := policyText(p.PolicyDocument)
			if err == nil {
				err = s.modifyEndpoint(r.Caller, r.PhysicalID, endpointRequest{
					routeTables: p.RouteTableIds, subnets: p.SubnetIds, groups: p.SecurityGroupIds, policy: policy, privateDNS: p.PrivateDnsEnabled,
				})
			}
			if err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			return s.updateTags(ctx, r, read)
		},
		delete: func(ctx context.Context, r resource.Request) error { return s.deleteEndpoint(r.Caller, r.PhysicalID) },
	}
}

// ruleProperties are the properties of a rule, in its group or as a resource of its own.
type ruleProperties struct {
	IpProtocol, CidrIp, CidrIpv6, Description           string
	FromPort, ToPort                                    *int
	SourceSecurityGroupId, SourcePrefixListId           string
	DestinationSecurityGroupId, DestinationPrefixListId string
}

func (p ruleProperties) rule() rule {
	r := rule{
		protocol: p.IpProtocol, from: -1, to: -1, cidr: p.CidrIp, cidr6: p.CidrIpv6, description: p.Description,
		group:      cmp.Or(p.SourceSecurityGroupId, p.DestinationSecurityGroupId),
		prefixList: cmp.Or(p.SourcePrefixListId, p.DestinationPrefixListId),
	}
	if r.protocol != "-1" && p.FromPort != nil && p.ToPort != nil {
		r.from, r.to = *p.FromPort, *p.ToPort
	}
	return r
}

// securityGroupProvider: without SecurityGroupEgress, a group allows all outbound traffic, as on EC2.
func (s *Service) securityGroupProvider() provider {
	type properties struct {
		GroupDescription, GroupName, VpcId        string
		SecurityGroupIngress, SecurityGroupEgress []ruleProperties
		Tags                                      []resource.Tag
	}
	rules := func(list []ruleProperties) []rule {
		var out []rule
		for _, p := range list {
			out = append(out, p.rule())
		}
		return out
	}
	read := func(id string) (resource.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		g, err := s.group(id)
		if err != nil {
			return resource.Result{}, err
		}
		return resource.Result{PhysicalID: id, Attributes: map[string]any{"GroupId": id, "Id": id, "VpcId": g.vpc}}, nil
	}
	// bring changes the rules of one direction to the wanted ones. Rules that are resources of their own stay: the group did not have them.
	bring := func(r resource.Request, id string, egress bool, had, want []rule) error {
		s.mu.Lock()
		g, err := s.group(id)
		if err != nil {
			s.mu.Unlock()
			return err
		}
		now := slices.Clone(g.ingress)
		if egress {
			now = slices.Clone(g.egress)
		}
		s.mu.Unlock()
		missing := slices.DeleteFunc(slices.Clone(want), func(x rule) bool { return slices.Contains(now, x) })
		extra := slices.DeleteFunc(now, func(x rule) bool { return slices.Contains(want, x) || !slices.Contains(had, x) })
		if len(extra) > 0 {
			if err := s.changeRules(r.Caller, id, egress, true, extra); err != nil {
				return err
			}
		}
		if len(missing) > 0 {
			return s.changeRules(r.Caller, id, egress, false, missing)
		}
		return nil
	}
	outbound := func(p properties) []rule {
		if len(p.SecurityGroupEgress) == 0 {
			return []rule{allowAll()}
		}
		return rules(p.SecurityGroupEgress)
	}
	apply := func(r resource.Request, id string, had, p properties) error {
		if err := bring(r, id, false, rules(had.SecurityGroupIngress), rules(p.SecurityGroupIngress)); err != nil {
			return err
		}
		return bring(r, id, true, outbound(had), outbound(p))
	}
	return provider{
		schema: schema("GroupDescription! GroupName! VpcId! SecurityGroupIngress SecurityGroupEgress Tags", "GroupDescription VpcId",
			"GroupId Id VpcId"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{}, err
			}
			if err := s.mayRead(r.Caller, "DescribeSecurityGroups"); err != nil {
				return resource.Result{}, err
			}
			tags := tagsOf(r, p.Tags)
			if p.GroupName == "" {
				p.GroupName = r.GeneratedName(255)
			}
			g, err := s.createGroup(r.Caller, p.VpcId, p.GroupName, p.GroupDescription, tags)
			if err != nil {
				return resource.Result{}, err
			}
			s.keepTags(g.id, tags)
			if err := apply(r, g.id, properties{}, p); err != nil {
				return resource.Result{PhysicalID: g.id}, err
			}
			return read(g.id)
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var had, p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			if err := resource.Decode(r.Old, &had); err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			if err := apply(r, r.PhysicalID, had, p); err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			return s.updateTags(ctx, r, read)
		},
		delete: func(ctx context.Context, r resource.Request) error { return s.deleteGroup(r.Caller, r.PhysicalID) },
	}
}

// launchTemplateProvider: any change creates a new version. Stack tags are not applied to launch templates, only TagSpecifications.
func (s *Service) launchTemplateProvider() provider {
	type properties struct {
		LaunchTemplateName, VersionDescription string
		LaunchTemplateData                     TemplateData
		TagSpecifications                      []TagSpecification
	}
	read := func(id string) (resource.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		t, err := s.template(id, "")
		if err != nil {
			return resource.Result{}, err
		}
		return resource.Result{PhysicalID: id, Attributes: map[string]any{
			"LaunchTemplateId": id, "LatestVersionNumber": fmt.Sprint(t.latest().number), "DefaultVersionNumber": fmt.Sprint(t.byDefault),
		}}, nil
	}
	ownTags := func(p properties) map[string]string {
		tags := map[string]string{}
		for _, spec := range p.TagSpecifications {
			for _, t := range spec.Tags {
				tags[t.Key] = t.Value
			}
		}
		return tags
	}
	return provider{
		schema: schema("LaunchTemplateName! LaunchTemplateData VersionDescription TagSpecifications", "LaunchTemplateData",
			"LaunchTemplateId LatestVersionNumber DefaultVersionNumber"),
		create: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{}, err
			}
			t, err := s.createTemplate(r.Caller, cmp.Or(p.LaunchTemplateName, uniqueName(r)), p.VersionDescription, p.LaunchTemplateData, ownTags(p))
			if err != nil {
				return resource.Result{}, err
			}
			s.keepTags(t.id, ownTags(p))
			return read(t.id)
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			var p, old properties
			if err := decode(r, &p); err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			if err := resource.Decode(r.Old, &old); err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			if !same(p.LaunchTemplateData, old.LaunchTemplateData) || p.VersionDescription != old.VersionDescription {
				if _, err := s.addTemplateVersion(r.Caller, r.PhysicalID, p.VersionDescription, p.LaunchTemplateData); err != nil {
					return resource.Result{PhysicalID: r.PhysicalID}, err
				}
			}
			if err := s.retag(r.Caller, r.PhysicalID, ownTags(p)); err != nil {
				return resource.Result{PhysicalID: r.PhysicalID}, err
			}
			return read(r.PhysicalID)
		},
		delete: func(ctx context.Context, r resource.Request) error {
			if err := s.mayRead(r.Caller, "DescribeLaunchTemplates"); err != nil {
				return err
			}
			return s.deleteTemplate(r.Caller, r.PhysicalID)
		},
	}
}
