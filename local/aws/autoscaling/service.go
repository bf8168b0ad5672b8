package autoscaling

// The service: its configuration, its groups, IDs, and the wait for changes.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/wire"
)

// Durations of simulated work, which --speed shortens.
const (
	// retryWork is the pause after a failed launch. It doubles up to retryLimit.
	retryWork, retryLimit = 30 * time.Second, 8 * time.Minute
	// rebalanceWork is the time from a change of subnets to the rebalancing of zones.
	rebalanceWork = time.Minute
	// healthWork is the delay until Auto Scaling notices that an instance ended.
	healthWork = 30 * time.Second
)

// Instances is the interface to EC2: *ec2.Service.
type Instances interface {
	LaunchTemplate(id, name, version string) (ec2.Template, error)
	CheckLaunch(caller iam.Caller, r ec2.LaunchRequest) error
	Launch(r ec2.LaunchRequest) (ec2.Instance, error)
	AwaitInstance(ctx context.Context, id string, states ...string) (ec2.Instance, error)
	Terminate(id, reason string) error
	Subnets(ids ...string) ([]ec2.Subnet, error)
}

// Roles is the interface to IAM: *iam.Service. The first group creates the service-linked role.
type Roles interface {
	// LinkRole creates the service-linked role of a service, unless it exists.
	LinkRole(name, principal, description string, authorize func(action, resource string, context map[string]string) error) error
}

// Emitter sends events to the account's default bus: EventBridge.
type Emitter interface {
	Emit(ctx context.Context, source, detailType string, resources []string, detail any)
}

// Config of the service. Region, Account, Clock and Instances are required.
type Config struct {
	Region, Account string
	// Partition is aws by default.
	Partition string
	Clock     *clock.Clock
	Instances Instances
	// Roles and Events may be nil. Then no service-linked role is created, and events are discarded.
	Roles  Roles
	Events Emitter
	// Readings of open questions: questions.TerminateHooks, OtherSignals, OtherInstances and RefreshRollback.
	Readings questions.Readings
}

// Service is Auto Scaling in one region of one account.
type Service struct {
	config Config
	ctx    context.Context // groups outlive the requests that create them
	stop   context.CancelFunc
	work   sync.WaitGroup
	outbox outbox

	mu      sync.Mutex
	closed  bool
	changes *clock.Changes
	groups  []*group // in the order of their creation
	deleted []*group // for their activities
	watched map[*func(View)]string
	// waiting makes rolling updates and instance refreshes wait until the instances of a batch have ended, with their termination hooks.
	waiting bool
	// waits overrides waiting for single groups.
	waits map[string]bool
}

// New starts a service. Close stops it.
func New(config Config) *Service {
	if config.Partition == "" {
		config.Partition = "aws"
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Service{
		config: config, ctx: ctx, stop: stop, watched: map[*func(View)]string{}, waits: map[string]bool{},
		waiting: config.Readings.Other(questions.TerminateHooks),
	}
	s.changes = clock.NewChanges(&s.mu)
	return s
}

// WaitForTerminateHooks changes the reading of questions.TerminateHooks for batches that begin later: of the named groups or, without
// names, of all others.
func (s *Service) WaitForTerminateHooks(wait bool, groups ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(groups) == 0 {
		s.waiting = wait
	}
	for _, name := range groups {
		s.waits[name] = wait
	}
}

// waitsForHooks reports whether updates of a group wait until instances ended. The caller holds the lock.
func (s *Service) waitsForHooks(g *group) bool {
	if wait, changed := s.waits[g.name]; changed {
		return wait
	}
	return s.waiting
}

// Close stops all running work and waits for it.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
}

// background runs f until it ends or the service is closed. The caller holds the lock.
func (s *Service) background(f func(ctx context.Context)) {
	if !s.closed {
		turn := s.config.Clock.Ticket("autoscaling: in the background")
		s.work.Go(func() {
			turn()
			f(s.ctx)
		})
	}
}

// changedLocked wakes all calls of await, and shows watchers the changes.
func (s *Service) changedLocked() {
	s.changes.Announce()
	for see, name := range s.watched {
		for _, g := range s.groups {
			if g.name == name {
				(*see)(g.view())
			}
		}
	}
}

// View is the state of a group at one time.
type View struct {
	Min, Max, Desired int
	Instances         []InstanceView
	Suspended         []string // processes, sorted
}

// InstanceView is the state of a group's instance at one time.
type InstanceView struct {
	ID, State       string
	TemplateVersion int
	Unhealthy       bool
	// Activity is the cause of its latest activity, as DescribeScalingActivities shows it.
	Activity string
}

func (g *group) view() View {
	v := View{Min: g.min, Max: g.max, Desired: g.desired, Suspended: slices.Sorted(maps.Keys(g.suspended))}
	for _, m := range g.members {
		i := InstanceView{ID: m.id, State: m.lifecycle(), TemplateVersion: m.template.Version, Unhealthy: m.health == unhealthy}
		if m.activity != nil {
			i.Activity = m.activity.Cause
		}
		v.Instances = append(v.Instances, i)
	}
	return v
}

// View returns the current state of a group.
func (s *Service) View(group string) (View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(group)
	if err != nil {
		return View{}, false
	}
	return g.view(), true
}

