package eventbridge

// Creation, update and deletion of rules and targets, shared by the API and templates.

import (
	"maps"
	"regexp"
	"slices"

	"github.com/drover-run/drover/local/aws/eventbridge/pattern"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

var nameForm = regexp.MustCompile(`^[.\-_A-Za-z0-9]{1,64}$`)

// maxTargets limits the targets of a rule. https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
const maxTargets = 5

// ruleSpec is the desired configuration of a rule.
type ruleSpec struct {
	Name, Description, EventPattern, ScheduleExpression, State, RoleArn, EventBusName string
	tags                                                                              map[string]string
}

func noRule(bus, name string) error {
	return wire.Errorf("ResourceNotFoundException", "Rule %s does not exist on EventBus %s.", name, bus)
}

// find returns a rule. The caller holds the lock.
func (s *Service) find(reference, name string) (*rule, error) {
	b, err := s.bus(reference)
	if err != nil {
		return nil, err
	}
	r := b.rules[name]
	if r == nil {
		return nil, noRule(b.name, name)
	}
	return r, nil
}

func (s *Service) setRule(caller iam.Caller, in ruleSpec) (*rule, error) {
	if err := caller.Authorize("events:PutRule", s.ruleARN(in.EventBusName, in.Name), nil); err != nil {
		return nil, err
	}
	if !nameForm.MatchString(in.Name) {
		return nil, wire.Errorf("ValidationException", "The rule name %q does not satisfy %s", in.Name, nameForm)
	}
	switch {
	case in.ScheduleExpression != "":
		return nil, wire.Unsupported("events", "ScheduleExpression of rules; use a schedule of EventBridge Scheduler")
	case in.EventPattern == "":
		return nil, wire.Errorf("ValidationException", "Parameter(s) EventPattern or ScheduleExpression must be specified.")
	case in.State != "" && in.State != "ENABLED" && in.State != "DISABLED":
		return nil, wire.Unsupported("events", "the rule state "+in.State)
	}
	if in.RoleArn != "" {
		if err := caller.PassRole(in.RoleArn, principal); err != nil {
			return nil, err
		}
	}
	p, err := pattern.Parse([]byte(in.EventPattern))
	if err != nil {
		return nil, wire.Errorf("InvalidEventPatternException", "%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bus(in.EventBusName)
	if err != nil {
		return nil, err
	}
	r := b.rules[in.Name]
	if r == nil {
		r = &rule{Name: in.Name, bus: b.name, arn: s.ruleARN(b.name, in.Name), tags: maps.Clone(in.tags)}
		b.rules[in.Name] = r
	}
	r.Description, r.Role, r.text, r.pattern, r.enabled = in.Description, in.RoleArn, in.EventPattern, p, in.State != "DISABLED"
	return r, nil
}

func (s *Service) setTargets(caller iam.Caller, bus, name string, targets []target) error {
	if err := caller.Authorize("events:PutTargets", s.ruleARN(bus, name), nil); err != nil {
		return err
	}
	for i := range targets {
		if err := targets[i].check(); err != nil {
			return err
		}
		if role := targets[i].RoleArn; role != "" {
			if err := caller.PassRole(role, principal); err != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(bus, name)
	if err != nil {
		return err
	}
	all := slices.Clone(r.targets)
	for _, t := range targets {
		i := slices.IndexFunc(all, func(o target) bool { return o.Id == t.Id })
		if i >= 0 {
			all[i] = t
		} else {
			all = append(all, t)
		}
	}
	if len(all) > maxTargets {
		return wire.Errorf("LimitExceededException", "The requested resource exceeds the maximum number allowed: %d targets of a rule",
			maxTargets)
	}
	r.targets = all
	return nil
}

func (s *Service) removeTargets(caller iam.Caller, bus, name string, ids []string) error {
	if err := caller.Authorize("events:RemoveTargets", s.ruleARN(bus, name), nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(bus, name)
	if err != nil {
		return err
	}
	r.targets = slices.DeleteFunc(slices.Clone(r.targets), func(t target) bool { return slices.Contains(ids, t.Id) })
	return nil
}

func (s *Service) removeRule(caller iam.Caller, bus, name string) error {
	if err := caller.Authorize("events:DeleteRule", s.ruleARN(bus, name), nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bus(bus)
	if err != nil {
		return err
	}
	if r := b.rules[name]; r != nil && len(r.targets) > 0 {
		return wire.Errorf("ValidationException", "Rule can't be deleted since it has targets.")
	}
	delete(b.rules, name)
	return nil
}

// rule returns a copy of a rule.
func (s *Service) rule(bus, name string) (rule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(bus, name)
	if err != nil {
		return rule{}, err
	}
	return *r, nil
}
