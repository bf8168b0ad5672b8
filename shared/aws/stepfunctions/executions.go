// Package stepfunctions adapts Step Functions: it starts, describes and stops executions, and resumes their waiting tasks.
package stepfunctions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
)

// Executions are the executions of drover's machines.
type Executions struct {
	client client
	// converge is the ARN of the converge machine. Only starts need it.
	converge string
}

// New returns the executions of an account; converge is the ARN of the converge machine.
func New(client *sfn.Client, converge string) *Executions {
	return &Executions{newClient(client), converge}
}

// Converge starts converging a cluster to a version of its spec, after another version (empty: none). A repeated call names the same
// execution and starts nothing, even after that execution ended.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
func (e *Executions) Converge(ctx context.Context, cluster, specVersion, after string) error {
	_, err := e.start(ctx, cluster, names.ConvergeExecution(cluster, specVersion, after))
	return err
}

// StartRetry starts a retry of a version of a spec that drover makes on its own. The same reason names the same
// execution. begun is false if that execution has ended.
func (e *Executions) StartRetry(ctx context.Context, cluster, specVersion, why string) (begun bool, err error) {
	return e.start(ctx, cluster, names.RetryExecution(cluster, specVersion, why))
}

// ConvergeDue starts converging a cluster for scheduled work, once for each time.
func (e *Executions) ConvergeDue(ctx context.Context, cluster string, at time.Time) error {
	_, err := e.start(ctx, cluster, names.DueExecution(cluster, at))
	return err
}

func (e *Executions) start(ctx context.Context, cluster, name string) (begun bool, err error) {
	input, err := json.Marshal(events.Converge{Cluster: cluster})
	if err != nil {
		return false, err
	}
	text := string(input)
	_, err = e.client.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: &e.converge, Name: &name, Input: &text})
	var exists *types.ExecutionAlreadyExists
	if errors.As(err, &exists) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("starting to converge %s: %w", cluster, err)
	}
	return true, nil
}

// Running reports whether an execution has not ended. Step Functions forgets executions after 90 days; those have ended.
func (e *Executions) Running(ctx context.Context, execution string) (bool, error) {
	running, _, err := e.State(ctx, execution)
	return running, err
}

// State reports whether an execution has not ended and, if it has, whether a removal of drover ended it. Step Functions may forget the
// executions of a deleted machine. Otherwise it forgets them after 90 days, and the sweep finds ended executions within minutes. So one
// that is forgotten was removed.
func (e *Executions) State(ctx context.Context, execution string) (running, removed bool, err error) {
	out, err := e.client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &execution})
	if code := fault.Code(err); code == "ExecutionDoesNotExist" {
		return false, true, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("describing execution %s: %w", execution, err)
	}
	running = out.Status == types.ExecutionStatusRunning || out.Status == types.ExecutionStatusPendingRedrive
	return running, out.Error != nil && *out.Error == names.Removed, nil
}

// Ended returns the status with which an execution ended. It is "" if Step Functions has forgotten the execution.
func (e *Executions) Ended(ctx context.Context, execution string) (string, error) {
	out, err := e.client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &execution})
	if code := fault.Code(err); code == "ExecutionDoesNotExist" {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("describing execution %s: %w", execution, err)
	}
	return string(out.Status), nil
}

// Stop aborts an execution. One that has ended is no error.
func (e *Executions) Stop(ctx context.Context, execution, cause string) error {
	_, err := e.client.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: &execution, Cause: &cause})
	if code := fault.Code(err); err == nil || code == "ExecutionDoesNotExist" {
		return nil
	}
	return fmt.Errorf("stopping execution %s: %w", execution, err)
}

// Succeed resumes a waiting task with its output. A task that no longer waits is no error: an earlier copy of the same event resumed it,
// or its execution has ended.
func (e *Executions) Succeed(ctx context.Context, token string, output events.ChangeResult) error {
	body, err := json.Marshal(output)
	if err != nil {
		return err
	}
	text := string(body)
	_, err = e.client.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: &token, Output: &text})
	return unlessOver(err)
}

// Fail resumes a waiting task with the name of a fault and a cause.
func (e *Executions) Fail(ctx context.Context, token, fault string, cause events.ChangeResult) error {
	body, err := json.Marshal(cause)
	if err != nil {
		return err
	}
	text := string(body)
	_, err = e.client.SendTaskFailure(ctx, &sfn.SendTaskFailureInput{TaskToken: &token, Error: &fault, Cause: &text})
	return unlessOver(err)
}

func unlessOver(err error) error {
	switch fault.Code(err) {
	case "TaskDoesNotExist", "TaskTimedOut", "InvalidToken":
		return nil
	}
	if err != nil {
		return fmt.Errorf("resuming a waiting task: %w", err)
	}
	return nil
}
