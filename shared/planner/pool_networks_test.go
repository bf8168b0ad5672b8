package planner

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// networks of an account. They record the requests.
type networks struct {
	subnets  map[string]preflight.Subnet
	groups   map[string]preflight.SecurityGroup
	err      error
	requests [][]string
}

func (n *networks) Subnets(_ context.Context, ids []string) (map[string]preflight.Subnet, error) {
	n.requests = append(n.requests, ids)
	return n.subnets, n.err
}

func (n *networks) SecurityGroups(_ context.Context, ids []string) (map[string]preflight.SecurityGroup, error) {
	n.requests = append(n.requests, ids)
	return n.groups, n.err
}

func (n *networks) InstanceTypes(context.Context, []string) (map[string]preflight.InstanceType, error) {
	return nil, n.err
}

func TestNetworksOfPools(t *testing.T) {
	given := func() (*networks, *Outcome) {
		n := &networks{
			subnets: map[string]preflight.Subnet{"subnet-c": {VPC: "vpc-1"}, "subnet-d": {VPC: "vpc-2"}},
			groups: map[string]preflight.SecurityGroup{
				"sg-a": {VPC: "vpc-1"}, "sg-b": {VPC: "vpc-1"}, "sg-far": {VPC: "vpc-2"}, "sg-eks": {VPC: "vpc-1", EKSCluster: "drover-shop"},
			},
		}
		o := &Outcome{work: work{cluster: "demo", resolved: &api.Cluster{Spec: api.ClusterSpec{
			Network: api.Network{Existing: &api.ExistingNetwork{VPCID: "vpc-1", Subnets: []string{"subnet-a", "subnet-b"}}},
			Pools: []api.Pool{
				{Name: "a", Subnets: []string{"subnet-a", "subnet-c"}, SecurityGroups: []string{"sg-a", "sg-b"}},
				{Name: "same", Subnets: []string{"subnet-d"}, SecurityGroups: []string{"sg-far"}},
				{Name: "still", SecurityGroups: []string{"sg-lost"}},
			},
		}}}}
		o.work.deployed = map[string]stack.Deployed{
			"pool-a":    {Outputs: map[string]string{"SecurityGroupIds": "sg-a"}},
			"pool-same": {Outputs: map[string]string{"SecurityGroupIds": "sg-far"}, Parameters: map[string]string{"SubnetIds": "subnet-d"}},
		}
		for _, name := range []string{"pool-a", "pool-same"} {
			o.Plan.Changes = append(o.Plan.Changes, plan.Change{Stack: name, Operation: plan.Update})
		}
		return n, o
	}
	check := func(n *networks, o *Outcome) error { return (&Planner{Capacity: n}).checkPoolNetworks(t.Context(), o) }

	t.Run("asks once, about those that are not deployed", func(t *testing.T) {
		n, o := given()
		require.NoError(t, check(n, o))
		require.Equal(t, [][]string{{"subnet-c"}, {"sg-b"}}, n.requests)
	})
	t.Run("asks nothing without new ones, and in previews", func(t *testing.T) {
		n, o := given()
		o.Plan.Changes = o.Plan.Changes[1:]
		require.NoError(t, check(n, o))
		require.Empty(t, n.requests)
		_, o = given()
		require.NoError(t, (&Planner{}).checkPoolNetworks(t.Context(), o))
	})
	t.Run("refuses what EC2 could not launch in, and names each pool", func(t *testing.T) {
		n, o := given()
		o.work.resolved.Spec.Pools[0].Subnets = []string{"subnet-d", "subnet-x"}
		o.work.resolved.Spec.Pools[0].SecurityGroups = []string{"sg-far", "sg-x", "sg-eks"}
		err := check(n, o)
		var stopped *Stop
		require.ErrorAs(t, err, &stopped)
		require.Equal(t, status.ReasonChangeRefused, stopped.Reason)
		require.Equal(t, "no stack was changed, because its pools cannot have these:\n"+
			"pool a: subnets: subnet-d is part of vpc-2, and the cluster is in vpc-1\n"+
			"pool a: subnets: subnet-x does not exist, or is not shared with this account\n"+
			"pool a: securityGroups: sg-far belongs to vpc-2, and the cluster is in vpc-1\n"+
			"pool a: securityGroups: sg-x does not exist\n"+
			"pool a: securityGroups: sg-eks is the group that EKS created for drover-shop: the nodes of that cluster have it, and EKS deletes it "+
			"with the cluster\n"+
			"Name others, or remove them from the pool", err.Error())
	})
	t.Run("refuses security groups before the VPC exists", func(t *testing.T) {
		n, o := given()
		o.work.resolved.Spec.Network = api.Network{}
		o.work.resolved.Spec.Pools[0].Subnets = nil
		require.ErrorContains(t, check(n, o), "pool a: securityGroups: sg-b belongs to vpc-1, and the VPC of the cluster does not exist yet: "+
			"create the cluster without it first")
		o.work.deployed["network"] = stack.Deployed{Outputs: map[string]string{"VpcId": "vpc-1"}}
		require.NoError(t, check(n, o))
	})
	t.Run("fails if EC2 does", func(t *testing.T) {
		n, o := given()
		n.err = errors.New("throttled")
		require.ErrorIs(t, check(n, o), n.err)
	})
}
