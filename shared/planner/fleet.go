package planner

import (
	"context"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/upgrade"
)

// readFleet completes the situation of a cluster with what a run of a rollout assigns to it, and with the freezes. It reads freezes and
// claims once they matter. If that fails, it sets failed, and the decision does not count.
func (p *Planner) readFleet(ctx context.Context, w *work, spec *api.Cluster, in *upgrade.Situation, failed *error) error {
	if w.current.Release == "" || w.current.KubernetesVersion == "" {
		return nil // the cluster is created with the release of its spec
	}
	assignment, _, err := p.State.Assignment(ctx, w.cluster)
	if err != nil {
		return err
	}
	in.Rollout = assignment.Request(w.deployed[names.ControlPlane].ID)
	var read *rollout.CellFreezes
	fleet := func() *rollout.CellFreezes {
		if read == nil {
			if read, _, err = p.State.CellFreezes(ctx); err != nil {
				read, *failed = &rollout.CellFreezes{}, err
			}
		}
		return read
	}
	in.Claimed = func() bool { return slices.Contains(fleet().Claims, w.cluster) }
	in.Frozen = func(what api.Stop) (*api.Freeze, time.Time) {
		freezes := fleet().Freezes
		if what == api.StopRollouts && assignment != nil {
			freezes = assignment.Respected(freezes)
		}
		if len(freezes) == 0 {
			return nil, time.Time{}
		}
		fact := rollout.FactOfSpec(spec, rollout.Content{})
		fact.Account, fact.Region, fact.Deployed = p.Cell.Account, p.Cell.Region, w.current
		return api.Frozen(freezes, what, fact.AllLabels(), in.Now)
	}
	return nil
}
