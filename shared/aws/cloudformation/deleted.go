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
	now, err := s.newest(ctx, stackName, resource)
	return now == types.ResourceStatusDeleteComplete, err
}

// UpdateFailed reports whether the newest event of a resource in an existing stack is a failed update. Only such a resource can be skipped
// when a rollback continues.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ContinueUpdateRollback.html
func (s *Stacks) UpdateFailed(ctx context.Context, stackName, resource string) (bool, error) {
	now, err := s.newest(ctx, stackName, resource)
	return now == types.ResourceStatusUpdateFailed, err
}

// newest returns the status in the newest event of a resource, or "" without an event.
func (s *Stacks) newest(ctx context.Context, stackName, resource string) (types.ResourceStatus, error) {
	in := &cloudformation.DescribeStackEventsInput{StackName: &stackName}
	pages := cloudformation.NewDescribeStackEventsPaginator(s.client.DescribeStackEvents, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", fmt.Errorf("reading the events of stack %s: %w", stackName, err)
		}
		for _, event := range page.StackEvents { // newest first
			if aws.ToString(event.LogicalResourceId) == resource {
				return event.ResourceStatus, nil
			}
		}
	}
	return "", nil
}
