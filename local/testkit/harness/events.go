package harness

// The event bus with the rules of drover's stack. Each event is delivered independently, so two events may arrive in any
// order, as on EventBridge. A test decides about other faults of events.

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/names"
)

// Event is an event on the bus.
type Event = events.Event[json.RawMessage]

// Fate is what a test decides about an event.
type Fate int

// The fates of events.
const (
	Delivered Fate = iota
	Lost
	Twice
	Held
)

// Bus is the account's default event bus.
type Bus struct {
	account *Account

	mu   sync.Mutex
	fate func(Event) Fate
	held []Event
	lost int
	// removed reports whether drover is not deployed: no rule exists.
	removed bool
	// busy counts events in flight. lasting counts those of them that wait to be the last.
	busy, lasting int
	work          sync.WaitGroup
}

// Decide sets the function that decides about each event that a rule matches. nil delivers all. It is not called for
// stacks in progress, because nothing waits for those events.
func (b *Bus) Decide(decide func(Event) Fate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fate = decide
}

// Held returns the events that are held back.
func (b *Bus) Held() []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Event(nil), b.held...)
}

// Lost returns the number of lost events.
func (b *Bus) Lost() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}

// Emit puts an event on the bus.
func (b *Bus) Emit(_ context.Context, source, detailType string, resources []string, detail any) {
	e := Event{ID: uuid.NewString(), Source: source, DetailType: detailType, Account: ID, Region: Region, Resources: resources,
		Time: time.Now().UTC().Truncate(time.Second)}
	defer b.account.wake()
	if !matchedTypes[detailType] || source == "aws.s3" && !slices.Contains(resources, "arn:aws:s3:::"+SpecsBucket) { // no rule matches it
		return
	}
	var err error
	if e.Detail, err = json.Marshal(detail); err != nil {
		panic(err) // a service's own struct
	}
	to := b.target(e)
	if to == "" {
		return
	}
	b.mu.Lock()
	if b.removed {
		b.mu.Unlock()
		return
	}
	b.busy++
	b.mu.Unlock()
	var waits []time.Duration
	decided := b.account.clock.Turns == nil
	if decided {
		waits = b.deliveries(e, to)
	}
	turn := b.account.clock.Ticket("event for " + to + ": " + about(e))
	b.work.Go(func() {
		if !decided { // decided in its turn
			turn()
			waits = b.deliveries(e, to)
		}
		for i, wait := range waits {
			if i > 0 {
				b.mu.Lock()
				b.busy++
				b.mu.Unlock()
				turn := b.account.clock.Ticket("event again: " + about(e))
				b.work.Go(func() { b.deliverLater(e, wait, turn) })
				continue
			}
			if b.account.clock.Timer(b.account.ending, wait) == nil {
				b.Deliver(e)
			}
		}
		b.endDelivery()
	})
}

func (b *Bus) deliverLater(e Event, wait time.Duration, turn func()) {
	turn()
	if b.account.clock.Timer(b.account.ending, wait) == nil {
		b.Deliver(e)
	}
	b.endDelivery()
}

func (b *Bus) endDelivery() {
	b.mu.Lock()
	b.busy--
	b.mu.Unlock()
	b.account.wake()
}

// deliveries returns the delays after which an event is delivered.
func (b *Bus) deliveries(e Event, to string) []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	fate := Delivered
	if b.fate != nil && !inProgress(e) {
		fate = b.fate(e)
	}
	var late time.Duration
	if fate == Delivered {
		strike := b.account.faults().Decide(faults.Moment{Kind: faults.Delivery, Event: e.DetailType, Target: to, Stack: stackOf(e)})
		switch strike.Kind {
		case faults.Drop:
			fate = Lost
		case faults.Duplicate:
			fate = Twice
		case faults.Reorder:
			late = strike.Delay
		}
	}
	switch fate {
	case Held:
		b.held = append(b.held, e)
		return nil
	case Lost:
		b.lost++
		return nil
	case Twice:
		return []time.Duration{0, 0}
	}
	return []time.Duration{late}
}

// inProgress reports whether an event is about an operation in flight on a stack.
func inProgress(e Event) bool {
	var detail events.StackStatus
	_ = json.Unmarshal(e.Detail, &detail) // other events do not have it
	return strings.HasSuffix(detail.StatusDetails.Status, "_IN_PROGRESS")
}

func stackOf(e Event) string {
	var detail events.StackStatus
	_ = json.Unmarshal(e.Detail, &detail) // other events do not have it
	return names.StackOfARN(detail.StackID)
}

// about returns what an event is about, equally in every replay.
func about(e Event) string {
	var detail struct {
		StackID              string `json:"stack-id"`
		AutoScalingGroupName string
		Object               struct{ Key string }
		Name                 string
	}
	_ = json.Unmarshal(e.Detail, &detail) // it has one of them
	if stack := names.StackOfARN(detail.StackID); stack != "" {
		return stack
	}
	return detail.AutoScalingGroupName + detail.Object.Key + detail.Name
}

func (b *Bus) s3(ctx context.Context, detailType string, detail any, resources []string) {
	b.Emit(ctx, "aws.s3", detailType, resources, detail)
}

// matchedTypes are the types of events that rules match.
var matchedTypes = map[string]bool{
	"Object Created": true, "Object Deleted": true, "CloudFormation Stack Status Change": true, "EC2 Instance-launch Lifecycle Action": true,
	"EC2 Instance-terminate Lifecycle Action": true, "EC2 Spot Instance Interruption Warning": true,
	"EC2 Instance Rebalance Recommendation": true, executionStatus: true,
}

