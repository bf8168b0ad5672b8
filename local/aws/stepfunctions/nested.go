package stepfunctions

// Executions that a task starts, with or without waiting for their end.
// https://docs.aws.amazon.com/step-functions/latest/dg/connect-stepfunctions.html

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
)

// startAndWait is the task that waits for the execution that it starts.
const startAndWait = "arn:aws:states:::states:startExecution.sync:2"

// managedRule is the EventBridge rule through which Step Functions learns that such an execution ended.
const managedRule = "StepFunctionsGetEventsForStepFunctionsExecutionRule"

// checkManagedRule rejects a machine that waits for executions if its role may not create the managed rule. AWS rejects
// it at the same time: when the machine is created or changed.
// https://docs.aws.amazon.com/step-functions/latest/dg/service-integration-iam-templates.html#connect-iam-sync-async
func (s *Service) checkManagedRule(m *asl.Machine, role string) error {
	if !slices.ContainsFunc(m.Resources(), func(r asl.Resource) bool { return r.Job }) {
		return nil
	}
	caller, _, err := s.config.Roles.AssumeRoleAs(role, "validation", "states.amazonaws.com")
	if err != nil {
		return err
	}
	rule := fmt.Sprintf("arn:%s:events:%s:%s:rule/%s", s.config.Partition, s.config.Region, s.config.Account, managedRule)
	for _, action := range []string{"events:PutRule", "events:PutTargets", "events:DescribeRule"} {
		if caller.Authorize(action, rule, map[string]string{"events:ManagedBy": "states.amazonaws.com"}) != nil {
			return &iam.Error{
				Code: "AccessDeniedException", Status: 400, Message: fmt.Sprintf("'%s' is not authorized to create managed-rule.", role),
			}
		}
	}
	return nil
}

// startExecution performs arn:aws:states:::states:startExecution, which does not wait.
func (s *Service) startExecution(caller iam.Caller, raw json.RawMessage) (arn string, answer json.RawMessage, err error) {
	var in struct {
		StateMachineArn, Name string
		Input                 json.RawMessage
	}
	if err := arguments(raw, &in); err != nil {
		return "", nil, err
	}
	input := string(in.Input)
	_ = json.Unmarshal(in.Input, &input) // a string is JSON text, any other value is the input itself
	if err := caller.Authorize("states:StartExecution", in.StateMachineArn, nil); err != nil {
		return "", nil, startFailure(err)
	}
	x, err := s.start(in.StateMachineArn, in.Name, input)
	if err != nil {
		return "", nil, startFailure(err)
	}
	return x.ARN, metadata(uuid.NewString(), map[string]any{"ExecutionArn": x.ARN, "StartDate": x.Started.UnixMilli()}), nil
}

// startFailure names an error of StartExecution. The exceptions that the API models have names of their own, although
// their codes lack the word.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html#API_StartExecution_Errors
func startFailure(err error) error {
	modeled := []string{
		"ExecutionAlreadyExists", "ExecutionLimitExceeded", "InvalidArn", "InvalidExecutionInput", "InvalidName", "StateMachineDoesNotExist",
	}
	var e *iam.Error
	if errors.As(err, &e) && slices.Contains(modeled, e.Code) {
		return &asl.Failure{
			Name:  "StepFunctions." + e.Code + "Exception",
			Cause: fmt.Sprintf("%s (Service: StepFunctions, Status Code: %d, Error Code: %s)", e.Message, e.HTTPStatus(), e.Code),
		}
	}
	return serviceFailure("StepFunctions", "AWSStepFunctions", err)
}

// runExecution performs arn:aws:states:::states:startExecution.sync:2: it waits until the child execution ends. It stops
// the child if the parent was stopped, timed out, or failed in another branch.
// https://docs.aws.amazon.com/step-functions/latest/dg/connect-to-resource.html#connect-sync
func (s *Service) runExecution(ctx context.Context, parent *execution, caller iam.Caller, t asl.Task) (json.RawMessage, error) {
	arn, answer, err := s.startExecution(caller, t.Arguments)
	if err != nil {
		return nil, err
	}
	t.Submitted(answer)
	s.mu.Lock()
	child := s.executions[arn]
	s.mu.Unlock()
	turn := s.config.Clock.Ticket("states: waiting for " + arn)
	select {
	case <-child.ended:
		turn()
		return s.jobResult(caller, child)
	case <-ctx.Done():
		turn()
		s.abandon(parent, child)
		return nil, ctx.Err()
	}
}

// jobResult describes an execution that ended: as the task's result if it succeeded, else as the task's cause. The role
// needs states:DescribeExecution.
func (s *Service) jobResult(caller iam.Caller, child *execution) (json.RawMessage, error) {
	if err := caller.Authorize("states:DescribeExecution", child.ARN, nil); err != nil {
		return nil, serviceFailure("StepFunctions", "AWSStepFunctions", err)
	}
	s.mu.Lock()
	x := child.Execution
	s.mu.Unlock()
	d := map[string]any{
		"ExecutionArn": x.ARN, "Input": json.RawMessage(x.Input), "InputDetails": map[string]bool{"Included": true}, "Name": x.Name,
		"RedriveCount": 0, "RedriveStatus": "NOT_REDRIVABLE", "RedriveStatusReason": notRedriven,
		"StartDate": x.Started.UnixMilli(), "StateMachineArn": x.MachineARN, "Status": x.Status, "StopDate": x.Stopped.UnixMilli(),
	}
	if x.Status == string(asl.Succeeded) {
		d["Output"], d["OutputDetails"] = json.RawMessage(x.Output), map[string]bool{"Included": true}
		return encode(d), nil
	}
	// In an error's cause the input is text, as in DescribeExecution.
	d["Input"] = x.Input
	if x.Error != "" {
		d["Error"] = x.Error
	}
	if x.Cause != "" {
		d["Cause"] = x.Cause
	}
	return nil, &asl.Failure{Name: "States.TaskFailed", Cause: string(encode(d))}
}

// abandon stops a child execution if the parent's role may. Otherwise the child continues.
func (s *Service) abandon(parent, child *execution) {
	caller, err := s.caller(parent)
	if err != nil || caller.Authorize("states:StopExecution", child.ARN, nil) != nil {
		return
	}
	child.cancel(&asl.Failure{
		Cause: fmt.Sprintf("The Task state in AWS Step Functions execution [%s] which was managing this resource was aborted", parent.ARN),
	})
}
