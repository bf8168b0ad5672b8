// Package clock provides the time of the local account, and orders concurrent work. Simulated work, such as an instance
// that boots or a control plane that is created, runs faster than on AWS. Timers that drover sets run in real time.
// Under testing/synctest real time is virtual and Speed is not needed.
package clock

import (
	"context"
	"math"
	"time"
)

// Clock of one local account. The zero value runs in real time.
type Clock struct {
	// Speed divides the duration of simulated work. 0 and 1 mean real time.
	Speed float64
	// Turns, if set, decides the order of concurrent work. A goroutine that starts other work, or waits for it, takes a
	// ticket first. It uses the ticket when the work has started, or when it wakes up. A ticket returns when it is the
	// goroutine's turn. No caller holds a lock then. what identifies the caller.
	Turns func(what string) (ticket func())
}

// Ticket returns a ticket for a later turn. Without a clock or without Turns it returns immediately.
func (c *Clock) Ticket(what string) (wait func()) {
	if c == nil || c.Turns == nil {
		return func() {}
	}
	return c.Turns(what)
}

// Take waits for the caller's turn.
func (c *Clock) Take(what string) { c.Ticket(what)() }

// Now returns the time for timestamps.
func (c *Clock) Now() time.Time { return time.Now().UTC() }

// Work waits as long as simulated work of the real duration d takes. It returns early with the context's error.
func (c *Clock) Work(ctx context.Context, d time.Duration) error {
	if c.Speed > 1 {
		d = time.Duration(float64(d) / c.Speed)
	}
	return c.Timer(ctx, d)
}

// Timer waits for d in real time. It returns early with the context's error.
func (c *Clock) Timer(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	defer c.Ticket("timer")()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Worked returns the simulated work that is done in a real duration d. It is the longest duration if that is too long for a Duration, as
// the time since the zero Time is.
func (c *Clock) Worked(d time.Duration) time.Duration {
	if c.Speed <= 1 {
		return d
	}
	if worked := float64(d) * c.Speed; worked < math.MaxInt64 {
		return time.Duration(worked)
	}
	return math.MaxInt64
}
