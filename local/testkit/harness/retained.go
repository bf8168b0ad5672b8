package harness

// What is left of a cluster whose stacks are gone, deleted as a person does it.

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/query"
)

// EndKept begins to delete what is left of a cluster, and says what still is: an EKS cluster takes its time, and what
// it uses goes after it. Stacks that are there, and what they hold, are not left: drover deletes them. Volumes are
// not tagged as a cluster's.
func (a *Account) EndKept(cluster string, volumes ...string) (left []string) {
	a.t.Helper()
	ctx, name := context.Background(), names.EKSCluster(cluster)
	if out, err := a.EKS.DescribeCluster(ctx, a.Admin(), eks.NamedInput{Name: name}); err == nil {
		// Either is refused while EKS is busy with the cluster.
		if out.Cluster.DeletionProtection {
			_, _ = a.EKS.UpdateClusterConfig(ctx, a.Admin(), eks.UpdateClusterConfigInput{Name: name, DeletionProtection: aws.Bool(false)})
		} else {
			_, _ = a.EKS.DeleteCluster(ctx, a.Admin(), eks.NamedInput{Name: name})
		}
		return []string{out.Cluster.ARN}
	}
	for _, volume := range volumes {
		_ = a.ec2("DeleteVolume", "VolumeId", volume) // it is gone already
	}
	kept := func() []string {
		held := map[string]bool{}
		for _, stack := range a.CloudFormation.Stacks() {
			held[stack.StackId] = true
		}
		all := a.Everything()
		maps.DeleteFunc(all, func(arn string, t tagging.Tagged) bool {
			return t.Tags[names.TagCluster] != cluster || held[arn] || held[t.Tags["aws:cloudformation:stack-id"]]
		})
		return slices.Sorted(maps.Keys(all)) // subnets before their VPC
	}
	for _, arn := range kept() {
		_ = a.unmake(arn) // it stays on the list
	}
	return kept()
}

// unmake what a stack kept.
func (a *Account) unmake(arn string) error {
	resource := strings.SplitN(arn, ":", 6)[5]
	separator := resource[strings.IndexAny(resource, ":/")]
	kind, id, _ := strings.Cut(resource, string(separator))
	ctx := context.Background()
	switch kind {
	case "role":
		return a.endRole(id[strings.LastIndex(id, "/")+1:])
	case "log-group":
		_, err := cloudwatchlogs.NewFromConfig(a.Config()).DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: &id})
		return err
	case "key":
		_, err := kms.NewFromConfig(a.Config()).ScheduleKeyDeletion(ctx, &kms.ScheduleKeyDeletionInput{KeyId: &id})
		return err
	case "subnet":
		return a.ec2("DeleteSubnet", "SubnetId", id)
	case "vpc":
		return a.ec2("DeleteVpc", "VpcId", id)
	}
	return nil
}

func (a *Account) ec2(action, argument, id string) error {
	session, err := a.Config().Credentials.Retrieve(context.Background())
	if err != nil {
		return err
	}
	return query.EC2.Call(context.Background(), a.Config(), session, action, map[string]string{argument: id}, nil)
}

// endRole deletes a role, with what is attached to it.
func (a *Account) endRole(name string) error {
	role, err := a.identities.Role(name)
	if err != nil {
		return err
	}
	for _, policy := range role.Attached {
		_ = a.identities.DetachRolePolicy(name, policy) // it is attached
	}
	for policy := range role.Inline {
		_ = a.identities.DeleteRolePolicy(name, policy) // it is there
	}
	return a.identities.DeleteRole(name)
}
