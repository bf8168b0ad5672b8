package cloudformation

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// Deleted reports whether the newest event of a resource in an existing stack is its deletion. CloudFormation retains events for 90 days:
// a resource without an event was not changed since.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackEvents.html
func (s *Stacks) Deleted(ctx context.Context, stackName, resource string) (bool, error) {
	pages := cloudformation.NewDescribeStackEventsPaginator(s.client, &cloudformation.DescribeStackEventsInput{StackName: &stackName})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return false, fmt.Errorf("reading the events of stack %s: %w", stackName, err)
		}
		for _, event := range page.StackEvents { // newest first
			if aws.ToString(event.LogicalResourceId) == resource {
				return event.ResourceStatus == types.ResourceStatusDeleteComplete, nil
			}
		}
	}
	return false, nil
}
