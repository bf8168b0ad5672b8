package stepfunctions

// One of drover's machines, for whoever looks after its executions.

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
	client *sfn.Client
	arn    string
}

// NewMachine returns the machine of that ARN.
func NewMachine(client *sfn.Client, arn string) *Machine { return &Machine{client, arn} }

// Start an execution. The same name again starts nothing for 90 days; "" is a name that nobody had yet.
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

// Running lists the executions that run, by ARN.
func (m *Machine) Running(ctx context.Context) ([]string, error) {
	return m.list(ctx, types.ExecutionStatusRunning, 0, func(types.ExecutionListItem) bool { return true }, time.Time{})
}

// longest is how long an execution that works on a node may run.
const longest = 49 * time.Hour

// aPage is how many executions one answer has: as many as Step Functions gives.
const aPage = 1000

// Broken lists the executions that ended since then other than they should: stopped by somebody, out of time, failed.
// A call for each of these would be three; all executions that may have ended since then are one, for each thousand
// of them.
func (m *Machine) Broken(ctx context.Context, since time.Time) ([]string, error) {
	bad := []types.ExecutionStatus{types.ExecutionStatusAborted, types.ExecutionStatusTimedOut, types.ExecutionStatusFailed}
	return m.list(ctx, "", aPage, func(x types.ExecutionListItem) bool {
		return slices.Contains(bad, x.Status) && !aws.ToTime(x.StopDate).Before(since)
	}, since.Add(-longest))
}

// list the executions of a status, or of any, that match, the last started first, until they started before some time. page is how many are
// asked for at once; 0 leaves it to Step Functions.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_ListExecutions.html
func (m *Machine) list(ctx context.Context, status types.ExecutionStatus, page int32, match func(types.ExecutionListItem) bool,
	started time.Time) ([]string, error) {
	var found []string
	pages := sfn.NewListExecutionsPaginator(m.client, &sfn.ListExecutionsInput{
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

// Input reads what an execution was started with.
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
