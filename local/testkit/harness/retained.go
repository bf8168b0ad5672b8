package harness

// All resources of the account, those that deleted stacks retained, and those that Kubernetes creates.

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/iam/iamapi"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/shared/names"
)

// DeleteRetained starts to delete the resources that a cluster's deleted stacks retained. It returns the ARNs that remain: the EKS
// cluster takes time, and what it uses is deleted after it. Existing stacks and their resources are not included, because
// drover deletes them. volumes are the IDs of the cluster's volumes, which have no tag of it.
func (a *Account) DeleteRetained(cluster string, volumes ...string) (remaining []string) {
	a.t.Helper()
	ctx, name := context.Background(), names.EKSCluster(cluster)
	if out, err := a.EKS.DescribeCluster(ctx, a.Admin(), eks.NamedInput{Name: name}); err == nil {
		// EKS rejects both calls during another operation on the cluster.
		if out.Cluster.DeletionProtection {
			_, _ = a.EKS.UpdateClusterConfig(ctx, a.Admin(), eks.UpdateClusterConfigInput{Name: name, DeletionProtection: aws.Bool(false)})
		} else {
			_, _ = a.EKS.DeleteCluster(ctx, a.Admin(), eks.NamedInput{Name: name})
		}
		return []string{out.Cluster.ARN}
	}
	for _, volume := range volumes {
		_, _ = a.ec2().DeleteVolume(ctx, &awsec2.DeleteVolumeInput{VolumeId: &volume}) // fails if it was deleted before
	}
	retained := func() []string {
		held := map[string]bool{}
		for _, stack := range a.CloudFormation.Stacks() {
			held[stack.StackId] = true
		}
		all := a.AllResources()
		maps.DeleteFunc(all, func(arn string, t tagging.Tagged) bool {
			return t.Tags[names.TagCluster] != cluster || held[arn] || held[t.Tags["aws:cloudformation:stack-id"]]
		})
		return slices.Sorted(maps.Keys(all)) // subnets before their VPC
	}
	for _, arn := range retained() {
		_ = a.DeleteByARN(arn) // a resource that cannot be deleted yet remains in the list
	}
	return retained()
}

// DeleteByARN deletes a resource that a stack retained.
func (a *Account) DeleteByARN(arn string) error {
	resource := strings.SplitN(arn, ":", 6)[5]
	separator := resource[strings.IndexAny(resource, ":/")]
	kind, id, _ := strings.Cut(resource, string(separator))
	ctx := context.Background()
	switch kind {
	case "role":
		return a.DeleteRole(id[strings.LastIndex(id, "/")+1:])
	case "log-group":
		_, err := cloudwatchlogs.NewFromConfig(a.Config()).DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: &id})
		return err
	case "key":
		_, err := kms.NewFromConfig(a.Config()).ScheduleKeyDeletion(ctx, &kms.ScheduleKeyDeletionInput{KeyId: &id})
		return err
	case "subnet":
		_, err := a.ec2().DeleteSubnet(ctx, &awsec2.DeleteSubnetInput{SubnetId: &id})
		return err
	case "vpc":
		_, err := a.ec2().DeleteVpc(ctx, &awsec2.DeleteVpcInput{VpcId: &id})
		return err
	}
	return nil
}

// ec2 returns a client that does not retry.
func (a *Account) ec2() *awsec2.Client {
	return awsec2.NewFromConfig(a.Config(), func(o *awsec2.Options) { o.Retryer = aws.NopRetryer{} })
}

// DeleteRole deletes a role with its policies.
func (a *Account) DeleteRole(name string) error {
	role, err := a.Identities.Role(name)
	if err != nil {
		return err
	}
	for _, policy := range role.Attached {
		_ = a.Identities.DetachRolePolicy(name, policy)
	}
	for policy := range role.Inline {
		_ = a.Identities.DeleteRolePolicy(name, policy)
	}
	return a.Identities.DeleteRole(name)
}

// AllResources returns the resources of the account by ARN, except objects, machines, topics and buses, which are drover's own.
// A key that waits for its deletion is not included.
func (a *Account) AllResources() map[string]tagging.Tagged {
	found := map[string]tagging.Tagged{}
	for _, source := range []tagging.Source{
		a.CloudFormation.Tagged, a.EC2.Tagged, a.ELB.Tagged, a.EKS.Tagged, a.AutoScaling.Tagged, a.Keys.Tagged, a.CloudWatch.Tagged,
		iamapi.New(a.Identities).Created,
	} {
		for _, tagged := range source(context.Background()) {
			found[tagged.ARN] = tagged
		}
	}
	return found
}

// SubnetOf returns a private subnet of a cluster and its VPC.
func (a *Account) SubnetOf(cluster string) (id, vpc string) {
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

// KubernetesMakes creates the resources that Kubernetes' integrations create for a cluster. It returns the IDs of its volumes.
func (a *Account) KubernetesMakes(cluster string) (volumes []string) {
	a.t.Helper()
	must := func(id string, err error) string { require.NoError(a.t, err); return id }
	eks := names.EKSCluster(cluster)
	owned := map[string]string{names.OwnershipTag(cluster): "owned"}
	controller := map[string]string{"elbv2.k8s.aws/cluster": eks}
	subnet, vpc := a.SubnetOf(cluster)
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
