package harness

// What there is in the account beside stacks: what Kubernetes makes in it, and what is left.

import (
	"context"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam/iamapi"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/shared/names"
)

// Everything that there is in the account, by ARN, less objects, machines, topics and buses, which are drover's own.
// A key that waits for its deletion counts as gone.
func (a *Account) Everything() map[string]tagging.Tagged {
	found := map[string]tagging.Tagged{}
	for _, source := range []tagging.Source{
		a.CloudFormation.Tagged, a.EC2.Tagged, a.ELB.Tagged, a.EKS.Tagged, a.AutoScaling.Tagged, a.Keys.Tagged, a.CloudWatch.Tagged,
		iamapi.New(a.identities).Created,
	} {
		for _, tagged := range source(context.Background()) {
			found[tagged.ARN] = tagged
		}
	}
	return found
}

// subnetOf a cluster.
func (a *Account) subnetOf(cluster string) (id, vpc string) {
	a.t.Helper()
	for _, stack := range a.CloudFormation.Stacks() {
		if stack.StackName == names.Stack(cluster, names.Network) {
			for _, output := range stack.Outputs {
				switch output.OutputKey {
				case "PrivateSubnetIds":
					id, _, _ = strings.Cut(output.OutputValue, ",")
				case "VpcId":
					vpc = output.OutputValue
				}
			}
		}
	}
	require.NotEmpty(a.t, id)
	require.NotEmpty(a.t, vpc)
	return id, vpc
}

// KubernetesMakes in the account what its integrations make for a cluster, and returns the ids of its volumes.
func (a *Account) KubernetesMakes(cluster string) (volumes []string) {
	a.t.Helper()
	must := func(id string, err error) string { require.NoError(a.t, err); return id }
	eks := names.EKSCluster(cluster)
	owned := map[string]string{names.OwnershipTag(cluster): "owned"}
	controller := map[string]string{"elbv2.k8s.aws/cluster": eks}
	subnet, vpc := a.subnetOf(cluster)
	front := must(a.EC2.CreateSecurityGroup(vpc, "k8s-elb-"+cluster, "Security group for Kubernetes ELB", false, owned))
	back := must(a.EC2.CreateSecurityGroup(vpc, "k8s-traffic-"+cluster, "[k8s] Shared Backend SecurityGroup", true, controller))
	must(a.ELB.Create("classic-"+cluster, "classic", subnet, []string{front}, false, owned))
	alb := must(a.ELB.Create("k8s-alb-"+cluster, "application", subnet, []string{back}, false, controller))
	must(a.ELB.Create("k8s-nlb-"+cluster, "network", subnet, nil, false, controller))
	a.ELB.CreateTargetGroup("k8s-"+cluster, alb, controller)
	must(a.EC2.CreateNetworkInterface(subnet, []string{back}, "aws-K8S-i-0123", "", map[string]string{"cluster.k8s.amazonaws.com/name": eks}))
	for range 2 {
		volumes = append(volumes, must(a.EC2.CreateVolume(Region+"a", 10, owned)))
	}
	return volumes
}
