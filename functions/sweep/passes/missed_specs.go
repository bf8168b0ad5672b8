package passes

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// MissedSpecs admits the specs and deletions whose events were lost, and deletes the statuses of clusters that were deleted long ago.
type MissedSpecs struct {
	Specs work.SpecLister
	State StatusLister
	Admit work.Admitter
	// Cache is kept between sweeps.
	Cache *SpecCache
	// Parallel is how many clusters are handled at the same time. EventGrace is the age from which an upload without an
	// event counts as missed.
	Parallel   int
	EventGrace time.Duration
	Now        func() time.Time
}

// StatusLister lists, reads and deletes the statuses of clusters: a subset of store.State.
type StatusLister interface {
	List(ctx context.Context, prefix string) ([]store.Entry, error)
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	DeleteIf(ctx context.Context, key, etag string) error
}

// SpecCache holds the statuses that need no action, for MissedSpecs.
type SpecCache struct {
	handled etagCache
	mu      sync.Mutex
	// retained are the ETags of old statuses, by key, that are not those of deleted clusters. mu guards them.
	retained map[string]string
}

// Run admits a spec that is newer than its cluster's status. If both have the same time, it compares versions: S3 keeps times in seconds.
func (p MissedSpecs) Run(ctx context.Context) error {
	specs, err := p.Specs.List(ctx, names.ClusterSpecs)
	if err != nil {
		return err
	}
	statuses, err := p.State.List(ctx, names.Statuses)
	if err != nil {
		return err
	}
	written := map[string]time.Time{}
	for _, entry := range statuses {
		written[entry.Key] = entry.Modified
	}
	var failed []error
	specified := map[string]bool{}
	for _, spec := range specs {
		cluster, ok := names.ClusterOfKey(spec.Key)
		specified[names.Status(cluster)] = true
		at := written[names.Status(cluster)]
		if !ok || p.Now().Sub(spec.Modified) < p.EventGrace || at.After(spec.Modified) {
			continue
		}
		if at.Equal(spec.Modified) {
			document, err := p.State.Status(ctx, cluster)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			if observed, err := work.ObservesNewest(ctx, p.Specs, cluster, &document.Status); err != nil || observed {
				failed = append(failed, err)
				continue
			}
		}
		logging.From(ctx).Warn("spec event lost", "cluster", cluster)
		if err := p.Admit.Admit(ctx, cluster); err != nil {
			failed = append(failed, err)
		}
	}
	statuses = slices.DeleteFunc(statuses, func(entry store.Entry) bool { return specified[entry.Key] })
	return errors.Join(append(failed, p.admitDeleted(ctx, statuses), p.prune(ctx, statuses))...)
}
