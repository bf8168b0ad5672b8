package fault

import (
	"context"
	"errors"
	"net"
	"slices"
)

// throttles are the error codes with which AWS services throttle.
// https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html, and the services' own pages.
var throttles = []string{
	"Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestThrottledException",
	"TooManyRequestsException", "RequestLimitExceeded", "BandwidthLimitExceeded", "LimitExceededException",
	"ProvisionedThroughputExceededException", "TransactionInProgressException", "SlowDown", "PriorRequestNotComplete",
	"EC2ThrottledException", "Throttled", // the last is SNS's
}

// passing are the error codes of failures that may not recur at the next try.
var passing = []string{
	"InternalError", "InternalFailure", "InternalServerError", "InternalServerException", "ServerException",
	"ServiceUnavailable", "ServiceUnavailableException", "RequestTimeout", "RequestTimeoutException",
	"ConditionalRequestConflict", "OperationAborted",
}

// Code returns the AWS error code in err, or "". All of drover reads AWS errors by code, never by text.
func Code(err error) string {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		return coded.ErrorCode()
	}
	return ""
}

// Denied reports whether AWS refused a call because the caller, or its organization, may not make it.
func Denied(err error) bool {
	return slices.Contains([]string{"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}, Code(err))
}

// Classify wraps an error that is not a fault in Throttled, Transient or Internal. It returns an error unchanged if
// the chain contains a fault. It returns nil for nil.
func Classify(err error) error {
	if err == nil {
		return nil
	}
	var named Named
	if errors.As(err, &named) {
		return err
	}
	if code := Code(err); code != "" {
		if slices.Contains(throttles, code) {
			return &Throttled{err}
		}
		if slices.Contains(passing, code) {
			return &Transient{err}
		}
	}
	var response interface{ HTTPStatusCode() int }
	if errors.As(err, &response) {
		switch status := response.HTTPStatusCode(); {
		case status == 429:
			return &Throttled{err}
		case status >= 500:
			return &Transient{err}
		}
	}
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) {
		return &Transient{err}
	}
	return &Internal{err}
}

// NameOf returns the error name of err that state machines match.
func NameOf(err error) string {
	var named Named
	errors.As(Classify(err), &named)
	return Name(named)
}