// Terminating reports whether an instance is terminating and no hook holds it. It first waits until all events are on the bus: the event of
// a hook that holds an instance is in flight until then.
func (s *Service) Terminating() bool {
	s.outbox.flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		if slices.ContainsFunc(g.members, (*member).endsByItself) {
			return true
		}
	}
	return false
}

// endsByItself reports whether an instance is terminating and no hook holds it. It leaves a hook a moment after the hook's result.
func (m *member) endsByItself() bool {
	held := slices.ContainsFunc(m.actions, func(a *action) bool { return a.result == "" })
	return m.state == terminating || m.state == terminatingProceed || m.state == terminatingWait && !held
}

// Watch calls see with every state of a group from now on, until stop is called. see runs while the service is locked, and must not call
// the service.
func (s *Service) Watch(group string, see func(View)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched[&see] = group
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watched, &see)
	}
}

// await waits until done returns true. It calls done with the lock held, now and after every change of state.
func (s *Service) await(ctx context.Context, done func() (bool, error)) error {
	return s.changes.Await(ctx, s.ctx, s.config.Clock, "autoscaling: a change", done)
}

func (s *Service) now() time.Time { return s.config.Clock.Now() }

func newID() string { return uuid.NewString() }

// invalid is the error that Auto Scaling returns in most cases.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/CommonErrors.html
func invalid(format string, args ...any) error {
	return wire.Errorf("ValidationError", format, args...)
}

// group finds a group by name. The caller holds the lock.
func (s *Service) group(name string) (*group, error) {
	for _, g := range s.groups {
		if g.name == name {
			return g, nil
		}
	}
	return nil, invalid("AutoScalingGroup name not found - AutoScalingGroup %s not found", name)
}

// member finds an instance and its group. The caller holds the lock.
func (s *Service) member(instanceID string) (*group, *member, error) {
	for _, g := range s.groups {
		for _, m := range g.members {
			if m.id == instanceID {
				return g, m, nil
			}
		}
	}
	return nil, nil, invalid("Instance Id not found - No managed instance found for instance ID %s", instanceID)
}

func (s *Service) arn(id, name string) string {
	return fmt.Sprintf("arn:%s:autoscaling:%s:%s:autoScalingGroup:%s:autoScalingGroupName/%s", s.config.Partition, s.config.Region,
		s.config.Account, id, name)
}

// allow checks an action (without "autoscaling:") on a group, with its tags and further condition keys.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2autoscaling.html
func (s *Service) allow(caller iam.Caller, action string, g *group, context map[string]string) error {
	keys := map[string]string{}
	for _, t := range g.tags {
		keys["aws:ResourceTag/"+t.Key] = t.Value
		keys["autoscaling:ResourceTag/"+t.Key] = t.Value
	}
	for k, v := range context {
		keys[k] = v
	}
	return caller.Authorize("autoscaling:"+action, g.arn, keys)
}

// serviceLinkedRole creates the role if it does not exist and the caller may create it.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/autoscaling-service-linked-role.html
func (s *Service) serviceLinkedRole(caller iam.Caller) error {
	if s.config.Roles == nil {
		return nil
	}
	return s.config.Roles.LinkRole("AWSServiceRoleForAutoScaling", "autoscaling.amazonaws.com",
		"Default Service-Linked Role enables access to AWS Services and Resources used or managed by Auto Scaling", caller.Authorize)
}

// spotRole creates the role with the first spot instance, if it does not exist. The service-linked role of Auto Scaling may create it.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-instance-requests.html
// https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AutoScalingServiceRolePolicy.html
func (s *Service) spotRole() error {
	if s.config.Roles == nil {
		return nil
	}
	return s.config.Roles.LinkRole("AWSServiceRoleForEC2Spot", "spot.amazonaws.com", "Default EC2 Spot Service Linked Role", nil)
}

// outbox sends events outside of the lock, in the order in which they happened.
type outbox struct {
	mu      sync.Mutex
	queue   []func()
	running bool
	sent    chan struct{} // closed when running becomes false
}

// flush waits until the events that were queued are sent.
func (o *outbox) flush() {
	o.mu.Lock()
	sent, running := o.sent, o.running
	o.mu.Unlock()
	if running {
		<-sent
	}
}

// emit queues an event. The caller holds the service's lock.
func (s *Service) emit(detailType string, resources []string, detail any) {
	if s.config.Events == nil || s.closed {
		return
	}
	s.outbox.mu.Lock()
	defer s.outbox.mu.Unlock()
	s.outbox.queue = append(s.outbox.queue, func() {
		s.config.Events.Emit(s.ctx, "aws.autoscaling", detailType, resources, detail)
	})
	if s.outbox.running {
		return
	}
	s.outbox.running, s.outbox.sent = true, make(chan struct{})
	turn := s.config.Clock.Ticket("autoscaling: events")
	s.work.Go(func() {
		for {
			turn()
			s.outbox.mu.Lock()
			if len(s.outbox.queue) == 0 {
				s.outbox.running = false
				close(s.outbox.sent)
				s.outbox.mu.Unlock()
				return
			}
			send := s.outbox.queue[0]
			s.outbox.queue = slices.Delete(s.outbox.queue, 0, 1)
			s.outbox.mu.Unlock()
			send()
			turn = s.config.Clock.Ticket("autoscaling: events")
		}
	})
}
