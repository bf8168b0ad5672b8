package ec2

// The common parts of the CloudFormation resource types. The actions of handlers, the properties that replace a resource, and the
// attributes follow the resource schemas that AWS publishes:
// https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schemas.html

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// provider is a resource type. If a creation fails after the resource exists, the result still has its ID.
type provider struct {
	schema         resource.Schema
	create, update func(ctx context.Context, r resource.Request) (resource.Result, error)
	delete         func(ctx context.Context, r resource.Request) error
}

func (p provider) Schema() resource.Schema { return p.schema }

func (p provider) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	return p.create(ctx, r)
}

func (p provider) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	return p.update(ctx, r)
}

// Delete succeeds if the resource does not exist.
func (p provider) Delete(ctx context.Context, r resource.Request) error {
	err := p.delete(ctx, r)
	var known *wire.Error
	if errors.As(err, &known) && (strings.Contains(known.Code, "NotFound") || known.Code == "Gateway.NotAttached") {
		return nil
	}
	return err
}

// schema lists properties as "Name", or as "Name!" if changing them replaces the resource.
func schema(properties, required, attributes string) resource.Schema {
	s := resource.Schema{
		Properties: map[string]resource.UpdateBehavior{}, Required: strings.Fields(required), Attributes: strings.Fields(attributes),
	}
	for _, p := range strings.Fields(properties) {
		name, replaces := strings.CutSuffix(p, "!")
		if replaces {
			s.Properties[name] = resource.Replaces
		} else {
			s.Properties[name] = resource.InPlace
		}
	}
	return s
}

// decode reads the properties of a request.
func decode(r resource.Request, into any) error {
	if err := resource.Decode(r.Properties, into); err != nil {
		return fmt.Errorf("Properties validation failed for resource %s with message: %w", r.LogicalID, err)
	}
	return nil
}

// tagsOf returns the stack's tags, overridden by the resource's own.
func tagsOf(r resource.Request, own []resource.Tag) map[string]string {
	tags := clone(r.Tags)
	for _, t := range own {
		tags[t.Key] = t.Value
	}
	return tags
}

// mayRead checks the Describe actions with which a handler waits and reads attributes.
func (s *Service) mayRead(caller iam.Caller, actions ...string) error {
	for _, action := range actions {
		if err := s.allow(caller, action); err != nil {
			return err
		}
	}
	return nil
}

// retag changes the tags that CloudFormation set on a resource to the wanted ones. Tags of others stay.
func (s *Service) retag(caller iam.Caller, id string, want map[string]string) error {
	s.mu.Lock()
	o, err := s.find(id)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	changed, removed := map[string]string{}, map[string]*string{}
	for k, v := range want {
		if now, ok := o.tags[k]; !ok || now != v {
			changed[k] = v
		}
	}
	for k := range o.stackTags {
		if _, ok := want[k]; !ok {
			removed[k] = nil
		}
	}
	o.stackTags = clone(want)
	s.mu.Unlock()
	if len(changed) > 0 {
		if err := s.createTags(caller, []string{id}, changed); err != nil {
			return err
		}
	}
	if len(removed) > 0 {
		return s.deleteTags(caller, []string{id}, removed)
	}
	return nil
}

// keepTags records the tags with which a resource was created, for retag.
func (s *Service) keepTags(id string, tags map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, err := s.find(id); err == nil {
		o.stackTags = clone(tags)
	}
}

// uniqueName returns a name for a resource whose template has none.
func uniqueName(r resource.Request) string {
	sum := sha256.Sum256([]byte(r.StackID + "/" + r.LogicalID))
	return r.LogicalID + "_" + hex.EncodeToString(sum[:])[:12]
}

// Resources returns the CloudFormation resource types of EC2.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{
		"AWS::EC2::VPC":                         s.vpcProvider(),
		"AWS::EC2::VPCCidrBlock":                s.vpcCIDRBlockProvider(),
		"AWS::EC2::Subnet":                      s.subnetProvider(),
		"AWS::EC2::InternetGateway":             s.internetGatewayProvider(),
		"AWS::EC2::VPCGatewayAttachment":        s.gatewayAttachmentProvider(),
		"AWS::EC2::EIP":                         s.addressProvider(),
		"AWS::EC2::NatGateway":                  s.natGatewayProvider(),
		"AWS::EC2::RouteTable":                  s.routeTableProvider(),
		"AWS::EC2::Route":                       s.routeProvider(),
		"AWS::EC2::SubnetRouteTableAssociation": s.associationProvider(),
		"AWS::EC2::VPCEndpoint":                 s.endpointProvider(),
		"AWS::EC2::SecurityGroup":               s.securityGroupProvider(),
		"AWS::EC2::SecurityGroupIngress":        s.ruleProvider(false),
		"AWS::EC2::SecurityGroupEgress":         s.ruleProvider(true),
		"AWS::EC2::FlowLog":                     s.flowLogProvider(),
		"AWS::EC2::LaunchTemplate":              s.launchTemplateProvider(),
	}
}

// updateTags updates a resource type whose tags alone change in place.
func (s *Service) updateTags(ctx context.Context, r resource.Request, read func(id string) (resource.Result, error)) (
	resource.Result, error,
) {
	var p struct{ Tags []resource.Tag }
	if err := resource.Decode(pick(r.Properties, "Tags"), &p); err != nil {
		return resource.Result{PhysicalID: r.PhysicalID}, err
	}
	if err := s.retag(r.Caller, r.PhysicalID, tagsOf(r, p.Tags)); err != nil {
		return resource.Result{PhysicalID: r.PhysicalID}, err
	}
	return read(r.PhysicalID)
}

func pick(properties map[string]any, names ...string) map[string]any {
	picked := maps.Clone(properties)
	maps.DeleteFunc(picked, func(k string, _ any) bool { return !slices.Contains(names, k) })
	return picked
}

func anyStrings(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// same compares decoded properties.
func same(a, b any) bool { return reflect.DeepEqual(a, b) }

// policyText returns the text of a policy document, validated like on EC2. It is empty without a document.
func policyText(document any) (string, error) {
	if document == nil {
		return "", nil
	}
	_, text, err := iam.ParsePolicyValue(document, true)
	return text, err
}
