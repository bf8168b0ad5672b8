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

// Deletion of a cluster goes by what is deployed, one step a plan: pools, whose nodes are drained as they go; the add-ons that
// ran on them; the add-ons of nodes; the control plane; the network. What Kubernetes made in the account goes when nothing
// is left that could make it again, and before the network, which it stands in: docs/adr has the reasons.

// Protected lists the stacks that deletion protection keeps, by name. Any of these protects a stack:
//  1. Its termination protection, which drover turns off only after the stack was changed to one that may be deleted.
//  2. Its parameter DeletionProtection.
//  3. The spec version in its tag. The first update of a control plane sets its parameter; if that update was rolled back and termination
//     protection was turned off by hand, only the tag says that the stack is protected.
//
// The accepted version of the spec protects the network and the control plane, whatever they were changed to. The map says of each
// version whether it protects; versions that are not in it protect nothing.
func Protected(deployed map[string]stack.Deployed, accepted string, protects map[string]bool) []string {
	var protected []string
	for _, name := range slices.Sorted(maps.Keys(deployed)) {
		stack := deployed[name]
		founds := name == names.Network || name == names.ControlPlane
		if stack.TerminationProtection || stack.Parameters["DeletionProtection"] == "true" ||
			founds && (protects[accepted] || protects[stack.Tags[names.TagSpecVersion]]) {
			protected = append(protected, name)
		}
	}
	return protected
}

// NextDeletion is the next step of deleting a cluster of which these stacks are deployed, and its plan.
func NextDeletion(cluster string, deployed map[string]stack.Deployed) (Plan, events.Deletion) {
	p, step := Plan{Cluster: cluster}, events.Deletion{Stacks: []string{}}
	next := -1
	for name := range deployed {
		next = max(next, leaving(name))
	}
	for _, name := range slices.Sorted(maps.Keys(deployed)) {
		if leaving(name) != next {
			continue
		}
		step.Stacks = append(step.Stacks, name)
		step.Survey = step.Survey || name == names.ControlPlane
		p.Changes = append(p.Changes, Change{
			Stack: name, StackName: names.Stack(cluster, name), Operation: Delete,
			Reasons: []status.Reason{{Field: "spec", Old: "present", New: "absent"}},
		})
	}
	step.Leftovers = next <= leaving(names.Network)
	return p, step
}

// leaving is the place of a stack in the order of deletion: what has the highest goes first. Pools go before the add-ons on them: a
// drained node's volumes are detached by one.
func leaving(stack string) int {
	if strings.HasPrefix(stack, names.PoolPrefix) {
		return 5
	}
	return stage(stack)
}
