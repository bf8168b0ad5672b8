package audit

import (
	"context"
	"sync"
	"time"

	"github.com/drover-run/drover/shared/store"
)

// unreadPeriod is how often the whole specs bucket is listed.
const unreadPeriod = 6 * time.Hour

// Unread lists the uploads that drover does not read. admit and publish record them at once. This pass corrects what lost events left.
type Unread struct {
	Specs store.Lister
	State UnreadUploads
	// Cache is kept between audits.
	Cache *UnreadCache
	Now   func() time.Time
}

// UnreadUploads records the uploads that drover does not read: a subset of store.State.
type UnreadUploads interface {
	UpdateUnread(ctx context.Context, specs store.Lister) error
}

// UnreadCache holds when the bucket was listed last, for Unread.
type UnreadCache struct {
	mu   sync.Mutex
	last time.Time
}

// Run lists the bucket if the last listing is old.
func (p Unread) Run(ctx context.Context) error {
	now := p.Now()
	p.Cache.mu.Lock()
	due := now.Sub(p.Cache.last) >= unreadPeriod
	p.Cache.mu.Unlock()
	if !due {
		return nil
	}
	if err := p.State.UpdateUnread(ctx, p.Specs); err != nil {
		return err
	}
	p.Cache.mu.Lock()
	p.Cache.last = now
	p.Cache.mu.Unlock()
	return nil
}
