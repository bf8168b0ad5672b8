package eventbridge

// The API operations. https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_Operations.html

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/eventbridge/pattern"
	"github.com/drover-run/drover/local/engine/wire"
)

// Wire returns the service's API for the endpoint.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "events", Protocol: wire.JSON11, TargetPrefix: "AWSEvents",
		Operations: map[string]wire.Operation{
			"CreateEventBus": s.createBus, "DescribeEventBus": s.describeBus, "ListEventBuses": s.listBuses, "DeleteEventBus": s.deleteBus,
			"PutEvents": s.putEvents, "TestEventPattern": s.testPattern,
			"PutRule": s.putRule, "DescribeRule": s.describeRule, "ListRules": s.listRules, "DeleteRule": s.deleteRule,
			"EnableRule": s.switchRule(true), "DisableRule": s.switchRule(false),
			"PutTargets": s.putTargets, "RemoveTargets": s.removeTargetsCall, "ListTargetsByRule": s.listTargets,
		},
	}
}

// Limits of PutEvents. https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html
const (
	maxEntries = 10
	maxEntry   = 1 << 20 // bytes
)

func (s *Service) putEvents(_ context.Context, c *wire.Call) (any, error) {
	type entry struct {
		Source, DetailType, Detail, EventBusName, TraceHeader string
		Resources                                             []string
		Time                                                  time.Time
	}
	var in struct {
		Entries    []entry
		EndpointID string `json:"EndpointId"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.EndpointID != "" {
		return nil, wire.Unsupported("events", "EndpointId")
	}
	for _, e := range in.Entries {
		if err := c.Authorize(s.busARN(s.busName(e.EventBusName))); err != nil {
			return nil, err
		}
	}
	if len(in.Entries) == 0 || len(in.Entries) > maxEntries {
		return nil, wire.Errorf("ValidationException", "Entries: between 1 and %d", maxEntries)
	}
	type result struct {
		EventID      string `json:"EventId,omitempty"`
		ErrorCode    string `json:",omitempty"`
		ErrorMessage string `json:",omitempty"`
	}
	out := struct {
		FailedEntryCount int
		Entries          []result
	}{}
	for _, e := range in.Entries {
		var detail map[string]json.RawMessage
		r := result{}
		switch {
		case e.Source == "" || e.DetailType == "" || e.Detail == "":
			r = result{ErrorCode: "InvalidArgument", ErrorMessage: "Parameters Source, DetailType and Detail are required."}
		case strings.HasPrefix(e.Source, "aws."):
			r = result{ErrorCode: "NotAuthorizedForSourceException", ErrorMessage: "Not authorized for the source."}
		case len(e.Source)+len(e.DetailType)+len(e.Detail) > maxEntry:
			r = result{ErrorCode: "InvalidArgument", ErrorMessage: "Event size exceeds the limit."}
		case json.Unmarshal([]byte(e.Detail), &detail) != nil || detail == nil:
			r = result{ErrorCode: "MalformedDetail", ErrorMessage: "Detail is malformed."}
		default:
			// PutEvents accepts an entry for a bus that does not exist, without an error. It rejects an entry if the bus's key
			// cannot be used.
			var refused *wire.Error
			if err := s.seal(e.EventBusName); errors.As(err, &refused) && refused.Code != "ResourceNotFoundException" {
				r = result{ErrorCode: "AccessDeniedException", ErrorMessage: refused.Message}
				break
			}
			r.EventID = s.put(s.busName(e.EventBusName), Event{
				DetailType: e.DetailType, Source: e.Source, Resources: e.Resources, Detail: json.RawMessage(e.Detail),
			}, e.Time)
		}
		if r.ErrorCode != "" {
			out.FailedEntryCount++
		}
		out.Entries = append(out.Entries, r)
	}
	return out, nil
}

func (s *Service) testPattern(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ EventPattern, Event string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	p, err := pattern.Parse([]byte(in.EventPattern))
	if err != nil {
		return nil, wire.Errorf("InvalidEventPatternException", "%v", err)
	}
	var event map[string]json.RawMessage
	if json.Unmarshal([]byte(in.Event), &event) != nil {
		return nil, wire.Errorf("ValidationException", "Parameter Event is not valid. Reason: it is no JSON object")
	}
	for _, field := range []string{"id", "account", "source", "time", "region", "resources", "detail-type"} {
		if _, ok := event[field]; !ok {
			return nil, wire.Errorf("ValidationException", "Parameter Event is not valid. Reason: the mandatory field %s is missing", field)
		}
	}
	ok, err := p.Match([]byte(in.Event))
	return struct{ Result bool }{ok}, err
}

type tag struct{ Key, Value string }

func (s *Service) putRule(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ruleSpec
		Tags []tag
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.ruleARN(in.EventBusName, in.Name)
	in.tags = map[string]string{}
	for _, t := range in.Tags {
		in.tags[t.Key] = t.Value
	}
	r, err := s.setRule(c.Caller, in.ruleSpec)
	if err != nil {
		return nil, err
	}
	return struct{ RuleArn string }{r.arn}, nil
}

// shownRule is a rule as the API returns it.
type shownRule struct {
	Name, Arn, State, EventBusName string
	Description                    string `json:",omitempty"`
	EventPattern                   string `json:",omitempty"`
	RoleArn                        string `json:",omitempty"`
}

func (r rule) view() shownRule {
	state := "DISABLED"
	if r.enabled {
		state = "ENABLED"
	}
	return shownRule{r.Name, r.arn, state, r.bus, r.Description, r.text, r.Role}
}

// authorizedRule decodes a request about a rule, authorizes it and finds the rule.
func (s *Service) authorizedRule(c *wire.Call) (rule, error) {
	var in struct {
		Name, Rule, EventBusName, NextToken string
		Force                               bool
		Limit                               int
	}
	if err := c.Decode(&in); err != nil {
		return rule{}, err
	}
	name := in.Name + in.Rule
	if err := c.Authorize(s.ruleARN(in.EventBusName, name)); err != nil {
		return rule{}, err
	}
	return s.rule(in.EventBusName, name)
}

func (s *Service) describeRule(_ context.Context, c *wire.Call) (any, error) {
	r, err := s.authorizedRule(c)
	if err != nil {
		return nil, err
	}
	return r.view(), nil
}

func (s *Service) listRules(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		NamePrefix, EventBusName, NextToken string
		Limit                               int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(s.ruleARN(in.EventBusName, "*")); err != nil {
		return nil, err
	}
	out := struct{ Rules []shownRule }{[]shownRule{}}
	s.mu.Lock()
	b, err := s.bus(in.EventBusName)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	for _, r := range b.rules {
		if strings.HasPrefix(r.Name, in.NamePrefix) {
			out.Rules = append(out.Rules, r.view())
		}
	}
	s.mu.Unlock()
	slices.SortFunc(out.Rules, func(a, b shownRule) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (s *Service) deleteRule(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Name, EventBusName string
		Force              bool
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.ruleARN(in.EventBusName, in.Name)
	return nil, s.removeRule(c.Caller, in.EventBusName, in.Name)
}

func (s *Service) switchRule(on bool) wire.Operation {
	return func(_ context.Context, c *wire.Call) (any, error) {
		r, err := s.authorizedRule(c)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		stored, err := s.find(r.bus, r.Name)
		if err == nil {
			stored.enabled = on
		}
		return nil, err
	}
}

// failures is the answer of an operation on several targets. Here they succeed or fail together.
type failures struct {
	FailedEntryCount int
	FailedEntries    []struct{}
}

func (s *Service) putTargets(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Rule, EventBusName string
		Targets            []target
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.ruleARN(in.EventBusName, in.Rule)
	if err := s.setTargets(c.Caller, in.EventBusName, in.Rule, in.Targets); err != nil {
		return nil, err
	}
	return failures{FailedEntries: []struct{}{}}, nil
}

func (s *Service) removeTargetsCall(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Rule, EventBusName string
		IDs                []string `json:"Ids"`
		Force              bool
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.ruleARN(in.EventBusName, in.Rule)
	if err := s.removeTargets(c.Caller, in.EventBusName, in.Rule, in.IDs); err != nil {
		return nil, err
	}
	return failures{FailedEntries: []struct{}{}}, nil
}

func (s *Service) listTargets(_ context.Context, c *wire.Call) (any, error) {
	r, err := s.authorizedRule(c)
	if err != nil {
		return nil, err
	}
	return struct{ Targets []target }{r.targets}, nil
}
