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

// checkNetworkServices stops a plan whose network would have endpoints of services that the region or a zone lacks, or addresses that are
// not free. It asks EC2 only if the network changes and the spec has such fields.
func (p *Planner) checkNetworkServices(ctx context.Context, o *Outcome) error {
	change, found := o.Plan.Find(names.Network)
	if p.Networks == nil || !found || change.Operation == plan.Delete {
		return nil
	}
	services, err := p.unusableServices(ctx, &o.work)
	if err != nil {
		return err
	}
	addresses, err := p.unusableAddresses(ctx, &o.work)
	if err != nil {
		return err
	}
	refused := slices.Concat(services, addresses)
	if len(refused) == 0 {
		return nil
	}
	return &Stop{status.ReasonChangeRefused, "no stack was changed, because the network could not be made:\n" + strings.Join(refused, "\n")}
}

func (p *Planner) unusableServices(ctx context.Context, w *work) (refused []string, err error) {
	network := &w.resolved.Spec.Network
	if len(network.Endpoints) == 0 {
		return nil, nil
	}
	var services []string
	for _, service := range network.Endpoints {
		services = append(services, render.EndpointService(p.Cell, service))
	}
	known, err := p.Networks.EndpointServices(ctx, services)
	if err != nil {
		return nil, err
	}
	for i, service := range services {
		at := fmt.Sprintf("spec.network.endpoints: %s", network.Endpoints[i])
		found, isKnown := known[service]
		if !isKnown {
			refused = append(refused, fmt.Sprintf("%s: the region has no interface endpoints of the service %s: correct the name, or remove it", at,
				service))
			continue
		}
		if found.PrivateName == "" {
			refused = append(refused, fmt.Sprintf("%s: endpoints of %s have no private DNS name: remove it", at, service))
		}
		lacks := func(zone string) bool { return slices.Contains(found.Zones, zone) }
		if lacking := slices.DeleteFunc(slices.Clone(network.Zones), lacks); len(lacking) > 0 {
			refused = append(refused, fmt.Sprintf("%s: %s has no endpoints in %s: remove it, or use other zones", at, service,
				strings.Join(lacking, ", ")))
		}
	}
	return refused, nil
}

// unusableAddresses checks the addresses that the network does not have yet.
func (p *Planner) unusableAddresses(ctx context.Context, w *work) (refused []string, err error) {
	deployed := strings.Split(w.deployed[names.Network].Outputs[render.NATAddresses], ",")
	addresses := map[string]string{}
	var added []string
	for zone, address := range w.resolved.Spec.Network.NATAddresses {
		if !slices.Contains(deployed, address) {
			addresses[address], added = zone, append(added, address)
		}
	}
	if len(added) == 0 {
		return nil, nil
	}
	slices.Sort(added)
	free, err := p.Networks.ElasticAddresses(ctx, added)
	if err != nil {
		return nil, err
	}
	for _, address := range added {
		at := fmt.Sprintf("spec.network.natAddresses[%s]: %s", addresses[address], address)
		switch isFree, found := free[address]; {
		case !found:
			refused = append(refused, at+" does not exist in this account and region: allocate an address, and state its allocation id")
		case !isFree:
			refused = append(refused, at+" is in use: disassociate it, or state another")
		}
	}
	return refused, nil
}
