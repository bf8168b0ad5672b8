package passes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// etagCache holds the ETags of statuses, by key, that need no action. An unchanged status is not read again while the function lives.
type etagCache struct {
	mu    sync.Mutex
	etags map[string]string
}

// changedKeys returns the keys whose entries are not marked. It forgets marked keys that are no longer listed.
func (c *etagCache) changedKeys(entries []store.Entry) (changed []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	listed := map[string]string{}
	for _, entry := range entries {
		if entry.ETag != "" && c.etags[entry.Key] == entry.ETag {
			listed[entry.Key] = entry.ETag
		} else {
			changed = append(changed, entry.Key)
		}
	}
	c.etags = listed
	return changed
}

// mark marks an entry that needs no action.
func (c *etagCache) mark(key, etag string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.etags[key] = etag
}

// admitDeleted calls admit for each status without a spec, if the status does not show the deletion yet. It reads each status once, and
// again after a change.
func (p MissedSpecs) admitDeleted(ctx context.Context, statuses []store.Entry) error {
	etags := map[string]string{}
	for _, entry := range statuses {
		etags[entry.Key] = entry.ETag
	}
	return work.ForEach(p.Parallel, p.Cache.handled.changedKeys(statuses), func(key string) error {
		cluster := strings.TrimSuffix(strings.TrimPrefix(key, names.Statuses), ".json")
		c, err := p.State.Status(ctx, cluster)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if c.Status.ObservedVersion == "" && c.Status.PlannedVersion == "" {
			// The listing may be older than this read. Then the next sweep reads the status again.
			p.Cache.handled.mark(key, etags[key])
			return nil
		}
		if c.Status.ObservedVersion != "" {
			logging.From(ctx).Warn("deletion event lost", "cluster", cluster)
			return p.Admit.Admit(ctx, cluster)
		}
		// The event was handled, but the deletion is not planned yet. The function may have died before it started the execution.
		if err := p.Admit.Admit(ctx, cluster); err != nil {
			return err
		}
		p.Cache.handled.mark(key, etags[key])
		return nil
	})
}

// retention is how long the status of a deleted cluster is retained.
const retention = 30 * 24 * time.Hour

// expiredStatuses returns the statuses that were last written before the retention.
func expiredStatuses(statuses []store.Entry, now time.Time) []store.Entry {
	return slices.DeleteFunc(slices.Clone(statuses), func(e store.Entry) bool { return now.Sub(e.Modified) < retention })
}

// isDeleted reports whether a status describes nothing that exists: a deleted cluster, or a name that never had a spec.
func isDeleted(s *status.Status) bool {
	never := s.Phase == status.Stopped && s.Condition(status.Converged) == nil && s.Fence == 0 && len(s.Stacks) == 0
	return s.Phase == status.Deleted || never && s.ObservedVersion == "" && s.PlannedVersion == ""
}

// prune deletes the expired statuses of deleted clusters, if they are still as listed. The lease stays: its fence must grow for a later
// cluster of the same name. store.State.DeletePendingWork deleted the rest.
func (p MissedSpecs) prune(ctx context.Context, statuses []store.Entry) error {
	p.Cache.mu.Lock()
	retained := p.Cache.retained
	p.Cache.retained = map[string]string{}
	p.Cache.mu.Unlock()
	var failed []error
	for _, entry := range expiredStatuses(statuses, p.Now()) {
		cluster := strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.Statuses), ".json")
		retain := retained[entry.Key] == entry.ETag && entry.ETag != ""
		if !retain {
			c, err := p.State.Status(ctx, cluster)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				failed = append(failed, err)
				continue
			}
			retain = !isDeleted(&c.Status)
		}
		if retain {
			p.Cache.mu.Lock()
			p.Cache.retained[entry.Key] = entry.ETag
			p.Cache.mu.Unlock()
			continue
		}
		logging.From(ctx).Info("status of deleted cluster removed", "cluster", cluster)
		failed = append(failed, p.State.DeleteIf(ctx, entry.Key, entry.ETag))
	}
	return errors.Join(failed...)
}
