// Package backoff defines how often drover polls and when it retries, and the other times that more than one package
// uses. Each schedule has the name of what waits. It is pure: it computes pauses, and its callers wait.
package backoff

import (
	"math/bits"
	"slices"
	"time"
)

// Policy is a schedule for polling. The pause is a fixed fraction of the time that has passed, within bounds. A quick operation is noticed
// soon. A long operation costs few polls.
type Policy struct {
	// Divisor is the inverse of the fraction: 20 notices the end at most 5 % late.
	Divisor  int64
	Min, Max time.Duration
}

// Pause returns the pause after a time has passed.
func (p Policy) Pause(elapsed time.Duration) time.Duration {
	return min(p.Max, max(p.Min, elapsed/time.Duration(p.Divisor)))
}

// The schedules for polling.
var (
	// FirstBatch is how often change polls before the first batch of a roll. A few dozen polls are enough for drains of hours.
	FirstBatch = Policy{Divisor: 4, Min: 10 * time.Second, Max: 5 * time.Minute}
	// DrainCalls is the longest pause between two calls of drain. It is less than half of the terminate hook's timeout, so that the
	// heartbeat of each call is in time.
	DrainCalls = Policy{Divisor: 20, Max: 5 * time.Minute}
	// StepCalls is how often the upgrade function verifies a step that is almost complete: the last drains, terminations or checks remain.
	// The time counts from the start of the step, so the end of a step is noticed an eighteenth of its time late. Each call costs three state
	// transitions.
	StepCalls = Policy{Divisor: 18, Min: 5 * time.Second, Max: MaxUpgradePause}
	// EKSCalls is how often the upgrade function reads an operation of EKS that takes minutes, after it has waited for some seconds itself.
	EKSCalls = Policy{Divisor: 1, Min: 5 * time.Second, Max: MaxUpgradePause}
)

// JoinPause returns the pause between two calls of join, when the instance has waited at its hook for a time. Most instances boot
// in half a minute to a minute and a half. So the pause is shortest then, and once the node has registered: it is Ready some seconds later.
// After that the pause is a thirtieth of the time. A hook that is held for 24 hours has 1,600 calls, of nine events each: an execution has
// 25,000.
func JoinPause(elapsed time.Duration, registered bool) time.Duration {
	switch {
	case registered && elapsed < time.Minute:
		return time.Second
	case elapsed < 10*time.Second:
		return 3 * time.Second
	case elapsed < 30*time.Second:
		return 6 * time.Second
	}
	return min(max(2*time.Second, elapsed/30), time.Minute)
}

// DrainGrace is how long after drain.timeout a drain may still take until what waits for it continues. Pods have their grace periods, and
// volumes detach within ten minutes.
const DrainGrace = 15 * time.Minute

// MaxUpgradePause is the longest pause between two calls of the upgrade function. A wait of hours costs twelve calls an hour.
const MaxUpgradePause = 5 * time.Minute

// QuickRetries are the pauses before the first retries of a failure that may pass within minutes. The execution waits.
var QuickRetries = []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute}

// PermissionRetries are the pauses before the first retries of a creation that failed because AWS does not know a new permission yet. The
// execution waits. Such a permission usually counts within minutes, and each try costs minutes.
var PermissionRetries = slices.Concat(
	[]time.Duration{time.Minute, 2 * time.Minute}, slices.Repeat([]time.Duration{3 * time.Minute}, 12))

// Retries are the pauses before each further retry of the same spec. The audit starts them. After the last one, an operator has to act.
var Retries = []time.Duration{15 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour}

// SweepPeriod is the time between two sweeps. A lost event delays work by at most that, if sweeps are punctual. Messages and pages promise
// the work of a sweep within five minutes, which is two periods and a delay of the schedule. AuditPeriod is the time between two audits,
// RolloutPlanPeriod that between two times at which the function rollout plans every rollout again.
const (
	SweepPeriod       = 2 * time.Minute
	AuditPeriod       = 15 * time.Minute
	RolloutPlanPeriod = 30 * time.Minute
)

// Repeats returns the latest time, counted from its start, at which the audit acts on something that has lasted for elapsed. The audit acts
// at once, and after 15 minutes, 30 minutes, one hour and so on. An audit may run up to half a period late.
func Repeats(elapsed time.Duration) time.Duration {
	n := uint64(max(0, elapsed+AuditPeriod/2) / AuditPeriod)
	if n == 0 {
		return 0
	}
	return AuditPeriod << (bits.Len64(n) - 1)
}
