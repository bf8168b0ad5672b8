package leftovers

// Resources that the stacks of a cluster retained. A stack that was deleted outside drover while deletion protection was on leaves its
// stateful resources. drover names them, and an operator removes them: only CloudFormation may remove what stacks created, and it no
// longer knows these.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	keys "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"

	"github.com/drover-run/drover/shared/aws/internal/call"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
)

// retainedTypes are the types of tagged resources that the templates retain. The EKS cluster is found by name. Roles are not in the tag
// index.
var retainedTypes = []string{"ec2:vpc", "kms:key", "logs:log-group"}

// RetainedByStacks returns descriptions of the resources that a cluster's deleted stacks retained. The tag index lags
// and contains keys that are scheduled for deletion, so RetainedByStacks checks each resource.
func (l *Leftovers) RetainedByStacks(ctx context.Context, cluster string) ([]string, error) {
	var kept []string
	pages := resourcegroupstaggingapi.NewGetResourcesPaginator(l.tags, &resourcegroupstaggingapi.GetResourcesInput{
		ResourceTypeFilters: retainedTypes, TagFilters: []tagging.TagFilter{{Key: aws.String(names.TagCluster), Values: []string{cluster}}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("finding what the stacks of %s retained by tag %s: %w", cluster, names.TagCluster, err)
		}
		for _, mapping := range page.ResourceTagMappingList {
			what, err := l.describeKept(ctx, aws.ToString(mapping.ResourceARN))
			if err != nil {
				return nil, err
			}
			if what != "" {
				kept = append(kept, what)
			}
		}
	}
	roles, err := l.roles(ctx, cluster)
	kept = append(kept, roles...)
	slices.Sort(kept)
	return kept, err
}

// minStackNameInRole is the length of a stack's name that CloudFormation uses at least in the names of its roles. It
// cuts names that are longer than IAM allows.
const minStackNameInRole = 24

// roles returns a cluster's roles. Listings leave out tags, so it reads each role. IAM has the roles of all regions, where clusters may
// have the same name. The permissions boundary contains the region.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListRoles.html
func (l *Leftovers) roles(ctx context.Context, cluster string) (list []string, err error) {
	like := names.Stack(cluster, "")
	like = like[:min(len(like), minStackNameInRole)]
	in := &iam.ListRolesInput{PathPrefix: aws.String(names.ClusterRoles)}
	for more := true; more; {
		page, err := l.iam.ListRoles(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("finding the roles of %s: %w", cluster, call.Error(err))
		}
		for _, role := range page.Roles {
			name := aws.ToString(role.RoleName)
			if !strings.HasPrefix(name, like) {
				continue
			}
			owner, err := l.roleOf(ctx, name)
			if err != nil {
				return nil, err
			}
			if owner == cluster {
				list = append(list, "role "+name)
			}
		}
		more, in.Marker = page.IsTruncated, page.Marker
	}
	return list, nil
}

// roleOf returns the cluster of this region to which a role belongs. It is empty if there is none or the role no longer exists.
func (l *Leftovers) roleOf(ctx context.Context, name string) (string, error) {
	out, err := l.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if fault.Code(err) == "NoSuchEntity" {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("describing role %s: %w", name, call.Error(err))
	}
	boundary := out.Role.PermissionsBoundary
	if boundary == nil || !strings.HasSuffix(aws.ToString(boundary.PermissionsBoundaryArn), ":policy/"+names.Boundary(l.region)) {
		return "", nil
	}
	for _, tag := range out.Role.Tags {
		if aws.ToString(tag.Key) == names.TagCluster {
			return aws.ToString(tag.Value), nil
		}
	}
	return "", nil
}

// describeKept describes a resource. It returns "" if the resource no longer exists or is scheduled for deletion.
func (l *Leftovers) describeKept(ctx context.Context, arn string) (string, error) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return "", nil
	}
	kind, id, _ := strings.Cut(parts[5], "/")
	switch {
	case parts[2] == "ec2" && kind == "vpc":
		found, err := l.hasVPC(ctx, id)
		return describeIf(found, "VPC "+id+" with its subnets"), err
	case parts[2] == "kms" && kind == "key":
		out, err := l.keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &id})
		if fault.Code(err) == "NotFoundException" {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("describing key %s: %w", id, err)
		}
		return describeIf(out.KeyMetadata.KeyState != keys.KeyStatePendingDeletion, "key "+id), nil
	case parts[2] == "logs":
		name := strings.TrimSuffix(strings.TrimPrefix(parts[5], "log-group:"), ":*")
		out, err := l.logs.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: &name})
		if err != nil {
			return "", fmt.Errorf("describing log group %s: %w", name, err)
		}
		return describeIf(len(out.LogGroups) > 0 && aws.ToString(out.LogGroups[0].LogGroupName) == name, "log group "+name), nil
	}
	return "", nil
}

func describeIf(exists bool, what string) string {
	if !exists {
		return ""
	}
	return what
}

// hasVPC reports whether a VPC exists. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVpcs.html
func (l *Leftovers) hasVPC(ctx context.Context, id string) (bool, error) {
	out, err := l.ec2.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{id}}}})
	if err != nil {
		return false, fmt.Errorf("describing VPC %s: %w", id, call.Error(err))
	}
	return len(out.Vpcs) > 0, nil
}
