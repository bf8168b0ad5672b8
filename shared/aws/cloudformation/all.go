package cloudformation

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

// pagePause is the pause between two pages of All. CloudFormation throttles DescribeStacks at about five calls a second for the whole
// account, and other callers need some of them.
const pagePause = 400 * time.Millisecond

// All returns the stacks of all clusters by full name. It reads every stack that the account has in the region, page by page.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html
func (s *Stacks) All(ctx context.Context) (map[string]stack.Deployed, error) {
	all := map[string]stack.Deployed{}
	pages := cloudformation.NewDescribeStacksPaginator(s.client.DescribeStacks, &cloudformation.DescribeStacksInput{})
	for {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("describing all stacks: %w", err)
		}
		for _, stack := range page.Stacks {
			if _, name, ok := names.SplitStack(aws.ToString(stack.StackName)); ok {
				d := deployedStack(stack)
				d.Name = name
				all[aws.ToString(stack.StackName)] = d
			}
		}
		if !pages.HasMorePages() {
			return all, nil
		}
		select {
		case <-time.After(pagePause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
