package passes

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// Upgrades ends upgrades whose execution ended without a report: it was aborted, timed out, or could not write the record.
type Upgrades struct {
	State UpgradeRecords
	Ender UpgradeEnder
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
	return ForEach(p.Parallel, slices.Sorted(maps.Keys(unfinished)), func(cluster string) error {
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

// UpgradeEnder ends upgrades that their own execution did not end.
type UpgradeEnder struct {
	Executions Executions
	Upgrade    Upgrader
	Now        func() time.Time
}

// End starts an execution of drover-upgrade that ends an upgrade, if the upgrade's own execution has ended. If a removal of drover ended
// it, the new execution continues the upgrade. Each sweep tries again until the upgrade is finished. A sweep and an audit of the same
// period start one execution.
func (e UpgradeEnder) End(ctx context.Context, cluster, execution string) error {
	running, removed, err := e.Executions.State(ctx, execution)
	if err != nil || running {
		return err
	}
	input := events.Upgrade{Cluster: cluster, Ended: execution}
	if removed {
		// An execution that Step Functions has forgotten has no input. Its upgrade ends.
		if err := e.Upgrade.Input(ctx, execution, &input); err == nil {
			input = inputToContinue(input)
		}
	}
	logging.From(ctx).Warn("upgrade ended without a report", "cluster", cluster, "execution", execution, "removed", removed)
	at := e.Now().UTC().Truncate(backoff.SweepPeriod)
	name := names.UpgradeStart(cluster, names.EndedKey(execution, at), 0, at)
	return e.Upgrade.Start(ctx, name, input)
}

// inputToContinue returns the input that continues an upgrade, as an operator would do it. A scheduled upgrade has begun, so its window no
// longer applies, and its release is that of the spec.
func inputToContinue(in events.Upgrade) events.Upgrade {
	out := events.Upgrade{Cluster: in.Cluster, Rollback: in.Rollback}
	if in.Origin == "" {
		out.Release, out.KubernetesVersion = in.Release, in.KubernetesVersion
	}
	return out
}

// UpgradeInFlight reports whether an upgrade is in flight, according to the status.
func UpgradeInFlight(u *status.Upgrade) bool {
	return u != nil && (u.Phase == string(upgrade.Checking) || u.Phase == string(upgrade.Running)) && u.Execution != ""
}

// LateUpgrades records upgrades that did not start at their time.
type LateUpgrades struct {
	Specs SpecReader
	State StatusWriter
	Now   func() time.Time
}

// StatusWriter changes the statuses of clusters: a subset of store.State.
type StatusWriter interface {
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Record records that an upgrade did not start at its time: see status.LatePhase.
func (l LateUpgrades) Record(ctx context.Context, cluster string, at time.Time, why string) error {
	phase, spec := status.LatePhase(at, l.Now()), (*api.Cluster)(nil)
	switch phase {
	case "":
		return nil
	case status.UpgradeMissed:
		var err error
		if spec, err = l.validSpec(ctx, cluster); err != nil {
			return err
		}
	}
	return l.State.UpdateStatus(ctx, cluster, func(s *status.Status) { s.RecordLate(at, phase, why, spec, l.Now()) })
}

// validSpec reads the spec of a cluster; nil if there is none or it is invalid.
func (l LateUpgrades) validSpec(ctx context.Context, cluster string) (*api.Cluster, error) {
	spec, _, err := specs.Cluster(ctx, l.Specs, cluster)
	if specs.Missing(err) {
		return nil, nil
	}
	return spec, err
}
