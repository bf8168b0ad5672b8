package asl

// History: the events of an execution, with the names and details that GetExecutionHistory returns.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_HistoryEvent.html

import (
	"encoding/json"
	"strings"
	"sync"
	"time"
	"unicode"
)

// maxEvents limits an execution's history. https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
const maxEvents = 25000

// Event is one event of an execution's history.
type Event struct {
	ID, PreviousID int64
	Time           time.Time
	// Type such as TaskStateEntered.
	Type string
	// State is the name of the state, for each event that belongs to one.
	State string
	// Details are the members of the event's details, or nil for a type without details. Inputs, outputs and parameters are
	// JSON texts.
	Details map[string]any
}

// DetailsName returns the member of HistoryEvent that has the details, such as stateEnteredEventDetails.
func (e Event) DetailsName() string {
	name := e.Type
	switch {
	case strings.HasSuffix(name, "StateEntered"):
		name = "StateEntered"
	case strings.HasSuffix(name, "StateExited"):
		name = "StateExited"
	}
	return string(unicode.ToLower(rune(name[0]))) + name[1:] + "EventDetails"
}

// history numbers events and counts transitions.
type history struct {
	mu          sync.Mutex
	last        int64
	transitions int
	now         func() time.Time
	record      func(Event)
}

// add records one event after *previous and updates *previous. It fails if the history is too long.
func (h *history) add(previous *int64, kind, state string, details map[string]any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last >= maxEvents-1 && !strings.HasPrefix(kind, "Execution") {
		return &Failure{Name: errRuntime, Cause: "The execution reached the maximum number of history events (25000)."}
	}
	h.last++
	e := Event{ID: h.last, PreviousID: *previous, Time: h.now(), Type: kind, State: state, Details: details}
	*previous = h.last
	if h.record != nil {
		h.record(e)
	}
	return nil
}

// transition counts what Step Functions bills: each entered state and each retry.
// https://aws.amazon.com/step-functions/pricing/
func (h *history) transition() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.transitions++
}

// text returns a payload as an event shows it.
func text(raw json.RawMessage) string { return string(raw) }
