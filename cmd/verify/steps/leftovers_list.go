package steps

// The lists of single services, in which a deleted resource does not occur.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/drover-run/drover/shared/names"
)

// listedElsewhere are the services whose own lists decide. An ARN of theirs that only the tagging API names is of a deleted resource.
var listedElsewhere = []string{"cloudformation", "eks", "ec2", "autoscaling", "iam", "lambda", "logs"}

// exists reports whether a resource that the tagging API names still exists, or waits for its deletion.
func (t *Target) exists(ctx context.Context, resource string) (exists, waits bool, err error) {
	parsed, err := arn.Parse(resource)
	if err != nil {
		return false, false, fmt.Errorf("reading %s: %w", resource, err)
	}
	if parsed.Service == "kms" {
		key, err := kms.NewFromConfig(t.cfg).DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &resource})
		if absent := (*kmstypes.NotFoundException)(nil); errors.As(err, &absent) {
			return false, false, nil
		}
		if err != nil {
			return false, false, fmt.Errorf("reading %s: %w", resource, err)
		}
		waits := key.KeyMetadata.KeyState == kmstypes.KeyStatePendingDeletion
		return !waits, waits, nil
	}
	return !slices.Contains(listedElsewhere, parsed.Service), false, nil
}

// prefix begins the names of what the run's clusters have.
func (t *Target) prefix() string { return names.EKSCluster(t.cluster()) }

func (t *Target) leftEKS(ctx context.Context) (left []string, err error) {
	pages := eks.NewListClustersPaginator(eks.NewFromConfig(t.cfg), &eks.ListClustersInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing EKS clusters: %w", err)
		}
		for _, name := range page.Clusters {
			if strings.HasPrefix(name, t.prefix()) || strings.HasPrefix(name, t.ownPrefix()) {
				left = append(left, "EKS cluster "+name)
			}
		}
	}
	return left, nil
}

// leftEC2 lists what has the tag. EC2 lists instances and NAT gateways, and their tags, for an hour after their end.
func (t *Target) leftEC2(ctx context.Context) (left []string, err error) {
	client := ec2.NewFromConfig(t.cfg)
	pages := ec2.NewDescribeTagsPaginator(client, &ec2.DescribeTagsInput{Filters: []ec2types.Filter{
		{Name: aws.String("key"), Values: []string{tagKey}}, {Name: aws.String("value"), Values: []string{t.Suffix}},
	}})
	var instances, gateways []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing EC2's resources by tag: %w", err)
		}
		for _, tag := range page.Tags {
			switch id := aws.ToString(tag.ResourceId); tag.ResourceType {
			case ec2types.ResourceTypeInstance:
				instances = append(instances, id)
			case ec2types.ResourceTypeNatgateway:
				gateways = append(gateways, id)
			default:
				left = append(left, id)
			}
		}
	}
	for _, id := range instances {
		out, err := client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{
			{Name: aws.String("instance-id"), Values: []string{id}},
			{Name: aws.String("instance-state-name"), Values: []string{"pending", "running", "shutting-down", "stopping", "stopped"}},
		}})
		if err != nil {
			return nil, fmt.Errorf("reading instance %s: %w", id, err)
		}
		if len(out.Reservations) > 0 {
			left = append(left, id)
		}
	}
	for _, id := range gateways {
		out, err := client.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{Filter: []ec2types.Filter{
			{Name: aws.String("nat-gateway-id"), Values: []string{id}},
			{Name: aws.String("state"), Values: []string{"pending", "failed", "available", "deleting"}},
		}})
		if err != nil {
			return nil, fmt.Errorf("reading NAT gateway %s: %w", id, err)
		}
		if len(out.NatGateways) > 0 {
			left = append(left, id)
		}
	}
	return left, nil
}

func (t *Target) leftGroups(ctx context.Context) (left []string, err error) {
	pages := autoscaling.NewDescribeAutoScalingGroupsPaginator(autoscaling.NewFromConfig(t.cfg), &autoscaling.DescribeAutoScalingGroupsInput{
		Filters: []autoscalingtypes.Filter{{Name: aws.String("tag:" + tagKey), Values: []string{t.Suffix}}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing Auto Scaling groups: %w", err)
		}
		for _, group := range page.AutoScalingGroups {
			left = append(left, "Auto Scaling group "+aws.ToString(group.AutoScalingGroupName))
		}
	}
	return left, nil
}

func (t *Target) leftRoles(ctx context.Context) ([]string, error) {
	return t.roles(ctx, func(name string) bool {
		return strings.HasPrefix(name, t.prefix()) || strings.HasPrefix(name, t.ownPrefix())
	})
}

// roles lists the roles whose names match.
func (t *Target) roles(ctx context.Context, matches func(name string) bool) (found []string, err error) {
	pages := iam.NewListRolesPaginator(iam.NewFromConfig(t.cfg), &iam.ListRolesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing roles: %w", err)
		}
		for _, role := range page.Roles {
			if matches(aws.ToString(role.RoleName)) {
				found = append(found, "role "+aws.ToString(role.RoleName))
			}
		}
	}
	return found, nil
}

func (t *Target) leftFunctions(ctx context.Context) ([]string, error) {
	return t.functions(ctx, t.prefix())
}

// functions lists the functions whose names begin with a prefix.
func (t *Target) functions(ctx context.Context, prefix string) (found []string, err error) {
	pages := lambda.NewListFunctionsPaginator(lambda.NewFromConfig(t.cfg), &lambda.ListFunctionsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing functions: %w", err)
		}
		for _, function := range page.Functions {
			if strings.HasPrefix(aws.ToString(function.FunctionName), prefix) {
				found = append(found, "function "+aws.ToString(function.FunctionName))
			}
		}
	}
	return found, nil
}

func (t *Target) leftLogs(ctx context.Context) ([]string, error) {
	return t.logGroups(ctx, "/aws/eks/"+t.prefix(), "/aws/lambda/"+t.prefix())
}

// logGroups lists the log groups whose names begin with one of the prefixes.
func (t *Target) logGroups(ctx context.Context, prefixes ...string) (found []string, err error) {
	for _, prefix := range prefixes {
		pages := cloudwatchlogs.NewDescribeLogGroupsPaginator(cloudwatchlogs.NewFromConfig(t.cfg), &cloudwatchlogs.DescribeLogGroupsInput{
			LogGroupNamePrefix: &prefix,
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, fmt.Errorf("listing log groups: %w", err)
			}
			for _, group := range page.LogGroups {
				found = append(found, "log group "+aws.ToString(group.LogGroupName))
			}
		}
	}
	return found, nil
}
