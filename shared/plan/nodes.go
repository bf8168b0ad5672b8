package plan

// What waits while a cluster has no node.

import (
	"slices"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// NeedsNode reports whether a plan changes the add-ons that need nodes, while no pool of the spec is sure to have one. EKS would report
// them as DEGRADED, and their stack would fail.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_Addon.html
func (p Plan) NeedsNode(spec *api.Cluster) bool {
	change, found := p.Find(names.NodeAddons)
	return found && change.Operation != Delete && !slices.ContainsFunc(spec.Spec.Pools, func(pool api.Pool) bool { return pool.MinSize > 0 })
}

// WithoutNodes returns the plan for a cluster without nodes. The add-ons that need one wait unchanged, deployed or not, and with them
// a stack that gets service accounts from them.
func (p Plan) WithoutNodes() Plan {
	p.Changes = slices.DeleteFunc(slices.Clone(p.Changes), func(c Change) bool {
		return c.Stack == names.NodeAddons || c.After == names.NodeAddons
	})
	p.AddonsWait = true
	return p
}
