package planner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
)

// checkPoolNetworks stops a plan that gives a pool subnets or security groups with which EC2 could launch no node: they do not exist, or
// belong to another VPC. It also refuses groups that EKS created, because EKS deletes them with their cluster. It asks EC2 once for each
// kind, and only about those that the pools do not have yet.
func (p *Planner) checkPoolNetworks(ctx context.Context, o *Outcome) error {
	w := &o.work
	if p.Capacity == nil {
		return nil
	}
	pools := changedPools(w, o.Plan)
	subnets, groups, err := p.describeNetworks(ctx, w, pools)
	if err != nil {
		return err
	}
	vpc := vpcOf(w)
	var refused []string
	refuse := func(pool *api.Pool, field, id, problem string) {
		refused = append(refused, fmt.Sprintf("pool %s: %s: %s %s", pool.Name, field, id, problem))
	}
	for _, pool := range pools {
		for _, id := range newSubnets(w, pool) {
			if subnet, found := subnets[id]; !found {
				refuse(pool, "subnets", id, "does not exist, or is not shared with this account")
			} else if subnet.VPC != vpc {
				refuse(pool, "subnets", id, fmt.Sprintf("is part of %s, and the cluster is in %s", subnet.VPC, vpc))
			}
		}
		for _, id := range newSecurityGroups(w, pool) {
			switch group, found := groups[id]; {
			case !found:
				refuse(pool, "securityGroups", id, "does not exist")
			case group.EKSCluster != "":
				refuse(pool, "securityGroups", id, fmt.Sprintf("is the group that EKS created for %s: the nodes of that cluster have it, and EKS "+
					"deletes it with the cluster", group.EKSCluster))
			case vpc == "":
				refuse(pool, "securityGroups", id, fmt.Sprintf("belongs to %s, and the VPC of the cluster does not exist yet: create the cluster "+
					"without it first", group.VPC))
			case group.VPC != vpc:
				refuse(pool, "securityGroups", id, fmt.Sprintf("belongs to %s, and the cluster is in %s", group.VPC, vpc))
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &Stop{status.ReasonChangeRefused, fmt.Sprintf("no stack was changed, because its pools cannot have these:\n%s\n"+
		"Name others, or remove them from the pool", strings.Join(refused, "\n"))}
}

// describeNetworks returns the new subnets and security groups of pools.
func (p *Planner) describeNetworks(ctx context.Context, w *work, pools []*api.Pool) (
	subnets map[string]preflight.Subnet, groups map[string]preflight.SecurityGroup, err error,
) {
	var subnetIDs, groupIDs []string
	for _, pool := range pools {
		subnetIDs = append(subnetIDs, newSubnets(w, pool)...)
		groupIDs = append(groupIDs, newSecurityGroups(w, pool)...)
	}
	slices.Sort(subnetIDs)
	slices.Sort(groupIDs)
	if len(subnetIDs) > 0 {
		if subnets, err = p.Capacity.Subnets(ctx, slices.Compact(subnetIDs)); err != nil {
			return nil, nil, err
		}
	}
	if len(groupIDs) > 0 {
		groups, err = p.Capacity.SecurityGroups(ctx, slices.Compact(groupIDs))
	}
	return subnets, groups, err
}

// vpcOf returns the VPC of the cluster. It is "" if drover has not created it yet.
func vpcOf(w *work) string {
	if existing := w.resolved.Spec.Network.Existing; existing != nil {
		return existing.VPCID
	}
	return w.deployed[names.Network].Outputs["VpcId"]
}

// changedPools returns the pools whose stacks are created or updated.
func changedPools(w *work, changes plan.Plan) (pools []*api.Pool) {
	for i := range w.resolved.Spec.Pools {
		pool := &w.resolved.Spec.Pools[i]
		if change, found := changes.Find(names.PoolStack(pool.Name)); found && change.Operation != plan.Delete {
			pools = append(pools, pool)
		}
	}
	return pools
}

// newSubnets returns the subnets that a pool states and its stack does not have yet. EKS checks those of the control plane.
func newSubnets(w *work, pool *api.Pool) (ids []string) {
	existing := cmp.Or(w.resolved.Spec.Network.Existing, &api.ExistingNetwork{})
	deployed := strings.Split(w.deployed[names.PoolStack(pool.Name)].Parameters[render.SubnetIDs], ",")
	for _, id := range pool.Subnets {
		if !slices.Contains(deployed, id) && !slices.Contains(existing.Subnets, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// newSecurityGroups returns the security groups that a pool states and its stack does not have yet.
func newSecurityGroups(w *work, pool *api.Pool) (ids []string) {
	deployed := strings.Split(w.deployed[names.PoolStack(pool.Name)].Outputs["SecurityGroupIds"], ",")
	for _, id := range pool.SecurityGroups {
		if !slices.Contains(deployed, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
