package plan

import (
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// nodesStay are the fields of a pool that change its group and not its launch template. Any other field replaces the pool's nodes. A
// field that is missing here shows a worse effect than it has, and cmd/reference, which tries each field, fails.
var nodesStay = []string{"instanceTypes", "minSize", "maxSize", "spot", "drain", "update", "readiness"}

// Effect returns what an update does to running nodes, as far as its reasons show. It is "" if they do not, and for creations and
// deletions.
func (c Change) Effect() status.Effect {
	if c.Operation != Update {
		return ""
	}
	pool, isPool := strings.CutPrefix(c.Stack, names.PoolPrefix)
	effect := status.InPlace
	for _, reason := range c.Reasons {
		field, ofPool := strings.CutPrefix(reason.Field, "spec.pools["+pool+"].")
		first, _, _ := strings.Cut(field, ".")
		switch {
		case !isPool:
		case ofPool && !slices.Contains(nodesStay, first),
			strings.HasPrefix(field, "spec.tags."), strings.HasPrefix(field, "spec.network.existing."),
			strings.HasPrefix(field, "spec.controlPlane."):
			return status.ReplacesNodes
		case !ofPool && !strings.HasPrefix(field, "terminationProtection."):
			effect = "" // other templates, tags or parameters: only the change set shows it
		}
	}
	return effect
}
