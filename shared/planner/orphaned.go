package planner

import (
	"context"
	"slices"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
)

// refuseReplacingLive rejects a plan that creates a network or control plane while the EKS cluster still exists. This happens when the
// stack was deleted outside drover and deletion protection retained the cluster. It asks EKS only if the plan creates one of the two.
// Changes that only remove deletion protection are allowed. Otherwise the cluster could not be deleted. If a stack was only partly deleted,
// the plan stays, and the change function decides. See ADR 19.
func (p *Planner) refuseReplacingLive(ctx context.Context, w work, planned plan.Plan) (plan.Plan, error) {
	var refused []status.Reason
	creates := false
	for _, change := range planned.Changes {
		if change.CreatesFoundation() {
			refused = append(refused, plan.ConflictsWithLive(w.cluster, change.Stack))
		}
		creates = creates || change.Operation == plan.Create && (change.Stack == names.Network || change.Stack == names.ControlPlane)
	}
	if !creates {
		return planned, nil
	}
	exists, err := p.EKS.Exists(ctx, names.EKSCluster(w.cluster))
	if err != nil || !exists {
		return planned, err
	}
	var unprotect []plan.Change
	if !*w.resolved.Spec.DeletionProtection {
		protected, err := p.protectedStacks(ctx, w.cluster, w.deployed)
		if err != nil {
			return planned, err
		}
		for _, stack := range protected {
			if change, ok := planned.Find(stack); ok && change.Operation == plan.Update {
				unprotect = append(unprotect, change)
			}
		}
	}
	switch {
	case len(unprotect) > 0:
		planned.Changes = unprotect
	case len(refused) > 0:
		planned.Changes = slices.DeleteFunc(slices.Clone(planned.Changes), plan.Change.DeletesOrphan) // its owner exists
		return planned, refuse(refused)
	}
	return planned, nil
}
