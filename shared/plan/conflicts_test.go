package plan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
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
	require.True(t, p.Changes[last].CreatesFoundation())
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
	set(deployed, names.ControlPlane, "ROLLBACK_COMPLETE")
	p = Compute(input(spec(), spec(), deployed))
	require.Equal(t, "Create control-plane", order(p)[0], "its creation failed, and it is recreated")
	require.NotContains(t, order(p), "Delete control-plane")
	require.Len(t, p.Changes, len(first.Changes)-1)
}

func TestFounds(t *testing.T) {
	for name, test := range map[string]struct {
		stack     string
		operation Operation
		old       string
		want      bool
	}{
		"a network":                      {names.Network, Create, "absent", true},
		"a control plane":                {names.ControlPlane, Create, "absent", true},
		"not add-ons":                    {names.Addons, Create, "absent", false},
		"not a pool":                     {names.PoolStack("a"), Create, "absent", false},
		"not one whose creation failed":  {names.Network, Create, "ROLLBACK_COMPLETE", false},
		"not one that exists":            {names.Network, Update, "absent", false},
		"not a control plane's deletion": {names.ControlPlane, Delete, "absent", false},
	} {
		t.Run(name, func(t *testing.T) {
			change := Change{Stack: test.stack, Operation: test.operation, Reasons: []status.Reason{{Old: test.old}}}
			require.Equal(t, test.want, change.CreatesFoundation())
		})
	}
}

func TestDeletesOrphan(t *testing.T) {
	for name, test := range map[string]struct {
		operation Operation
		field     string
		want      bool
	}{
		"after its control plane was deleted":   {Delete, controlPlaneDeleted, true},
		"not after the spec was changed":        {Delete, "spec.pools[a]", false},
		"not when a control plane is recreated": {Create, controlPlaneDeleted, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, Change{Operation: test.operation, Reasons: []status.Reason{{Field: test.field}}}.DeletesOrphan())
		})
	}
}

func TestConflictsWithLive(t *testing.T) {
	for of, says := range map[string][]string{
		names.Network:      {"a second network", "import the retained VPC"},
		names.ControlPlane: {"a second control plane", "or delete that EKS cluster with all its data so that drover creates a new one"},
	} {
		reason := ConflictsWithLive("demo", of)
		require.Equal(t, "stack drover-demo-"+of, reason.Field)
		require.Equal(t, "absent", reason.Old)
		for _, says := range append(says, "(the EKS cluster "+names.EKSCluster("demo")+" exists",
			"set spec.deletionProtection to false, and delete") {
			require.Contains(t, reason.New, says)
		}
	}
}
