package cloudformation

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// Operation is the last operation of a stack, as far as it came.
type Operation struct {
	Began time.Time
	// Token is the ClientRequestToken of who began it.
	Token string
	// Done counts the resources that it has finished, and InProgress names those that it works on.
	Done       int
	InProgress []string
}

// Operation reads the last operation of a stack from its events. A stack that does not exist has a zero one.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackEvents.html (newest first)
func (s *Stacks) Operation(ctx context.Context, stackName string) (Operation, error) {
	var o Operation
	seen := map[string]bool{}
	err := s.events(ctx, stackName, func(event types.StackEvent) bool {
		id, is := aws.ToString(event.LogicalResourceId), string(event.ResourceStatus)
		if o.Token == "" {
			o.Token = aws.ToString(event.ClientRequestToken)
		}
		if aws.ToString(event.PhysicalResourceId) == aws.ToString(event.StackId) {
			began := is == "CREATE_IN_PROGRESS" || is == "UPDATE_IN_PROGRESS" || is == "DELETE_IN_PROGRESS"
			if began {
				o.Began = aws.ToTime(event.Timestamp)
			}
			return !began
		}
		if !seen[id] {
			seen[id] = true
			switch {
			case strings.HasSuffix(is, "_IN_PROGRESS"):
				o.InProgress = append(o.InProgress, id)
			case strings.HasSuffix(is, "_COMPLETE"):
				o.Done++
			}
		}
		return true
	})
	slices.Sort(o.InProgress)
	return o, err
}
