package cloudformation

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/resource"
)

// The service: its interfaces to the rest of the account, start and stop, and lookups of stacks.

// Roles is the interface to IAM.
type Roles interface {
	AssumeRoleAs(roleARN, sessionName, servicePrincipal string) (iam.Caller, iam.Credentials, error)
}

// Objects is the interface to S3: templates and policies by URL, read with the caller's permissions. version may be empty.
type Objects interface {
	ReadObject(ctx context.Context, caller iam.Caller, bucket, key, version string) ([]byte, error)
}

// Emitter is the interface to EventBridge. One goroutine calls it, in the order of the events.
type Emitter interface {
	Emit(ctx context.Context, source, detailType string, resources []string, detail any)
}

// Parameters is the interface to Systems Manager, for parameters of the type AWS::SSM::Parameter::Value<…>.
type Parameters interface {
	ReadParameter(ctx context.Context, caller iam.Caller, name string) (string, error)
}

// Config of a service. Region, Account and Clock are required.
type Config struct {
	Region, Account string
	// Partition is aws by default.
	Partition string
	Clock     *clock.Clock
	// Roles, Objects, Events and Parameters may be nil. Without Events, events are discarded. Without the others, a request that needs them
	// fails.
	Roles      Roles
	Objects    Objects
	Events     Emitter
	Parameters Parameters
	// Zones for Fn::GetAZs. The default is a, b and c of the region.
	Zones []string
	// OnEvent receives every stack event in order, to show progress. It may be nil.
	OnEvent func(StackEvent)
	// OnDelivered is called whenever all events so far are delivered. It may be nil.
	OnDelivered func()
	// ChangeSetFails returns the reason why a change set of a stack fails, or an empty string. It may be nil.
	ChangeSetFails func(stackName string) (reason string)
}

// Service is CloudFormation in one account and region. It is safe for concurrent use.
type Service struct {
	config Config
	ctx    context.Context // stack operations outlive the requests that start them
	stop   context.CancelFunc
	work   sync.WaitGroup
	outbox outbox

	mu        sync.Mutex
	providers map[string]resource.Provider
	// stacks by ID, including deleted ones, oldest first; live stacks by name.
	stacks     []*stack
	live       map[string]*stack
	changeSets map[string]*changeSet
}

// principal is the service that assumes service roles.
const principal = "cloudformation.amazonaws.com"

// New starts a service. Close stops it.
func New(config Config) *Service {
	if config.Partition == "" {
		config.Partition = "aws"
	}
	if len(config.Zones) == 0 {
		config.Zones = []string{config.Region + "a", config.Region + "b", config.Region + "c"}
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Service{
		config: config, ctx: ctx, stop: stop,
		providers: map[string]resource.Provider{}, live: map[string]*stack{}, changeSets: map[string]*changeSet{},
	}
	s.outbox.wake = make(chan struct{}, 1)
	s.work.Go(s.deliver)
	return s
}

// Register adds the resource types of a service. It panics if a type is registered twice.
func (s *Service) Register(providers map[string]resource.Provider) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, provider := range providers {
		if _, twice := s.providers[name]; twice {
			panic("cloudformation: resource type provided twice: " + name)
		}
		s.providers[name] = provider
	}
}

// Close stops every operation and waits for it.
func (s *Service) Close() {
	s.stop()
	s.work.Wait()
}

// outbox queues events for EventBridge and OnEvent, so that neither is called under a lock.
type outbox struct {
	mu     sync.Mutex
	queue  []StackEvent
	queued int // queued and in delivery
	wake   chan struct{}
}

func (o *outbox) put(event StackEvent) {
	o.mu.Lock()
	o.queue = append(o.queue, event)
	o.queued++
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) take() []StackEvent {
	o.mu.Lock()
	defer o.mu.Unlock()
	events := o.queue
	o.queue = nil
	return events
}

// recordDelivery records the delivery of an event. It reports whether it was the last one.
func (o *outbox) recordDelivery() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued--
	return o.queued == 0
}

// Undelivered returns the number of events that are not delivered to EventBridge and OnEvent yet.
func (s *Service) Undelivered() int {
	s.outbox.mu.Lock()
	defer s.outbox.mu.Unlock()
	return s.outbox.queued
}

// deliver delivers events until the service is closed.
func (s *Service) deliver() {
	for {
		for _, event := range s.outbox.take() {
			if s.config.OnEvent != nil {
				s.config.OnEvent(event)
			}
			if s.config.Events != nil {
				s.emit(event)
			}
			if s.outbox.recordDelivery() && s.config.OnDelivered != nil {
				s.config.OnDelivered()
			}
		}
		turn := s.config.Clock.Ticket("cloudformation: events")
		select {
		case <-s.outbox.wake:
			turn()
		case <-s.ctx.Done():
			return
		}
	}
}

