package stepfunctions

// One machine, with its executions. sweep uses it.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// Machine is a state machine.
type Machine struct {
	client client
	arn    string
}

// NewMachine returns the machine with an ARN.
func NewMachine(client *sfn.Client, arn string) *Machine { return &Machine{newClient(client), arn} }

// Start starts an execution. A repeated name starts nothing for 90 days. If name is "", Step Functions chooses one.
func (m *Machine) Start(ctx context.Context, name string, input any) error {
	body, err := json.Marshal(input)
	if err != nil {
		return err
	}
	in := &sfn.StartExecutionInput{StateMachineArn: &m.arn, Input: aws.String(string(body))}
	if name != "" {
		in.Name = &name
	}
	_, err = m.client.StartExecution(ctx, in)
	var exists *types.ExecutionAlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("starting %s: %w", m.arn, err)
	}
	return nil
}

// Running returns the ARNs of the executions in flight.
func (m *Machine) Running(ctx context.Context) ([]string, error) {
	return m.list(ctx, types.ExecutionStatusRunning, 0, func(types.ExecutionListItem) bool { return true }, time.Time{})
}

// maxNodeExecution is how long an execution that works on a node can run.
const maxNodeExecution = 49 * time.Hour

// pageSize is the number of executions in one response: the maximum of Step Functions.
const pageSize = 1000

// Unsuccessful returns the executions that were aborted, timed out or failed after since. It lists all executions that may have ended after
// since, in one call for each thousand. A filter on each status would need three calls.
func (m *Machine) Unsuccessful(ctx context.Context, since time.Time) ([]string, error) {
	bad := []types.ExecutionStatus{types.ExecutionStatusAborted, types.ExecutionStatusTimedOut, types.ExecutionStatusFailed}
	return m.list(ctx, "", pageSize, func(x types.ExecutionListItem) bool {
		return slices.Contains(bad, x.Status) && !aws.ToTime(x.StopDate).Before(since)
	}, since.Add(-maxNodeExecution))
}

// list returns the executions with a status (empty: any) that match, the newest first, back to a start time. page is the page size; 0 is
// the default of Step Functions.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_ListExecutions.html
func (m *Machine) list(ctx context.Context, status types.ExecutionStatus, page int32, match func(types.ExecutionListItem) bool,
	started time.Time) ([]string, error) {
	var found []string
	pages := sfn.NewListExecutionsPaginator(m.client.ListExecutions, &sfn.ListExecutionsInput{
		StateMachineArn: &m.arn, StatusFilter: status, MaxResults: page,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the executions of %s: %w", m.arn, err)
		}
		for _, x := range page.Executions {
			if aws.ToTime(x.StartDate).Before(started) {
				return found, nil
			}
			if match(x) {
				found = append(found, aws.ToString(x.ExecutionArn))
			}
		}
	}
	return found, nil
}

// Input reads the input of an execution.
func (m *Machine) Input(ctx context.Context, execution string, into any) error {
	out, err := m.client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &execution})
	if err != nil {
		return fmt.Errorf("describing execution %s: %w", execution, err)
	}
	if err := json.Unmarshal([]byte(aws.ToString(out.Input)), into); err != nil {
		return fmt.Errorf("reading the input of execution %s: %w", execution, err)
	}
	return nil
}
