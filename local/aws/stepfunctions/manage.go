package stepfunctions

// Creation, update and deletion of state machines, shared by the API and templates.

import (
	"maps"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/local/engine/wire"
)

// maxDefinition limits a definition, in bytes.
const maxDefinition = 1 << 20

// spec is the desired configuration of a machine.
type spec struct {
	name, role, definition, kind string
	logging                      loggingConfiguration
	tracing                      tracingConfiguration
	tags                         map[string]string
}

// parse reads a definition and verifies that it can run here.
func (s *Service) parse(definition string) (*asl.Machine, error) {
	if len(definition) > maxDefinition {
		return nil, wire.Errorf("InvalidDefinition", "Invalid State Machine Definition: it is larger than 1 MB")
	}
	m, err := asl.Parse([]byte(definition))
	if err != nil {
		return nil, wire.Errorf("InvalidDefinition", "Invalid State Machine Definition: '%v'", err)
	}
	return m, s.rejectUnsupported(m)
}

// checkRole verifies that the caller may pass the role and that Step Functions may assume it.
func (s *Service) checkRole(caller iam.Caller, role string) error {
	if err := caller.PassRole(role, "states.amazonaws.com"); err != nil {
		return err
	}
	if _, _, err := s.config.Roles.AssumeRoleAs(role, "validation", "states.amazonaws.com"); err != nil {
		return &iam.Error{
			Code: "AccessDeniedException", Status: 400, Message: "Neither the global service principal states.amazonaws.com, nor the regional one " +
				"is authorized to assume the provided role.",
		}
	}
	return nil
}

// create creates a machine. If an equal machine exists, create returns it.
func (s *Service) create(caller iam.Caller, sp spec) (*machine, error) {
	arn := s.machineARN(sp.name)
	if err := caller.Authorize("states:CreateStateMachine", arn, nil); err != nil {
		return nil, err
	}
	if err := checkName(sp.name); err != nil {
		return nil, err
	}
	if sp.kind != "" && sp.kind != "STANDARD" {
		return nil, wire.Unsupported("states", "state machines of type "+sp.kind)
	}
	if err := sp.logging.check(); err != nil {
		return nil, err
	}
	parsed, err := s.parse(sp.definition)
	if err != nil {
		return nil, err
	}
	if err := s.checkRole(caller, sp.role); err != nil {
		return nil, err
	}
	if err := s.checkManagedRule(parsed, sp.role); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.machines[arn]; m != nil {
		if m.definition == sp.definition && m.role == sp.role {
			return m, nil
		}
		return nil, wire.Errorf("StateMachineAlreadyExists", "State Machine Already Exists: '%s'", arn)
	}
	m := &machine{
		name: sp.name, arn: arn, role: sp.role, definition: sp.definition, revision: uuid.NewString(), parsed: parsed,
		logging: sp.logging, tracing: sp.tracing, tags: maps.Clone(sp.tags), created: s.config.Clock.Now(),
	}
	s.machines[arn] = m
	return m, nil
}

// update changes a machine. Running executions keep the definition with which they started.
func (s *Service) update(caller iam.Caller, arn string, change func(*spec)) (*machine, error) {
	if err := caller.Authorize("states:UpdateStateMachine", arn, nil); err != nil {
		return nil, err
	}
	old := s.machine(arn)
	if old == nil {
		return nil, noMachine(arn)
	}
	sp := spec{name: old.name, role: old.role, definition: old.definition, logging: old.logging, tracing: old.tracing, tags: old.tags}
	change(&sp)
	if err := sp.logging.check(); err != nil {
		return nil, err
	}
	parsed, err := s.parse(sp.definition)
	if err != nil {
		return nil, err
	}
	if sp.role != old.role {
		if err := s.checkRole(caller, sp.role); err != nil {
			return nil, err
		}
	}
	if err := s.checkManagedRule(parsed, sp.role); err != nil {
		return nil, err
	}
	m := &machine{
		name: old.name, arn: arn, role: sp.role, definition: sp.definition, revision: uuid.NewString(), parsed: parsed,
		logging: sp.logging, tracing: sp.tracing, tags: maps.Clone(sp.tags), created: old.created,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machines[arn] = m
	return m, nil
}

// remove deletes a machine. Deleting one that does not exist succeeds.
func (s *Service) remove(caller iam.Caller, arn string) error {
	if err := caller.Authorize("states:DeleteStateMachine", arn, nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.machines, arn)
	return nil
}

func (s *Service) machine(arn string) *machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machines[arn]
}