// emit sends an event to EventBridge.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stacks-event-bridge.html
func (s *Service) emit(event StackEvent) {
	detail := map[string]any{
		"stack-id":             event.StackId,
		"status-details":       map[string]any{"status": event.ResourceStatus, "status-reason": event.ResourceStatusReason},
		"client-request-token": event.ClientRequestToken,
	}
	detailType := "CloudFormation Stack Status Change"
	if !event.ofStack() {
		detailType = "CloudFormation Resource Status Change"
		detail["logical-resource-id"] = event.LogicalResourceId
		detail["physical-resource-id"] = event.PhysicalResourceId
		detail["resource-type"] = event.ResourceType
	}
	s.config.Events.Emit(s.ctx, "aws.cloudformation", detailType, []string{event.StackId}, detail)
}

func (s *Service) arn(kind, name, id string) string {
	return fmt.Sprintf("arn:%s:cloudformation:%s:%s:%s/%s/%s", s.config.Partition, s.config.Region, s.config.Account, kind, name, id)
}

// find returns a stack by name or ID, or nil. A deleted stack is found by its ID. The caller holds s.mu.
func (s *Service) find(nameOrID string) *stack {
	if !strings.HasPrefix(nameOrID, "arn:") {
		return s.live[nameOrID]
	}
	for _, st := range s.stacks {
		if st.id == nameOrID {
			return st
		}
	}
	return nil
}

// mustFind is find with CloudFormation's error.
func (s *Service) mustFind(nameOrID string) (*stack, error) {
	if nameOrID == "" {
		return nil, invalid("1 validation error detected: Value null at 'stackName' failed to satisfy constraint: Member must not be null")
	}
	st := s.find(nameOrID)
	if st == nil {
		return nil, invalid("Stack with id %s does not exist", nameOrID)
	}
	return st, nil
}

// authorize checks that the caller may perform the action on a stack, which may not exist yet.
func (s *Service) authorize(caller iam.Caller, action, nameOrID string, context map[string]string) error {
	s.mu.Lock()
	arn := nameOrID
	st := s.find(nameOrID)
	if st != nil {
		arn = st.id
		context = maps.Clone(context)
		if context == nil {
			context = map[string]string{}
		}
		for key, value := range st.current.tags {
			context["aws:ResourceTag/"+key] = value
		}
	} else if !strings.HasPrefix(nameOrID, "arn:") {
		arn = s.arn("stack", nameOrID, "*")
	}
	s.mu.Unlock()
	return caller.Authorize("cloudformation:"+action, arn, context)
}

var stackName = regexp.MustCompile(`^[a-zA-Z][-a-zA-Z0-9]{0,127}$`)

// checkName rejects invalid names of stacks and change sets.
func checkName(member, name string) error {
	if stackName.MatchString(name) {
		return nil
	}
	return invalid("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: "+
		"Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*", name, member)
}

// provider returns the provider of a resource type, or nil. The caller holds s.mu.
func (s *Service) provider(resourceType string) resource.Provider { return s.providers[resourceType] }

// actingCaller returns the identity that CloudFormation uses in an operation: the role, if there is one, or the caller.
func (s *Service) actingCaller(caller iam.Caller, roleARN string) (iam.Caller, error) {
	if roleARN == "" {
		return caller.InvokedBy(principal), nil
	}
	if s.config.Roles == nil {
		return iam.Caller{}, unsupportedError("RoleARN")
	}
	acting, _, err := s.config.Roles.AssumeRoleAs(roleARN, "AWSCloudFormation", principal)
	if err != nil {
		return iam.Caller{}, invalid("Role %s is invalid or cannot be assumed", roleARN)
	}
	return acting, nil
}

// Wait returns a stack when no operation on it is running, or the context's error.
func (s *Service) Wait(ctx context.Context, nameOrID string) (Stack, error) {
	for {
		s.mu.Lock()
		st, err := s.mustFind(nameOrID)
		if err != nil {
			s.mu.Unlock()
			return Stack{}, err
		}
		running := st.running
		described := st.describe()
		nameOrID = st.id
		s.mu.Unlock()
		if running == nil {
			return described, nil
		}
		// In the storm a goroutine that was woken continues when it is its turn. Elsewhere turn does nothing.
		turn := s.config.Clock.Ticket("cloudformation: waiting for " + nameOrID)
		select {
		case <-running.done:
			turn()
		case <-ctx.Done():
			return Stack{}, ctx.Err()
		}
	}
}

// Stacks lists the stacks that are not deleted, oldest first.
func (s *Service) Stacks() []Stack {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Stack
	for _, st := range s.stacks {
		if st.status != deleteComplete {
			list = append(list, st.describe())
		}
	}
	return list
}

// Tagged lists the stacks with tags, for the tagging API.
func (s *Service) Tagged(context.Context) []tagging.Tagged {
	s.mu.Lock()
	defer s.mu.Unlock()
	var tagged []tagging.Tagged
	for _, name := range sortedKeys(s.live) {
		if st := s.live[name]; len(st.current.tags) > 0 {
			tagged = append(tagged, tagging.Tagged{ARN: st.id, Tags: maps.Clone(st.current.tags)})
		}
	}
	return tagged
}

func (s *Service) now() time.Time { return s.config.Clock.Now() }

func newID() string { return uuid.NewString() }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
