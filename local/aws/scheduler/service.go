package scheduler

// The service, with a loop for each schedule.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/eventbridge/delivery"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
)

// Roles provides the credentials of schedules; a subset of *iam.Service.
type Roles interface {
	AssumeRoleAs(roleARN, sessionName, servicePrincipal string) (iam.Caller, iam.Credentials, error)
}

const (
	// principal of the service in trust and resource policies.
	principal = "scheduler.amazonaws.com"
	// defaultGroup is the group of schedules that name none.
	defaultGroup = "default"
)

// Config of the service.
type Config struct {
	// Account is the twelve-digit id; Region such as us-east-1; Partition defaults to aws.
	Account, Region, Partition string
	Clock                      *clock.Clock
	Roles                      Roles
	Targets                    delivery.Targets
	// Intercept, if set, is called instead of each delivery. It may drop, delay or repeat the delivery.
	Intercept func(schedule string, deliver func())
}

// Service is Scheduler in one region of one account.
type Service struct {
	config Config
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	groups    map[string]*group
	schedules map[string]*schedule // by ARN
}

// group of schedules.
type group struct {
	name, arn         string
	created, modified time.Time
	token             string
	tags              map[string]string
}

// settings of a schedule, as the API spells them.
type settings struct {
	Name, GroupName            string
	Description                string `json:",omitempty"`
	ScheduleExpression         string
	ScheduleExpressionTimezone string    `json:",omitempty"`
	StartDate, EndDate         time.Time `json:",omitempty"`
	State                      string
	ActionAfterCompletion      string
	FlexibleTimeWindow         window
	Target                     target
}

type window struct {
	Mode                   string
	MaximumWindowInMinutes int `json:",omitempty"`
}

type target struct {
	Arn, RoleArn     string
	Input            string           `json:",omitempty"`
	DeadLetterConfig *deadLetters     `json:",omitempty"`
	RetryPolicy      *delivery.Policy `json:",omitempty"`
}

type deadLetters struct {
	Arn string `json:",omitempty"`
}

type schedule struct {
	settings
	arn               string
	expression        expression
	created, modified time.Time
	// token of the call that created the schedule. The call may be repeated.
	token  string
	cancel context.CancelFunc
}

// New returns a Scheduler with the group default. Close ends all schedules.
func New(config Config) *Service {
	if config.Partition == "" {
		config.Partition = "aws"
	}
	if config.Clock == nil {
		config.Clock = &clock.Clock{}
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Service{config: config, ctx: ctx, stop: stop, groups: map[string]*group{}, schedules: map[string]*schedule{}}
	now := config.Clock.Now()
	s.groups[defaultGroup] = &group{name: defaultGroup, arn: s.groupARN(defaultGroup), created: now, modified: now}
	return s
}

// Close ends all schedules and drops pending deliveries.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
}

func (s *Service) groupARN(name string) string {
	return fmt.Sprintf("arn:%s:scheduler:%s:%s:schedule-group/%s", s.config.Partition, s.config.Region, s.config.Account, name)
}

func (s *Service) arn(group, name string) string {
	return fmt.Sprintf("arn:%s:scheduler:%s:%s:schedule/%s/%s", s.config.Partition, s.config.Region, s.config.Account, group, name)
}

// runLoop starts the loop of a schedule. The caller holds mu.
func (s *Service) runLoop(sc *schedule) {
	ctx, cancel := context.WithCancel(s.ctx)
	sc.cancel = cancel
	if s.closed || sc.State != "ENABLED" {
		return
	}
	own := *sc // the loop's own copy: an update starts another loop
	s.work.Go(func() { s.loop(ctx, own) })
}

// latest is the greatest delay of an invocation. A due time that passed longer ago is skipped, except the one for which
// the loop waited while the machine slept.
const latest = time.Minute

// loop waits for each due time in turn. A rate without a start date is due immediately. An at expression ignores start
// and end dates.
func (s *Service) loop(ctx context.Context, sc schedule) {
	start, after := sc.modified, sc.modified
	if !sc.StartDate.IsZero() && !sc.expression.oneTime() {
		start = sc.StartDate
		if start.After(after) {
			after = start
		}
	}
	after = after.Add(-time.Nanosecond) // the start itself is a due time
	for {
		due := sc.expression.next(after, start)
		if due.IsZero() || !sc.EndDate.IsZero() && due.After(sc.EndDate) && !sc.expression.oneTime() {
			s.complete(sc)
			return
		}
		if err := s.config.Clock.Timer(ctx, due.Sub(s.config.Clock.Now())); err != nil {
			return
		}
		after = due
		if missed := s.config.Clock.Now().Add(-latest); missed.After(after) {
			after = missed
		}
		s.invoke(ctx, sc, due)
	}
}

