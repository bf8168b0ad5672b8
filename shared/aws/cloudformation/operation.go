package cloudformation

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/drover-run/drover/shared/stack"
)

// Operation is the last operation of a stack, with its progress.
type Operation struct {
	Began time.Time
	// Token is the ClientRequestToken with which it began.
	Token string
	// Done counts the finished resources. InProgress names those that the operation works on.
	Done       int
	InProgress []string
}

// Operation reads the last operation of a stack from its events. It is zero for a stack that does not exist.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackEvents.html (newest first)
func (s *Stacks) Operation(ctx context.Context, stackName string) (Operation, error) {
	var o Operation
	seen := map[string]bool{}
	err := s.events(ctx, stackName, func(event types.StackEvent) bool {
		id, status := aws.ToString(event.LogicalResourceId), string(event.ResourceStatus)
		if o.Token == "" {
			o.Token = aws.ToString(event.ClientRequestToken)
		}
		if aws.ToString(event.PhysicalResourceId) == aws.ToString(event.StackId) {
			began := slices.Contains([]string{stack.CreateInProgress, stack.UpdateInProgress, stack.DeleteInProgress}, status)
			if began {
				o.Began = aws.ToTime(event.Timestamp)
			}
			return !began
		}
		if !seen[id] {
			seen[id] = true
			switch {
			case strings.HasSuffix(status, "_IN_PROGRESS"):
				o.InProgress = append(o.InProgress, id)
			case strings.HasSuffix(status, "_COMPLETE"):
				o.Done++
			}
		}
		return true
	})
	slices.Sort(o.InProgress)
	return o, err
}
