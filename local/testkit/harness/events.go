package harness

// The event bus with the rules of drover's stack. Each event is delivered by itself, so two that follow each other may arrive
// in any order, as EventBridge's do; what else may befall them is a test's to say.

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/names"
)

// Event on the bus.
type Event = events.Event[json.RawMessage]

// Fate of an event.
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
	// busy counts events that are on their way, and lasting those of them that wait to be the last.
	busy, lasting int
	work          sync.WaitGroup
}

// Decide has decide say what befalls each event that a rule matches; nil delivers all. It does not decide about progress of stacks,
// for which nobody waits.
func (b *Bus) Decide(decide func(Event) Fate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fate = decide
}

// Held are the events held back so far; Lost is how many were lost.
func (b *Bus) Held() []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Event(nil), b.held...)
}

// Lost is how many events were lost.
func (b *Bus) Lost() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}

// Emit puts an event on the bus.
func (b *Bus) Emit(_ context.Context, source, detailType string, resources []string, detail any) {
	e := Event{ID: uuid.NewString(), Source: source, DetailType: detailType, Account: ID, Region: Region, Resources: resources,
		Time: time.Now().UTC().Truncate(time.Second)}
	defer b.account.happened()
	if !matched[detailType] || source == "aws.s3" && !slices.Contains(resources, "arn:aws:s3:::"+SpecsBucket) { // which no rule asks about
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
	b.busy++
	b.mu.Unlock()
	var waits []time.Duration
	decided := b.account.clock.Turns == nil
	if decided {
		waits = b.deliveries(e, to)
	}
	turn := b.account.clock.Ticket("event for " + to + ": " + about(e))
	b.work.Go(func() {
		if !decided { // whose turn it is decides about it
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
		b.done()
	})
}

func (b *Bus) deliverLater(e Event, wait time.Duration, turn func()) {
	turn()
	if b.account.clock.Timer(b.account.ending, wait) == nil {
		b.Deliver(e)
	}
	b.done()
}

func (b *Bus) done() {
	b.mu.Lock()
	b.busy--
	b.mu.Unlock()
	b.account.happened()
}

// deliveries says after which times an event is delivered.
func (b *Bus) deliveries(e Event, to string) []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	fate := Delivered
	if b.fate != nil && !inProgress(e) {
		fate = b.fate(e)
	}
	var late time.Duration
	if engine := b.account.options.Faults; engine != nil && fate == Delivered {
		strike := engine.Decide(b.account.clock.Now(), faults.Moment{What: faults.Delivery, Event: e.DetailType, Target: to, Stack: stackOf(e)})
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

// inProgress says whether an event tells of an operation on a stack that goes on.
func inProgress(e Event) bool {
	var detail events.StackStatus
	_ = json.Unmarshal(e.Detail, &detail) // of another event it has none
	return strings.HasSuffix(detail.StatusDetails.Status, "_IN_PROGRESS")
}

func stackOf(e Event) string {
	var detail events.StackStatus
	_ = json.Unmarshal(e.Detail, &detail) // of another event it has none
	return names.StackOfARN(detail.StackID)
}

// about says what an event is about, the same in every replay.
func about(e Event) string {
	var detail struct {
		StackID              string `json:"stack-id"`
		AutoScalingGroupName string
		Object               struct{ Key string }
	}
	_ = json.Unmarshal(e.Detail, &detail) // which has one of them
	if stack := names.StackOfARN(detail.StackID); stack != "" {
		return stack
	}
	return detail.AutoScalingGroupName + detail.Object.Key
}

func (b *Bus) s3(ctx context.Context, detailType string, detail any, resources []string) {
	b.Emit(ctx, "aws.s3", detailType, resources, detail)
}

// matched are the types of events that rules ask about.
var matched = map[string]bool{
	"Object Created": true, "Object Deleted": true, "CloudFormation Stack Status Change": true, "EC2 Instance-launch Lifecycle Action": true,
	"EC2 Instance-terminate Lifecycle Action": true, "EC2 Spot Instance Interruption Warning": true,
	"EC2 Instance Rebalance Recommendation": true,
}

// target says which function or machine the rules send an event to.
func (b *Bus) target(e Event) string {
	switch e.DetailType {
	case "Object Created", "Object Deleted":
		var detail events.Object
		if json.Unmarshal(e.Detail, &detail) == nil && detail.Bucket.Name == SpecsBucket && !strings.HasPrefix(detail.Object.Key,
			names.ReleaseSpecs) {
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
	}
	return ""
}

// asyncAttempts is how often Lambda tries an event.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
const asyncAttempts = 3

// Deliver delivers an event now and returns when it was handled.
func (b *Bus) Deliver(e Event) {
	step := b.target(e)
	if step == "join-node" || step == "drain-node" {
		starter, _, err := b.account.identities.AssumeRoleAs(role("events"), "events", "events.amazonaws.com")
		if err != nil {
			return
		}
		_, _ = b.account.States.Start(context.Background(), starter, b.account.machineARN(step), e.ID, string(e.Detail)) // twice is once
		return
	}
	if step == "sweep" {
		b.invoke("publish", e)
		b.last()
		b.invoke(step, events.Sweep{Audit: true})
		return
	}
	b.invoke(step, e)
}

// last waits for a moment until nothing else goes on. In real time tests give the audit no patience: it would look at
// the release itself, and act on specs whose own events are on their way, beside them.
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

// moment is longer than most of what a test has go on in real time, and short for one that has something wait.
const moment = 300 * time.Millisecond

// invoke a function as EventBridge does.
func (b *Bus) invoke(step string, payload any) {
	for attempt := range asyncAttempts {
		// A minute after the first failure, two after the second.
		if b.account.clock.Work(b.account.ending, time.Duration(attempt)*time.Minute) != nil {
			return
		}
		if _, err := b.account.Functions.Call(step, payload); err == nil {
			return
		}
	}
}
