package planner

import (
	"context"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// validateOwners checks who owns the network and the key that a spec names, before a control plane is created with them or moves to other
// subnets. It rejects a network or key of another cluster's stacks: it would be deleted with that cluster, or block its deletion.
func (p *Planner) validateOwners(ctx context.Context, w *work) (api.Errors, error) {
	prefix := "arn:" + p.Cell.Partition + ":ec2:" + p.Cell.Region + ":" + p.Cell.Account
	named := w.resolved.ResourceARNs(prefix)
	existing, control := w.resolved.Spec.Network.Existing, w.deployed[names.ControlPlane]
	created := len(control.Outputs) > 0 // a stack whose creation failed has none
	if len(named) == 0 || created && (existing == nil || control.Parameters["SubnetIds"] == strings.Join(existing.Subnets, ",")) {
		return nil, nil
	}
	owners, err := p.Stacks.Owners(ctx, named)
	if err != nil {
		return nil, err
	}
	return w.resolved.ValidateOwners(prefix, owners), nil
}
