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
func (c *call) refreshInsights(ctx context.Context, plan *preflight.Plan) error {
	if len(plan.Versions()) == 0 || !c.record.Insights.IsZero() {
		return nil
	}
	c.record.Insights = c.Now().UTC()
	return c.EKS.RefreshInsights(ctx, names.EKSCluster(plan.Cluster))
}

// waitForInsights polls the refresh for up to Patience. If it still runs then, the result says when to call again. Otherwise the outcome is
// empty.
func (c *call) waitForInsights(ctx context.Context, plan *preflight.Plan) (events.UpgradeResult, error) {
	began := c.Now()
	for len(plan.Versions()) > 0 {
		passed := c.Now().Sub(c.record.Insights)
		if passed >= maxRefresh {
			break
		}
		refreshing, err := c.EKS.Refreshing(ctx, names.EKSCluster(plan.Cluster))
		if err != nil || !refreshing {
			return events.UpgradeResult{}, err
		}
		if c.Now().Sub(began) >= c.Patience {
			return busy("EKS refreshes the cluster's insights, and the checks wait for them", min(backoff.EKSCalls.Pause(passed),
				maxRefresh-passed)), nil
		}
		select {
		case <-ctx.Done():
			return events.UpgradeResult{}, ctx.Err()
		case <-time.After(c.Pause):
		}
	}
	return events.UpgradeResult{}, nil
}
