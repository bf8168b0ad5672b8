package elb

// Load balancers and target groups created through the API, with which a user acts as Kubernetes in a running account.

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/engine/wire"
)

type tag struct{ Key, Value string }

// authorizeCreate authorizes the creation of a resource with tags, and the tagging. It returns the tags.
// https://docs.aws.amazon.com/elasticloadbalancing/latest/userguide/tagging-resources-during-creation.html
func authorizeCreate(c *wire.Call, arn string, list []tag) (map[string]string, error) {
	tags, context := map[string]string{}, map[string]string{}
	for _, t := range list {
		if strings.HasPrefix(t.Key, "aws:") {
			return nil, wire.Errorf("ValidationError", "Tag keys that begin with aws: are reserved: %s", t.Key)
		}
		tags[t.Key], context["aws:RequestTag/"+t.Key] = t.Value, t.Value
	}
	if err := c.AuthorizeContext(arn, context); err != nil || len(tags) == 0 {
		return tags, err
	}
	context["elasticloadbalancing:CreateAction"] = c.Action
	return tags, c.Caller.Authorize("elasticloadbalancing:AddTags", arn, context)
}

// create creates an application or network load balancer in its first subnet. On AWS listeners are created by calls of
// their own, which are not supported here.
// https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_CreateLoadBalancer.html
func (s *Service) create(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Name, Type              string
		Subnets, SecurityGroups []string
		Tags                    []tag
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	kind := cmp.Or(in.Type, "application")
	if in.Name == "" || len(in.Subnets) == 0 || kind == "classic" {
		return nil, wire.Errorf("ValidationError", "A load balancer has a name, a type (application or network) and subnets")
	}
	tags, err := authorizeCreate(c, s.arn("loadbalancer/"+path(in.Name, kind)), in.Tags)
	if err != nil {
		return nil, err
	}
	if err := s.serviceLinkedRole(c.Caller.Authorize); err != nil {
		return nil, err
	}
	arn, err := s.Create(in.Name, kind, in.Subnets[0], in.SecurityGroups, false, tags)
	if err != nil {
		return nil, err
	}
	type item struct{ LoadBalancerArn, LoadBalancerName, Type string }
	return struct{ LoadBalancers []item }{[]item{{arn, in.Name, kind}}}, nil
}

// createGroup creates a target group without a load balancer, because there are no listeners.
// https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_CreateTargetGroup.html
func (s *Service) createGroup(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Name, Protocol, VpcId, TargetType string
		Port                              int
		Tags                              []tag
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	switch {
	case in.Name == "" || in.VpcId == "" || in.Port < 1 || in.Port > 65535:
		return nil, wire.Errorf("ValidationError", "A target group has a name, a protocol, a port and a VPC")
	case !slices.Contains([]string{"HTTP", "HTTPS", "TCP", "TLS", "UDP", "TCP_UDP"}, in.Protocol):
		return nil, wire.Errorf("ValidationError", "'%s' is not a protocol of target groups", in.Protocol)
	case !slices.Contains([]string{"", "instance", "ip"}, in.TargetType):
		return nil, wire.Unsupported("elasticloadbalancing", "target groups of the type "+in.TargetType)
	}
	arn := s.arn("targetgroup/" + in.Name + "/" + id(in.Name))
	tags, err := authorizeCreate(c, arn, in.Tags)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups[arn] != nil {
		return nil, wire.Errorf("DuplicateTargetGroupName", "A target group with the same name '%s' exists, but with different settings", in.Name)
	}
	s.groups[arn] = &group{name: in.Name, tags: tags}
	type item struct{ TargetGroupArn, TargetGroupName string }
	return struct{ TargetGroups []item }{[]item{{arn, in.Name}}}, nil
}
