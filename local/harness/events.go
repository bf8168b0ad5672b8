package harness

// The event bus with the rules of drover's stack. Each event is delivered by itself, so two that follow each other may arrive
// in any order, as EventBridge's do; what else may befall them is a test's to say.

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/events"
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
	busy int
}

// Decide has decide say what befalls each event that a rule matches; nil delivers all.
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
	body, err := json.Marshal(detail)
	if err != nil {
		panic(err) // a service's own struct
	}
	e := Event{
		ID: uuid.NewString(), Source: source, DetailType: detailType, Account: ID, Region: Region, Time: time.Now().UTC(),
		Resources: resources, Detail: body,
	}
	defer b.account.happened()
	if target(e) == "" {
		return
	}
	b.mu.Lock()
	decide := b.fate
	b.mu.Unlock()
	fate := Delivered
	if decide != nil {
		fate = decide(e)
	}
	b.mu.Lock()
	times := map[Fate]int{Delivered: 1, Twice: 2}[fate]
	switch fate {
	case Held:
		b.held = append(b.held, e)
	case Lost:
		b.lost++
	}
	b.busy += times
	b.mu.Unlock()
	for range times {
		go func() {
			b.Deliver(e)
			b.mu.Lock()
			b.busy--
			b.mu.Unlock()
			b.account.happened()
		}()
	}
}

func (b *Bus) s3(ctx context.Context, detailType string, detail any, resources []string) {
	b.Emit(ctx, "aws.s3", detailType, resources, detail)
}

// target says which function or machine the rules send an event to.
func target(e Event) string {
	switch e.DetailType {
	case "Object Created", "Object Deleted":
		var detail events.Object
		if json.Unmarshal(e.Detail, &detail) == nil && detail.Bucket.Name == SpecsBucket && strings.HasPrefix(detail.Object.Key, names.ClusterSpecs) {
			return "admit"
		}
	case "CloudFormation Stack Status Change":
		var detail events.StackStatus
		if json.Unmarshal(e.Detail, &detail) == nil && strings.HasPrefix(names.StackOfARN(detail.StackID), names.Prefix) &&
			!strings.HasSuffix(detail.StatusDetails.Status, "_IN_PROGRESS") {
			return "stackevent"
		}
	case "EC2 Instance-launch Lifecycle Action":
		return "join-node"
	case "EC2 Instance-terminate Lifecycle Action":
		return "drain"
	}
	return ""
}

// asyncAttempts is how often Lambda tries an event.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
const asyncAttempts = 3

// Deliver delivers an event now and returns when it was handled.
func (b *Bus) Deliver(e Event) {
	step := target(e)
	if step == "join-node" {
		_, _ = b.account.States.Start(context.Background(), b.account.Admin(), b.account.machineARN(step), e.ID, string(e.Detail)) // twice is once
		return
	}
	var payload any = e
	if step == "drain" {
		payload = e.Detail
	}
	for range asyncAttempts {
		if _, err := b.account.Functions.Call(step, payload); err == nil {
			return
		}
	}
}
