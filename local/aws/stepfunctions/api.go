package stepfunctions

// The API operations. https://docs.aws.amazon.com/step-functions/latest/apireference/API_Operations.html

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/local/engine/wire"
)

// Wire returns the service's API for the endpoint.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "states", Protocol: wire.JSON10, TargetPrefix: "AWSStepFunctions",
		Operations: map[string]wire.Operation{
			"CreateStateMachine": s.createStateMachine, "UpdateStateMachine": s.updateStateMachine, "DeleteStateMachine": s.deleteStateMachine,
			"DescribeStateMachine": s.describeStateMachine, "ListStateMachines": s.listStateMachines,
			"ValidateStateMachineDefinition": s.validateDefinition,
			"StartExecution":                 s.startExecutionCall, "StopExecution": s.stopExecution, "DescribeExecution": s.describeExecution,
			"ListExecutions": s.listExecutions, "GetExecutionHistory": s.getHistory,
			"SendTaskSuccess": s.sendTaskSuccess, "SendTaskFailure": s.sendTaskFailure, "SendTaskHeartbeat": s.sendTaskHeartbeat,
			"TagResource": s.tagResource, "UntagResource": s.untagResource, "ListTagsForResource": s.listTags,
		},
	}
}

type tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (s *Service) createStateMachine(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Name, Definition, RoleArn, Type string
		LoggingConfiguration            loggingConfiguration
		TracingConfiguration            tracingConfiguration
		Tags                            []tag
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.machineARN(in.Name)
	tags := map[string]string{}
	for _, t := range in.Tags {
		tags[t.Key] = t.Value
	}
	m, err := s.create(c.Caller, spec{
		name: in.Name, role: in.RoleArn, definition: in.Definition, kind: in.Type, logging: in.LoggingConfiguration,
		tracing: in.TracingConfiguration, tags: tags,
	})
	if err != nil {
		return nil, err
	}
	return struct {
		ARN     string    `json:"stateMachineArn"`
		Created time.Time `json:"creationDate"`
	}{m.arn, m.created}, nil
}

func (s *Service) updateStateMachine(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		StateMachineArn      string
		Definition, RoleArn  *string
		LoggingConfiguration *loggingConfiguration
		TracingConfiguration *tracingConfiguration
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = in.StateMachineArn
	if in.Definition == nil && in.RoleArn == nil && in.LoggingConfiguration == nil && in.TracingConfiguration == nil {
		return nil, wire.Errorf("MissingRequiredParameter", "Either the definition, the role ARN, the LoggingConfiguration, "+
			"or the TracingConfiguration must be specified")
	}
	m, err := s.update(c.Caller, in.StateMachineArn, func(sp *spec) {
		set(&sp.definition, in.Definition)
		set(&sp.role, in.RoleArn)
		set(&sp.logging, in.LoggingConfiguration)
		set(&sp.tracing, in.TracingConfiguration)
	})
	if err != nil {
		return nil, err
	}
	return struct {
		Updated  time.Time `json:"updateDate"`
		Revision string    `json:"revisionId"`
	}{s.config.Clock.Now(), m.revision}, nil
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func (s *Service) deleteStateMachine(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ StateMachineArn string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = in.StateMachineArn
	return struct{}{}, s.remove(c.Caller, in.StateMachineArn)
}

// authorizedMachine authorizes the call on a machine and finds the machine.
func (s *Service) authorizedMachine(c *wire.Call, arn string) (*machine, error) {
	if err := c.Authorize(arn); err != nil {
		return nil, err
	}
	m := s.machine(arn)
	if m == nil {
		return nil, noMachine(arn)
	}
	return m, nil
}

func (s *Service) describeStateMachine(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ StateMachineArn, IncludedData string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	m, err := s.authorizedMachine(c, in.StateMachineArn)
	if err != nil {
		return nil, err
	}
	return struct {
		ARN        string               `json:"stateMachineArn"`
		Name       string               `json:"name"`
		Status     string               `json:"status"`
		Definition string               `json:"definition"`
		Role       string               `json:"roleArn"`
		Type       string               `json:"type"`
		Created    time.Time            `json:"creationDate"`
		Logging    loggingConfiguration `json:"loggingConfiguration"`
		Tracing    tracingConfiguration `json:"tracingConfiguration"`
		Revision   string               `json:"revisionId"`
	}{m.arn, m.name, "ACTIVE", m.definition, m.role, "STANDARD", m.created, m.logging, m.tracing, m.revision}, nil
}

// page returns one page of a list. Tokens are offsets.
func page[T any](all []T, size, least int, token string) (part []T, next string, err error) {
	if size == 0 {
		size = least
	}
	if size < 0 || size > 1000 {
		return nil, "", wire.Errorf("ValidationException", "maxResults %d: between 0 and 1000", size)
	}
	from := 0
	if token != "" {
		if from, err = strconv.Atoi(token); err != nil || from < 0 || from > len(all) {
			return nil, "", wire.Errorf("InvalidToken", "Invalid Token: '%s'", token)
		}
	}
	to := min(from+size, len(all))
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	return all[from:to], next, nil
}

func (s *Service) listStateMachines(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		MaxResults int
		NextToken  string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	type item struct {
		ARN     string    `json:"stateMachineArn"`
		Name    string    `json:"name"`
		Type    string    `json:"type"`
		Created time.Time `json:"creationDate"`
	}
	all := []item{}
	s.mu.Lock()
	for _, m := range s.machines {
		all = append(all, item{m.arn, m.name, "STANDARD", m.created})
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b item) int { return strings.Compare(a.Name, b.Name) })
	part, next, err := page(all, in.MaxResults, 100, in.NextToken)
	return struct {
		Machines []item `json:"stateMachines"`
		Next     string `json:"nextToken,omitempty"`
	}{part, next}, err
}

