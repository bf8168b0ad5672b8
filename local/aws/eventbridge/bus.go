package eventbridge

// Event buses: the account's default bus, and custom ones.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-event-bus.html

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/wire"
)

// Keys provides KMS keys; a subset of *kms.Service.
type Keys interface {
	// KeyARN returns the ARN of a key by ID, ARN or alias.
	KeyARN(id string) (string, error)
	// AuthorizeFor returns an error unless the caller may use a key with an encryption context.
	AuthorizeFor(caller iam.Caller, action, id string, encryption map[string]string) error
}

const defaultBus = "default"

// bus is an event bus.
type bus struct {
	name, arn, description, key, deadLetters string
	tags                                     map[string]string
	rules                                    map[string]*rule // by name
}

func (s *Service) busARN(name string) string {
	return fmt.Sprintf("arn:%s:events:%s:%s:event-bus/%s", s.config.Partition, s.config.Region, s.config.Account, name)
}

// busName returns the name of a bus by name or ARN.
func (s *Service) busName(reference string) string {
	if reference == "" {
		return defaultBus
	}
	return strings.TrimPrefix(reference, s.busARN(""))
}

func (s *Service) ruleARN(bus, name string) string {
	if bus = s.busName(bus); bus != defaultBus {
		name = bus + "/" + name
	}
	return fmt.Sprintf("arn:%s:events:%s:%s:rule/%s", s.config.Partition, s.config.Region, s.config.Account, name)
}

func noBus(name string) error {
	return wire.Errorf("ResourceNotFoundException", "Event bus %s does not exist.", name)
}

// bus returns a bus by name or ARN. The caller holds the lock.
func (s *Service) bus(reference string) (*bus, error) {
	name := s.busName(reference)
	b := s.buses[name]
	if b == nil {
		return nil, noBus(name)
	}
	return b, nil
}

// busSpec is the desired configuration of a bus.
type busSpec struct {
	Name, Description, KmsKeyIdentifier string
	DeadLetterConfig                    *deadLetters
	tags                                map[string]string
}

// busNameForm excludes slashes, which only names of partner buses have.
var busNameForm = regexp.MustCompile(`^[.\-_A-Za-z0-9]{1,256}$`)

// setBus creates or changes a bus.
func (s *Service) setBus(caller iam.Caller, action string, in busSpec) (*bus, error) {
	if err := caller.Authorize("events:"+action, s.busARN(in.Name), nil); err != nil {
		return nil, err
	}
	if !busNameForm.MatchString(in.Name) {
		return nil, wire.Errorf("ValidationException", "The event bus name %q does not satisfy %s", in.Name, busNameForm)
	}
	if in.KmsKeyIdentifier != "" {
		if s.config.Keys == nil {
			return nil, wire.Unsupported("events", "encrypted buses in an account without KMS")
		}
		if _, err := s.config.Keys.KeyARN(in.KmsKeyIdentifier); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buses[in.Name]
	switch {
	case b != nil && action == "CreateEventBus":
		return nil, wire.Errorf("ResourceAlreadyExistsException", "Event bus %s already exists.", in.Name)
	case b == nil && action == "UpdateEventBus":
		return nil, noBus(in.Name)
	case b == nil:
		b = &bus{name: in.Name, arn: s.busARN(in.Name), tags: maps.Clone(in.tags), rules: map[string]*rule{}}
		s.buses[in.Name] = b
	}
	b.description, b.key, b.deadLetters = in.Description, in.KmsKeyIdentifier, ""
	if in.DeadLetterConfig != nil {
		b.deadLetters = in.DeadLetterConfig.Arn
	}
	return b, nil
}

// removeBus removes a bus that has no rules. Removing one that does not exist succeeds.
func (s *Service) removeBus(caller iam.Caller, name string) error {
	if err := caller.Authorize("events:DeleteEventBus", s.busARN(name), nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == defaultBus {
		return wire.Errorf("ValidationException", "Cannot delete event bus default.")
	}
	if b := s.buses[name]; b != nil && len(b.rules) > 0 {
		return wire.Errorf("ValidationException", "Event bus %s can't be deleted since it has rules.", name)
	}
	delete(s.buses, name)
	return nil
}

// seal verifies that EventBridge may use the bus's key to encrypt an event.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-encryption-key-policy.html
func (s *Service) seal(reference string) error {
	s.mu.Lock()
	b, err := s.bus(reference)
	s.mu.Unlock()
	if err != nil || b.key == "" {
		return err
	}
	service := s.config.Identities.ServiceCaller(principal, b.arn)
	return s.config.Keys.AuthorizeFor(service, "GenerateDataKey", b.key, map[string]string{"aws:events:event-bus:arn": b.arn})
}

// shownBus is a bus as the API returns it.
type shownBus struct {
	Name, Arn        string
	Description      string       `json:",omitempty"`
	KmsKeyIdentifier string       `json:",omitempty"`
	DeadLetterConfig *deadLetters `json:",omitempty"`
}

func (b *bus) view() shownBus {
	out := shownBus{Name: b.name, Arn: b.arn, Description: b.description, KmsKeyIdentifier: b.key}
	if b.deadLetters != "" {
		out.DeadLetterConfig = &deadLetters{Arn: b.deadLetters}
	}
	return out
}

func (s *Service) createBus(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		busSpec
		Tags []tag
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.busARN(in.Name)
	in.tags = map[string]string{}
	for _, t := range in.Tags {
		in.tags[t.Key] = t.Value
	}
	b, err := s.setBus(c.Caller, "CreateEventBus", in.busSpec)
	if err != nil {
		return nil, err
	}
	return struct{ EventBusArn string }{b.arn}, nil
}

func (s *Service) describeBus(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ Name string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(s.busARN(s.busName(in.Name))); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bus(in.Name)
	if err != nil {
		return nil, err
	}
	return b.view(), nil
}

func (s *Service) listBuses(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		NamePrefix, NextToken string
		Limit                 int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	out := struct{ EventBuses []shownBus }{[]shownBus{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.buses)) {
		if strings.HasPrefix(name, in.NamePrefix) {
			out.EventBuses = append(out.EventBuses, s.buses[name].view())
		}
	}
	return out, nil
}

func (s *Service) deleteBus(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ Name string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.busARN(in.Name)
	return nil, s.removeBus(c.Caller, in.Name)
}

// Tagged returns the buses and rules with their tags.
func (s *Service) Tagged(context.Context) (all []tagging.Tagged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.buses {
		all = append(all, tagging.Tagged{ARN: b.arn, Tags: b.tags})
		for _, r := range b.rules {
			all = append(all, tagging.Tagged{ARN: r.arn, Tags: r.tags})
		}
	}
	return all
}
