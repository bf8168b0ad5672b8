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

func TestNetworkOfTheControlPlane(t *testing.T) {
	given := func(subnets, groups []string) (*networks, *Outcome) {
		return &networks{
				subnets: map[string]preflight.Subnet{
					"subnet-a": {VPC: "vpc-1", Zone: "a", Free: 5}, "subnet-a2": {VPC: "vpc-1", Zone: "a", Free: 5},
					"subnet-b": {VPC: "vpc-1", Zone: "b", Free: 5}, "subnet-full": {VPC: "vpc-1", Zone: "b", Free: 4},
					"subnet-far": {VPC: "vpc-2", Zone: "b", Free: 5},
				},
				groups: map[string]preflight.SecurityGroup{
					"sg-a": {VPC: "vpc-1"}, "sg-far": {VPC: "vpc-2"}, "sg-eks": {VPC: "vpc-1", EKSCluster: "drover-shop"},
				},
			}, &Outcome{
				Plan: plan.Plan{Changes: []plan.Change{{Stack: names.ControlPlane, Operation: plan.Create}}},
				work: work{
					resolved: &api.Cluster{Spec: api.ClusterSpec{
						Network:      api.Network{Existing: &api.ExistingNetwork{VPCID: "vpc-1", Subnets: []string{"subnet-a", "subnet-b"}}},
						ControlPlane: api.ControlPlane{Subnets: subnets, SecurityGroups: groups},
					}},
					deployed: map[string]stack.Deployed{},
				},
			}
	}
	check := func(n *networks, o *Outcome) error {
		return (&Planner{Capacity: n}).checkControlPlaneNetwork(t.Context(), o)
	}
	const refused = "no stack was changed, because the control plane cannot have these:\n"
	t.Run("accepts those of the VPC", func(t *testing.T) {
		n, o := given([]string{"subnet-a2", "subnet-b"}, []string{"sg-a"})
		require.NoError(t, check(n, o))
		require.Equal(t, [][]string{{"subnet-a2", "subnet-b"}, {"sg-a"}}, n.requests)
	})
	t.Run("checks the subnets of the network too", func(t *testing.T) {
		n, o := given(nil, nil)
		require.NoError(t, check(n, o))
		require.Equal(t, [][]string{{"subnet-a", "subnet-b"}}, n.requests)
		n.subnets = nil
		require.EqualError(t, check(n, o), refused+
			"spec.network.existing.subnets: subnet-a does not exist, or is not shared with this account\n"+
			"spec.network.existing.subnets: subnet-b does not exist, or is not shared with this account")
	})
	t.Run("makes no call for what is deployed", func(t *testing.T) {
		n, o := given(nil, []string{"sg-a"})
		o.work.deployed[names.ControlPlane] = stack.Deployed{
			Parameters: map[string]string{render.SubnetIDs: "subnet-a,subnet-b"}, Outputs: map[string]string{render.SecurityGroups: "sg-a"},
		}
		require.NoError(t, check(n, o))
		require.Empty(t, n.requests)
	})
	t.Run("refuses others", func(t *testing.T) {
		n, o := given([]string{"subnet-a", "subnet-full", "subnet-far"}, []string{"sg-none", "sg-far", "sg-eks"})
		require.EqualError(t, check(n, o), refused+
			"spec.controlPlane.subnets: subnet-full has 4 free addresses, and EKS needs 5: free some, or name another\n"+
			"spec.controlPlane.subnets: subnet-far is part of vpc-2, and the cluster is in vpc-1\n"+
			"spec.controlPlane.securityGroups: sg-eks is the group that EKS created for drover-shop, and EKS deletes it with that cluster\n"+
			"spec.controlPlane.securityGroups: sg-far belongs to vpc-2, and the cluster is in vpc-1\n"+
			"spec.controlPlane.securityGroups: sg-none does not exist")
	})
	t.Run("refuses subnets in one zone", func(t *testing.T) {
		n, o := given([]string{"subnet-a", "subnet-a2"}, nil)
		require.EqualError(t, check(n, o), refused+"spec.controlPlane.subnets: all are in one zone, and EKS needs two")
	})
	t.Run("refuses groups before the VPC exists", func(t *testing.T) {
		n, o := given(nil, []string{"sg-a"})
		o.work.resolved.Spec.Network.Existing = nil
		require.EqualError(t, check(n, o), refused+"spec.controlPlane.securityGroups: sg-a belongs to vpc-1, and the VPC of the cluster does "+
			"not exist yet: create the cluster without it first")
	})
}
