package handler

// Networks and control planes whose stack was deleted by hand, while their cluster lives: deletion protection kept it.

import (
	"context"
	"slices"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
)

// lost refuses a plan that would make a network or a control plane beside an EKS cluster that is there. Whether it
// is, is asked only when one of them is to be made. Of such a cluster nothing is changed but what takes its
// protection off, so that it can be deleted. So it is where not all of the stack could be deleted: what is to become
// of the rest is the change's to say.
func (h *Handler) lost(ctx context.Context, w work, p plan.Plan) (plan.Plan, error) {
	var refused []status.Reason
	made := false
	for _, change := range p.Changes {
		if change.Founds() {
			refused = append(refused, plan.Beside(w.cluster, change.Stack))
		}
		made = made || change.Operation == plan.Create && (change.Stack == names.Network || change.Stack == names.ControlPlane)
	}
	if !made {
		return p, nil
	}
	alive, err := h.Versions.Exists(ctx, names.EKSCluster(w.cluster))
	if err != nil || !alive {
		return p, err
	}
	var unprotect []plan.Change
	if !*w.resolved.Spec.DeletionProtection {
		protected, err := h.protected(ctx, w.cluster, w.deployed, "")
		if err != nil {
			return p, err
		}
		for _, stack := range protected {
			if change, planned := p.Find(stack); planned && change.Operation == plan.Update {
				unprotect = append(unprotect, change)
			}
		}
	}
	switch {
	case len(unprotect) > 0:
		p.Changes = unprotect
	case len(refused) > 0:
		p.Changes = slices.DeleteFunc(slices.Clone(p.Changes), plan.Change.Orphan) // it is not gone
		return p, refuse(refused)
	}
	return p, nil
}
