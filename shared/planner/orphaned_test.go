package planner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// The network's stack is deleted and the cluster exists. A spec that turns deletion protection off must reach the control plane, or the
// cluster could never be deleted.
func TestLostUnprotectsWhatOnlyItsSpecProtects(t *testing.T) {
	off := false
	deployed := map[string]stack.Deployed{names.ControlPlane: {
		Name: names.ControlPlane, Status: "UPDATE_COMPLETE", Parameters: map[string]string{"DeletionProtection": "false"},
		Outputs: map[string]string{"ClusterEndpoint": "https://x"}, Tags: map[string]string{names.TagSpecVersion: "on"},
	}}
	c := &cluster{versions: map[string]string{"on": "spec: {deletionProtection: true}", "off": "spec: {deletionProtection: false}"}}
	p := &Planner{Specs: c, EKS: live{}}
	w := work{cluster: "demo", deployed: deployed, resolved: &api.Cluster{Spec: api.ClusterSpec{DeletionProtection: &off}}}
	changes := plan.Plan{Changes: []plan.Change{
		{Stack: names.Network, Operation: plan.Create, Reasons: []status.Reason{{Old: "absent"}}},
		{Stack: names.ControlPlane, Operation: plan.Update, Reasons: []status.Reason{{}}},
	}}
	got, err := p.refuseReplacingLive(t.Context(), w, changes)
	require.NoError(t, err)
	require.Equal(t, changes.Changes[1:], got.Changes)

	deployed[names.ControlPlane].Tags[names.TagSpecVersion] = "off"
	_, err = p.refuseReplacingLive(t.Context(), w, changes)
	require.ErrorContains(t, err, "network", "no protection is left to remove")
}
