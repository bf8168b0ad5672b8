package handler

// Networks and control planes whose stack was deleted by hand, while their cluster lives: deletion protection kept it.

import (
	"context"
	"slices"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
)

// lost refuses a plan that would make a network or a control plane beside an EKS cluster that is there. Whether it is, is asked only when one
// of them is to be made. Of such a cluster nothing is changed but what takes its protection off, so that it can be deleted.
func (h *Handler) lost(ctx context.Context, w work, p plan.Plan) (plan.Plan, error) {
	var refused []status.Reason
	for _, change := range p.Changes {
		if change.Founds() {
			refused = append(refused, plan.Beside(w.cluster, change.Stack))
		}
	}
	if len(refused) == 0 {
		return p, nil
	}
	alive, err := h.Versions.Exists(ctx, names.EKSCluster(w.cluster))
	if err != nil || !alive {
		return p, err
	}
	var unprotect []plan.Change
	if protected := plan.Protected(w.deployed); !*w.resolved.Spec.DeletionProtection {
		for _, stack := range protected {
			if change, planned := p.Find(stack); planned && change.Operation == plan.Update {
				unprotect = append(unprotect, change)
			}
		}
	}
	if len(unprotect) == 0 {
		p.Changes = slices.DeleteFunc(slices.Clone(p.Changes), plan.Change.Orphan) // it is not gone
		return p, refuse(refused)
	}
	p.Changes = unprotect
	return p, nil
}
