package plan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

// Stacks of a deleted control plane are deleted before another control plane is created, and created by the plan after that. If an
// execution ends midway, the next plan deletes the rest.
func TestComputeDeletesOrphansFirst(t *testing.T) {
	first := Compute(input(spec(), nil, nil))
	deployed := deploy(nil, first)
	delete(deployed, names.ControlPlane)
	p := Compute(input(spec(), spec(), deployed))
	last := len(p.Changes) - 1
	for _, change := range p.Changes[:last] {
		require.True(t, change.DeletesOrphan(), change.Stack)
	}
	require.Equal(t, "Create control-plane", order(p)[last])
	require.True(t, p.Changes[last].Founds())
	require.Len(t, p.Changes, len(first.Changes)-1, "all except the network")
	stages := p.Stages()
	require.Len(t, stages.Network, last)
	require.Equal(t, []string{names.ControlPlane}, stages.ControlPlane)
	require.Empty(t, slices.Concat(stages.Addons, slices.Concat(stages.Pools...), stages.NodeAddons))

	half := p
	half.Changes = p.Changes[:1]
	require.Equal(t, order(p)[1:], order(Compute(input(spec(), spec(), deploy(deployed, half)))))

	again := Compute(input(spec(), spec(), deploy(deployed, p)))
	for _, change := range again.Changes {
		require.Equal(t, Create, change.Operation, change.Stack)
	}
	require.Len(t, again.Changes, len(first.Changes)-2)
	require.Empty(t, Compute(input(spec(), spec(), deploy(deploy(deployed, p), again))).Changes)

	deployed[names.ControlPlane] = stack.Deployed{Name: names.ControlPlane, Status: "DELETE_FAILED"}
	require.Equal(t, "Create control-plane", order(Compute(input(spec(), spec(), deployed)))[0],
		"drains would wait for an EKS cluster that may still exist")
}
