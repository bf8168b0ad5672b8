// Package lambda finds and invokes functions, and returns their responses as they arrive.
package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/drover-run/drover/shared/aws/internal/call"
	"github.com/drover-run/drover/shared/fault"
)

// operation is one operation of Lambda's client.
type operation[In, Out any] = call.Operation[In, Out, awslambda.Options]

// Functions invokes the functions of a region.
type Functions struct {
	invoke      operation[awslambda.InvokeInput, awslambda.InvokeOutput]
	stream      operation[awslambda.InvokeWithResponseStreamInput, awslambda.InvokeWithResponseStreamOutput]
	getFunction operation[awslambda.GetFunctionConfigurationInput, awslambda.GetFunctionConfigurationOutput]
	getSettings operation[awslambda.GetAccountSettingsInput, awslambda.GetAccountSettingsOutput]
	// buffered reports whether the region has refused to stream.
	buffered atomic.Bool
}

// New returns the functions of a configuration's region.
func New(cfg aws.Config) *Functions {
	client := awslambda.NewFromConfig(cfg, func(o *awslambda.Options) { o.HTTPClient = plainBodies{o.HTTPClient} })
	return &Functions{
		invoke: client.Invoke, stream: client.InvokeWithResponseStream, getFunction: client.GetFunctionConfiguration,
		getSettings: client.GetAccountSettings,
	}
}

// plainBodies is an HTTP client that hides the method WriteTo of request bodies. net/http reads a body again after its last byte. The
// SDK closes the body when the response begins, and WriteTo of a closed body is an error (smithy-go v1.28.8). If the response began first,
// net/http would then close the connection of a response that is still being read. Read of a closed body only returns io.EOF.
type plainBodies struct{ awslambda.HTTPClient }

