package leftovers

// What the stacks of a cluster kept: a stack that was deleted by hand while deletion protection was on leaves behind what holds the cluster. It is
// named, and people remove it: nothing of drover's may touch what stacks made but CloudFormation, which knows it no more.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	keys "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/query"
)

// retained are the types of what the templates keep and that has a tag, less the EKS cluster, which is asked for by name. IAM's roles are not in
// the index of tags, and cost nothing.
var retained = []string{"ec2:vpc", "kms:key", "logs:log-group"}

// Kept lists what is left of a cluster's stacks when all of them are gone, in words. The index of tags lags, and has keys that wait for their
// deletion: each is asked for.
func (l *Leftovers) Kept(ctx context.Context, cluster string) ([]string, error) {
	var kept []string
	pages := resourcegroupstaggingapi.NewGetResourcesPaginator(l.tags, &resourcegroupstaggingapi.GetResourcesInput{
		ResourceTypeFilters: retained, TagFilters: []tagging.TagFilter{{Key: aws.String(names.TagCluster), Values: []string{cluster}}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("finding what the stacks of %s kept by tag %s: %w", cluster, names.TagCluster, err)
		}
		for _, mapping := range page.ResourceTagMappingList {
			what, err := l.kept(ctx, aws.ToString(mapping.ResourceARN))
			if err != nil {
				return nil, err
			}
			if what != "" {
				kept = append(kept, what)
			}
		}
	}
	slices.Sort(kept)
	return kept, nil
}

// kept describes a resource that is there; empty is one that is not, or that goes by itself.
func (l *Leftovers) kept(ctx context.Context, arn string) (string, error) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return "", nil
	}
	kind, id, _ := strings.Cut(parts[5], "/")
	switch {
	case parts[2] == "ec2" && kind == "vpc":
		there, err := l.vpc(ctx, id)
		return said(there, "VPC "+id+" with its subnets"), err
	case parts[2] == "kms" && kind == "key":
		out, err := l.keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &id})
		if fault.Code(err) == "NotFoundException" {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("describing key %s: %w", id, err)
		}
		return said(out.KeyMetadata.KeyState != keys.KeyStatePendingDeletion, "key "+id), nil
	case parts[2] == "logs":
		name := strings.TrimSuffix(strings.TrimPrefix(parts[5], "log-group:"), ":*")
		out, err := l.logs.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: &name})
		if err != nil {
			return "", fmt.Errorf("describing log group %s: %w", name, err)
		}
		return said(len(out.LogGroups) > 0 && aws.ToString(out.LogGroups[0].LogGroupName) == name, "log group "+name), nil
	}
	return "", nil
}

func said(there bool, what string) string {
	if !there {
		return ""
	}
	return what
}

// vpc says whether a VPC is there. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVpcs.html
func (l *Leftovers) vpc(ctx context.Context, id string) (bool, error) {
	session, err := l.config.Credentials.Retrieve(ctx)
	if err != nil {
		return false, fmt.Errorf("signing in to call EC2: %w", err)
	}
	var out struct {
		Items []struct {
			ID string `xml:"vpcId"`
		} `xml:"vpcSet>item"`
	}
	if err := query.EC2.Call(ctx, l.config, session, "DescribeVpcs", map[string]string{"Filter.1.Name": "vpc-id", "Filter.1.Value.1": id}, &out); err != nil {
		return false, fmt.Errorf("describing VPC %s: %w", id, err)
	}
	return len(out.Items) > 0, nil
}
