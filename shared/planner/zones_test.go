package planner

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/doctor"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// region is a fake of EC2 that counts calls.
type region struct {
	zones    map[string]string
	services map[string]preflight.EndpointService
	free     map[string]bool
	subnets  map[string]doctor.Subnet
	public   map[string]bool
	err      error
	calls    int
}

func (r *region) Zones(context.Context) (map[string]string, error) {
	r.calls++
	return r.zones, r.err
}

func (r *region) EndpointServices(context.Context, []string) (map[string]preflight.EndpointService, error) {
	r.calls++
	return r.services, r.err
}

func (r *region) ElasticAddresses(context.Context, []string) (map[string]bool, error) {
	r.calls++
	return r.free, r.err
}

func (r *region) Subnets(context.Context, []string) (map[string]doctor.Subnet, error) {
	r.calls++
	return r.subnets, r.err
}

func (r *region) PublicSubnets(context.Context, map[string]doctor.Subnet) (map[string]bool, error) {
	r.calls++
	return r.public, r.err
}

func TestZonesOfNetworks(t *testing.T) {
	given := func(operation plan.Operation, subnets string, zones ...string) (*region, *Outcome) {
		return &region{zones: map[string]string{"us-east-1a": "use1-az3", "us-east-1b": "use1-az1", "us-east-1c": "use1-az2"}}, &Outcome{
			Plan: plan.Plan{Changes: []plan.Change{{Stack: names.Network, Operation: operation}}},
			work: work{
				resolved: &api.Cluster{Spec: api.ClusterSpec{Network: api.Network{Zones: zones}}},
				deployed: map[string]stack.Deployed{names.Network: {Outputs: map[string]string{"PrivateSubnetIds": subnets}}},
			},
		}
	}
	check := func(r *region, o *Outcome) error { return (&Planner{Networks: r}).checkZones(t.Context(), o) }
	t.Run("refuses a zone by its id, and one that does not exist", func(t *testing.T) {
		r, o := given(plan.Create, "", "us-east-1a", "us-east-1b", "us-east-1f")
		err := check(r, o)
		var stop *Stop
		require.ErrorAs(t, err, &stop)
		require.Equal(t, status.ReasonZoneRefused, stop.Reason)
		require.EqualError(t, err, "spec.network.zones: no stack was changed, because the network cannot have these zones: "+
			"EKS creates no control plane in zone us-east-1a (use1-az3); zone us-east-1f does not exist or is not available\n"+
			"Use zones of these: us-east-1b, us-east-1c")
	})
	t.Run("accepts others", func(t *testing.T) {
		r, o := given(plan.Create, "", "us-east-1b", "us-east-1c")
		require.NoError(t, check(r, o))
		require.Equal(t, 1, r.calls)
	})
	t.Run("asks again when a zone is added", func(t *testing.T) {
		r, o := given(plan.Update, "subnet-b,subnet-c", "us-east-1b", "us-east-1c", "us-east-1a")
		require.ErrorContains(t, check(r, o), "EKS creates no control plane in zone us-east-1a (use1-az3)\n")
	})
	t.Run("makes no other call", func(t *testing.T) {
		r, o := given(plan.Update, "subnet-b,subnet-c", "us-east-1b", "us-east-1c")
		require.NoError(t, check(r, o))
		r, o = given(plan.Delete, "")
		require.NoError(t, check(r, o))
		o.Plan.Changes[0].Stack = names.ControlPlane
		require.NoError(t, check(r, o))
		require.NoError(t, (&Planner{}).checkZones(t.Context(), o))
		require.Zero(t, r.calls)
	})
	t.Run("fails if EC2 does", func(t *testing.T) {
		r, o := given(plan.Create, "", "us-east-1b", "us-east-1c")
		r.err = errors.New("throttled")
		require.ErrorIs(t, check(r, o), r.err)
	})
}
