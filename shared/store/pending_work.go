package store

import (
	"context"

	"github.com/drover-run/drover/shared/names"
)

// DeletePendingWork deletes a cluster's pending work: rolls by hand, its upgrade record, and due work. A later cluster of the same
// name starts without it. Work that is recorded during the call stays, and so does the record of an upgrade that has not
// ended: it has the disabled alarms, and names its cluster.
func (s *State) DeletePendingWork(ctx context.Context, cluster string) error {
	due := func(key string) bool {
		_, of, ok := names.ParseDue(key)
		return ok && of == cluster || key == names.Inspection(cluster)
	}
	record, etag, err := s.Upgrade(ctx, cluster)
	if err == nil && record != nil && record.State.Final() {
		err = s.DeleteIf(ctx, names.Upgrade(cluster), etag)
	}
	if err != nil {
		return err
	}
	for _, noted := range []struct {
		prefix string
		of     func(key string) bool
	}{
		{names.RollsOf(cluster), func(key string) bool { return key == names.RollsOf(cluster) }},
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
