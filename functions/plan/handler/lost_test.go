package handler

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
)

// live is an EKS cluster that exists.
type live struct{ Versions }

func (live) Exists(context.Context, string) (bool, error) { return true, nil }

// The network's stack is gone and the cluster lives. A spec that turns deletion protection off must reach the control plane, or the
// cluster could never be deleted.
func TestLostUnprotectsWhatOnlyItsSpecProtects(t *testing.T) {
	off := false
	deployed := unprotected("", "on")
	delete(deployed, names.Network)
	c := &specless{versions: map[string]string{"on": "spec: {deletionProtection: true}", "off": "spec: {deletionProtection: false}"}}
	h := &Handler{Specs: c, Versions: live{}}
	w := work{cluster: "demo", deployed: deployed, resolved: &api.Cluster{Spec: api.ClusterSpec{DeletionProtection: &off}}}
	p := plan.Plan{Changes: []plan.Change{
		{Stack: names.Network, Operation: plan.Create, Reasons: []status.Reason{{Old: "absent"}}},
		{Stack: names.ControlPlane, Operation: plan.Update, Reasons: []status.Reason{{}}},
	}}
	got, err := h.lost(t.Context(), w, p)
	require.NoError(t, err)
	require.Equal(t, p.Changes[1:], got.Changes)

	deployed[names.ControlPlane].Tags[names.TagSpecVersion] = "off"
	_, err = h.lost(t.Context(), w, p)
	require.ErrorContains(t, err, "network", "nothing is left to unprotect")
}
