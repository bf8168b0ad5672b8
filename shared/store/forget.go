package store

import (
	"context"

	"github.com/drover-run/drover/shared/names"
)

// Forget deletes what was noted for a cluster to be done, now or later: rolls by hand, its upgrade with how it was before, and what the
// sweep is to look after. A later cluster of the same name starts without it. What is written meanwhile stays, and the record of an
// upgrade that nobody has ended: it says which alarms are off, and which cluster it was of.
func (s *State) Forget(ctx context.Context, cluster string) error {
	due := func(key string) bool {
		_, of, ok := names.ParseDue(key)
		return ok && of == cluster || key == names.Inspection(cluster)
	}
	record, etag, err := s.Upgrade(ctx, cluster)
	if err == nil && record != nil && record.State.Over() {
		err = s.DeleteIf(ctx, names.Upgrade(cluster), etag)
	}
	if err != nil {
		return err
	}
	for _, noted := range []struct {
		prefix string
		of     func(key string) bool
	}{
		{names.Rolls(cluster), func(key string) bool { return key == names.Rolls(cluster) }},
		{names.UpgradeBaselines(cluster), func(string) bool { return true }},
		{names.Dues, due},
	} {
		entries, err := s.List(ctx, noted.prefix)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if !noted.of(entry.Key) {
				continue
			}
			if err := s.DeleteIf(ctx, entry.Key, entry.ETag); err != nil {
				return err
			}
		}
	}
	return nil
}
