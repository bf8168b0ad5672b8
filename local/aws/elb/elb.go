// Package elb simulates both APIs of Elastic Load Balancing. It has only the operations that find and delete load
// balancers. Tests that act as Kubernetes create the resources in Go. A user may create load balancers other than
// classic ones through the API. There are no listeners, rules, targets or attributes.
// https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/Welcome.html
package elb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/wire"
)

// interfaceDelay is how long a load balancer's network interfaces remain after its deletion. AWS documents no figure.
const interfaceDelay = time.Minute

// Network has the network interfaces of load balancers: ec2.Service.
type Network interface {
	CreateNetworkInterface(subnetID string, groups []string, description, requester string, tags map[string]string) (string, error)
	DeleteNetworkInterface(id string)
}

// Config of the service.
type Config struct {
	Identities *iam.Service
	Clock      *clock.Clock
	Network    Network
}

// Service is Elastic Load Balancing in one region of one account.
type Service struct {
	config Config
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	balancers map[string]*balancer // by ARN
	groups    map[string]*group    // by ARN
}

type balancer struct {
	name, kind string // classic, application or network
	interfaces []string
	tags       map[string]string
	protected  bool
}

type group struct {
	name, balancer string
	tags           map[string]string
}

// New returns a service without load balancers. Close ends its work.
func New(config Config) *Service {
	ctx, stop := context.WithCancel(context.Background())
	return &Service{config: config, ctx: ctx, stop: stop, balancers: map[string]*balancer{}, groups: map[string]*group{}}
}

// Close cancels deletions in flight and waits for them.
func (s *Service) Close() {
	s.stop()
	s.work.Wait()
}

func (s *Service) arn(rest string) string {
	i := s.config.Identities
	return fmt.Sprintf("arn:%s:elasticloadbalancing:%s:%s:%s", i.Partition, i.Region, i.Account, rest)
}

func id(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

// path returns the path of a load balancer in its ARN, or "" for an unknown kind.
func path(name, kind string) string {
	return map[string]string{"classic": name, "application": "app/" + name + "/" + id(name), "network": "net/" + name + "/" + id(name)}[kind]
}

// Create creates a load balancer of a kind (classic, application or network) in a subnet, as Kubernetes does, and
// returns its ARN. protected sets deletion protection, which classic load balancers do not have.
func (s *Service) Create(name, kind, subnet string, groups []string, protected bool, tags map[string]string) (string, error) {
	path := path(name, kind)
	if path == "" {
		return "", wire.Unsupported("elasticloadbalancing", "load balancers of the kind "+kind)
	}
	if err := s.serviceLinkedRole(nil); err != nil {
		return "", err
	}
	arn := s.arn("loadbalancer/" + path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.balancers[arn] != nil {
		return "", wire.Errorf("DuplicateLoadBalancerName", "A load balancer with the same name '%s' exists", name)
	}
	nic, err := s.config.Network.CreateNetworkInterface(subnet, groups, "ELB "+path, "amazon-elb", nil)
	if err != nil {
		return "", err
	}
	s.balancers[arn] = &balancer{name: name, kind: kind, interfaces: []string{nic}, tags: tags, protected: protected}
	return arn, nil
}

// serviceLinkedRole creates the role with the first load balancer. authorize returns an error unless the caller may create it.
// https://docs.aws.amazon.com/elasticloadbalancing/latest/userguide/elb-service-linked-roles.html
func (s *Service) serviceLinkedRole(authorize func(action, resource string, context map[string]string) error) error {
	return s.config.Identities.LinkRole("AWSServiceRoleForElasticLoadBalancing", "elasticloadbalancing.amazonaws.com",
		"Allows ELB to call AWS services on your behalf", authorize)
}

// CreateTargetGroup creates a target group, optionally with a load balancer that forwards to it, and returns its ARN.
func (s *Service) CreateTargetGroup(name, balancerARN string, tags map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	arn := s.arn("targetgroup/" + name + "/" + id(name))
	s.groups[arn] = &group{name: name, balancer: balancerARN, tags: tags}
	return arn
}

// Unprotect disables a load balancer's deletion protection.
func (s *Service) Unprotect(arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.balancers[arn]; b != nil {
		b.protected = false
	}
}

// Tagged returns all resources for the tagging API.
func (s *Service) Tagged(context.Context) []tagging.Tagged {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []tagging.Tagged
	for arn, b := range s.balancers {
		all = append(all, tagging.Tagged{ARN: arn, Tags: b.tags})
	}
	for arn, g := range s.groups {
		all = append(all, tagging.Tagged{ARN: arn, Tags: g.tags})
	}
	slices.SortFunc(all, func(a, b tagging.Tagged) int { return strings.Compare(a.ARN, b.ARN) })
	return all
}

// Wire returns both APIs for the endpoint.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "elasticloadbalancing", Protocol: wire.Query, Version: "2015-12-01",
		Operations: map[string]wire.Operation{
			"DescribeLoadBalancers": s.describe, "DescribeTargetGroups": s.describeGroups,
			"CreateLoadBalancer": s.create, "CreateTargetGroup": s.createGroup,
			"DeleteLoadBalancer": s.delete, "DeleteTargetGroup": s.deleteGroup,
		},
		Other: &wire.Service{
			Name: "elasticloadbalancing", Protocol: wire.Query, Version: "2012-06-01",
			Operations: map[string]wire.Operation{"DescribeLoadBalancers": s.describeClassic, "DeleteLoadBalancer": s.deleteClassic},
		},
	}
}

