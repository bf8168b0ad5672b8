package aws_test

import (
	"strings"
	"testing"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/aws/leftovers"
	"github.com/drover-run/drover/shared/leftover"
	"github.com/drover-run/drover/shared/names"
)

// place is an account with the network of a cluster, demo. It uses the rights of the clean function. The leftovers are of another
// cluster, shop, so that none are EKS's own.
type place struct {
	*harness.Account
	t         *testing.T
	leftovers *leftovers.Leftovers
}

func newPlace(t *testing.T) place {
	a := harness.Start(t)
	a.Cluster("demo", "")
	var config aws.Config
	a.Functions.Around("clean", func(cfg aws.Config, next awslambda.Handler) awslambda.Handler {
		config = cfg
		return next
	})
	return place{a, t, leftovers.New(config, names.RoleARN("aws", harness.ID, harness.Region, "leftovers"))}
}

func (p place) must(id string, err error) string {
	p.t.Helper()
	require.NoError(p.t, err)
	return id
}

// findLeftovers returns the leftovers of a cluster in order, also as text.
func (p place) findLeftovers(cluster string) (list []string, resources []leftover.Resource) {
	p.t.Helper()
	resources, err := p.leftovers.Find(p.t.Context(), cluster)
	require.NoError(p.t, err)
	for _, r := range resources {
		list = append(list, r.String())
	}
	return list, resources
}

func TestFindOrdersByRemoval(t *testing.T) {
	p := newPlace(t)
	network := p.Stack("demo", names.Network).Outputs
	subnet, _, _ := strings.Cut(network["PrivateSubnetIds"], ",")
	owned := map[string]string{names.OwnershipTag("shop"): "owned"}
	controller := map[string]string{"elbv2.k8s.aws/cluster": "drover-shop"}
	volume := p.must(p.EC2.CreateVolume(harness.Region+"a", 1, owned))
	group := p.must(p.EC2.CreateSecurityGroup(network["VpcId"], "k8s", "of Kubernetes", false, controller))
	card := p.must(p.EC2.CreateNetworkInterface(subnet, nil, "of the CNI", "", map[string]string{
		"cluster.k8s.amazonaws.com/name": "drover-shop",
	}))
	application := p.must(p.ELB.Create("alb", "application", subnet, nil, false, controller))
	target := p.ELB.CreateTargetGroup("targets", application, controller)
	p.must(p.ELB.Create("classic", "classic", subnet, nil, false, owned))
	// Resources of other clusters, and of none.
	p.must(p.EC2.CreateVolume(harness.Region+"a", 1, map[string]string{names.OwnershipTag("other"): "owned"}))
	p.must(p.EC2.CreateVolume(harness.Region+"a", 1, map[string]string{names.OwnershipTag("shop"): "shared"}))
	p.must(p.EC2.CreateVolume(harness.Region+"a", 1, map[string]string{names.OwnershipTag("shop"): "owned", names.TagCluster: "shop"}))
	p.must(p.EC2.CreateVolume(harness.Region+"a", 1, nil))

	list, resources := p.findLeftovers("shop")
	require.Equal(t, []string{
		"load balancer " + application, "classic load balancer classic", "target group " + target,
		"network interface " + card, "security group " + group, "volume " + volume,
	}, list)
	require.True(t, resources[5].IsVolume())
	require.False(t, resources[0].IsVolume())

	for _, r := range resources {
		outcome, why, err := p.leftovers.Remove(t.Context(), "shop", r)
		require.NoError(t, err, r.String())
		require.Equal(t, leftover.Removed, outcome, "%s: %s", r, why)
	}
	list, _ = p.findLeftovers("shop")
	require.Empty(t, list)
	other, _ := p.findLeftovers("other")
	require.Len(t, other, 1, "the other cluster's volume remains")
}

func TestRemoveReportsWhyItRemains(t *testing.T) {
	p := newPlace(t)
	network := p.Stack("demo", names.Network).Outputs
	subnet, _, _ := strings.Cut(network["PrivateSubnetIds"], ",")
	controller := map[string]string{"elbv2.k8s.aws/cluster": "drover-shop"}
	group := p.must(p.EC2.CreateSecurityGroup(network["VpcId"], "k8s", "of Kubernetes", false, controller))
	protected := p.must(p.ELB.Create("alb", "application", subnet, []string{group}, true, controller))
	target := p.ELB.CreateTargetGroup("targets", protected, controller)
	volume := p.must(p.EC2.CreateVolume(harness.Region+"a", 1, map[string]string{names.OwnershipTag("shop"): "owned"}))
	_, resources := p.findLeftovers("shop")
	require.Len(t, resources, 4)
	for kind, c := range map[string]struct {
		outcome leftover.Outcome
		why     string
	}{
		"load balancer " + protected: {leftover.Remains, "deletion protection is enabled"},
		"target group " + target:     {leftover.Remains, "in use"},
		"security group " + group:    {leftover.Remains, "DependencyViolation"},
		"volume " + volume:           {leftover.Removed, ""},
	} {
		for _, r := range resources {
			if r.String() != kind {
				continue
			}
			outcome, why, err := p.leftovers.Remove(t.Context(), "shop", r)
			require.NoError(t, err)
			require.Equal(t, c.outcome, outcome, "%s: %s", kind, why)
			require.Contains(t, why, c.why)
		}
	}
	t.Run("accepts a resource that no longer exists", func(t *testing.T) {
		for _, r := range resources {
			if r.IsVolume() {
				outcome, _, err := p.leftovers.Remove(t.Context(), "shop", r)
				require.NoError(t, err)
				require.NotEqual(t, leftover.Removed, outcome)
			}
		}
	})
}

func TestRemoveOnlyTheClustersOwn(t *testing.T) {
	p := newPlace(t)
	p.must(p.EC2.CreateVolume(harness.Region+"a", 1, map[string]string{names.OwnershipTag("other"): "owned"}))
	_, resources := p.findLeftovers("other")
	require.Len(t, resources, 1)
	outcome, why, err := p.leftovers.Remove(t.Context(), "shop", resources[0])
	require.NoError(t, err)
	require.Equal(t, leftover.Remains, outcome)
	require.Contains(t, why, "not authorized")
	// A cluster's name cannot be a pattern that widens the session policy.
	_, _, err = p.leftovers.Remove(t.Context(), "*", resources[0])
	require.ErrorContains(t, err, "signing in to remove what Kubernetes created for *")
	list, _ := p.findLeftovers("other")
	require.Len(t, list, 1)
}

func TestRemoveReusesTheSession(t *testing.T) {
	p := newPlace(t)
	for range 3 {
		p.must(p.EC2.CreateVolume(harness.Region+"a", 1, map[string]string{names.OwnershipTag("shop"): "owned"}))
	}
	_, resources := p.findLeftovers("shop")
	mark := p.Calls.Mark()
	for _, r := range resources {
		_, _, err := p.leftovers.Remove(t.Context(), "shop", r)
		require.NoError(t, err)
	}
	sessions := 0
	for _, call := range p.Calls.Since(mark) {
		if call.Action == "AssumeRole" {
			sessions++
		}
	}
	require.Equal(t, 1, sessions)
}
