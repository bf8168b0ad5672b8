package faults

// Errors that callers get for a fault, in each service's own words.

import (
	"strings"

	"github.com/drover-run/drover/local/engine/wire"
)

// Answer returns the error that a service sends for a strike at a call, or nil if it sends its own answer.
func (s Strike) Answer(service string) error {
	switch s.Kind {
	case Throttle:
		return Throttled(service)
	case Error:
		return &wire.Error{Code: s.Code, Message: "struck by a fault rule of the local account", Status: or(s.Status, 500)}
	case Conflict:
		if s.Code == "412" {
			return &wire.Error{Code: "PreconditionFailed", Message: "At least one of the pre-conditions you specified did not hold", Status: 412}
		}
		return &wire.Error{
			Code: "ConditionalRequestConflict", Message: "The conditional request cannot succeed due to a conflicting operation against this " +
				"resource.", Status: 409,
		}
	case CrashBefore, CrashAfter:
		return &wire.Error{Code: "ServiceUnavailable", Message: "the caller was killed", Status: 503} // the caller is dead and reads no answer
	}
	return nil
}

// Done reports whether the call is performed and only its answer is lost: a function that dies after it, or a retry of a
// write that finds its own object.
func (s Strike) Done() bool { return s.Kind == CrashAfter || s.Kind == Conflict && s.Code == "412" }

// Throttled returns the error with which a service throttles a call.
func Throttled(service string) error {
	code, message, status := "ThrottlingException", "Rate exceeded", 400
	switch strings.ToLower(service) {
	case "s3":
		code, message, status = "SlowDown", "Please reduce your request rate.", 503
	case "cloudformation", "autoscaling", "iam", "sts":
		code = "Throttling"
	case "ec2":
		code, message, status = "RequestLimitExceeded", "Request limit exceeded.", 503
	case "lambda":
		code, status = "TooManyRequestsException", 429
	case "sns":
		code, status = "Throttled", 429
	}
	return &wire.Error{Code: code, Message: message, Status: status}
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
