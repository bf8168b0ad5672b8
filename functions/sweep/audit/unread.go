package audit

import (
	"context"
	"sync"
	"time"
)

// unreadPeriod is how often the whole specs bucket is listed.
const unreadPeriod = 6 * time.Hour

// Unread lists the uploads that drover does not read. admit and publish record them at once. This pass corrects what lost events left.
type Unread struct {
	*Deps
	mu   sync.Mutex
	last time.Time
}

// Run lists the bucket if the last listing is old.
func (p *Unread) Run(ctx context.Context) error {
	now := p.Now()
	p.mu.Lock()
	due := now.Sub(p.last) >= unreadPeriod
	p.mu.Unlock()
	if !due {
		return nil
	}
	if err := p.State.UpdateUnread(ctx, p.Specs); err != nil {
		return err
	}
	p.mu.Lock()
	p.last = now
	p.mu.Unlock()
	return nil
}
