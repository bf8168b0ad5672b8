package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
)

// Reason is why a request did not reach an API server through a relay.
type Reason string

const (
	// Missing: the function does not exist.
	Missing Reason = "RelayMissing"
	// Closed: the endpoint is not open to everyone, and the cluster's stack made no relay.
	Closed Reason = "EndpointClosed"
	// Forbidden: the caller may not invoke the function.
	Forbidden Reason = "RelayForbidden"
	// Throttled: Lambda has no concurrency left for the function.
	Throttled Reason = "RelayThrottled"
	// NotReady: Lambda is connecting the function to the network, or cannot.
	NotReady Reason = "RelayNotReady"
	// TimedOut: the function did not end in time.
	TimedOut Reason = "RelayTimedOut"
	// Failed: the function stopped with an error, or Lambda did.
	Failed Reason = "RelayFailed"
	// Incompatible: the function's response is not one that this version of drover knows.
	Incompatible Reason = "RelayIncompatible"
	// TooLarge: the request or the response is larger than Lambda allows.
	TooLarge Reason = "RelayTooLarge"
	// Unreachable: the relay reached no API server.
	Unreachable Reason = "APIUnreachable"
	// Untrusted: the server at the endpoint is not the cluster's.
	Untrusted Reason = "APIUntrusted"
	// Refused: the relay does not forward such a request.
	Refused Reason = "RelayRefused"
)

// advice is what the user does about each reason.
var advice = map[Reason]string{
	Missing:      "drover recreates it",
	Closed:       "to restrict it after that, set spec.controlPlane.endpoint",
	Forbidden:    "allow lambda:InvokeFunction on it",
	Throttled:    "drover retries; raise the account's limit of concurrent executions if this lasts",
	NotReady:     "drover retries; if this lasts, check the subnets' free addresses and the relay's role",
	TimedOut:     "drover retries; if this lasts, check the log group of the relay",
	Failed:       "drover retries; if this lasts, check the log group of the relay",
	Incompatible: "update the relay: change the spec of the cluster, or upgrade it",
	TooLarge:     "this is a limit of drover; report it",
	Unreachable:  "check the cluster's endpoint and the security groups",
	Untrusted:    "check whether the EKS cluster was replaced outside drover",
	Refused:      "this is a defect of drover; report it",
}

// Error is a request that did not reach the API server. The API server's own errors are responses.
type Error struct {
	Reason   Reason
	Function string
	Cause    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s: %v; %s", e.Reason, e.Function, e.Cause, advice[e.Reason])
}

func (e *Error) Unwrap() error { return e.Cause }

// WithoutRelay is the error of a request to a cluster whose stack made no relay. what is the cluster, and cause is why its endpoint admits
// no one else. Other errors than that of a missing function stay as they are.
func (e *Error) WithoutRelay(what string, cause error) error {
	if e.Reason != Missing {
		return e
	}
	return &Error{Reason: Closed, Function: what, Cause: cause}
}

func (t *transport) failure(reason Reason, cause error) error {
	return &Error{Reason: reason, Function: t.function, Cause: cause}
}

// refusal is the error of the relay itself.
func (t *transport) refusal(e *events.RelayError) error {
	reason := Unreachable
	switch e.Reason {
	case events.RelayRefused:
		reason = Refused
	case events.RelayUntrusted:
		reason = Untrusted
	case events.RelayUnreachable, events.RelayTimeout:
	}
	return t.failure(reason, errors.New(e.Message))
}

// codes are the error codes of Lambda, and of the functions that it runs.
// https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html#API_Invoke_Errors
var codes = map[string]Reason{
	"ResourceNotFoundException":            Missing,
	"AccessDeniedException":                Forbidden,
	"AccessDenied":                         Forbidden,
	"TooManyRequestsException":             Throttled,
	"ResourceNotReadyException":            NotReady,
	"ResourceConflictException":            NotReady,
	"ENILimitReachedException":             NotReady,
	"SubnetIPAddressLimitReachedException": NotReady,
	"EC2AccessDeniedException":             NotReady,
	"EC2ThrottledException":                NotReady,
	"EC2UnexpectedException":               NotReady,
	"InvalidSubnetIDException":             NotReady,
	"InvalidSecurityGroupIDException":      NotReady,
	"RequestTooLargeException":             TooLarge,
	"Function.ResponseSizeTooLarge":        TooLarge,
	"Sandbox.Timedout":                     TimedOut,
	"Runtime.Timedout":                     TimedOut,
}

// explain names the reason of an error of Invoke. After the end of ctx, the error is that of ctx.
func (t *transport) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	code := fault.Code(err)
	reason, found := codes[code]
	if !found {
		reason = Failed
		if strings.Contains(code, "Throttl") {
			reason = Throttled
		}
	}
	return t.failure(reason, answer{err})
}

// answer is an error of AWS without the id of the request. A status that changes with every attempt would send a notice each time.
type answer struct{ error }

func (a answer) Unwrap() error { return a.error }

func (a answer) Error() string {
	var coded interface {
		ErrorCode() string
		ErrorMessage() string
	}
	if !errors.As(a.error, &coded) {
		return a.error.Error()
	}
	return coded.ErrorCode() + ": " + coded.ErrorMessage()
}
