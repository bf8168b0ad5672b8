package asl

// Errors of state machines: a name and a cause.
// https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"
)

// Reserved error names.
const (
	errAll          = "States.ALL"
	errBranchFailed = "States.BranchFailed"
	errDataLimit    = "States.DataLimitExceeded"
	errHeartbeat    = "States.HeartbeatTimeout"
	errNoChoice     = "States.NoChoiceMatched"
	errPermissions  = "States.Permissions"
	errQuery        = "States.QueryEvaluationError"
	errRuntime      = "States.Runtime"
	errTaskFailed   = "States.TaskFailed"
	errTimeout      = "States.Timeout"
)

// Failure is the error of a task, a state or an execution. A Task function returns one to set the name that Retry and
// Catch match. Any other error is States.TaskFailed.
type Failure struct {
	Name, Cause string
	// recorded reports whether the history has an event for the failed expression.
	recorded bool
}

func (f *Failure) Error() string {
	if f.Cause == "" {
		return f.Name
	}
	return f.Name + ": " + f.Cause
}

// ErrorOutput is $states.errorOutput, and the output of a Catch without Output. A timeout has no cause.
func (f *Failure) ErrorOutput() json.RawMessage {
	return encode(struct {
		Error string
		Cause string `json:",omitempty"`
	}{f.Name, f.Cause})
}

func asFailure(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return &Failure{Name: errTaskFailed, Cause: err.Error()}
}

// matches reports whether an ErrorEquals list includes this failure.
func (f *Failure) matches(names []string) bool {
	switch f.Name {
	case errRuntime:
		return false // ends the execution regardless of the list
	case errDataLimit:
		return slices.Contains(names, errDataLimit)
	}
	for _, n := range names {
		switch {
		case n == errAll, n == f.Name:
			return true
		case n == errTaskFailed && f.Name != errTimeout && f.Name != errHeartbeat:
			return true
		case n == errTimeout && f.Name == errHeartbeat:
			return true
		}
	}
	return false
}

// delay returns the pause before attempt n of this retrier. The first is 1. chance returns numbers from 0 up to 1.
func (r retrier) delay(n int, chance func() float64) time.Duration {
	d := float64(r.interval) * math.Pow(r.backoff, float64(n-1))
	if r.maxDelay > 0 {
		d = min(d, float64(r.maxDelay))
	}
	d = min(d, float64(maxSeconds*time.Second))
	if r.jitter {
		d *= chance()
	}
	return time.Duration(d)
}
