package store

import (
	"context"

	"github.com/drover-run/drover/shared/names"
)

// Forget deletes what was noted for a cluster to be done, now or later: rolls by hand, its upgrade, and what the sweep is to look after.
// A later cluster of the same name starts without it. What is written meanwhile stays.
func (s *State) Forget(ctx context.Context, cluster string) error {
	for _, prefix := range []string{names.Rolls(cluster), names.Upgrade(cluster), names.Dues} {
		entries, err := s.List(ctx, prefix)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if _, of, due := names.ParseDue(entry.Key); entry.Key != prefix && (!due || of != cluster) {
				continue
			}
			if err := s.DeleteIf(ctx, entry.Key, entry.ETag); err != nil {
				return err
			}
		}
	}
	return nil
}
