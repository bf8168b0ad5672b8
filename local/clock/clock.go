// Package clock is the time of the local account. Work that takes long only because it is done in a data centre (an
// instance booting, a control plane being made) runs faster than life; timers that drover itself sets run in real time.
package clock

import (
	"context"
	"time"
)

// Clock of one local account. The zero value runs at the speed of life.
type Clock struct {
	// Speed divides the time that simulated work takes; 0 and 1 are the speed of life.
	Speed float64
}

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
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
