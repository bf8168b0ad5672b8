package passes

import (
	"context"
	"time"

	"github.com/drover-run/drover/functions/sweep/work"
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
	Cache    *work.RelayCache
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

// Run looks for the relay of each private cluster.
func (p Relays) Run(ctx context.Context) error {
	clusters, found := p.Cache.Known(p.Now())
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
		clusters, _ = p.Cache.Known(p.Now())
	}
	return work.ForEach(p.Parallel, clusters, func(cluster string) error {
		relay := names.Relay(cluster)
		exists, err := p.Functions.Exists(ctx, relay)
		if err != nil || exists {
			return err
		}
		logging.From(ctx).Warn("relay absent", "cluster", cluster, "function", relay)
		return p.State.RequestInspection(ctx, cluster, "the relay was deleted outside drover")
	})
}
