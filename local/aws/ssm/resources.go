package ssm

// The CloudFormation resource type AWS::SSM::Parameter.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ssm-parameter.html

import (
	"context"

	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Resources returns the provider by resource type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::SSM::Parameter": parameters{s}}
}

type parameters struct{ s *Service }

func (parameters) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"Name": resource.Replaces, "Type": resource.InPlace, "Value": resource.InPlace, "Description": resource.InPlace,
		},
		Required:   []string{"Type", "Value"},
		Attributes: []string{"Type", "Value"},
	}
}

type properties struct{ Name, Type, Value, Description string }

// put writes the parameter as the caller.
func (p parameters) put(r resource.Request, name string, in properties, overwrite bool) (resource.Result, error) {
	if in.Type != "String" {
		return resource.Result{}, wire.Unsupported("ssm", "parameters of the type "+in.Type)
	}
	if err := r.Caller.Authorize("ssm:PutParameter", p.s.arn(name), nil); err != nil {
		return resource.Result{}, err
	}
	if _, err := p.s.put(name, in.Value, overwrite); err != nil {
		return resource.Result{}, err
	}
	return resource.Result{PhysicalID: name, Attributes: map[string]any{"Type": in.Type, "Value": in.Value}}, nil
}

func (p parameters) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	var in properties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	name := in.Name
	if name == "" {
		name = "CFN-" + r.GeneratedName(1000)
	}
	return p.put(r, name, in, false)
}

func (p parameters) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	var in properties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	return p.put(r, r.PhysicalID, in, true)
}

func (p parameters) Delete(_ context.Context, r resource.Request) error {
	if err := r.Caller.Authorize("ssm:DeleteParameter", p.s.arn(r.PhysicalID), nil); err != nil {
		return err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	delete(p.s.parameters, r.PhysicalID)
	return nil
}
