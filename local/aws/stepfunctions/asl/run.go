package asl

// Execution of a machine: the loop over states, and what all types of states share.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/drover-run/drover/local/engine/clock"
)

// maxPayload limits inputs, outputs, arguments and variables, in bytes.
// https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
const maxPayload = 256 * 1024

// maxVariables limits the total size of an execution's variables, in bytes.
const maxVariables = 10 * 1024 * 1024

// Execution identifies one run of a machine, with its input.
type Execution struct {
	ARN, Name, RoleARN, MachineARN, MachineName string
	Input                                       json.RawMessage
	Start                                       time.Time
}

// Task is the request of a Task state.
type Task struct {
	Resource  Resource
	Arguments json.RawMessage
	// Token of a task that waits for an answer.
	Token string
	// Submitted records that the job of a .sync:2 task started, with the answer to its start. The task continues until the
	// job ends.
	Submitted func(answer json.RawMessage)
}

// Host connects a machine to its surroundings.
type Host struct {
	// Task performs a Task state and returns its result, which is JSON. Its context ends when the result is no longer
	// needed.
	Task func(context.Context, Task) (json.RawMessage, error)
	// Tokens of waiting tasks. Required if a state waits for a token.
	Tokens *Tokens
	// Record receives each event in order. It may be nil. It must not block.
	Record func(Event)
	// Clock may be nil for real time.
	Clock *clock.Clock
	// Random returns numbers from 0 up to 1 for jitter. nil means real random numbers.
	Random func() float64
}

// Status of an execution that ended, as in DescribeExecution.
type Status string

// The ends of an execution.
const (
	Succeeded Status = "SUCCEEDED"
	Failed    Status = "FAILED"
	TimedOut  Status = "TIMED_OUT"
	Aborted   Status = "ABORTED"
)

// Outcome is the result of an execution.
type Outcome struct {
	Status Status
	// Output is JSON, after success.
	Output json.RawMessage
	// Error and Cause are set after any other end.
	Error, Cause string
	// Transitions as Step Functions bills them.
	Transitions int
}

// run is the state of one execution.
type run struct {
	Execution
	host    Host
	history *history
}

// frame is the state of one flow: its variables, and its item in a Map.
type frame struct {
	variables map[string]json.RawMessage // its own, and copies of those of the enclosing flows
	item      json.RawMessage            // $states.context.Map, nil outside of a Map
	previous  *int64
}

// Run executes the machine until it ends. A cancelled context aborts it. If the cancellation's cause is a *Failure, it
// becomes error and cause.
func (m *Machine) Run(ctx context.Context, x Execution, host Host) Outcome {
	if host.Clock == nil {
		host.Clock = &clock.Clock{}
	}
	if host.Random == nil {
		host.Random = rand.Float64 // #nosec G404 -- jitter
	}
	r := &run{Execution: x, host: host, history: &history{now: host.Clock.Now, record: host.Record}}
	if m.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, m.timeout, errExecutionTimeout)
		defer cancel()
	}
	f := &frame{variables: map[string]json.RawMessage{}, previous: new(int64)}
	_ = r.history.add(f.previous, "ExecutionStarted", "", map[string]any{"input": text(x.Input), "roleArn": x.RoleARN})
	output, err := r.flow(ctx, f, m.flow, compact(x.Input))
	return r.end(ctx, f, output, err)
}

// errExecutionTimeout is the cancellation cause for the machine's TimeoutSeconds.
var errExecutionTimeout = &Failure{Name: errTimeout}

func (r *run) end(ctx context.Context, f *frame, output json.RawMessage, err error) Outcome {
	o := Outcome{Status: Succeeded, Output: output}
	kind, details := "ExecutionSucceeded", map[string]any{"output": text(output)}
	if err != nil {
		failure := asFailure(err)
		o = Outcome{Status: Failed, Error: failure.Name, Cause: failure.Cause}
		kind = "ExecutionFailed"
		if ctx.Err() != nil {
			o.Status, kind = Aborted, "ExecutionAborted"
			o.Error, o.Cause = "", ""
			var cause *Failure
			if errors.As(context.Cause(ctx), &cause) {
				o.Error, o.Cause = cause.Name, cause.Cause
				if cause == errExecutionTimeout {
					o.Status, kind = TimedOut, "ExecutionTimedOut"
				}
			}
		}
		details = failureDetails(&Failure{Name: o.Error, Cause: o.Cause})
	}
	_ = r.history.add(f.previous, kind, "", details)
	o.Transitions = r.history.transitions
	return o
}

func failureDetails(f *Failure) map[string]any {
	d := map[string]any{}
	if f.Name != "" {
		d["error"] = f.Name
	}
	if f.Cause != "" {
		d["cause"] = f.Cause
	}
	return d
}

// flow runs states until the flow ends and returns the output of the last one.
func (r *run) flow(ctx context.Context, f *frame, fl flow, input json.RawMessage) (json.RawMessage, error) {
	for name := fl.startAt; ; {
		v := &visit{run: r, frame: f, state: fl.states[name], input: input, entered: r.host.Clock.Now()}
		next, output, err := v.enter(ctx)
		if err != nil {
			return nil, err
		}
		if next == "" {
			return output, nil
		}
		name, input = next, output
	}
}

// visit is one run of one state.
type visit struct {
	*run
	*frame
	*state
	input   json.RawMessage
	entered time.Time
	retries int
	token   string
}

func (v *visit) event(kind string, details map[string]any) error {
	return v.history.add(v.previous, kind, v.name, details)
}

