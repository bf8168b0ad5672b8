package planner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
)

func TestServicesAndAddressesOfNetworks(t *testing.T) {
	const ssm, a, b = "com.amazonaws.us-east-1.ssm", "eipalloc-a", "eipalloc-b"
	given := func(network api.Network) (*region, *Outcome) {
		network.Zones = []string{"us-east-1a", "us-east-1b"}
		return &region{
				services: map[string]preflight.EndpointService{ssm: {Zones: network.Zones, PrivateName: "ssm"}},
				free:     map[string]bool{a: true, b: true},
			}, &Outcome{
				Plan: plan.Plan{Changes: []plan.Change{{Stack: names.Network, Operation: plan.Create}}},
				work: work{resolved: &api.Cluster{Spec: api.ClusterSpec{Network: network}}, deployed: map[string]stack.Deployed{}},
			}
	}
	check := func(r *region, o *Outcome) error {
		return (&Planner{Networks: r, Cell: render.Cell{Partition: "aws", Region: "us-east-1"}}).checkNetworkServices(t.Context(), o)
	}
	const refused = "no stack was changed, because the network could not be made:\n"
	full := api.Network{Endpoints: []string{"ssm"}, NATAddresses: map[string]string{"us-east-1a": a, "us-east-1b": b}}
	t.Run("accepts what there is", func(t *testing.T) {
		r, o := given(full)
		require.NoError(t, check(r, o))
		require.Equal(t, 2, r.calls)
	})
	t.Run("makes no call without such fields, or for what is deployed", func(t *testing.T) {
		r, o := given(api.Network{})
		require.NoError(t, check(r, o))
		r, o = given(api.Network{NATAddresses: full.NATAddresses})
		o.work.deployed[names.Network] = stack.Deployed{Outputs: map[string]string{render.NATAddresses: a + "," + b}}
		require.NoError(t, check(r, o))
		require.Zero(t, r.calls)
	})
	t.Run("refuses services", func(t *testing.T) {
		r, o := given(api.Network{Endpoints: []string{"smm", "ssm"}})
		r.services[ssm] = preflight.EndpointService{Zones: []string{"us-east-1a"}}
		require.EqualError(t, check(r, o), refused+
			"spec.network.endpoints: smm: the region has no interface endpoints of the service com.amazonaws.us-east-1.smm: correct the name, "+
			"or remove it\n"+
			"spec.network.endpoints: ssm: endpoints of "+ssm+" have no private DNS name: remove it\n"+
			"spec.network.endpoints: ssm: "+ssm+" has no endpoints in us-east-1b: remove it, or use other zones")
	})
	t.Run("refuses addresses", func(t *testing.T) {
		r, o := given(full)
		r.free = map[string]bool{a: false}
		require.EqualError(t, check(r, o), refused+
			"spec.network.natAddresses[us-east-1a]: eipalloc-a is in use: disassociate it, or state another\n"+
			"spec.network.natAddresses[us-east-1b]: eipalloc-b does not exist in this account and region: allocate an address, and state its "+
			"allocation id")
	})
}