// complete removes a schedule that is never due again, if its settings request that.
func (s *Service) complete(sc schedule) {
	if sc.ActionAfterCompletion != "DELETE" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.schedules[sc.arn]; have != nil && have.modified.Equal(sc.modified) {
		delete(s.schedules, sc.arn)
	}
}

// invoke delivers one due time within the flexible window. A delivery in flight continues if the schedule changes or is
// deleted.
func (s *Service) invoke(ctx context.Context, sc schedule, due time.Time) {
	role := func() (iam.Caller, error) { return s.assume(sc.Target.RoleArn) }
	id := uuid.NewString()
	d := delivery.Delivery{
		Targets: s.config.Targets, Clock: s.config.Clock, Target: sc.Target.Arn, Policy: sc.Target.RetryPolicy, As: role, DeadLetterAs: role,
		Payload: func(attempt int) []byte { return s.payload(sc, due, id, attempt) }, Dead: s.payload(sc, due, id, 1),
		Attributes: map[string]string{"SCHEDULE_ARN": sc.arn, "SCHEDULED_TIME": stamp(due), "EXECUTION_ID": id, "IS_PAYLOAD_TRUNCATED": "false"},
	}
	if sc.Target.DeadLetterConfig != nil {
		d.DeadLetters = sc.Target.DeadLetterConfig.Arn
	}
	wait := time.Duration(0)
	if sc.FlexibleTimeWindow.Mode == "FLEXIBLE" {
		wait = rand.N(time.Duration(sc.FlexibleTimeWindow.MaximumWindowInMinutes) * time.Minute) // #nosec G404 -- spreads load
	}
	run := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return
		}
		s.work.Go(func() {
			if s.config.Clock.Timer(ctx, wait) == nil {
				d.Run(s.ctx)
			}
		})
	}
	if s.config.Intercept != nil {
		go s.config.Intercept(sc.Name, run) // it may block
		return
	}
	run()
}

// Fire invokes a schedule's target once, immediately, whatever the schedule's state and times. It returns the error that
// a due invocation would retry and send to the dead-letter queue.
func (s *Service) Fire(ctx context.Context, group, name string) error {
	if group == "" {
		group = defaultGroup
	}
	s.mu.Lock()
	sc := s.schedules[s.arn(group, name)]
	s.mu.Unlock()
	if sc == nil {
		return notFound("Schedule", name)
	}
	caller, err := s.assume(sc.Target.RoleArn)
	if err != nil {
		return err
	}
	return s.config.Targets.Send(ctx, caller, sc.Target.Arn, s.payload(*sc, s.config.Clock.Now(), uuid.NewString(), 1))
}

func (s *Service) assume(roleARN string) (iam.Caller, error) {
	caller, _, err := s.config.Roles.AssumeRoleAs(roleARN, strings.ReplaceAll(uuid.NewString(), "-", ""), principal)
	return caller, err
}

// stamp formats a time as in inputs and dead letters.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// payload returns the target's input with replaced keywords, or AWS's default event if the target has no input.
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
func (s *Service) payload(sc schedule, due time.Time, id string, attempt int) []byte {
	if sc.Target.Input == "" {
		raw, _ := json.Marshal(map[string]any{ // plain data
			"version": "0", "id": id, "detail-type": "Scheduled Event", "source": "aws.scheduler", "account": s.config.Account,
			"time": stamp(due), "region": s.config.Region, "resources": []string{sc.arn}, "detail": "{}",
		})
		return raw
	}
	input := []byte(sc.Target.Input)
	for keyword, value := range map[string]string{
		"schedule-arn": sc.arn, "scheduled-time": stamp(due), "execution-id": id, "attempt-number": strconv.Itoa(attempt),
	} {
		input = bytes.ReplaceAll(input, []byte("<aws.scheduler."+keyword+">"), []byte(value))
	}
	return input
}
