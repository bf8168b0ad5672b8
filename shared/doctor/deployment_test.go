package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestBootstrap(t *testing.T) {
	for name, test := range map[string]struct {
		deployment Deployment
		want       Finding
	}{
		"new enough": {Deployment{Bootstrap: 6}, Finding{Bootstrap, OK, "the CDK is bootstrapped with version 6", ""}},
		"absent": {
			Deployment{}, Finding{Bootstrap, Blocks, "the CDK is not bootstrapped in this region, and make deploy needs it", "make bootstrap"},
		},
		"too old": {
			Deployment{Bootstrap: 5}, Finding{
				Bootstrap, Blocks, "the CDK is bootstrapped with version 5, and make deploy needs 6", "make bootstrap",
			},
		},
		"absent, but drover is deployed": {
			Deployment{Deployed: true},
			Finding{Bootstrap, Warning, "the CDK is not bootstrapped in this region, and make deploy needs it", "make bootstrap"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := roomy()
			f.Deployment = &test.deployment
			require.Equal(t, []Finding{test.want}, of(Examine(f, nil), Bootstrap))
		})
	}
	require.Empty(t, of(Examine(roomy(), nil), Bootstrap), "drover's functions do not check it")
}

func TestServiceLinkedRoles(t *testing.T) {
	f := roomy()
	require.Empty(t, of(Examine(f, nil), ServiceLinkedRoles), "drover's functions do not check them")
	f.Deployment = &Deployment{LinkedRoles: map[string]bool{
		"AWSServiceRoleForAmazonEKS": true, "AWSServiceRoleForAutoScaling": true, "AWSServiceRoleForElasticLoadBalancing": true,
	}}
	require.Equal(t, []Finding{{ServiceLinkedRoles, OK, "the service-linked roles exist", ""}}, of(Examine(f, nil), ServiceLinkedRoles))
	spot := []Cluster{demo(func(s *api.ClusterSpec) {
		s.Pools = []api.Pool{{Name: "a", InstanceTypes: []string{"m7i.large"}, MaxSize: 1, Spot: &api.Spot{}}}
	})}
	delete(f.Deployment.LinkedRoles, "AWSServiceRoleForAmazonEKS")
	var fixes []string
	for _, found := range of(Examine(f, spot), ServiceLinkedRoles) {
		require.Equal(t, Warning, found.Level)
		fixes = append(fixes, found.Fix)
	}
	require.Equal(t, []string{
		"aws iam create-service-linked-role --aws-service-name eks.amazonaws.com",
		"aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
	}, fixes)
}

func TestNetworkTags(t *testing.T) {
	network := []Cluster{demo(func(s *api.ClusterSpec) {
		s.Network = api.Network{Existing: &api.ExistingNetwork{VPCID: "vpc-1", Subnets: []string{"subnet-a", "subnet-b"}}}
	})}
	internal, external := map[string]string{"kubernetes.io/role/internal-elb": "1"}, map[string]string{"kubernetes.io/role/elb": ""}
	tagged := func() *Facts {
		f := roomy()
		f.Subnets = map[string]Subnet{
			"subnet-a": {VPC: "vpc-1", Tags: internal}, "subnet-b": {VPC: "vpc-1", Tags: internal}, "subnet-p": {VPC: "vpc-1", Tags: external},
			"subnet-q": {VPC: "vpc-1"}, "subnet-r": {VPC: "vpc-1"}, "subnet-o": {VPC: "vpc-2"},
		}
		f.PublicSubnets = map[string]bool{"subnet-p": true, "subnet-q": true, "subnet-o": true}
		return f
	}
	change := "aws ec2 create-tags --region eu-central-1 --resources "
	for name, test := range map[string]struct {
		change func(*Facts)
		want   []Finding
	}{
		"all have them": {func(*Facts) {}, []Finding{{NetworkTags, OK, "the subnets of existing networks have the tags for load balancers", ""}}},
		"a subnet of the spec lacks it": {
			func(f *Facts) { f.Subnets["subnet-b"] = Subnet{VPC: "vpc-1"} },
			[]Finding{{
				NetworkTags, Warning, "demo: subnets without the tag kubernetes.io/role/internal-elb, which internal load balancers need: subnet-b",
				change + "subnet-b --tags Key=kubernetes.io/role/internal-elb,Value=1",
			}},
		},
		"no public subnet has it": {
			func(f *Facts) { f.Subnets["subnet-p"] = Subnet{VPC: "vpc-1"} },
			[]Finding{{
				NetworkTags, Warning,
				"demo: no public subnet of vpc-1 has the tag kubernetes.io/role/elb, which internet-facing load balancers need",
				change + "subnet-p subnet-q --tags Key=kubernetes.io/role/elb,Value=1",
			}},
		},
		"a public subnet of the spec needs no internal tag": {
			func(f *Facts) { f.Subnets["subnet-b"], f.PublicSubnets["subnet-b"] = Subnet{VPC: "vpc-1"}, true },
			[]Finding{{NetworkTags, OK, "the subnets of existing networks have the tags for load balancers", ""}},
		},
		"a VPC without public subnets needs no public tag": {
			func(f *Facts) { f.Subnets["subnet-p"], f.PublicSubnets = Subnet{VPC: "vpc-1"}, map[string]bool{} },
			[]Finding{{NetworkTags, OK, "the subnets of existing networks have the tags for load balancers", ""}},
		},
		"a private subnet has the public one": {
			func(f *Facts) { f.Subnets["subnet-r"] = Subnet{VPC: "vpc-1", Tags: external} },
			[]Finding{{
				NetworkTags, Warning,
				"demo: private subnets with the tag kubernetes.io/role/elb, in which the internet does not reach load balancers: subnet-r",
				"aws ec2 delete-tags --region eu-central-1 --resources subnet-r --tags Key=kubernetes.io/role/elb",
			}},
		},
		"drover's functions do not check them": {func(f *Facts) { f.PublicSubnets = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := tagged()
			test.change(f)
			require.Equal(t, test.want, of(Examine(f, network), NetworkTags))
		})
	}
	require.Empty(t, of(Examine(tagged(), []Cluster{demo(nil)}), NetworkTags), "drover tags its own networks")
}
