package eventbridge

// The resource types that CloudFormation makes here.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-events-rule.html

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/eventbridge/delivery"
	"github.com/drover-run/drover/local/iam"
	"github.com/drover-run/drover/local/resource"
	"github.com/drover-run/drover/local/tagging"
	"github.com/drover-run/drover/local/wire"
)

// Resources are the providers by resource type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::Events::Rule": ruleResource{s}}
}

// Tagged lists the rules and their tags.
func (s *Service) Tagged(context.Context) []tagging.Tagged {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []tagging.Tagged
	for _, r := range s.rules {
		all = append(all, tagging.Tagged{ARN: r.arn, Tags: r.tags})
	}
	return all
}

type ruleResource struct{ s *Service }

func (ruleResource) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehaviour{
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
			Id, Arn, RoleArn, Input, InputPath string //nolint:revive,staticcheck // AWS's spelling
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
		spec.Name = r.PhysicalID
	}
	if spec.Name == "" {
		cut := func(s string, n int) string { return s[:min(len(s), n)] }
		spec.Name = cut(r.StackName, 24) + "-" + cut(r.LogicalID, 24) + "-" + uuid.NewString()[:12]
	}
	var targets []target
	for _, t := range p.Targets {
		to := target{
			Id: t.Id, Arn: t.Arn, RoleArn: t.RoleArn, Input: t.Input, InputPath: t.InputPath, DeadLetterConfig: t.DeadLetterConfig, RetryPolicy: t.RetryPolicy,
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

// set makes the rule what the template says, targets that it no longer names included.
func (p ruleResource) set(r resource.Request) (resource.Result, error) {
	spec, targets, err := decodeRule(r)
	if err != nil {
		return resource.Result{}, err
	}
	made, err := p.s.setRule(r.Caller, spec)
	if err != nil {
		return resource.Result{}, err
	}
	result := resource.Result{PhysicalID: spec.Name, Attributes: map[string]any{"Arn": made.arn}}
	if have, err := p.s.rule(spec.Name); err == nil && len(have.targets) > 0 {
		if err := p.s.removeTargets(r.Caller, spec.Name, obsolete(have.targets, targets)); err != nil {
			return result, err
		}
	}
	if len(targets) > 0 {
		err = p.s.setTargets(r.Caller, spec.Name, targets)
	}
	return result, err
}

// obsolete are the ids of targets that are not wanted any more.
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

func (p ruleResource) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	if name, _ := r.Properties["Name"].(string); name != "" {
		if _, err := p.s.rule(name); err == nil {
			return resource.Result{}, wire.Errorf("AlreadyExists", "Resource of type 'AWS::Events::Rule' with identifier '%s' already exists.", name)
		}
	}
	result, err := p.set(r)
	if err != nil && result.PhysicalID != "" {
		err = errors.Join(err, p.s.removeRule(r.Caller, result.PhysicalID))
	}
	return result, err
}

func (p ruleResource) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	return p.set(r)
}

func (p ruleResource) Delete(_ context.Context, r resource.Request) error {
	have, err := p.s.rule(r.PhysicalID)
	var e *iam.Error
	if errors.As(err, &e) && e.Code == "ResourceNotFoundException" {
		return nil
	}
	if err != nil {
		return err
	}
	if len(have.targets) > 0 {
		if err := p.s.removeTargets(r.Caller, r.PhysicalID, obsolete(have.targets, nil)); err != nil {
			return err
		}
	}
	return p.s.removeRule(r.Caller, r.PhysicalID)
}
