package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// ConflictsWithLive returns why a network or a control plane must not be created while the EKS cluster exists. Its stack was deleted, and
// retained the resources that the cluster needs. A second network would not be the cluster's own. A second control plane would find its
// names taken.
func ConflictsWithLive(cluster, stack string) status.Reason {
	what, instead := "EKS does not move a cluster to a second network",
		"import the retained VPC and subnets into a stack of that name"
	if stack == names.ControlPlane {
		what, instead = "a second control plane of that name cannot exist", "import the retained resources into a stack of that name, or delete "+
			"that EKS cluster with all its data so that drover creates a new one"
	}
	return status.Reason{Field: "stack " + names.Stack(cluster, stack), Old: "absent", New: fmt.Sprintf(
		"(the EKS cluster %s exists without it: %s: %s; or, to delete the cluster with its workloads, set spec.deletionProtection to false, "+
			"and delete the spec when drover has removed the protection. For the commands see the runbook: a network or "+
			"control plane that was deleted outside drover)", names.EKSCluster(cluster), what, instead)}
}

// orphans replaces the changes of add-ons and pools if the plan creates a control plane. Those stacks belong to a deleted control plane
// and its EKS cluster. What they created inside it no longer exists, although the stacks still do.
//  1. The plan deletes them before it creates the control plane. So an interrupted execution is safe: the next plan finds no control plane
//     and continues.
//  2. The plan after it creates them again.
//  3. A control plane stack whose deletion failed goes before them. Its EKS cluster may still exist, drover may not reach it, and drains
//     would wait for it. The next plan then finds no control plane.
func (in Input) orphans(changes []Change) []Change {
	i := slices.IndexFunc(changes, func(c Change) bool { return c.Stack == names.ControlPlane && c.Operation == Create })
	if i < 0 {
		return changes
	}
	var deletions []Change
	for _, name := range slices.Sorted(maps.Keys(in.Deployed)) {
		if stage(name) > stage(names.ControlPlane) && !stack.Absent(in.Deployed[name].Status) {
			deletions = append(deletions, Change{
				Stack: name, StackName: names.Stack(in.Cluster, name), Operation: Delete, Order: orderOf(in.New, name),
				First:   changes[i].CreatesFoundation(),
				Reasons: []status.Reason{{Field: controlPlaneDeleted, Old: "present", New: "absent"}},
			})
		}
	}
	if len(deletions) == 0 {
		return changes
	}
	changes = slices.DeleteFunc(changes, func(c Change) bool { return stage(c.Stack) > stage(names.ControlPlane) })
	return append(changes, deletions...)
}

// controlPlaneDeleted is the reason to delete a stack that belonged to a deleted control plane.
const controlPlaneDeleted = "status." + names.ControlPlane

// DeletesOrphan reports whether a change deletes a stack that belonged to a deleted control plane.
func (c Change) DeletesOrphan() bool {
	return c.Operation == Delete && c.Reasons[0].Field == controlPlaneDeleted
}

// CreatesFoundation reports whether a change creates a network or a control plane that does not exist.
func (c Change) CreatesFoundation() bool {
	return c.Operation == Create && (c.Stack == names.Network || c.Stack == names.ControlPlane) && c.Reasons[0].Old == "absent"
}