func (s *Service) validateDefinition(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Definition, Type, Severity string
		MaxResults                 int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	type diagnostic struct {
		Severity string `json:"severity"`
		Code     string `json:"code"`
		Message  string `json:"message"`
		Location string `json:"location,omitempty"`
	}
	out := struct {
		Result      string       `json:"result"`
		Diagnostics []diagnostic `json:"diagnostics"`
		Truncated   bool         `json:"truncated"`
	}{"OK", []diagnostic{}, false}
	var problems asl.InvalidDefinition
	if _, err := asl.Parse([]byte(in.Definition)); errors.As(err, &problems) {
		out.Result = "FAIL"
		for _, p := range problems {
			message, location, _ := strings.Cut(p, " at /")
			code, rest, ok := strings.Cut(message, ": ")
			if !ok || strings.ToUpper(code) != code {
				code, rest = "SCHEMA_VALIDATION_FAILED", message
			}
			out.Diagnostics = append(out.Diagnostics, diagnostic{"ERROR", code, rest, "/" + location})
		}
	}
	return out, nil
}

func (s *Service) startExecutionCall(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ StateMachineArn, Name, Input, TraceHeader string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(in.StateMachineArn); err != nil {
		return nil, err
	}
	x, err := s.start(in.StateMachineArn, in.Name, in.Input)
	if err != nil {
		return nil, err
	}
	return struct {
		ARN     string    `json:"executionArn"`
		Started time.Time `json:"startDate"`
	}{x.ARN, x.Started}, nil
}

// authorizedExecution authorizes the call on an execution and finds the execution.
func (s *Service) authorizedExecution(c *wire.Call, arn string) (*execution, error) {
	if err := c.Authorize(arn); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.executions[arn]
	if x == nil {
		return nil, noExecution(arn)
	}
	return x, nil
}

func (s *Service) stopExecution(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ ExecutionArn, Error, Cause string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	x, err := s.authorizedExecution(c, in.ExecutionArn)
	if err != nil {
		return nil, err
	}
	x.cancel(&asl.Failure{Name: in.Error, Cause: in.Cause})
	return struct {
		Stopped time.Time `json:"stopDate"`
	}{s.config.Clock.Now()}, nil
}

// notTruncated states that a payload is not truncated.
type notTruncated struct {
	Included bool `json:"included"`
}

// notRedriven is the reason that DescribeExecution returns.
const notRedriven = "the local account does not redrive executions"

