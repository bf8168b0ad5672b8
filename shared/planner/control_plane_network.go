package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
)

// Conditions of EKS for the subnets of a control plane.
// https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html#network-requirements-subnets
const (
	controlPlaneZones = 2
	// controlPlaneAddresses is how many free addresses an update of EKS needs in each subnet.
	controlPlaneAddresses = 5
)

// checkControlPlaneNetwork stops a plan that gives the control plane subnets or security groups that EKS would refuse. It asks EC2 only
// about those that the control plane does not have yet.
func (p *Planner) checkControlPlaneNetwork(ctx context.Context, o *Outcome) error {
	w := &o.work
	change, found := o.Plan.Find(names.ControlPlane)
	if p.Capacity == nil || !found || change.Operation == plan.Delete {
		return nil
	}
	refused, err := p.unusableSubnets(ctx, w)
	if err != nil {
		return err
	}
	if groups := newControlPlaneGroups(w); len(groups) > 0 {
		described, err := p.Capacity.SecurityGroups(ctx, groups)
		if err != nil {
			return err
		}
		vpc := vpcOf(w)
		for _, id := range groups {
			at := "spec.controlPlane.securityGroups: " + id
			switch group, found := described[id]; {
			case !found:
				refused = append(refused, at+" does not exist")
			case group.EKSCluster != "":
				refused = append(refused, fmt.Sprintf("%s is the group that EKS created for %s, and EKS deletes it with that cluster", at,
					group.EKSCluster))
			case vpc == "":
				refused = append(refused, fmt.Sprintf("%s belongs to %s, and the VPC of the cluster does not exist yet: create the cluster without "+
					"it first", at, group.VPC))
			case group.VPC != vpc:
				refused = append(refused, fmt.Sprintf("%s belongs to %s, and the cluster is in %s", at, group.VPC, vpc))
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &Stop{status.ReasonChangeRefused, "no stack was changed, because the control plane cannot have these:\n" +
		strings.Join(refused, "\n")}
}

// unusableSubnets checks the subnets of a control plane in an existing network, if they are new.
func (p *Planner) unusableSubnets(ctx context.Context, w *work) (refused []string, err error) {
	subnets := w.resolved.ControlPlaneSubnets()
	if len(subnets) == 0 || w.deployed[names.ControlPlane].Parameters[render.SubnetIDs] == strings.Join(subnets, ",") {
		return nil, nil
	}
	field := "spec.network.existing.subnets"
	if len(w.resolved.Spec.ControlPlane.Subnets) > 0 {
		field = "spec.controlPlane.subnets"
	}
	described, err := p.Capacity.Subnets(ctx, subnets)
	if err != nil {
		return nil, err
	}
	vpc, zones := vpcOf(w), map[string]bool{}
	for _, id := range subnets {
		at := field + ": " + id
		subnet, found := described[id]
		zones[subnet.Zone] = true
		switch {
		case !found:
			refused = append(refused, at+" does not exist, or is not shared with this account")
		case subnet.VPC != vpc:
			refused = append(refused, fmt.Sprintf("%s is part of %s, and the cluster is in %s", at, subnet.VPC, vpc))
		case subnet.Free < controlPlaneAddresses:
			refused = append(refused, fmt.Sprintf("%s has %d free addresses, and EKS needs %d: free some, or name another", at, subnet.Free,
				controlPlaneAddresses))
		}
	}
	if len(refused) == 0 && len(zones) < controlPlaneZones {
		refused = append(refused, fmt.Sprintf("%s: all are in one zone, and EKS needs two", field))
	}
	return refused, nil
}

// newControlPlaneGroups returns the security groups that the control plane states and its stack does not have yet.
func newControlPlaneGroups(w *work) (ids []string) {
	deployed := strings.Split(w.deployed[names.ControlPlane].Outputs[render.SecurityGroups], ",")
	for _, id := range w.resolved.Spec.ControlPlane.SecurityGroups {
		if !slices.Contains(deployed, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
