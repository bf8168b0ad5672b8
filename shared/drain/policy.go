// Package drain decides how pods leave a node: which may be evicted now, which are blocked and by what, when to force, how
// long it may take. It is pure: what it is told of pods, budgets and the time is all that it knows.
package drain

import (
	"time"

	"github.com/drover-run/drover/events"
)

// What a drain is asked for and tells is payload, and so among the events.
type (
	Policy  = events.DrainPolicy
	Report  = events.DrainReport
	Outcome = events.DrainOutcome
	Blocked = events.BlockedPod
	Seconds = events.Seconds
)

// The values of a policy, and the outcomes.
const (
	Wait             = events.Wait
	Force            = events.Force
	Continue         = events.Continue
	EvictUnmanaged   = events.EvictUnmanaged
	WaitForUnmanaged = events.WaitForUnmanaged

	Done      = events.DrainDone
	Remaining = events.DrainRemaining
	Gone      = events.DrainGone
	TimedOut  = events.DrainTimedOut
)

// Task is one drain of one node.
type Task struct {
	Policy Policy
	// Started is when the drain began, whoever has worked on it since.
	Started time.Time
}

// deadline of a drain, and whether it has one.
func (t Task) deadline() (time.Time, bool) {
	return t.Started.Add(t.Policy.Timeout.Duration()), t.Policy.Timeout > 0 && t.Policy.OnTimeout != Wait
}