func (s *Service) describeExecution(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ ExecutionArn, IncludedData string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	x, err := s.authorizedExecution(c, in.ExecutionArn)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return struct {
		ARN           string       `json:"executionArn"`
		Machine       string       `json:"stateMachineArn"`
		Name          string       `json:"name"`
		Status        string       `json:"status"`
		Started       time.Time    `json:"startDate"`
		Stopped       time.Time    `json:"stopDate"`
		Input         string       `json:"input"`
		InputDetails  notTruncated `json:"inputDetails"`
		Output        string       `json:"output,omitempty"`
		OutputDetails notTruncated `json:"outputDetails"`
		Error         string       `json:"error,omitempty"`
		Cause         string       `json:"cause,omitempty"`
		RedriveCount  int          `json:"redriveCount"`
		RedriveStatus string       `json:"redriveStatus"`
		RedriveReason string       `json:"redriveStatusReason"`
	}{
		x.ARN, x.MachineARN, x.Name, x.Status, x.Started, x.Stopped, x.Input, notTruncated{true}, x.Output, notTruncated{true}, x.Error, x.Cause,
		0, "NOT_REDRIVABLE", notRedriven,
	}, nil
}

func (s *Service) listExecutions(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		StateMachineArn, StatusFilter, NextToken string
		MaxResults                               int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if _, err := s.authorizedMachine(c, in.StateMachineArn); err != nil {
		return nil, err
	}
	type item struct {
		ARN     string    `json:"executionArn"`
		Machine string    `json:"stateMachineArn"`
		Name    string    `json:"name"`
		Status  string    `json:"status"`
		Started time.Time `json:"startDate"`
		Stopped time.Time `json:"stopDate"`
	}
	all := []item{}
	for _, x := range slices.Backward(s.Executions()) {
		if x.MachineARN == in.StateMachineArn && (in.StatusFilter == "" || in.StatusFilter == x.Status) {
			all = append(all, item{x.ARN, x.MachineARN, x.Name, x.Status, x.Started, x.Stopped})
		}
	}
	part, next, err := page(all, in.MaxResults, 100, in.NextToken)
	return struct {
		Executions []item `json:"executions"`
		Next       string `json:"nextToken,omitempty"`
	}{part, next}, err
}

func (s *Service) getHistory(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ExecutionArn, NextToken string
		MaxResults              int
		ReverseOrder            bool
		IncludeExecutionData    *bool
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	x, err := s.authorizedExecution(c, in.ExecutionArn)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	events := slices.Clone(x.events)
	s.mu.Unlock()
	if in.ReverseOrder {
		slices.Reverse(events)
	}
	part, next, err := page(events, in.MaxResults, 100, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := struct {
		Events []map[string]any `json:"events"`
		Next   string           `json:"nextToken,omitempty"`
	}{[]map[string]any{}, next}
	for _, e := range part {
		shown := map[string]any{"id": e.ID, "previousEventId": e.PreviousID, "timestamp": e.Time, "type": e.Type}
		if e.Details != nil {
			details := map[string]any{}
			for k, v := range e.Details {
				if in.IncludeExecutionData != nil && !*in.IncludeExecutionData && slices.Contains([]string{
					"input", "output", "parameters", "assignedVariables",
				}, k) {
					continue
				}
				details[k] = v
			}
			shown[e.DetailsName()] = details
		}
		out.Events = append(out.Events, shown)
	}
	return out, nil
}

// tags returns a machine's tags after an optional change.
func (s *Service) tags(c *wire.Call, arn string, change func(map[string]string)) error {
	if err := c.Authorize(arn); err != nil {
		return err
	}
	m := s.machine(arn)
	if m == nil {
		return wire.Errorf("ResourceNotFound", "Resource not found: '%s'", arn)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.tags == nil {
		m.tags = map[string]string{}
	}
	change(m.tags)
	return nil
}

func (s *Service) tagResource(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ResourceArn string
		Tags        []tag
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	return struct{}{}, s.tags(c, in.ResourceArn, func(tags map[string]string) {
		for _, t := range in.Tags {
			tags[t.Key] = t.Value
		}
	})
}

func (s *Service) untagResource(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ResourceArn string
		TagKeys     []string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	return struct{}{}, s.tags(c, in.ResourceArn, func(tags map[string]string) {
		for _, k := range in.TagKeys {
			delete(tags, k)
		}
	})
}

func (s *Service) listTags(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ ResourceArn string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	out := struct {
		Tags []tag `json:"tags"`
	}{[]tag{}}
	err := s.tags(c, in.ResourceArn, func(tags map[string]string) {
		for k, v := range tags {
			out.Tags = append(out.Tags, tag{k, v})
		}
	})
	slices.SortFunc(out.Tags, func(a, b tag) int { return strings.Compare(a.Key, b.Key) })
	return out, err
}
