package eventbridge

// The buses: they receive events and match them with rules.

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/eventbridge/delivery"
	"github.com/drover-run/drover/local/aws/eventbridge/pattern"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
)

// Identities provides the callers as which EventBridge delivers; a subset of *iam.Service.
type Identities interface {
	AssumeRoleAs(roleARN, sessionName, servicePrincipal string) (iam.Caller, iam.Credentials, error)
	ServiceCaller(servicePrincipal, sourceARN string) iam.Caller
}

// principal of the service in trust and resource policies.
const principal = "events.amazonaws.com"

// Event is an event as a bus delivers it.
// https://docs.aws.amazon.com/eventbridge/latest/ref/overview-event-structure.html
type Event struct {
	Version    string          `json:"version"`
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Account    string          `json:"account"`
	Time       string          `json:"time"`
	Region     string          `json:"region"`
	Resources  []string        `json:"resources"`
	Detail     json.RawMessage `json:"detail"`
}

// Config of the service.
type Config struct {
	// Account is the twelve-digit id; Region such as us-east-1; Partition defaults to aws.
	Account, Region, Partition string
	Clock                      *clock.Clock
	Identities                 Identities
	// Keys encrypt buses. A bus with a key is an error if Keys is nil.
	Keys Keys
	// Observe, if set, receives each event with the name of its bus. It must not block.
	Observe func(bus string, e Event)
	// Intercept, if set, is called instead of each delivery. It may drop, delay or repeat the delivery.
	Intercept func(rule string, e Event, deliver func())
}

// Service is EventBridge in one region of one account.
type Service struct {
	config Config
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	targets delivery.Targets
	buses   map[string]*bus // by name
}

// New returns the default bus without rules. Close ends its deliveries.
func New(config Config) *Service {
	if config.Partition == "" {
		config.Partition = "aws"
	}
	if config.Clock == nil {
		config.Clock = &clock.Clock{}
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Service{config: config, ctx: ctx, stop: stop, buses: map[string]*bus{}}
	s.buses[defaultBus] = &bus{name: defaultBus, arn: s.busARN(defaultBus), rules: map[string]*rule{}}
	return s
}

// SetTargets sets the services to which events are delivered. They emit events themselves, so they are created after the
// bus.
func (s *Service) SetTargets(t delivery.Targets) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.targets = t
}

// Close drops pending deliveries.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
}

// Emit puts an event of an AWS service on the default bus. The detail must be a JSON object once encoded.
func (s *Service) Emit(_ context.Context, source, detailType string, resources []string, detail any) {
	raw, err := delivery.Encode(detail)
	if err != nil {
		slog.Error("an event cannot be encoded", "source", source, "detail-type", detailType, "error", err)
		return
	}
	s.put(defaultBus, Event{DetailType: detailType, Source: source, Resources: resources, Detail: raw}, time.Time{})
}

// put completes an event, starts the deliveries of the rules that match, and returns the event's ID.
func (s *Service) put(to string, e Event, at time.Time) string {
	if at.IsZero() {
		at = s.config.Clock.Now()
	}
	e.Version, e.ID, e.Account, e.Region = "0", uuid.NewString(), s.config.Account, s.config.Region
	e.Time = at.UTC().Format(time.RFC3339)
	if e.Resources == nil {
		e.Resources = []string{}
	}
	if s.config.Observe != nil {
		s.config.Observe(to, e)
	}
	text := delivery.JSON(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buses[to]
	if s.closed || b == nil {
		return e.ID
	}
	for _, r := range b.rules {
		if !r.enabled || r.pattern == nil {
			continue
		}
		if ok, err := r.pattern.Match(text); err != nil || !ok {
			continue
		}
		for _, t := range r.targets {
			s.deliver(*r, t, e, text)
		}
	}
	return e.ID
}

// deliver starts one delivery. The caller holds mu.
func (s *Service) deliver(r rule, t target, e Event, text []byte) {
	service := func() (iam.Caller, error) { return s.config.Identities.ServiceCaller(principal, r.arn), nil }
	d := delivery.Delivery{
		Targets: s.targets, Clock: s.config.Clock, Target: t.Arn, Policy: t.RetryPolicy, As: service, DeadLetterAs: service, Dead: text,
		Attributes: map[string]string{"RULE_ARN": r.arn},
	}
	if t.DeadLetterConfig != nil {
		d.DeadLetters = t.DeadLetterConfig.Arn
	}
	if role := t.RoleArn; role != "" {
		d.As = func() (iam.Caller, error) {
			caller, _, err := s.config.Identities.AssumeRoleAs(role, "events-"+uuid.NewString()[:8], principal)
			return caller, err
		}
	}
	received := s.config.Clock.Now()
	run := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return
		}
		s.work.Go(func() {
			payload, err := t.input(r, e, text, received)
			if err != nil { // AWS counts a FailedInvocation and reports it nowhere else
				slog.Warn("the input of a target cannot be made", "rule", r.Name, "target", t.Arn, "error", err)
				return
			}
			d := d // each delivery needs a copy
			d.Payload = func(int) []byte { return payload }
			d.Run(s.ctx)
		})
	}
	if s.config.Intercept == nil {
		go run() // the caller holds mu
		return
	}
	go s.config.Intercept(r.Name, e, run)
}

// rule of a bus.
type rule struct {
	Name, Description, Role string
	bus                     string
	arn                     string
	enabled                 bool
	text                    string // of the pattern
	pattern                 *pattern.Pattern
	targets                 []target
	tags                    map[string]string
}
