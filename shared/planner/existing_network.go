package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/doctor"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// checkExistingNetwork reads the subnets of an existing network when a plan changes something. It stops a plan that gives nodes a subnet
// whose route leads to an internet gateway: nodes have no public addresses, so they would reach neither EKS nor the registries. It also
// finds missing tags, which only warn: load balancers need them.
// https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html#network-requirements-subnets
func (p *Planner) checkExistingNetwork(ctx context.Context, o *Outcome) error {
	w := &o.work
	existing := w.resolved.Spec.Network.Existing
	if p.Networks == nil || existing == nil || len(o.Plan.Changes) == 0 {
		return nil
	}
	subnets, err := p.Networks.Subnets(ctx, []string{existing.VPCID})
	if err != nil {
		return err
	}
	public, err := p.Networks.PublicSubnets(ctx, subnets)
	if err != nil {
		return err
	}
	o.tagsRead = true
	for _, f := range doctor.SubnetTags(p.Cell.Region, w.cluster, existing, subnets, public) {
		o.tagProblems = append(o.tagProblems, f.Message+": "+f.Fix)
	}
	var refused []string
	for _, id := range existing.Subnets {
		if public[id] && !isUsed(w.deployed, id) {
			refused = append(refused, id)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &Stop{status.ReasonChangeRefused, fmt.Sprintf("spec.network.existing.subnets: no stack was changed, because these subnets are "+
		"public: %s\nNodes have no public addresses, and would not reach the internet through an internet gateway: name private subnets",
		strings.Join(refused, ", "))}
}

// isUsed reports whether a stack of the cluster has a subnet.
func isUsed(deployed map[string]stack.Deployed, subnet string) bool {
	for name, s := range deployed {
		isUser := name == names.ControlPlane || strings.HasPrefix(name, names.PoolPrefix)
		if isUser && slices.Contains(strings.Split(s.Parameters[render.SubnetIDs], ","), subnet) {
			return true
		}
	}
	return false
}
