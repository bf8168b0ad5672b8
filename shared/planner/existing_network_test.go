package planner

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/doctor"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

func TestExistingNetwork(t *testing.T) {
	given := func() (*region, *Outcome) {
		return &region{
				subnets: map[string]doctor.Subnet{
					"subnet-a": {VPC: "vpc-1", Tags: map[string]string{"kubernetes.io/role/internal-elb": "1"}}, "subnet-b": {VPC: "vpc-1"},
					"subnet-p": {VPC: "vpc-1"},
				}, public: map[string]bool{"subnet-p": true},
			}, &Outcome{
				Plan: plan.Plan{Changes: []plan.Change{{Stack: names.ControlPlane, Operation: plan.Create}}},
				work: work{
					cluster: "demo", deployed: map[string]stack.Deployed{},
					resolved: &api.Cluster{Spec: api.ClusterSpec{Network: api.Network{
						Existing: &api.ExistingNetwork{VPCID: "vpc-1", Subnets: []string{"subnet-a", "subnet-b"}},
					}}},
				},
			}
	}
	check := func(r *region, o *Outcome) error {
		return (&Planner{Networks: r, Cell: render.Cell{Region: "us-east-1"}}).checkExistingNetwork(t.Context(), o)
	}
	t.Run("finds missing tags", func(t *testing.T) {
		r, o := given()
		require.NoError(t, check(r, o))
		require.True(t, o.tagsRead)
		require.Equal(t, []string{
			"demo: subnets without the tag kubernetes.io/role/internal-elb, which internal load balancers need: subnet-b: " +
				"aws ec2 create-tags --region us-east-1 --resources subnet-b --tags Key=kubernetes.io/role/internal-elb,Value=1",
			"demo: no public subnet of vpc-1 has the tag kubernetes.io/role/elb, which internet-facing load balancers need: " +
				"aws ec2 create-tags --region us-east-1 --resources subnet-p --tags Key=kubernetes.io/role/elb,Value=1",
		}, o.tagProblems)
		s, now := &status.Status{}, time.Unix(0, 0)
		s.WarnTags(o.tagProblems, now)
		require.Equal(t, status.ReasonSubnetsUntagged, s.Condition(status.NetworkTags).Reason)
		s.WarnTags(nil, now)
		require.Nil(t, s.Condition(status.NetworkTags))
	})
	t.Run("refuses a public subnet that is new", func(t *testing.T) {
		r, o := given()
		o.work.resolved.Spec.Network.Existing.Subnets = []string{"subnet-a", "subnet-p"}
		require.EqualError(t, check(r, o), "spec.network.existing.subnets: no stack was changed, because these subnets are public: subnet-p\n"+
			"Nodes have no public addresses, and would not reach the internet through an internet gateway: name private subnets")
		o.work.deployed[names.PoolStack("a")] = stack.Deployed{Parameters: map[string]string{render.SubnetIDs: "subnet-a,subnet-p"}}
		require.NoError(t, check(r, o))
	})
	t.Run("makes no call without changes", func(t *testing.T) {
		r, o := given()
		o.Plan.Changes = nil
		require.NoError(t, check(r, o))
		require.NoError(t, (&Planner{}).checkExistingNetwork(t.Context(), o))
		require.Zero(t, r.calls)
		require.False(t, o.tagsRead)
	})
	t.Run("fails if EC2 does", func(t *testing.T) {
		r, o := given()
		r.err = errors.New("throttled")
		require.ErrorIs(t, check(r, o), r.err)
	})
}
