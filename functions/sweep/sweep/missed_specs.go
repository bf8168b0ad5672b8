package sweep

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

// MissedSpecs admits the specs and deletions whose events were lost, and deletes the statuses of clusters that were deleted long ago.
type MissedSpecs struct {
	*Deps
	handled etagCache
	// retained are the ETags of old statuses, by key, that are not those of deleted clusters.
	mu       sync.Mutex
	retained map[string]string
}

// Run admits a spec that is newer than its cluster's status. If both have the same time, it compares versions: S3 keeps times in seconds.
func (p *MissedSpecs) Run(ctx context.Context) error {
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
		if !ok || p.Now().Sub(spec.Modified) < p.Patience || at.After(spec.Modified) {
			continue
		}
		if at.Equal(spec.Modified) {
			document, err := p.State.Status(ctx, cluster)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			if observed, err := p.ObservesNewest(ctx, cluster, &document.Status); err != nil || observed {
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
