package passes

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// Upgrades ends upgrades whose execution ended without a report: it was aborted, timed out, or could not write the record.
type Upgrades struct {
	State UpgradeRecords
	Ender work.UpgradeEnder
	// Cache is kept between sweeps.
	Cache *UpgradeCache
	// Parallel is how many clusters are handled at the same time.
	Parallel int
}

// UpgradeRecords holds the records of upgrades: a subset of store.State.
type UpgradeRecords interface {
	List(ctx context.Context, prefix string) ([]store.Entry, error)
	Upgrade(ctx context.Context, cluster string) (*upgrade.Record, string, error)
}

// UpgradeCache holds the ETags of the records, by key, of finished upgrades. An unchanged record is not read again
// while the function lives.
type UpgradeCache struct {
	mu    sync.Mutex
	etags map[string]string
}

func (c *UpgradeCache) has(e store.Entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.etags[e.Key] == e.ETag
}

func (c *UpgradeCache) add(e store.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.etags == nil {
		c.etags = map[string]string{}
	}
	c.etags[e.Key] = e.ETag
}

// Run checks the records of upgrades that are in flight.
func (p Upgrades) Run(ctx context.Context) error {
	entries, err := p.State.List(ctx, names.Upgrades)
	if err != nil {
		return err
	}
	unfinished := map[string]store.Entry{}
	for _, entry := range entries {
		if !p.Cache.has(entry) {
			unfinished[strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.Upgrades), ".json")] = entry
		}
	}
	return work.ForEach(p.Parallel, slices.Sorted(maps.Keys(unfinished)), func(cluster string) error {
		record, _, err := p.State.Upgrade(ctx, cluster)
		if err != nil || record == nil {
			return err
		}
		if record.State.Final() {
			p.Cache.add(unfinished[cluster])
			return nil
		}
		return p.Ender.End(ctx, cluster, record.Execution)
	})
}