// authorize authorizes a change of a resource with tags.
func authorize(c *wire.Call, arn string, tags map[string]string) error {
	context := map[string]string{}
	for key, value := range tags {
		context["aws:ResourceTag/"+key], context["elasticloadbalancing:ResourceTag/"+key] = value, value
	}
	return c.AuthorizeContext(arn, context)
}

// https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_DeleteLoadBalancer.html
func (s *Service) delete(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ LoadBalancerArn string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.balancers[in.LoadBalancerArn]
	if b == nil || b.kind == "classic" { // "If the load balancer does not exist or has already been deleted, the call succeeds."
		return nil, authorize(c, in.LoadBalancerArn, nil)
	}
	if err := authorize(c, in.LoadBalancerArn, b.tags); err != nil {
		return nil, err
	}
	if b.protected {
		return nil, wire.Errorf("OperationNotPermitted", "Load balancer '%s' cannot be deleted because deletion protection is enabled",
			in.LoadBalancerArn)
	}
	s.drop(in.LoadBalancerArn, b)
	return nil, nil
}

// https://docs.aws.amazon.com/elasticloadbalancing/2012-06-01/APIReference/API_DeleteLoadBalancer.html
func (s *Service) deleteClassic(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ LoadBalancerName string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	arn := s.arn("loadbalancer/" + in.LoadBalancerName)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.balancers[arn]
	if b == nil { // "If the load balancer does not exist or has already been deleted, the call to DeleteLoadBalancer still succeeds."
		return nil, authorize(c, arn, nil)
	}
	if err := authorize(c, arn, b.tags); err != nil {
		return nil, err
	}
	s.drop(arn, b)
	return nil, nil
}

// drop deletes a load balancer. Its network interfaces are deleted later. The caller holds the lock.
func (s *Service) drop(arn string, b *balancer) {
	delete(s.balancers, arn)
	for _, g := range s.groups {
		if g.balancer == arn {
			g.balancer = ""
		}
	}
	turn := s.config.Clock.Ticket("elb: network interfaces")
	s.work.Go(func() {
		turn()
		if s.config.Clock.Work(s.ctx, interfaceDelay) == nil {
			for _, nic := range b.interfaces {
				s.config.Network.DeleteNetworkInterface(nic)
			}
		}
	})
}

// https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_DeleteTargetGroup.html
func (s *Service) deleteGroup(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ TargetGroupArn string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[in.TargetGroupArn]
	if g == nil {
		return nil, authorize(c, in.TargetGroupArn, nil)
	}
	if err := authorize(c, in.TargetGroupArn, g.tags); err != nil {
		return nil, err
	}
	if g.balancer != "" {
		return nil, wire.Errorf("ResourceInUse", "Target group '%s' is currently in use by a listener or a rule", in.TargetGroupArn)
	}
	delete(s.groups, in.TargetGroupArn)
	return nil, nil
}

func (s *Service) describe(_ context.Context, c *wire.Call) (any, error) {
	type item struct{ LoadBalancerArn, LoadBalancerName, Type string }
	var out struct{ LoadBalancers []item }
	err := s.list(c, func(arn string, b *balancer) {
		if b.kind != "classic" {
			out.LoadBalancers = append(out.LoadBalancers, item{arn, b.name, b.kind})
		}
	})
	return out, err
}

func (s *Service) describeClassic(_ context.Context, c *wire.Call) (any, error) {
	type item struct{ LoadBalancerName string }
	var out struct{ LoadBalancerDescriptions []item }
	err := s.list(c, func(_ string, b *balancer) {
		if b.kind == "classic" {
			out.LoadBalancerDescriptions = append(out.LoadBalancerDescriptions, item{b.name})
		}
	})
	return out, err
}

// list shows all load balancers by ARN.
func (s *Service) list(c *wire.Call, show func(arn string, b *balancer)) error {
	if err := c.Decode(&struct{}{}); err != nil {
		return err
	}
	if err := c.Authorize("*"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var arns []string
	for arn := range s.balancers {
		arns = append(arns, arn)
	}
	slices.Sort(arns)
	for _, arn := range arns {
		show(arn, s.balancers[arn])
	}
	return nil
}

func (s *Service) describeGroups(_ context.Context, c *wire.Call) (any, error) {
	if err := c.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	type item struct {
		TargetGroupArn, TargetGroupName string
		LoadBalancerArns                []string
	}
	var out struct{ TargetGroups []item }
	s.mu.Lock()
	defer s.mu.Unlock()
	for arn, g := range s.groups {
		x := item{TargetGroupArn: arn, TargetGroupName: g.name}
		if g.balancer != "" {
			x.LoadBalancerArns = []string{g.balancer}
		}
		out.TargetGroups = append(out.TargetGroups, x)
	}
	slices.SortFunc(out.TargetGroups, func(a, b item) int { return strings.Compare(a.TargetGroupArn, b.TargetGroupArn) })
	return out, nil
}
