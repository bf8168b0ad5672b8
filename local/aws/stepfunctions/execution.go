package stepfunctions

// Running executions: the interpreter's host, with the events, metrics and logs that an execution produces.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/local/engine/wire"
)

// maxInput limits an execution's input, in bytes.
// https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
const maxInput = 256 * 1024

func checkInput(input string) error {
	if len(input) > maxInput {
		return wire.Errorf("ValidationException", "1 validation error detected: Value at 'input' failed to satisfy constraint: "+
			"Member must have length less than or equal to %d", maxInput)
	}
	if !json.Valid([]byte(input)) {
		return wire.Errorf("InvalidExecutionInput", "Invalid State Machine Execution Input: it is no JSON")
	}
	return nil
}

func (s *Service) run(ctx context.Context, m *machine, x *execution) {
	defer x.cancel(nil)
	defer close(x.ended)
	s.announce(x.Execution)
	s.metric(x.MachineARN, "ExecutionsStarted", 1, "Count")
	outcome := m.parsed.Run(ctx, asl.Execution{
		ARN: x.ARN, Name: x.Name, RoleARN: m.role, MachineARN: m.arn, MachineName: m.name, Input: json.RawMessage(x.Input), Start: x.Started,
	}, asl.Host{
		Task:   func(ctx context.Context, t asl.Task) (json.RawMessage, error) { return s.task(ctx, x, t) },
		Tokens: &s.tokens, Record: func(e asl.Event) { s.record(m, x, e) }, Clock: s.config.Clock, Random: s.config.Random,
	})
	s.mu.Lock()
	x.Status, x.Output, x.Error, x.Cause = string(outcome.Status), string(outcome.Output), outcome.Error, outcome.Cause
	x.Transitions, x.Stopped = outcome.Transitions, s.config.Clock.Now()
	seen := x.Execution
	s.mu.Unlock()
	s.announce(seen)
	s.metric(x.MachineARN, map[asl.Status]string{
		asl.Succeeded: "ExecutionsSucceeded", asl.Failed: "ExecutionsFailed", asl.TimedOut: "ExecutionsTimedOut",
		asl.Aborted: "ExecutionsAborted",
	}[outcome.Status], 1, "Count")
	s.metric(x.MachineARN, "ExecutionTime", float64(seen.Stopped.Sub(seen.Started).Milliseconds()), "Milliseconds")
}

// metric: https://docs.aws.amazon.com/step-functions/latest/dg/procedure-cw-metrics.html
func (s *Service) metric(machineARN, name string, value float64, unit string) {
	if s.config.Metric != nil {
		s.config.Metric("AWS/States", name, map[string]string{"StateMachineArn": machineARN}, value, unit)
	}
}

// announce emits a status change event.
// https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html
func (s *Service) announce(x Execution) {
	if s.config.Emit == nil {
		return
	}
	optional := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	detail := map[string]any{
		"executionArn": x.ARN, "stateMachineArn": x.MachineARN, "name": x.Name, "status": x.Status, "startDate": x.Started.UnixMilli(),
		"stopDate": nil,
		"input":    x.Input, "inputDetails": map[string]bool{"included": true}, "output": optional(x.Output), "outputDetails": nil,
		"error": optional(x.Error), "cause": optional(x.Cause),
	}
	if !x.Stopped.IsZero() {
		detail["stopDate"] = x.Stopped.UnixMilli()
	}
	if x.Output != "" {
		detail["outputDetails"] = map[string]bool{"included": true}
	}
	s.config.Emit(context.WithoutCancel(s.ctx), "aws.states", "Step Functions Execution Status Change", []string{x.ARN}, detail)
}

// record stores an event, passes it to Observe and logs it.
func (s *Service) record(m *machine, x *execution, e asl.Event) {
	s.mu.Lock()
	x.events = append(x.events, e)
	seen := x.Execution
	s.mu.Unlock()
	if s.config.Observe != nil {
		s.config.Observe(seen, e)
	}
	if s.config.Logs == nil || m.logging.group() == "" || !isLogged(m.logging.Level, e.Type) {
		return
	}
	details := e.Details
	if !m.logging.IncludeExecutionData {
		details = nil
		for _, k := range []string{"name", "resource", "resourceType"} {
			if v, ok := e.Details[k]; ok {
				details = map[string]any{k: v}
			}
		}
	}
	line, _ := json.Marshal(map[string]any{ // plain data
		"id": fmt.Sprint(e.ID), "type": e.Type, "details": details, "previous_event_id": fmt.Sprint(e.PreviousID),
		"event_timestamp": fmt.Sprint(e.Time.UnixMilli()), "execution_arn": x.ARN, "redrive_count": "0",
	})
	stream := "states/" + m.name + "/" + x.Started.Format("2006-01-02-15-04") + "/" + x.session[:8]
	s.config.Logs.WriteLog(m.logging.group(), stream, string(line))
}

// isLogged reports whether a log level includes the event. https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
func isLogged(level, event string) bool {
	switch level {
	case "ALL":
		return true
	case "ERROR":
		return event == "ExecutionAborted" || event == "FailStateEntered" || strings.HasSuffix(event, "Failed") ||
			strings.HasSuffix(event, "TimedOut")
	case "FATAL":
		return event == "ExecutionAborted" || event == "ExecutionFailed" || event == "ExecutionTimedOut"
	}
	return false
}

// caller returns the machine's role, as which the execution acts.
func (s *Service) caller(x *execution) (iam.Caller, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Clock.Now()
	if x.callerAt.IsZero() || now.Sub(x.callerAt) > maxCaller {
		caller, _, err := s.config.Roles.AssumeRoleAs(x.role, x.session, "states.amazonaws.com")
		if err != nil {
			return iam.Caller{}, err
		}
		x.caller, x.callerAt = caller, now
	}
	return x.caller, nil
}
