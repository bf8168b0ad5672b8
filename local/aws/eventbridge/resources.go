package eventbridge

// CloudFormation resource types.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-events-rule.html

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/eventbridge/delivery"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Resources returns the providers by resource type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::Events::Rule": ruleResource{s}, "AWS::Events::EventBus": busResource{s}}
}

type ruleResource struct{ s *Service }

func (ruleResource) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"Description": resource.InPlace, "EventBusName": resource.Replaces, "EventPattern": resource.InPlace, "Name": resource.Replaces,
			"RoleArn": resource.InPlace, "ScheduleExpression": resource.InPlace, "State": resource.InPlace, "Tags": resource.InPlace,
			"Targets": resource.InPlace,
		},
		Attributes: []string{"Arn"},
	}
}

func decodeRule(r resource.Request) (ruleSpec, []target, error) {
	var p struct {
		Description, EventBusName, Name, RoleArn, ScheduleExpression, State string
		EventPattern                                                        map[string]any
		Tags                                                                []resource.Tag
		Targets                                                             []struct {
			Id, Arn, RoleArn, Input, InputPath string // AWS's spelling
			InputTransformer                   *struct {
				InputPathsMap map[string]any
				InputTemplate string
			}
			DeadLetterConfig *deadLetters
			RetryPolicy      *delivery.Policy
		}
	}
	if err := resource.Decode(r.Properties, &p); err != nil {
		return ruleSpec{}, nil, err
	}
	spec := ruleSpec{
		Name: p.Name, Description: p.Description, ScheduleExpression: p.ScheduleExpression, State: p.State, RoleArn: p.RoleArn,
		EventBusName: p.EventBusName, tags: tagging.Merge(r.Tags, p.Tags),
	}
	if p.EventPattern != nil {
		spec.EventPattern = string(delivery.JSON(p.EventPattern))
	}
	if spec.Name == "" {
		_, spec.Name = ofID(r.PhysicalID)
	}
	if spec.Name == "" {
		cut := func(s string, n int) string { return s[:min(len(s), n)] }
		spec.Name = cut(r.StackName, 24) + "-" + cut(r.LogicalID, 24) + "-" + uuid.NewString()[:12]
	}
	var targets []target
	for _, t := range p.Targets {
		to := target{
			Id: t.Id, Arn: t.Arn, RoleArn: t.RoleArn, Input: t.Input, InputPath: t.InputPath, DeadLetterConfig: t.DeadLetterConfig,
			RetryPolicy: t.RetryPolicy,
		}
		if x := t.InputTransformer; x != nil {
			to.InputTransformer = &inputTransformer{InputPathsMap: map[string]string{}, InputTemplate: x.InputTemplate}
			for name, path := range x.InputPathsMap {
				to.InputTransformer.InputPathsMap[name], _ = path.(string)
			}
		}
		targets = append(targets, to)
	}
	return spec, targets, nil
}

// id returns the value of Ref: the rule's name, after the bus's name if the bus is not the default one.
func (s *Service) id(bus, name string) string {
	if bus = s.busName(bus); bus != defaultBus {
		return bus + "|" + name
	}
	return name
}

// ofID returns bus and name from a rule's ID.
func ofID(id string) (bus, name string) {
	if bus, name, ok := strings.Cut(id, "|"); ok {
		return bus, name
	}
	return defaultBus, id
}

// set applies the template to the rule. It removes targets that the template does not name.
func (p ruleResource) set(r resource.Request) (resource.Result, error) {
	spec, targets, err := decodeRule(r)
	if err != nil {
		return resource.Result{}, err
	}
	created, err := p.s.setRule(r.Caller, spec)
	if err != nil {
		return resource.Result{}, err
	}
	result := resource.Result{PhysicalID: p.s.id(spec.EventBusName, spec.Name), Attributes: map[string]any{"Arn": created.arn}}
	if have, err := p.s.rule(spec.EventBusName, spec.Name); err == nil && len(have.targets) > 0 {
		if err := p.s.removeTargets(r.Caller, spec.EventBusName, spec.Name, obsolete(have.targets, targets)); err != nil {
			return result, err
		}
	}
	if len(targets) > 0 {
		err = p.s.setTargets(r.Caller, spec.EventBusName, spec.Name, targets)
	}
	return result, err
}

// obsolete returns the IDs of targets to remove.
func obsolete(have, want []target) []string {
	wanted := map[string]bool{}
	for _, t := range want {
		wanted[t.Id] = true
	}
	var ids []string
	for _, t := range have {
		if !wanted[t.Id] {
			ids = append(ids, t.Id)
		}
	}
	return ids
}

func (p ruleResource) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	if name, _ := r.Properties["Name"].(string); name != "" {
		bus, _ := r.Properties["EventBusName"].(string)
		if _, err := p.s.rule(bus, name); err == nil {
			return resource.Result{}, wire.Errorf("AlreadyExists", "Resource of type 'AWS::Events::Rule' with identifier '%s' already exists.", name)
		}
	}
	result, err := p.set(r)
	if err != nil && result.PhysicalID != "" {
		err = errors.Join(err, p.Delete(ctx, resource.Request{Caller: r.Caller, PhysicalID: result.PhysicalID}))
	}
	return result, err
}

func (p ruleResource) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	return p.set(r)
}

func (p ruleResource) Delete(_ context.Context, r resource.Request) error {
	bus, name := ofID(r.PhysicalID)
	have, err := p.s.rule(bus, name)
	var e *iam.Error
	if errors.As(err, &e) && e.Code == "ResourceNotFoundException" {
		return nil
	}
	if err != nil {
		return err
	}
	if len(have.targets) > 0 {
		if err := p.s.removeTargets(r.Caller, bus, name, obsolete(have.targets, nil)); err != nil {
			return err
		}
	}
	return p.s.removeRule(r.Caller, bus, name)
}

type busResource struct{ s *Service }

// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-events-eventbus.html
func (busResource) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"DeadLetterConfig": resource.InPlace, "Description": resource.InPlace, "KmsKeyIdentifier": resource.InPlace,
			"Name": resource.Replaces, "Tags": resource.InPlace,
		},
		Attributes: []string{"Arn", "Name"},
	}
}

func (p busResource) set(r resource.Request, action string) (resource.Result, error) {
	var in struct {
		busSpec
		Tags []resource.Tag
	}
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	in.tags = tagging.Merge(r.Tags, in.Tags)
	b, err := p.s.setBus(r.Caller, action, in.busSpec)
	if err != nil {
		return resource.Result{}, err
	}
	return resource.Result{PhysicalID: b.name, Attributes: map[string]any{"Arn": b.arn, "Name": b.name}}, nil
}

func (p busResource) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	return p.set(r, "CreateEventBus")
}

func (p busResource) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	return p.set(r, "UpdateEventBus")
}

func (p busResource) Delete(_ context.Context, r resource.Request) error {
	return p.s.removeBus(r.Caller, r.PhysicalID)
}
