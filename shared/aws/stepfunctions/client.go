package stepfunctions

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/shared/aws/internal/call"
)

// operation is one operation of Step Functions's client.
type operation[In, Out any] = call.Operation[In, Out, sfn.Options]

// client has the operations of Step Functions that this package needs: see call.Operation.
type client struct {
	DescribeExecution operation[sfn.DescribeExecutionInput, sfn.DescribeExecutionOutput]
	ListExecutions    listExecutions
	SendTaskFailure   operation[sfn.SendTaskFailureInput, sfn.SendTaskFailureOutput]
	SendTaskSuccess   operation[sfn.SendTaskSuccessInput, sfn.SendTaskSuccessOutput]
	StartExecution    operation[sfn.StartExecutionInput, sfn.StartExecutionOutput]
	StopExecution     operation[sfn.StopExecutionInput, sfn.StopExecutionOutput]
}

func newClient(c *sfn.Client) client {
	return client{
		DescribeExecution: c.DescribeExecution, ListExecutions: c.ListExecutions, SendTaskFailure: c.SendTaskFailure,
		SendTaskSuccess: c.SendTaskSuccess, StartExecution: c.StartExecution, StopExecution: c.StopExecution,
	}
}

// listExecutions is what the paginator of ListExecutions needs of a client.
type listExecutions operation[sfn.ListExecutionsInput, sfn.ListExecutionsOutput]

func (l listExecutions) ListExecutions(
	ctx context.Context, in *sfn.ListExecutionsInput, options ...func(*sfn.Options),
) (*sfn.ListExecutionsOutput, error) {
	return l(ctx, in, options...)
}
