package handler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

// refreshingEKS never ends a refresh of insights.
type refreshingEKS struct {
	EKS
	refreshes int
}

func (e *refreshingEKS) RefreshInsights(context.Context, string) error { e.refreshes++; return nil }

func (e *refreshingEKS) Refreshing(context.Context, string) (bool, error) { return true, nil }

func TestWaitForInsightsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, eks := time.Now(), &refreshingEKS{}
		h := &Handler{EKS: eks, Patience: 10 * time.Second, Pause: 2 * time.Second, Now: time.Now}
		plan := &preflight.Plan{
			Cluster: "demo", From: upgrade.Target{
				KubernetesVersion: "1.35",
			}, Steps: []upgrade.Step{{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36"}},
		}
		r, looks := &upgrade.Record{}, 0
		for ; looks < 100; looks++ {
			called := time.Now()
			require.NoError(t, h.callOf(r).refreshInsights(t.Context(), plan))
			out, err := h.callOf(r).waitForInsights(t.Context(), plan)
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(called), h.Patience)
			if out.Outcome == "" {
				break
			}
			require.Equal(t, events.UpgradeBusy, out.Outcome)
			time.Sleep(time.Duration(out.WaitSeconds) * time.Second)
		}
		require.Equal(t, maxRefresh, time.Since(began))
		require.Equal(t, 5, looks)
		require.Equal(t, 1, eks.refreshes)

		plan.Steps[0] = upgrade.Step{Kind: upgrade.StepNodes, KubernetesVersion: "1.35"}
		r = &upgrade.Record{}
		require.NoError(t, h.callOf(r).refreshInsights(t.Context(), plan))
		out, err := h.callOf(r).waitForInsights(t.Context(), plan)
		require.NoError(t, err)
		require.Empty(t, out.Outcome)
		require.Equal(t, 1, eks.refreshes, "the control plane stays where it is")
	})
}
