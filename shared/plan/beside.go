package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// Beside refuses to make a network or a control plane while the EKS cluster is there: their stack was deleted under a
// cluster that lives, and kept what holds it. Another network would be beside the one that the cluster runs in;
// another control plane finds its names taken.
func Beside(cluster, stack string) status.Reason {
	what, instead := "a second network would be made, and EKS does not move a cluster to another VPC",
		"import the VPC and the subnets that were kept into a stack of that name"
	if stack == names.ControlPlane {
		what, instead = "a second control plane of that name cannot be made", "import what was kept into a stack of that name, or delete that "+
			"EKS cluster with all that it knows, and a new one is made"
	}
	return status.Reason{Field: "stack " + names.Stack(cluster, stack), Old: "absent", New: fmt.Sprintf(
		"(the EKS cluster %s is there without it: %s: %s; or set spec.deletionProtection to false, and delete the spec when drover has taken "+
			"the protection off. "+
			"The runbook has the commands: a network or control plane that was deleted by hand)", names.EKSCluster(cluster), what, instead)}
}

// orphans are the stacks of add-ons and pools that belong to a control plane which is gone, with its EKS cluster:
// what they made in it went along, though the stacks do not know. They are made anew by the plan after the one that
// makes another control plane. They go before that: what an execution that ends in the middle leaves of them is known
// by there being none. Where a stack is there that could not be deleted, it goes first: its EKS cluster may be there,
// too, which drover may not reach any more, and drains would wait for it. Once it is gone that plan is over, and the
// next one finds no control plane.
func (in Input) orphans(changes []Change) []Change {
	i := slices.IndexFunc(changes, func(c Change) bool { return c.Stack == names.ControlPlane && c.Operation == Create })
	if i < 0 {
		return changes
	}
	var gone []Change
	for _, name := range slices.Sorted(maps.Keys(in.Deployed)) {
		if stage(name) > stage(names.ControlPlane) && !stack.Absent(in.Deployed[name].Status) {
			gone = append(gone, Change{
				Stack: name, StackName: names.Stack(in.Cluster, name), Operation: Delete, Order: orderOf(in.New, name), First: changes[i].Founds(),
				Reasons: []status.Reason{{Field: controlPlaneGone, Old: "present", New: "absent"}},
			})
		}
	}
	if len(gone) == 0 {
		return changes
	}
	changes = slices.DeleteFunc(changes, func(c Change) bool { return stage(c.Stack) > stage(names.ControlPlane) })
	return append(changes, gone...)
}

// controlPlaneGone is the reason for which a stack goes that belonged to a control plane which is gone.
const controlPlaneGone = "status." + names.ControlPlane

// Orphan says whether a change removes what belonged to a control plane that is gone.
func (c Change) Orphan() bool {
	return c.Operation == Delete && c.Reasons[0].Field == controlPlaneGone
}

// Founds says whether a change makes a network or a control plane where there is none.
func (c Change) Founds() bool {
	return c.Operation == Create && (c.Stack == names.Network || c.Stack == names.ControlPlane) && c.Reasons[0].Old == "absent"
}
