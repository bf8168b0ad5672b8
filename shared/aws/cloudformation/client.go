package cloudformation

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/drover-run/drover/shared/aws/internal/call"
)

// operation is one operation of CloudFormation's client.
type operation[In, Out any] = call.Operation[In, Out, cloudformation.Options]

// client has the operations of CloudFormation that this package needs: see call.Operation.
type client struct {
	ContinueUpdateRollback      operation[cloudformation.ContinueUpdateRollbackInput, cloudformation.ContinueUpdateRollbackOutput]
	CreateChangeSet             operation[cloudformation.CreateChangeSetInput, cloudformation.CreateChangeSetOutput]
	DeleteChangeSet             operation[cloudformation.DeleteChangeSetInput, cloudformation.DeleteChangeSetOutput]
	DeleteStack                 operation[cloudformation.DeleteStackInput, cloudformation.DeleteStackOutput]
	DescribeChangeSet           operation[cloudformation.DescribeChangeSetInput, cloudformation.DescribeChangeSetOutput]
	DescribeStackEvents         describeStackEvents
	DescribeStacks              describeStacks
	ExecuteChangeSet            operation[cloudformation.ExecuteChangeSetInput, cloudformation.ExecuteChangeSetOutput]
	SignalResource              operation[cloudformation.SignalResourceInput, cloudformation.SignalResourceOutput]
	UpdateTerminationProtection operation[cloudformation.UpdateTerminationProtectionInput, cloudformation.UpdateTerminationProtectionOutput]
}

func newClient(c *cloudformation.Client) client {
	return client{
		ContinueUpdateRollback: c.ContinueUpdateRollback, CreateChangeSet: c.CreateChangeSet, DeleteChangeSet: c.DeleteChangeSet,
		DeleteStack: c.DeleteStack, DescribeChangeSet: c.DescribeChangeSet, DescribeStackEvents: c.DescribeStackEvents,
		DescribeStacks: c.DescribeStacks, ExecuteChangeSet: c.ExecuteChangeSet, SignalResource: c.SignalResource,
		UpdateTerminationProtection: c.UpdateTerminationProtection,
	}
}

// describeStackEvents is what the paginator of DescribeStackEvents needs of a client.
type describeStackEvents operation[cloudformation.DescribeStackEventsInput, cloudformation.DescribeStackEventsOutput]

func (d describeStackEvents) DescribeStackEvents(
	ctx context.Context, in *cloudformation.DescribeStackEventsInput, options ...func(*cloudformation.Options),
) (*cloudformation.DescribeStackEventsOutput, error) {
	return d(ctx, in, options...)
}

// describeStacks is what the paginator of DescribeStacks needs of a client.
type describeStacks operation[cloudformation.DescribeStacksInput, cloudformation.DescribeStacksOutput]

func (d describeStacks) DescribeStacks(
	ctx context.Context, in *cloudformation.DescribeStacksInput, options ...func(*cloudformation.Options),
) (*cloudformation.DescribeStacksOutput, error) {
	return d(ctx, in, options...)
}