// enter runs the state. It returns the output and the name of the next state, or "" at the end.
func (v *visit) enter(ctx context.Context) (next string, output json.RawMessage, err error) {
	if err := ctx.Err(); err != nil {
		return "", nil, err
	}
	v.history.transition()
	if err := v.event(v.kind+"StateEntered", map[string]any{"name": v.name, "input": text(v.input)}); err != nil {
		return "", nil, err
	}
	next = v.next
	var after after // the state's output, variables and next state
	switch v.kind {
	case "Task":
		after, err = v.attempts(ctx, v.task)
	case "Parallel":
		after, err = v.attempts(ctx, v.parallel)
	case "Map":
		after, err = v.attempts(ctx, v.mapItems)
	case "Choice":
		after, err = v.choose(ctx)
	case "Wait":
		after, err = v.conclude(ctx, v.wait(ctx), v.input, nil)
	case "Fail":
		return "", nil, v.recordFailure(v.fail(ctx))
	default: // Pass, Succeed
		after, err = v.conclude(ctx, nil, v.input, nil)
	}
	if err != nil {
		return "", nil, v.recordFailure(err)
	}
	if after.next != "" {
		next = after.next
	}
	maps.Copy(v.variables, after.variables)
	details := map[string]any{"name": v.name, "output": text(after.output)}
	if len(after.variables) > 0 {
		assigned := map[string]string{}
		for name, raw := range after.variables {
			assigned[name] = text(raw)
		}
		details["assignedVariables"] = assigned
	}
	return next, after.output, v.event(v.kind+"StateExited", details)
}

// recordFailure adds an event for a failed expression to the history, once.
func (v *visit) recordFailure(err error) error {
	var f *Failure
	if errors.As(err, &f) && f.Name == errQuery && !f.recorded {
		f.recorded = true
		_ = v.event("EvaluationFailed", map[string]any{"error": f.Name, "cause": f.Cause, "state": v.name})
	}
	return err
}

// after is the effect of a state.
type after struct {
	next      string // empty: the state's own Next
	output    json.RawMessage
	variables map[string]json.RawMessage
}

// conclude evaluates the state's Output and Assign, both with the variables at entry. result is nil for states without a
// result. otherwise is the output if the state has no Output.
func (v *visit) conclude(ctx context.Context, err error, otherwise, result json.RawMessage) (after, error) {
	if err != nil {
		return after{}, err
	}
	return v.leave(v.query(ctx, result, nil), "", otherwise, v.output, v.assign)
}

func (v *visit) leave(q *query, next string, otherwise json.RawMessage, output *template, assign []binding) (after, error) {
	a := after{next: next, output: otherwise, variables: map[string]json.RawMessage{}}
	var err error
	if output != nil {
		if a.output, err = output.eval(q); err != nil {
			return a, err
		}
	}
	if err := v.limit("output", a.output); err != nil {
		return a, err
	}
	assigned, all := 0, 0
	for _, b := range assign {
		if a.variables[b.name], err = b.value.eval(q); err != nil {
			return a, err
		}
		assigned += len(a.variables[b.name])
	}
	for _, raw := range v.variables {
		all += len(raw)
	}
	if assigned > maxPayload || all+assigned > maxVariables {
		return a, &Failure{
			Name:  errDataLimit,
			Cause: fmt.Sprintf("The state/task '%s' assigned variables with a size exceeding the maximum number of bytes service limit.", v.name),
		}
	}
	return a, nil
}

// limit rejects a payload that is too large.
func (v *visit) limit(what string, raw json.RawMessage) error {
	if len(raw) > maxPayload {
		return &Failure{
			Name: errDataLimit,
			Cause: fmt.Sprintf("The state/task '%s' returned a result with a size exceeding the maximum number of bytes service limit (%s).",
				v.name, what),
		}
	}
	return nil
}

// query builds $states for the state. Members are absent if they are nil or no expression names them.
func (v *visit) query(ctx context.Context, result, errorOutput json.RawMessage) *query {
	type named struct {
		ID   string `json:"Id"`
		Name string
	}
	c := struct {
		Execution struct {
			ID           string `json:"Id"`
			Input        json.RawMessage
			Name         string
			RoleARN      string `json:"RoleArn"`
			StartTime    string
			RedriveCount int
		}
		StateMachine named
		State        struct {
			EnteredTime string
			Name        string
			RetryCount  int
		}
		Task *struct{ Token string } `json:",omitempty"`
		Map  json.RawMessage         `json:",omitempty"`
	}{StateMachine: named{v.MachineARN, v.MachineName}, Map: v.item}
	c.Execution.ID, c.Execution.Input, c.Execution.Name, c.Execution.RoleARN = v.ARN, v.Input, v.Name, v.RoleARN
	c.Execution.StartTime = stamp(v.Start)
	c.State.EnteredTime, c.State.Name, c.State.RetryCount = stamp(v.entered), v.name, v.retries
	if v.token != "" {
		c.Task = &struct{ Token string }{v.token}
	}
	return &query{ctx: ctx, variables: v.variables, states: func(of memberSet) json.RawMessage {
		var s struct {
			Input       json.RawMessage `json:"input,omitempty"`
			Result      json.RawMessage `json:"result,omitempty"`
			ErrorOutput json.RawMessage `json:"errorOutput,omitempty"`
			Context     any             `json:"context,omitempty"`
		}
		if of&ofInput != 0 {
			if s.Input = v.input; s.Input == nil {
				s.Input = json.RawMessage("null")
			}
		}
		if of&ofResult != 0 {
			s.Result = result
		}
		if of&ofErrorOutput != 0 {
			s.ErrorOutput = errorOutput
		}
		if of&ofContext != 0 {
			s.Context = c
		}
		return encode(s)
	}}
}

// stamp formats a time as in the context object.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
