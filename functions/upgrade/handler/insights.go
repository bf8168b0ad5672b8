package handler

// EKS refreshes a cluster's upgrade insights once a day. drover starts a refresh before the checks. The function waits for seconds, the
// state machine for minutes.

import (
	"context"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
)

// maxRefresh is how long the checks wait for a refresh. Older insights are reported with their age.
const maxRefresh = 10 * time.Minute

// refreshInsights starts a refresh once an upgrade, if the upgrade moves the control plane.
func (r *run) refreshInsights(ctx context.Context, plan *preflight.Plan) error {
	if len(plan.Versions()) == 0 || !r.record.Insights.IsZero() {
		return nil
	}
	r.record.Insights = r.Now().UTC()
	return r.EKS.RefreshInsights(ctx, names.EKSCluster(plan.Cluster))
}

// waitForInsights polls the refresh for up to Patience. If it still runs then, the result says when to call again. Otherwise the outcome is
// empty.
func (r *run) waitForInsights(ctx context.Context, plan *preflight.Plan) (events.UpgradeResult, error) {
	began := r.Now()
	for len(plan.Versions()) > 0 {
		passed := r.Now().Sub(r.record.Insights)
		if passed >= maxRefresh {
			break
		}
		refreshing, err := r.EKS.Refreshing(ctx, names.EKSCluster(plan.Cluster))
		if err != nil || !refreshing {
			return events.UpgradeResult{}, err
		}
		if r.Now().Sub(began) >= r.Patience {
			return busy("EKS refreshes the cluster's insights, and the checks wait for them", min(backoff.UpgradeCalls(passed, 0),
				maxRefresh-passed)), nil
		}
		select {
		case <-ctx.Done():
			return events.UpgradeResult{}, ctx.Err()
		case <-time.After(r.Pause):
		}
	}
	return events.UpgradeResult{}, nil
}
