package planner

import (
	"context"
	"fmt"
	"strings"

	"github.com/drover-run/drover/shared/doctor"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
)

// checkZones stops a plan that gives the network a zone in which EKS creates no control plane, or that the region does not have. Names say
// nothing about that, because each account has another mapping from names to ids. It asks EC2 only before the network gets a zone.
// https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html#network-requirements-subnets
func (p *Planner) checkZones(ctx context.Context, o *Outcome) error {
	w := &o.work
	change, found := o.Plan.Find(names.Network)
	if p.Networks == nil || !found || change.Operation == plan.Delete {
		return nil
	}
	zones := w.resolved.Spec.Network.Zones
	// Removing a zone is refused, so a network with as many subnets has these zones.
	if subnets := w.deployed[names.Network].Outputs["PrivateSubnetIds"]; subnets != "" && len(strings.Split(subnets, ",")) >= len(zones) {
		return nil
	}
	ids, err := p.Networks.Zones(ctx)
	if err != nil {
		return err
	}
	problem := doctor.ZoneProblem(zones, ids)
	if problem == "" {
		return nil
	}
	return &Stop{status.ReasonZoneRefused, fmt.Sprintf("spec.network.zones: no stack was changed, because the network cannot have these "+
		"zones: %s\nUse zones of these: %s", problem, strings.Join(doctor.AcceptedZones(ids), ", "))}
}
