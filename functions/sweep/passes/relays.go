package passes

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

// Relays finds relays of private clusters that were deleted outside drover. No event reports that, and drover reaches no node until the
// relay exists again. The pass requests an audit of the cluster, which repairs it: see ADR 30. It knows a new cluster after the next audit.
type Relays struct {
	Stacks    RelayStacks
	Functions RelayFunctions
	State     Inspections
	// Cache is kept between sweeps.
	Cache    *RelayCache
	Parallel int
	Now      func() time.Time
}

// RelayStacks lists the deployed stacks: a subset of cloudformation.Stacks.
type RelayStacks interface {
	All(ctx context.Context) (map[string]stack.Deployed, error)
}

// RelayFunctions finds functions: a subset of lambda.Functions.
type RelayFunctions interface {
	Exists(ctx context.Context, function string) (bool, error)
}

// Inspections requests audits: a subset of store.State.
type Inspections interface {
	RequestInspection(ctx context.Context, cluster, why string) error
}

// RelayCache holds the clusters that have a relay. The audit fills it.
type RelayCache struct {
	mu       sync.Mutex
	clusters []string
	read     time.Time
}

// Fill replaces the clusters by those of stacks, by cluster and stack.
func (c *RelayCache) Fill(stacks map[string]map[string]stack.Deployed, now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clusters, c.read = nil, now
	for cluster, deployed := range stacks {
		if deployed[names.ControlPlane].API().Relayed {
			c.clusters = append(c.clusters, cluster)
		}
	}
	slices.Sort(c.clusters)
}

// known returns the clusters, unless they were read too long ago.
func (c *RelayCache) known(now time.Time) (clusters []string, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clusters, !c.read.IsZero() && now.Sub(c.read) < backoff.AuditPeriod+time.Minute
}

// Run looks for the relay of each private cluster.
func (p Relays) Run(ctx context.Context) error {
	clusters, found := p.Cache.known(p.Now())
	if !found { // this process has run no audit
		listed, err := p.Stacks.All(ctx)
		if err != nil {
			return err
		}
		stacks := map[string]map[string]stack.Deployed{}
		for stackName, deployed := range listed {
			if cluster, name, ok := names.SplitStack(stackName); ok && name == names.ControlPlane {
				stacks[cluster] = map[string]stack.Deployed{name: deployed}
			}
		}
		p.Cache.Fill(stacks, p.Now())
		clusters, _ = p.Cache.known(p.Now())
	}
	return ForEach(p.Parallel, clusters, func(cluster string) error {
		relay := names.Relay(cluster)
		exists, err := p.Functions.Exists(ctx, relay)
		if err != nil || exists {
			return err
		}
		logging.From(ctx).Warn("relay absent", "cluster", cluster, "function", relay)
		return p.State.RequestInspection(ctx, cluster, "the relay was deleted outside drover")
	})
}
