// Package drain decides how pods leave a node: which to evict now, which are blocked and by what, when to force, and how long the drain
// may take. shared/kube/drainer carries out its decisions. The package is pure.
package drain

import (
	"time"

	"github.com/drover-run/drover/events"
)

// The input and the result of a drain are payloads, so package events defines them.
type (
	Policy  = events.DrainPolicy
	Report  = events.DrainReport
	Outcome = events.DrainOutcome
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

// PolicyWithoutPool is the policy of a node whose terminate hook names no policy.
var PolicyWithoutPool = Policy{Timeout: 3600, OnTimeout: Wait, DeleteEmptyDirData: true, UnmanagedPods: EvictUnmanaged}

// Task is one drain of one node.
type Task struct {
	Policy Policy
	// Started is when the node was first cordoned, whichever execution did that.
	Started time.Time
	// ReachableAgain is when the cluster could be reached again after an outage, in which evictions were impossible. It
	// is zero if there was none.
	ReachableAgain time.Time
}

// minReachable is how long drover tries evictions after an outage before the deadline can pass.
const minReachable = 30 * time.Second

// Ends reports whether the drain has a deadline.
func (t Task) Ends() bool { return t.Policy.Timeout > 0 && t.Policy.OnTimeout != Wait }

// TriedLongEnough reports whether evictions were tried for long enough since the last outage, if any. excluded is
// when the node was excluded from load balancers.
func (t Task) TriedLongEnough(now, excluded time.Time) bool {
	return t.ReachableAgain.IsZero() || !now.Before(t.tryingUntil(excluded))
}

// tryingUntil returns when evictions have been tried for long enough since the last outage.
func (t Task) tryingUntil(excluded time.Time) time.Time {
	from := excluded.Add(t.Policy.LoadBalancerWait.Duration())
	if t.ReachableAgain.After(from) {
		from = t.ReachableAgain
	}
	return from.Add(minReachable)
}

// deadline returns when a drain that Ends reaches its timeout.
func (t Task) deadline(excluded time.Time) time.Time {
	deadline := t.Started.Add(t.Policy.Timeout.Duration())
	if until := t.tryingUntil(excluded); !t.ReachableAgain.IsZero() && until.After(deadline) {
		return until
	}
	return deadline
}
