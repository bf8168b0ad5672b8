// Package call configures SDK clients to send each call once, and formats their errors. The adapters ec2, iam and
// leftovers use it, because their errors reach the status. The SDK's error text contains a request ID. Without it,
// equal failures have equal texts. The package itself sends nothing.
package call

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/transport/http"

	"github.com/drover-run/drover/shared/fault"
)

// Operation is one operation of an SDK client. Adapters hold operations instead of the client. In a program that finds methods by name,
// such as with text/template, the linker keeps all methods of each type that an interface can reach. A client has a method for each
// operation of its service.
type Operation[In, Out, Options any] func(context.Context, *In, ...func(*Options)) (*Out, error)

// Once returns a configuration whose clients do not retry. State machines retry.
func Once(config aws.Config) aws.Config {
	config = config.Copy()
	config.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	return config
}

// unknown is the SDK's error code of a response without a code.
const unknown = "UnknownError"

// Error classifies the error of a call, and words it as the operation with AWS's code and message. It returns nil for nil.
func Error(err error) error {
	var operation *smithy.OperationError
	if !errors.As(err, &operation) {
		return fault.Classify(err)
	}
	name := operation.Operation()
	var response *http.ResponseError
	answered := errors.As(err, &response) && response.HTTPStatusCode() != 0
	var refusal smithy.APIError
	switch {
	case errors.As(err, &refusal) && refusal.ErrorCode() != unknown:
		return fault.Classify(fmt.Errorf("%s: %w", name, newRefused(refusal.ErrorCode(), refusal.ErrorMessage(), response)))
	case answered && response.HTTPStatusCode() >= 300:
		// For example the page of a proxy.
		code := fmt.Sprintf("HTTP%d", response.HTTPStatusCode())
		return fault.Classify(fmt.Errorf("%s: %w", name, newRefused(code, "no error was reported", response)))
	case answered:
		return &fault.Transient{Cause: fmt.Errorf("reading the response to %s: %w", name, response.Err)}
	}
	var sent *http.RequestSendError
	if errors.As(err, &sent) {
		return &fault.Transient{Cause: fmt.Errorf("%s: %w", name, sent.Err)}
	}
	var canceled *smithy.CanceledError
	if errors.As(err, &canceled) {
		return &fault.Transient{Cause: fmt.Errorf("%s: %w", name, canceled.Err)}
	}
	return fault.Classify(fmt.Errorf("%s: %w", name, operation.Err))
}

// errorResponse is an error response: its code, its message and its HTTP status.
type errorResponse struct {
	smithy.GenericAPIError
	status int
}

func newRefused(code, message string, response *http.ResponseError) *errorResponse {
	out := &errorResponse{GenericAPIError: smithy.GenericAPIError{Code: code, Message: message}}
	if response != nil {
		out.status = response.HTTPStatusCode()
	}
	return out
}

// HTTPStatusCode lets fault.Classify distinguish a transient failure from a defect.
func (r *errorResponse) HTTPStatusCode() int { return r.status }
