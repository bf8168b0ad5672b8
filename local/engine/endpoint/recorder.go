package endpoint

// The record of calls: what an unchanged cluster costs, what a function called, who was refused.

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Call is one API call that came to the endpoint.
type Call struct {
	Time time.Time
	// Took is how long answering it took.
	Took time.Duration
	// Caller is an ARN, empty when the signature was wrong.
	Caller string
	// Service is the signing name; Action the API's operation, of S3 that of IAM (GetObject, ListBucket).
	Service, Action string
	// Resource that was authorized last; may be empty.
	Resource string
	// Mutating calls change something, or try to.
	Mutating bool
	// Error that was sent, and its code; empty when the call succeeded.
	Error, ErrorCode string
	RequestID        string
}

// Recorder keeps the newest calls. The zero value is ready.
type Recorder struct {
	mu    sync.Mutex
	calls []Call
	total int
	// Notify, when set before the endpoint serves, is told each call.
	Notify func(Call)
}

// maxCalls are kept; a demo cluster makes a few hundred.
const maxCalls = 100_000

func (r *Recorder) add(c Call) {
	r.mu.Lock()
	if len(r.calls) >= 2*maxCalls {
		r.calls = slices.Clone(r.calls[len(r.calls)-maxCalls:])
	}
	r.calls = append(r.calls, c)
	r.total++
	r.mu.Unlock()
	if r.Notify != nil {
		r.Notify(c)
	}
}

// Mark is the present end of the record, for Since.
func (r *Recorder) Mark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// Since are the calls after a mark, oldest first; Since(0) is all that are kept.
func (r *Recorder) Since(mark int) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(max(r.total-mark, 0), len(r.calls))
	return slices.Clone(r.calls[len(r.calls)-n:])
}

var readingPrefixes = []string{
	"Describe", "List", "Get", "Head", "BatchGet", "Lookup", "Filter", "Validate", "Estimate", "Simulate", "Test",
	"AssumeRole", "Detect", "Search",
}

// mutating tells by an action's name whether it changes anything. A failed parse has no name and changed nothing.
func mutating(action string) bool {
	if action == "" {
		return false
	}
	for _, p := range readingPrefixes {
		if strings.HasPrefix(action, p) {
			return false
		}
	}
	return true
}
