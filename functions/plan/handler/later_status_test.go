package handler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// A plan is recorded with the fence of its holder. It does not replace the status of a later holder, because its input is stale.
func TestPlanOverALaterStatus(t *testing.T) {
	changes := plan.Plan{Changes: []plan.Change{{Stack: "network", Operation: plan.Update}}}
	for name, c := range map[string]struct {
		fence int64
		late  bool
	}{
		"is written over an earlier one":          {6, false},
		"is written over its own":                 {7, false},
		"is not written over that of a successor": {8, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range []plan.Plan{changes, {}} {
				before := status.Status{Phase: status.Ready, Fence: c.fence, Execution: "theirs", PlannedVersion: "v0", GoodVersion: "v0"}
				after := before
				f := withSpec(t)
				outcome, err := f.planner().Plan(t.Context(), planner.Request{Cluster: "demo"})
				require.NoError(t, err)
				f.status, outcome.Plan = &after, p
				err = f.handler().record(t.Context(), events.PlanRequest{Cluster: "demo", Execution: "mine"}, &outcome, 7)
				if c.late {
					require.ErrorIs(t, err, store.ErrConflict)
					require.Equal(t, before, after)
					continue
				}
				require.NoError(t, err)
				require.EqualValues(t, 7, after.Fence)
				require.Equal(t, "v1", after.PlannedVersion)
				require.Equal(t, len(p.Changes) > 0, after.Phase == status.Converging && after.Execution == "mine")
			}
		})
	}
}
