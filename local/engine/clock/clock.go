// Package clock is the time of the local account, and who goes on in it. Work that takes long only because it is done in a
// data centre (an instance booting, a control plane being made) runs faster than life; timers that drover itself sets run in
// real time. Under testing/synctest real time is virtual, and needs no Speed.
package clock

import (
	"context"
	"time"
)

// Clock of one local account. The zero value runs at the speed of life.
type Clock struct {
	// Speed divides the time that simulated work takes; 0 and 1 are the speed of life.
	Speed float64
	// Turns, when set, hands out the turns to go on, so that it decides the order of all that happens at once: whoever starts
	// something, or waits for it, takes a ticket before, and uses it when it has started or is woken. Tickets are returned when
	// it is their turn; nobody holds a lock then. what says who asks.
	Turns func(what string) (ticket func())
}

// Ticket for a turn later; of a nil clock, and of one without Turns, it is always its turn.
func (c *Clock) Ticket(what string) (wait func()) {
	if c == nil || c.Turns == nil {
		return func() {}
	}
	return c.Turns(what)
}

// Take waits for the caller's turn.
func (c *Clock) Take(what string) { c.Ticket(what)() }

// Now is the time that services stamp.
func (c *Clock) Now() time.Time { return time.Now().UTC() }

// Work waits as long as simulated work of real duration d takes. It ends early with the context's error.
func (c *Clock) Work(ctx context.Context, d time.Duration) error {
	if c.Speed > 1 {
		d = time.Duration(float64(d) / c.Speed)
	}
	return c.Timer(ctx, d)
}

// Timer waits for d in real time. It ends early with the context's error.
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

// Worked is how much simulated work is done in a real duration d.
func (c *Clock) Worked(d time.Duration) time.Duration {
	if c.Speed > 1 {
		return time.Duration(float64(d) * c.Speed)
	}
	return d
}