func (c plainBodies) Do(r *http.Request) (*http.Response, error) {
	if r.ContentLength > 0 {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.HTTPClient.Do(r)
}

// Streams is false after Invoke has found that the region streams no responses. That Invoke has failed, and later ones return responses
// as a whole.
func (f *Functions) Streams() bool { return !f.buffered.Load() }

// Invoke invokes a function and returns its response as it arrives. Closing the reader, or ending ctx, does not stop the function. An
// error of the function has its type as error code.
func (f *Functions) Invoke(ctx context.Context, function string, payload []byte) (io.ReadCloser, error) {
	if f.buffered.Load() {
		return f.invokeBuffered(ctx, function, payload)
	}
	out, err := f.stream(ctx, &awslambda.InvokeWithResponseStreamInput{FunctionName: &function, Payload: payload})
	if err != nil {
		if isUnknownOperation(err) {
			f.buffered.Store(true)
		}
		return nil, fmt.Errorf("invoking function %s: %w", function, err)
	}
	return &stream{ctx: ctx, function: function, events: out.GetStream()}, nil
}

// Start invokes a function and does not wait for it. Lambda retries an invocation that fails.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async.html
func (f *Functions) Start(ctx context.Context, function string, payload []byte) error {
	_, err := f.invoke(ctx, &awslambda.InvokeInput{
		FunctionName: &function, InvocationType: types.InvocationTypeEvent, Payload: payload,
	})
	if err != nil {
		return fmt.Errorf("starting function %s: %w", function, err)
	}
	return nil
}

// Exists reports whether a function exists.
func (f *Functions) Exists(ctx context.Context, function string) (bool, error) {
	_, err := f.getFunction(ctx, &awslambda.GetFunctionConfigurationInput{FunctionName: &function})
	if fault.Code(err) == "ResourceNotFoundException" {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finding function %s: %w", function, err)
	}
	return true, nil
}

// Variable returns an environment variable of a function, and "" if it is not set.
func (f *Functions) Variable(ctx context.Context, function, name string) (string, error) {
	out, err := f.getFunction(ctx, &awslambda.GetFunctionConfigurationInput{FunctionName: &function})
	if err != nil {
		return "", fmt.Errorf("reading the configuration of function %s: %w", function, err)
	}
	if out.Environment == nil {
		return "", nil
	}
	return out.Environment.Variables[name], nil
}

// Concurrency returns how many invocations may run at the same time in the account and region, and how many of them no function reserves.
// Both are 0 if Lambda does not report them. https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html
func (f *Functions) Concurrency(ctx context.Context) (limit, unreserved int, err error) {
	out, err := f.getSettings(ctx, &awslambda.GetAccountSettingsInput{})
	if err != nil {
		return 0, 0, fmt.Errorf("reading the limits of Lambda: %w", err)
	}
	if out.AccountLimit == nil {
		return 0, 0, nil
	}
	return int(out.AccountLimit.ConcurrentExecutions), int(aws.ToInt32(out.AccountLimit.UnreservedConcurrentExecutions)), nil
}

func (f *Functions) invokeBuffered(ctx context.Context, function string, payload []byte) (io.ReadCloser, error) {
	out, err := f.invoke(ctx, &awslambda.InvokeInput{FunctionName: &function, Payload: payload})
	if err != nil {
		return nil, fmt.Errorf("invoking function %s: %w", function, err)
	}
	if out.FunctionError != nil {
		return nil, readError(function, out.Payload, *out.FunctionError)
	}
	return io.NopCloser(bytes.NewReader(out.Payload)), nil
}

// isUnknownOperation reports whether the region does not know InvokeWithResponseStream. A missing function has an error code of its own.
// AWS does not document the answer: some endpoints deny access to a path that they do not serve, as users report.
// https://github.com/boto/boto3/issues/294
// https://docs.aws.amazon.com/lambda/latest/api/CommonErrors.html
func isUnknownOperation(err error) bool {
	switch fault.Code(err) {
	case "UnknownOperationException", "InvalidAction", "UnsupportedOperationException":
		return true
	case "ResourceNotFoundException":
		return false
	case "AccessDeniedException":
		return strings.Contains(err.Error(), "Unable to determine service/operation name")
	}
	var response interface{ HTTPStatusCode() int }
	return errors.As(err, &response) && response.HTTPStatusCode() == http.StatusNotFound
}

// failure is an error that a function ended with.
type failure struct{ function, code, message string }

func (e *failure) Error() string {
	return fmt.Sprintf("function %s failed: %s: %s", e.function, e.code, e.message)
}

// ErrorCode is the errorType of the function's error, such as Sandbox.Timedout.
func (e *failure) ErrorCode() string { return e.code }

// readError reads the error that the runtime wrote.
// https://docs.aws.amazon.com/lambda/latest/dg/golang-exceptions.html
func readError(function string, payload []byte, otherwise string) error {
	var written struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal(payload, &written); err != nil || written.ErrorType == "" && written.ErrorMessage == "" {
		return &failure{function, otherwise, string(payload)}
	}
	if written.ErrorType == "" {
		written.ErrorType = otherwise
	}
	return &failure{function, written.ErrorType, written.ErrorMessage}
}

// stream reads a response of InvokeWithResponseStream.
type stream struct {
	ctx      context.Context
	function string
	events   *awslambda.InvokeWithResponseStreamEventStream
	rest     []byte
	err      error
}

// Read returns what has arrived. A response that ends without InvokeComplete is incomplete.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 && s.err == nil {
		if s.err = s.ctx.Err(); s.err != nil { // select would choose at random if an event waits, too
			break
		}
		select {
		case event, open := <-s.events.Events():
			s.take(event, open)
		case <-s.ctx.Done():
			s.err = s.ctx.Err()
		}
	}
	if len(s.rest) == 0 {
		return 0, s.err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *stream) take(event types.InvokeWithResponseStreamResponseEvent, open bool) {
	if !open {
		s.err = fmt.Errorf("reading the response of function %s: %w", s.function, errors.Join(s.events.Err(), io.ErrUnexpectedEOF))
		return
	}
	switch event := event.(type) {
	case *types.InvokeWithResponseStreamResponseEventMemberPayloadChunk:
		s.rest = event.Value.Payload
	case *types.InvokeWithResponseStreamResponseEventMemberInvokeComplete:
		s.err = io.EOF
		if code := aws.ToString(event.Value.ErrorCode); code != "" {
			s.err = readError(s.function, []byte(aws.ToString(event.Value.ErrorDetails)), code)
		}
	}
}

// Close ends the connection. It returns no error: the SDK's would repeat one of reading, which Read returns.
func (s *stream) Close() error {
	_ = s.events.Close()
	return nil
}
