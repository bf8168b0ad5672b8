package planner

import (
	"context"
	"slices"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// drainedByRolls lists the instances of an earlier launch template that wait at their terminate hooks. CloudFormation
// ends an update without waiting for the hooks of its last batch, so a pool's stack is what its spec says while pods
// still leave.
func (p *Planner) drainedByRolls(ctx context.Context, w work) (nodes []status.Node, err error) {
	for _, pool := range w.resolved.Spec.Pools {
		if poolStack, deployed := w.deployed[names.PoolStack(pool.Name)]; !deployed || stack.Absent(poolStack.Status) {
			continue
		}
		group, _, err := p.Groups.Describe(ctx, names.Group(w.cluster, pool.Name))
		if err != nil {
			return nil, err
		}
		leaving := group.Draining()
		for _, i := range group.Instances {
			if slices.Contains(leaving, i.ID) && i.TemplateVersion != "" && i.TemplateVersion != group.TemplateVersion {
				nodes = append(nodes, status.Node{Instance: i.ID, Pool: pool.Name})
			}
		}
	}
	return nodes, nil
}
