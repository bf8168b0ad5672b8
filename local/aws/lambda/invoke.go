package lambda

// Invocations. https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
)

// Invocation is a request to run a function.
type Invocation struct {
	// Function is a name or an ARN.
	Function string
	// Payload is JSON. Empty means {}.
	Payload []byte
}

// Result of a synchronous invocation.
type Result struct {
	RequestID string
	Payload   []byte
	// FunctionError is "Unhandled" if the function failed. Payload then has errorType and errorMessage.
	FunctionError string
	// Log is the last part of the invocation's log.
	Log string
}

// authorize evaluates identity and resource policies.
func (s *Service) authorize(caller iam.Caller, action, reference string) (*function, error) {
	f, err := s.find(reference)
	if err != nil {
		// A caller without permission gets AccessDenied even if the function does not exist.
		if name, bad := s.name(reference); bad == nil {
			if denied := caller.Authorize(action, s.arn(name), nil); denied != nil {
				return nil, denied
			}
		}
		return nil, err
	}
	policy, err := f.resourcePolicy()
	if err != nil {
		return nil, err
	}
	return f, caller.AuthorizeWith(action, f.arn, nil, policy)
}

// Invoke runs a function and waits for its result. If the context ends first, the function continues, as on AWS.
func (s *Service) Invoke(ctx context.Context, caller iam.Caller, in Invocation) (Result, error) {
	f, payload, err := s.admit(caller, in, maxPayload)
	if err != nil {
		return Result{}, err
	}
	done := make(chan outcome, 1)
	id := uuid.NewString()
	if !s.background(func() {
		a, report, err := f.run(&invocation{id: id, payload: payload, responses: make(chan response, 1)})
		done <- outcome{a, report, err}
	}) {
		return Result{}, context.Canceled
	}
	turn := s.config.Clock.Ticket("lambda: the result of " + id)
	defer turn()
	select {
	case o := <-done:
		r := Result{RequestID: id, Payload: o.payload, Log: o.report.Log}
		if o.failed {
			r.FunctionError = "Unhandled"
		}
		return r, o.err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

// InvokeAsync queues an event for a function. The function runs at least once, and is retried if it fails.
func (s *Service) InvokeAsync(_ context.Context, caller iam.Caller, in Invocation) (requestID string, err error) {
	f, payload, err := s.admit(caller, in, maxEvent)
	if err != nil {
		return "", err
	}
	e := &event{function: f, id: uuid.NewString(), payload: payload, queued: s.config.Clock.Now()}
	if !s.background(func() { e.process(s.ctx) }) {
		return "", context.Canceled
	}
	return e.id, nil
}

func (s *Service) admit(caller iam.Caller, in Invocation, limit int) (*function, []byte, error) {
	f, err := s.authorize(caller, "lambda:InvokeFunction", in.Function)
	if err != nil {
		return nil, nil, err
	}
	if len(in.Payload) == 0 {
		in.Payload = []byte("{}")
	}
	if len(in.Payload) > limit {
		return nil, nil, tooLarge(len(in.Payload), limit)
	}
	f.mu.Lock()
	err = f.ready(false)
	f.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	if !json.Valid(in.Payload) {
		return nil, nil, &iam.Error{
			Code: "InvalidRequestContentException", Message: "Could not parse request body into json: " + firstWords(in.Payload),
			Status: http.StatusBadRequest,
		}
	}
	return f, in.Payload, nil
}

func firstWords(b []byte) string { return string(b[:min(len(b), 80)]) }

// event is an asynchronous invocation. https://docs.aws.amazon.com/lambda/latest/dg/invocation-async.html
type event struct {
	function *function
	id       string
	payload  []byte
	queued   time.Time
	runs     int
}

// eventConfig is an event invoke configuration.
// https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html
type eventConfig struct {
	MaximumRetryAttempts     *int               `json:",omitempty"` // default 2
	MaximumEventAgeInSeconds *int               `json:",omitempty"` // default 6 hours
	DestinationConfig        *destinationConfig `json:",omitempty"`
	modified                 time.Time
}

type destinationConfig struct {
	OnFailure *destination `json:",omitempty"`
	OnSuccess *destination `json:",omitempty"`
}

type destination struct {
	Destination string `json:",omitempty"`
}

func (c *eventConfig) check() error {
	if n := c.MaximumRetryAttempts; n != nil && (*n < 0 || *n > 2) {
		return invalid("MaximumRetryAttempts %d: between 0 and 2", *n)
	}
	if n := c.MaximumEventAgeInSeconds; n != nil && (*n < 60 || *n > 21600) {
		return invalid("MaximumEventAgeInSeconds %d: between 60 and 21600", *n)
	}
	if d := c.DestinationConfig; d != nil {
		if d.OnSuccess != nil && d.OnSuccess.Destination != "" {
			return &iam.Error{
				Code: "UnsupportedByLocalAccount", Message: "the local account's lambda does not support OnSuccess destinations",
				Status: http.StatusBadRequest,
			}
		}
		if d.OnFailure != nil && d.OnFailure.Destination != "" && !strings.Contains(d.OnFailure.Destination, ":sqs:") {
			return &iam.Error{
				Code: "UnsupportedByLocalAccount", Message: "the local account's lambda does not support the destination " + d.OnFailure.Destination,
				Status: http.StatusBadRequest,
			}
		}
	}
	return nil
}

// limits returns the current retry settings. A changed configuration also applies to queued events.
func (f *function) limits() (retries int, age time.Duration, onFailure, deadLetter string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	retries, age = 2, 6*time.Hour
	if d := f.settings.DeadLetterConfig; d != nil {
		deadLetter = d.TargetArn
	}
	c := f.retries
	if c == nil {
		return retries, age, "", deadLetter
	}
	if c.MaximumRetryAttempts != nil {
		retries = *c.MaximumRetryAttempts
	}
	if c.MaximumEventAgeInSeconds != nil {
		age = time.Duration(*c.MaximumEventAgeInSeconds) * time.Second
	}
	if c.DestinationConfig != nil && c.DestinationConfig.OnFailure != nil {
		onFailure = c.DestinationConfig.OnFailure.Destination
	}
	return retries, age, onFailure, deadLetter
}

// process runs the event until it succeeds or is discarded. A failed run is repeated after one minute, then after two.
// If no environment is available, Lambda retries with pauses of 1 s to 5 min until the event's maximum age.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
func (e *event) process(ctx context.Context) {
	clock := e.function.service.config.Clock
	failures, throttle := 0, time.Second
	for {
		a, _, err := e.function.run(&invocation{id: e.id, payload: e.payload, responses: make(chan response, 1)})
		retries, age, _, _ := e.function.limits()
		var wait time.Duration
		switch {
		case err != nil:
			wait, throttle = throttle, min(2*throttle, 5*time.Minute)
		case !a.failed:
			return
		default:
			e.runs++
			failures++
			wait = time.Duration(failures) * time.Minute
		}
		switch {
		case err == nil && failures > retries:
			e.discard(ctx, "RetriesExhausted", a)
			return
		case clock.Now().Add(wait).Sub(e.queued) > age:
			e.discard(ctx, "EventAgeExceeded", a)
			return
		}
		if clock.Work(ctx, wait) != nil {
			return
		}
	}
}

// discard sends the event to the failure destination and to the dead-letter queue, as the function's role.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
func (e *event) discard(ctx context.Context, condition string, last response) {
	s := e.function.service
	_, _, onFailure, deadLetter := e.function.limits()
	send := func(queue, body string, attributes map[string]string) {
		if queue == "" {
			return
		}
		e.function.mu.Lock()
		role, name := e.function.settings.Role, e.function.settings.FunctionName
		e.function.mu.Unlock()
		caller, _, err := s.config.Roles.AssumeRoleAs(role, sessionName(name), "lambda.amazonaws.com")
		if err == nil && s.config.Queues == nil {
			err = fmt.Errorf("there are no queues")
		}
		if err == nil {
			_, err = s.config.Queues.Send(ctx, caller, queue, body, attributes)
		}
		if err != nil {
			warn(name, "a failed event is lost: "+queue, err)
		}
	}
	payload := last.payload
	if !json.Valid(payload) {
		payload = []byte("null")
	}
	record, _ := json.Marshal(map[string]any{ // the payloads are valid JSON
		"version": "1.0", "timestamp": s.config.Clock.Now().Format("2006-01-02T15:04:05.000Z"),
		"requestContext": map[string]any{
			"requestId": e.id, "functionArn": e.function.arn + ":$LATEST", "condition": condition, "approximateInvokeCount": e.runs,
		},
		"requestPayload":  json.RawMessage(e.payload),
		"responseContext": map[string]any{"statusCode": http.StatusOK, "executedVersion": "$LATEST", "functionError": "Unhandled"},
		"responsePayload": json.RawMessage(payload),
	})
	send(onFailure, string(record), nil)
	var failure struct {
		ErrorMessage string `json:"errorMessage"`
	}
	_ = json.Unmarshal(payload, &failure)
	// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html#invocation-dlq
	attributes := map[string]string{"RequestID": e.id, "ErrorCode": "200"}
	if failure.ErrorMessage != "" { // SQS rejects empty attributes
		attributes["ErrorMessage"] = failure.ErrorMessage[:min(len(failure.ErrorMessage), 1024)]
	}
	send(deadLetter, string(e.payload), attributes)
}
