package clock

import (
	"context"
	"sync"
)

// Changes wakes the calls that wait for a change of a service's state. The service's lock guards it.
type Changes struct {
	lock sync.Locker
	// next is closed by the next change.
	next chan struct{}
}

// NewChanges returns the changes of state that lock guards.
func NewChanges(lock sync.Locker) *Changes { return &Changes{lock: lock, next: make(chan struct{})} }

// Announce wakes all waiting calls. The caller holds the lock.
func (c *Changes) Announce() {
	close(c.next)
	c.next = make(chan struct{})
}

// Next returns a channel that the next change closes. The caller holds the lock.
func (c *Changes) Next() <-chan struct{} { return c.next }

// Await waits until done returns true or an error, or until ctx or end ends. It calls done with the lock held, now and after every change.
// what identifies the caller for a ticket.
func (c *Changes) Await(ctx, end context.Context, clock *Clock, what string, done func() (bool, error)) error {
	for {
		c.lock.Lock()
		ok, err := done()
		next := c.next
		c.lock.Unlock()
		if ok || err != nil {
			return err
		}
		turn := clock.Ticket(what)
		select {
		case <-next:
			turn()
		case <-ctx.Done():
			turn()
			return ctx.Err()
		case <-end.Done():
			return end.Err()
		}
	}
}
