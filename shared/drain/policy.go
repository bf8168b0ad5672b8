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
	// Started is when the node was cordoned first, whoever has worked on it since.
	Started time.Time
	// Regained is when the cluster could be reached again, after a time in which nobody could evict anything; zero if there was none.
	Regained time.Time
}

// leastContact is for how long evictions are tried after an outage before the time can be over.
const leastContact = 30 * time.Second

// Ends says that the drain's time can be over.
func (t Task) Ends() bool { return t.Policy.Timeout > 0 && t.Policy.OnTimeout != Wait }

// Tried says that evictions were tried for a while since the last outage, if there was one, on a node that is out of load balancers since
// excluded.
func (t Task) Tried(now, excluded time.Time) bool {
	return t.Regained.IsZero() || !now.Before(t.tried(excluded))
}

func (t Task) tried(excluded time.Time) time.Time {
	from := excluded.Add(t.Policy.LoadBalancerWait.Duration())
	if t.Regained.After(from) {
		from = t.Regained
	}
	return from.Add(leastContact)
}

// deadline of a drain that ends.
func (t Task) deadline(excluded time.Time) time.Time {
	deadline := t.Started.Add(t.Policy.Timeout.Duration())
	if tried := t.tried(excluded); !t.Regained.IsZero() && tried.After(deadline) {
		return tried
	}
	return deadline
}

// Between is the longest that nobody looks at a drain that has taken so long: a twentieth of that, so that it ends at
// most 5 % later than it could, and less than half of the terminate hook's timeout, so that each look's heartbeat is
// in time.
func Between(taken time.Duration) time.Duration { return min(taken/20, 5*time.Minute) }
