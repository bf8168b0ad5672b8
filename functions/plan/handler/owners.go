package handler

import (
	"context"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// owners asks whose the network and the key are that a spec names, before a control plane is made with them or moves to other subnets. An
// uploader may name any: one that another cluster's stacks made would go with that cluster, or keep it from going.
func (h *Handler) owners(ctx context.Context, w *work) (api.Errors, error) {
	prefix := "arn:" + h.Cell.Partition + ":ec2:" + h.Cell.Region + ":" + h.Cell.Account
	named := w.resolved.Named(prefix)
	existing, now := w.resolved.Spec.Network.Existing, w.deployed[names.ControlPlane]
	made := len(now.Outputs) > 0 // only a stack that came to be has any
	if len(named) == 0 || made && (existing == nil || now.Parameters["SubnetIds"] == strings.Join(existing.Subnets, ",")) {
		return nil, nil
	}
	owners, err := h.Stacks.Owners(ctx, named)
	if err != nil {
		return nil, err
	}
	return w.resolved.ValidateOwners(prefix, owners), nil
}
