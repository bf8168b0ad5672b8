package iam

import (
	"fmt"

	"github.com/aws/smithy-go"
)

// Error is an AWS error as an API returns it. It implements smithy.APIError, so that callers in the process classify it
// like an error that came over HTTP.
type Error struct {
	Code, Message string
	// Status is the HTTP status; 0 means 400.
	Status int
	// Reason is sent with the errors of Lambda that have one.
	Reason string
}

func (e *Error) Error() string        { return e.Code + ": " + e.Message }
func (e *Error) ErrorCode() string    { return e.Code }
func (e *Error) ErrorMessage() string { return e.Message }

// ErrorFault is the server's for a status of 500 and above.
func (e *Error) ErrorFault() smithy.ErrorFault {
	if e.Status >= 500 {
		return smithy.FaultServer
	}
	return smithy.FaultClient
}

// HTTPStatus returns the status with which the error is sent.
func (e *Error) HTTPStatus() int {
	if e.Status == 0 {
		return 400
	}
	return e.Status
}

func errorf(status int, code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Status: status}
}
