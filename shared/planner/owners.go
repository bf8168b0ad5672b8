package planner

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
)

// validateOwners checks who owns the networks and the key that a spec names, before a control plane is created with them or moves to other
// subnets, and before a pool gets subnets or security groups. It rejects those of another cluster's stacks: they would be deleted with that
// cluster, or block its deletion.
func (p *Planner) validateOwners(ctx context.Context, w *work) (api.Errors, error) {
	prefix := "arn:" + p.Cell.Partition + ":ec2:" + p.Cell.Region + ":" + p.Cell.Account
	named := w.resolved.ResourceARNs(prefix)
	existing, control := w.resolved.Spec.Network.Existing, w.deployed[names.ControlPlane]
	created := len(control.Outputs) > 0 // a stack whose creation failed has none
	isSame := existing == nil || control.Parameters[render.SubnetIDs] == strings.Join(w.resolved.ControlPlaneSubnets(), ",")
	isSame = isSame && len(newControlPlaneGroups(w)) == 0
	hasNew := slices.ContainsFunc(w.resolved.Spec.Pools, func(pool api.Pool) bool {
		return len(newSubnets(w, &pool))+len(newSecurityGroups(w, &pool)) > 0
	})
	if len(named) == 0 || created && isSame && !hasNew {
		return nil, nil
	}
	owners, err := p.Stacks.Owners(ctx, named)
	if err != nil {
		return nil, err
	}
	return w.resolved.ValidateOwners(prefix, owners), nil
}
