package cloudformation

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"

	"github.com/drover-run/drover/shared/names"
)

// Owners returns the clusters whose stacks created resources, by ARN. CloudFormation gives a stack's tags to its resources. A resource is
// left out if it does not exist or belongs to no stack of drover.
// https://docs.aws.amazon.com/resourcegroupstagging/latest/APIReference/API_GetResources.html (ResourceARNList: up to 100, without pages)
func (s *Stacks) Owners(ctx context.Context, arns []string) (map[string]string, error) {
	owners := map[string]string{}
	for len(arns) > 0 {
		n := min(100, len(arns))
		out, err := s.tags.GetResources(ctx, &resourcegroupstaggingapi.GetResourcesInput{ResourceARNList: arns[:n]})
		if err != nil {
			return nil, fmt.Errorf("reading the owners of %v: %w", arns[:n], err)
		}
		for _, resource := range out.ResourceTagMappingList {
			for _, tag := range resource.Tags {
				if aws.ToString(tag.Key) == names.TagCluster {
					owners[aws.ToString(resource.ResourceARN)] = aws.ToString(tag.Value)
				}
			}
		}
		arns = arns[n:]
	}
	return owners, nil
}
