package cloudformation

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// Deleted says whether a resource of a stack that is there was deleted, by the newest event of it. Events are kept for 90 days: one
// of which there is none was not touched since.
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
