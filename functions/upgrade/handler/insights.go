package handler

// EKS looks at a cluster once a day by itself. Before the checks of an upgrade it is asked to look anew: for seconds the function waits for
// it, for minutes the machine does.

import (
	"context"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

// longestLook is how long EKS is waited for. What it has not looked at by then is told with its age.
const longestLook = 10 * time.Minute

// refresh asks EKS to look at a cluster whose control plane is to be moved: the first time that an upgrade checks it.
func (h *Handler) refresh(ctx context.Context, r *upgrade.Record, plan *preflight.Plan) error {
	if len(plan.Versions()) == 0 || !r.Insights.IsZero() {
		return nil
	}
	r.Insights = h.Now().UTC()
	return h.EKS.RefreshInsights(ctx, names.EKSCluster(plan.Cluster))
}

// looks waits for EKS as long as a call may, and says when to ask again. The outcome is empty when there is nothing to wait for.
func (h *Handler) looks(ctx context.Context, r *upgrade.Record, plan *preflight.Plan) (events.UpgradeResult, error) {
	began := h.Now()
	for len(plan.Versions()) > 0 {
		passed := h.Now().Sub(r.Insights)
		if passed >= longestLook {
			break
		}
		refreshing, err := h.EKS.Refreshing(ctx, names.EKSCluster(plan.Cluster))
		if err != nil || !refreshing {
			return events.UpgradeResult{}, err
		}
		if h.Now().Sub(began) >= h.Patience {
			return busy("EKS looks at the cluster: the checks wait for its insights", min(pause(passed, 0), longestLook-passed)), nil
		}
		select {
		case <-ctx.Done():
			return events.UpgradeResult{}, ctx.Err()
		case <-time.After(h.Pause):
		}
	}
	return events.UpgradeResult{}, nil
}
