package plan

import (
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// nodesStay are the fields of a pool that change its group and not what nodes are launched as. Every other replaces the pool's nodes: a
// field that is forgotten here is told to be worse than it is, and cmd/reference, which tries each, fails.
var nodesStay = []string{"instanceTypes", "minSize", "maxSize", "spot", "drain", "update", "readiness"}

// Effect says what an update does to what runs, as far as its reasons tell; "" where they do not, or where there is
// nothing yet or any more.
func (c Change) Effect() status.Effect {
	if c.Operation != Update {
		return ""
	}
	pool, is := strings.CutPrefix(c.Stack, names.PoolPrefix)
	effect := status.InPlace
	for _, reason := range c.Reasons {
		field, ofPool := strings.CutPrefix(reason.Field, "spec.pools["+pool+"].")
		first, _, _ := strings.Cut(field, ".")
		switch {
		case !is:
		case ofPool && !slices.Contains(nodesStay, first),
			strings.HasPrefix(field, "spec.tags."), strings.HasPrefix(field, "spec.network.existing."),
			strings.HasPrefix(field, "spec.controlPlane."):
			return status.ReplacesNodes
		case !ofPool && !strings.HasPrefix(field, "terminationProtection."):
			effect = "" // other templates, tags or parameters: the change set will tell
		}
	}
	return effect
}