// executionStatus is the type of events about executions.
const executionStatus = "Step Functions Execution Status Change"

// unsuccessful are the statuses of executions that the rule about drover-converge matches.
var unsuccessful = []string{events.ExecutionAborted, events.ExecutionFailed, events.ExecutionTimedOut}

// target returns the function or machine to which the rules send an event.
func (b *Bus) target(e Event) string {
	switch e.DetailType {
	case "Object Created", "Object Deleted":
		var detail events.Object
		if json.Unmarshal(e.Detail, &detail) == nil && detail.Bucket.Name == SpecsBucket && isRollout(detail.Object.Key) {
			return "rollout"
		}
		if detail.Bucket.Name == SpecsBucket && !strings.HasPrefix(detail.Object.Key, names.ReleaseSpecs) {
			return "admit"
		}
		if detail.Bucket.Name == SpecsBucket && strings.HasPrefix(detail.Object.Key, names.ReleaseSpecs) {
			if e.DetailType == "Object Created" {
				return "sweep" // and publish: see Deliver
			}
			return "publish"
		}
	case "CloudFormation Stack Status Change":
		var detail events.StackStatus
		if json.Unmarshal(e.Detail, &detail) == nil && strings.HasPrefix(names.StackOfARN(detail.StackID), names.Prefix) &&
			detail.StatusDetails.Status != "REVIEW_IN_PROGRESS" {
			return "stackevent"
		}
	case "EC2 Instance-launch Lifecycle Action":
		return "join-node"
	case "EC2 Instance-terminate Lifecycle Action":
		return "drain-node"
	case "EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation":
		return "drain-node"
	case executionStatus:
		var detail events.ExecutionStatus
		if json.Unmarshal(e.Detail, &detail) == nil && detail.StateMachineARN == b.account.converge &&
			slices.Contains(unsuccessful, detail.Status) {
			return "sweep"
		}
	}
	return ""
}

// isRollout reports whether the rule about rollouts alone matches a key. It matches releases, too: see Deliver.
func isRollout(key string) bool {
	return strings.HasPrefix(key, names.Rollouts) || strings.HasPrefix(key, names.Decisions) || strings.HasPrefix(key, names.Freezes)
}

// asyncAttempts is how often Lambda runs an event. A throttled event is retried after maxThrottlePause at the latest, until maxEventAge,
// which is that of drover's functions.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
const (
	asyncAttempts    = 3
	maxThrottlePause = 5 * time.Minute
	maxEventAge      = time.Hour
)

// Deliver delivers an event immediately and returns when it was handled.
func (b *Bus) Deliver(e Event) {
	step := b.target(e)
	if step == "join-node" || step == "drain-node" {
		starter, _, err := b.account.Identities.AssumeRoleAs(RoleARN("events"), "events", "events.amazonaws.com")
		if err != nil {
			return
		}
		// a repeated start is ignored
		_, _ = b.account.StepFunctions.Start(context.Background(), starter, b.account.MachineARN(step), e.ID, string(e.Detail))
		return
	}
	if e.DetailType == executionStatus {
		b.invoke(step, map[string]any{"ended": e.Detail})
		return
	}
	if b.account.options.Fleet && (step == "sweep" || step == "publish") {
		b.start("rollout", e)
	}
	if step == "sweep" {
		b.invoke("publish", e)
		b.last()
		b.invoke(step, events.Sweep{Audit: true})
		return
	}
	b.invoke(step, e)
}

// start runs a function asynchronously, as Lambda does.
func (b *Bus) start(step string, payload any) {
	b.mu.Lock()
	if b.removed {
		b.mu.Unlock()
		return
	}
	b.busy++
	b.mu.Unlock()
	turn := b.account.clock.Ticket("start of " + step)
	b.work.Go(func() {
		turn()
		b.invoke(step, payload)
		b.endDelivery()
	})
}

// last waits for a moment until the account is idle. In real time tests give the audit no pause: it would handle the
// release itself, and specs whose own events are in flight.
func (b *Bus) last() {
	if b.account.options.Bubble {
		return
	}
	b.mu.Lock()
	b.lasting++
	b.mu.Unlock()
	for end := time.Now().Add(moment); time.Now().Before(end) && !b.account.rests(); {
		time.Sleep(moment / 100)
	}
	b.mu.Lock()
	b.lasting--
	b.mu.Unlock()
}

// moment is longer than most operations of a test in real time, and short for a test that has an operation wait.
const moment = 300 * time.Millisecond

// invoke invokes a function as EventBridge does.
func (b *Bus) invoke(step string, payload any) {
	queued, throttle := b.account.clock.Now(), time.Second
	for attempt := 0; attempt < asyncAttempts; {
		_, err := b.account.Functions.Call(step, payload)
		if err == nil {
			return
		}
		var pause time.Duration
		if IsThrottled(err) {
			pause, throttle = throttle, min(2*throttle, maxThrottlePause)
		} else { // a minute after the first failure, two after the second
			attempt++
			pause = time.Duration(attempt) * time.Minute
		}
		if attempt == asyncAttempts || b.account.clock.Now().Add(pause).Sub(queued) > maxEventAge ||
			b.account.clock.Work(b.account.ending, pause) != nil {
			return
		}
	}
}

// IsThrottled reports whether Lambda did not run a function, because of the account's limit.
func IsThrottled(err error) bool {
	var e *iam.Error
	return errors.As(err, &e) && e.Code == "TooManyRequestsException"
}
