package handler

// Uploads that drover does not read: admit and publish record them at once, and this corrects what lost events left.

import (
	"context"
	"sync"
	"time"
)

// unreadEvery is how often the whole specs bucket is listed.
const unreadEvery = 6 * time.Hour

// unread knows when the bucket was listed last.
type unread struct {
	mu   sync.Mutex
	last time.Time
}

func (u *unread) update(ctx context.Context, h *Handler) error {
	now := h.Now()
	u.mu.Lock()
	due := now.Sub(u.last) >= unreadEvery
	u.mu.Unlock()
	if !due {
		return nil
	}
	if err := h.State.UpdateUnread(ctx, h.Specs); err != nil {
		return err
	}
	u.mu.Lock()
	u.last = now
	u.mu.Unlock()
	return nil
}
