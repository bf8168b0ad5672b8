package audit

import (
	"context"
	"sync"
	"time"

	"github.com/drover-run/drover/shared/store"
)

// unreadPeriod is how often the whole specs bucket is listed.
const unreadPeriod = 6 * time.Hour

// Ignored lists the uploads that drover does not read. admit and publish record them at once. This pass corrects what lost events left.
type Ignored struct {
	Specs store.Lister
	State IgnoredUploads
	// Cache is kept between audits.
	Cache *IgnoredCache
	Now   func() time.Time
}

// IgnoredUploads records the uploads that drover does not read: a subset of store.State.
type IgnoredUploads interface {
	UpdateIgnored(ctx context.Context, specs store.Lister) error
}

// IgnoredCache holds when the bucket was listed last, for Ignored.
type IgnoredCache struct {
	mu   sync.Mutex
	last time.Time
}

// Run lists the bucket if the last listing is old.
func (p Ignored) Run(ctx context.Context) error {
	now := p.Now()
	p.Cache.mu.Lock()
	due := now.Sub(p.Cache.last) >= unreadPeriod
	p.Cache.mu.Unlock()
	if !due {
		return nil
	}
	if err := p.State.UpdateIgnored(ctx, p.Specs); err != nil {
		return err
	}
	p.Cache.mu.Lock()
	p.Cache.last = now
	p.Cache.mu.Unlock()
	return nil
}
