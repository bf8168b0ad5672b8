package handler

// Clusters whose spec was deleted. Their statuses stay, to say so, and there may be many.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// gone is what a running function knows of them: the ETags of the statuses, by key, after which nothing is to be done. As long as
// they stay as they were they need not be read again.
type gone struct {
	mu    sync.Mutex
	heard map[string]string
	// kept are the ETags of old statuses that were seen to be of clusters that something is left of.
	kept map[string]string
}

// keepDeleted is for how long the status of a cluster is kept that nothing is left of.
const keepDeleted = 30 * 24 * time.Hour

// old returns the statuses that nobody has written for that long.
func old(statuses []store.Entry, now time.Time) []store.Entry {
	return slices.DeleteFunc(slices.Clone(statuses), func(e store.Entry) bool { return now.Sub(e.Modified) < keepDeleted })
}

// isOver says whether nothing is left of a cluster that its status could tell: it was deleted, or an execution was started for a name that
// never had a spec, before such executions left nothing.
func isOver(s *status.Status) bool {
	never := s.Phase == status.Stopped && s.Condition(status.Converged) == nil && s.Fence == 0 && len(s.Stacks) == 0
	return s.Phase == status.Deleted || never && s.ObservedVersion == "" && s.SpecVersion == ""
}

// prune deletes the statuses of clusters that were deleted long ago, if they are still as they were listed. The lease stays: its fence
// must grow for a later cluster of the same name. What else is noted for a cluster went when it was deleted (store.State.Forget).
func (h *Handler) prune(ctx context.Context, statuses []store.Entry) error {
	h.gone.mu.Lock()
	kept := h.gone.kept
	h.gone.kept = map[string]string{}
	h.gone.mu.Unlock()
	var failed []error
	for _, entry := range old(statuses, h.Now()) {
		cluster := strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.Statuses), ".json")
		stays := kept[entry.Key] == entry.ETag && entry.ETag != ""
		if !stays {
			c, err := h.State.Status(ctx, cluster)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				failed = append(failed, err)
				continue
			}
			stays = !isOver(&c.Status)
		}
		if stays {
			h.gone.mu.Lock()
			h.gone.kept[entry.Key] = entry.ETag
			h.gone.mu.Unlock()
			continue
		}
		logging.From(ctx).Info("forgetting a deleted cluster", "cluster", cluster)
		failed = append(failed, h.State.DeleteIf(ctx, entry.Key, entry.ETag))
	}
	return errors.Join(failed...)
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
			logging.From(ctx).Warn("the event of the deletion of this spec was lost", "cluster", cluster)
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
