package asl

// Task states: one attempt, from arguments to result.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// errTaskTimeout is the cancellation cause for a Task's TimeoutSeconds.
var errTaskTimeout = errors.New("task timed out")

func (v *visit) task(ctx context.Context) (json.RawMessage, error) {
	var w *waiter
	v.token = ""
	if v.resource.Token {
		v.token, w = v.host.Tokens.issue()
		defer v.host.Tokens.close(v.token)
	}
	q := v.query(ctx, nil, nil)
	arguments := json.RawMessage("{}")
	if v.arguments != nil {
		var err error
		if arguments, err = v.arguments.eval(q); err != nil {
			return nil, err
		}
	}
	if err := v.limit("arguments", arguments); err != nil {
		return nil, err
	}
	timeout, heartbeat := int64(maxSeconds), int64(0)
	for _, field := range []struct {
		from *template
		into *int64
	}{{v.timeout, &timeout}, {v.heartbeat, &heartbeat}} {
		if field.from != nil {
			n, err := v.number(q, field.from, 1)
			if err != nil {
				return nil, err
			}
			*field.into = n
		}
	}
	token := v.token
	v.token = "" // only Arguments may use it

	kind := map[string]any{"resourceType": v.resource.Service, "resource": v.resource.action()}
	if err := v.taskEvent("TaskScheduled", kind, map[string]any{
		"parameters": text(arguments), "timeoutInSeconds": timeout, "heartbeatInSeconds": heartbeat}); err != nil {
		return nil, err
	}
	if err := v.taskEvent("TaskStarted", kind, nil); err != nil {
		return nil, err
	}
	working, cancel := context.WithTimeoutCause(ctx, time.Duration(timeout)*time.Second, errTaskTimeout)
	defer cancel()
	result, err := v.work(working, Task{
		Resource: v.resource, Arguments: arguments, Token: token,
	}, w, time.Duration(heartbeat)*time.Second, kind)
	if err == nil {
		err = v.limit("result", result)
	}
	switch {
	case err == nil:
		return compact(result), v.taskEvent("TaskSucceeded", kind, map[string]any{"output": text(result)})
	case ctx.Err() != nil:
		return nil, ctx.Err() // the execution ended, or a sibling flow failed
	case working.Err() != nil && errors.Is(context.Cause(working), errTaskTimeout):
		err = &Failure{Name: errTimeout}
	}
	failure := asFailure(err)
	ended := "TaskFailed"
	if failure.Name == errTimeout || failure.Name == errHeartbeat {
		ended = "TaskTimedOut"
	}
	if err := v.taskEvent(ended, kind, failureDetails(failure)); err != nil {
		return nil, err
	}
	return nil, failure
}

func (r Resource) action() string {
	switch {
	case r.Token:
		return r.Action + ".waitForTaskToken"
	case r.Job:
		return r.Action + ".sync:2"
	}
	return r.Action
}

func (v *visit) taskEvent(name string, kind, more map[string]any) error {
	details := map[string]any{}
	for k, d := range kind {
		details[k] = d
	}
	for k, d := range more {
		if n, ok := d.(int64); ok && (n == 0 || n == maxSeconds) {
			continue // absent
		}
		details[k] = d
	}
	return v.event(name, details)
}

// work performs the task. If the task waits for a token, work returns when the token is answered.
func (v *visit) work(ctx context.Context, t Task, w *waiter, heartbeat time.Duration, kind map[string]any) (json.RawMessage, error) {
	called, submitted := make(chan answer, 1), make(chan json.RawMessage)
	t.Submitted = func(output json.RawMessage) {
		select {
		case submitted <- output:
		case <-ctx.Done():
		}
	}
	turn := v.host.Clock.Ticket("states: task " + v.name)
	go func() {
		turn()
		output, err := v.host.Task(ctx, t)
		called <- answer{output, err}
	}()
	if w == nil {
		w = &waiter{} // a waiter without answers
	}
	var silence <-chan time.Time
	var timer *time.Timer
	if heartbeat > 0 {
		timer = time.NewTimer(heartbeat)
		defer timer.Stop()
		silence = timer.C
	}
	for {
		turn := v.host.Clock.Ticket("states: waiting in " + v.name)
		select {
		case a := <-called:
			turn()
			if a.err == nil && !json.Valid(a.output) {
				a.err = &Failure{Name: errRuntime, Cause: fmt.Sprintf("The task '%s' returned no JSON.", v.name)}
			}
			if a.err != nil || !t.Resource.Token {
				return a.output, a.err
			}
			if err := v.taskEvent("TaskSubmitted", kind, map[string]any{"output": text(a.output)}); err != nil {
				return nil, err
			}
		case output := <-submitted:
			turn()
			if err := v.taskEvent("TaskSubmitted", kind, map[string]any{"output": text(output)}); err != nil {
				return nil, err
			}
		case a := <-w.answers:
			turn()
			return a.output, a.err
		case <-w.beats:
			if timer != nil {
				timer.Reset(heartbeat)
			}
		case <-silence:
			turn()
			return nil, &Failure{Name: errHeartbeat}
		case <-ctx.Done():
			turn()
			return nil, ctx.Err()
		}
	}
}
