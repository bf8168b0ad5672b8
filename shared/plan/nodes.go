package plan

// What cannot be done while a cluster has no node.

import (
	"slices"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// NeedsNode says whether a plan changes the add-ons that need nodes though no pool of the spec is sure to have one: EKS would call
// them DEGRADED, and their stack would fail.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_Addon.html
func (p Plan) NeedsNode(spec *api.Cluster) bool {
	change, changes := p.Find(names.NodeAddons)
	return changes && change.Operation != Delete && !slices.ContainsFunc(spec.Spec.Pools, func(pool api.Pool) bool { return pool.MinSize > 0 })
}

// WithoutNodes is the plan of a cluster that has no node: the add-ons that need one wait for it as they are, deployed or not.
func (p Plan) WithoutNodes() Plan {
	p.Changes = slices.DeleteFunc(slices.Clone(p.Changes), func(c Change) bool { return c.Stack == names.NodeAddons })
	p.AddonsWait = true
	return p
}
