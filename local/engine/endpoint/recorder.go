package endpoint

// The record of calls. Tests read from it what an unchanged cluster costs, what a function called, and which calls were
// denied.

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Call is one API call at the endpoint.
type Call struct {
	Time time.Time
	// Took is the time to answer it.
	Took time.Duration
	// Caller is an ARN, or empty if the signature was wrong.
	Caller string
	// Service is the signing name. Action is the API's operation, for S3 the IAM action (GetObject, ListBucket).
	Service, Action string
	// Resource that was authorized last, or empty.
	Resource string
	// Mutating reports whether the call changes something or tries to.
	Mutating bool
	// Error and its code, or empty if the call succeeded.
	Error, ErrorCode string
	RequestID        string
}

// Recorder stores the latest calls. The zero value is ready to use.
type Recorder struct {
	mu    sync.Mutex
	calls []Call
	total int
	// Notify, if set before the endpoint serves, receives each call.
	Notify func(Call)
}

// maxCalls limits the record. A demo cluster makes a few hundred calls.
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

// Mark returns the current end of the record, for Since.
func (r *Recorder) Mark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// Since returns the calls after a mark, oldest first. Since(0) returns the whole record.
func (r *Recorder) Since(mark int) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(max(r.total-mark, 0), len(r.calls))
	return slices.Clone(r.calls[len(r.calls)-n:])
}

var readingPrefixes = []string{
	"Describe", "List", "Get", "Head", "BatchGet", "Lookup", "Filter", "Validate", "Estimate", "Simulate", "Test",
	"AssumeRole", "Detect", "Search",
	"Invoke", // a function that changes something makes calls of its own
}

// mutating reports whether an action with this name changes something. A request that could not be parsed has no name and
// changes nothing.
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
