package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// A deletion depends on what is deployed. Each plan deletes one step: pools, whose nodes are drained; the add-ons that ran on them; the
// add-ons of nodes; the control plane; the network. Leftovers of Kubernetes are removed when no component can create them again, and
// before the network that contains them: docs/adr has the reasons.

// Protected returns the names of the stacks that deletion protection keeps. Each of these protects a stack:
//  1. Its termination protection. drover turns it off only after an update to an unprotected spec.
//  2. Its parameter DeletionProtection.
//  3. The spec version in its tag. The first update of a control plane sets its parameter. If that update was rolled back and termination
//     protection was turned off outside drover, only the tag shows that the stack is protected.
//
// The accepted versions of the spec protect the network and the control plane, whatever was deployed since: the last that could be planned,
// and the last that was accepted, which may still wait for its plan. protects holds, by version, whether a spec is protected. Versions that
// it lacks protect nothing.
func Protected(deployed map[string]stack.Deployed, accepted []string, protects map[string]bool) []string {
	isAccepted := slices.ContainsFunc(accepted, func(version string) bool { return protects[version] })
	var protected []string
	for _, name := range slices.Sorted(maps.Keys(deployed)) {
		stack := deployed[name]
		isFoundation := name == names.Network || name == names.ControlPlane
		if stack.TerminationProtection || stack.Parameters["DeletionProtection"] == "true" ||
			isFoundation && (isAccepted || protects[stack.Tags[names.TagSpecVersion]]) {
			protected = append(protected, name)
		}
	}
	return protected
}

// NextDeletion returns the next step of a deletion, given the deployed stacks, and its plan.
func NextDeletion(cluster string, deployed map[string]stack.Deployed) (Plan, events.Deletion) {
	p, step := Plan{Cluster: cluster}, events.Deletion{Stacks: []string{}}
	next := -1
	for name := range deployed {
		next = max(next, deletionStage(name))
	}
	for _, name := range slices.Sorted(maps.Keys(deployed)) {
		if deletionStage(name) != next {
			continue
		}
		step.Stacks = append(step.Stacks, name)
		step.ListRetained = step.ListRetained || name == names.ControlPlane
		p.Changes = append(p.Changes, Change{
			Stack: name, StackName: names.Stack(cluster, name), Operation: Delete,
			Reasons: []status.Reason{{Field: "spec", Old: "present", New: "absent"}},
		})
	}
	step.Leftovers = next <= deletionStage(names.Network)
	return p, step
}

// deletionStage is the place of a stack in the order of deletion. The highest is deleted first. Pools are deleted before the add-ons that
// run on them, because one of these detaches the volumes of drained nodes.
func deletionStage(stack string) int {
	if strings.HasPrefix(stack, names.PoolPrefix) {
		return 5
	}
	return stage(stack)
}
