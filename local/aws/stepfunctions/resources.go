package stepfunctions

// CloudFormation resource types.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-stepfunctions-statemachine.html

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Resources returns the providers by resource type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::StepFunctions::StateMachine": machineResource{s}}
}

// Tagged returns the machines and their tags.
func (s *Service) Tagged(context.Context) []tagging.Tagged {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []tagging.Tagged
	for _, m := range s.machines {
		all = append(all, tagging.Tagged{ARN: m.arn, Tags: m.tags})
	}
	return all
}

type machineResource struct{ s *Service }

func (machineResource) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"Definition": resource.InPlace, "DefinitionString": resource.InPlace, "DefinitionSubstitutions": resource.InPlace,
			"LoggingConfiguration": resource.InPlace, "RoleArn": resource.InPlace, "StateMachineName": resource.Replaces,
			"StateMachineType": resource.Replaces, "Tags": resource.InPlace, "TracingConfiguration": resource.InPlace,
		},
		Required:   []string{"RoleArn"},
		Attributes: []string{"Arn", "Name", "StateMachineRevisionId"},
	}
}

func decodeMachine(r resource.Request) (spec, error) {
	var p struct {
		Definition                                                    map[string]any
		DefinitionString, RoleArn, StateMachineName, StateMachineType string
		DefinitionSubstitutions                                       map[string]any
		LoggingConfiguration                                          struct {
			Level                string
			IncludeExecutionData bool
			Destinations         []struct {
				CloudWatchLogsLogGroup struct{ LogGroupArn string }
			}
		}
		TracingConfiguration struct{ Enabled bool }
		Tags                 []resource.Tag
	}
	if err := resource.Decode(r.Properties, &p); err != nil {
		return spec{}, err
	}
	if (p.Definition == nil) == (p.DefinitionString == "") {
		return spec{}, wire.Errorf("InvalidRequest", "exactly one of Definition and DefinitionString is required")
	}
	sp := spec{
		name: p.StateMachineName, role: p.RoleArn, definition: p.DefinitionString, kind: p.StateMachineType,
		logging: loggingConfiguration{Level: p.LoggingConfiguration.Level, IncludeExecutionData: p.LoggingConfiguration.IncludeExecutionData},
		tracing: tracingConfiguration{p.TracingConfiguration.Enabled}, tags: tagging.Merge(r.Tags, p.Tags),
	}
	for _, d := range p.LoggingConfiguration.Destinations {
		sp.logging.Destinations = append(sp.logging.Destinations, logDestination{&logGroup{d.CloudWatchLogsLogGroup.LogGroupArn}})
	}
	if p.Definition != nil {
		raw, err := json.Marshal(p.Definition)
		if err != nil {
			return spec{}, fmt.Errorf("encoding Definition: %w", err)
		}
		sp.definition = string(raw)
	}
	// DefinitionSubstitutions of
	// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-stepfunctions-statemachine.html
	for name, value := range p.DefinitionSubstitutions {
		sp.definition = strings.ReplaceAll(sp.definition, "${"+name+"}", fmt.Sprint(value))
	}
	if sp.name == "" {
		sp.name = r.LogicalID[:min(len(r.LogicalID), 60)] + "-" + uuid.NewString()[:12]
	}
	return sp, nil
}

func machineResult(m *machine) resource.Result {
	return resource.Result{PhysicalID: m.arn, Attributes: map[string]any{"Arn": m.arn, "Name": m.name, "StateMachineRevisionId": m.revision}}
}

func (p machineResource) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	sp, err := decodeMachine(r)
	if err != nil {
		return resource.Result{}, err
	}
	if p.s.machine(p.s.machineARN(sp.name)) != nil {
		return resource.Result{}, wire.Errorf("AlreadyExists", "Resource of type 'AWS::StepFunctions::StateMachine' with identifier '%s' "+
			"already exists.", p.s.machineARN(sp.name))
	}
	m, err := p.s.create(r.Caller, sp)
	if err != nil {
		return resource.Result{}, err
	}
	return machineResult(m), nil
}

func (p machineResource) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	sp, err := decodeMachine(r)
	if err != nil {
		return resource.Result{}, err
	}
	m, err := p.s.update(r.Caller, r.PhysicalID, func(to *spec) {
		to.definition, to.role, to.logging, to.tracing, to.tags = sp.definition, sp.role, sp.logging, sp.tracing, sp.tags
	})
	if err != nil {
		return resource.Result{}, err
	}
	return machineResult(m), nil
}

func (p machineResource) Delete(_ context.Context, r resource.Request) error {
	return p.s.remove(r.Caller, r.PhysicalID)
}
