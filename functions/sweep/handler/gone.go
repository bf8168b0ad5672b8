package handler

// Clusters whose spec was deleted. Their statuses stay, to say so, and there may be many.

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

// gone is what a running function knows of them: the ETags of the statuses, by key, after which nothing is to be done. As long as
// they stay as they were they need not be read again.
type gone struct {
	mu    sync.Mutex
	heard map[string]string
}

// unheard are those of the statuses that may say something else. The others are forgotten with what is no longer listed.
func (g *gone) unheard(statuses []store.Entry) (unheard []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	heard := map[string]string{}
	for _, entry := range statuses {
		if entry.ETag != "" && g.heard[entry.Key] == entry.ETag {
			heard[entry.Key] = entry.ETag
		} else {
			unheard = append(unheard, entry.Key)
		}
	}
	g.heard = heard
	return unheard
}

func (g *gone) hear(key, etag string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard[key] = etag
}

// deleted has the specs admitted that are gone, unless their statuses say that it was heard. Each status is read once by a function, and
// again when it has changed.
func (h *Handler) deleted(ctx context.Context, statuses []store.Entry) error {
	etags := map[string]string{}
	for _, entry := range statuses {
		etags[entry.Key] = entry.ETag
	}
	return each(max(1, h.Parallel), h.gone.unheard(statuses), func(key string) error {
		cluster := strings.TrimSuffix(strings.TrimPrefix(key, names.Statuses), ".json")
		c, err := h.State.Status(ctx, cluster)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if c.Status.ObservedVersion == "" && c.Status.SpecVersion == "" {
			// The listing may be older than what was read, and then it is read once more.
			h.gone.hear(key, etags[key])
			return nil
		}
		if c.Status.ObservedVersion != "" {
			boundary.Log(ctx).Warn("the event of the deletion of this spec was lost", "cluster", cluster)
			return h.Admit.Admit(ctx, cluster)
		}
		// It was heard and is not planned yet. Whoever heard it may not have come to start that.
		if err := h.Admit.Admit(ctx, cluster); err != nil {
			return err
		}
		h.gone.hear(key, etags[key])
		return nil
	})
}
