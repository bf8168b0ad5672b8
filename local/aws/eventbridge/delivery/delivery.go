// Package delivery delivers payloads to targets for EventBridge's rules and schedules. A failed delivery is retried
// within the limits of the target's policy, and then sent to a dead-letter queue.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html
package delivery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/wire"
)

// Functions invokes functions asynchronously; a subset of *lambda.Service.
type Functions interface {
	InvokeAsync(ctx context.Context, caller iam.Caller, in lambda.Invocation) (requestID string, err error)
}

// Machines starts executions; a subset of *states.Service.
type Machines interface {
	Start(ctx context.Context, caller iam.Caller, machineARN, name, input string) (executionARN string, err error)
}

// Queues is a subset of *sqs.Service.
type Queues interface {
	Send(ctx context.Context, caller iam.Caller, queueARN, body string, attributes map[string]string) (messageID string, err error)
}

// Topics is a subset of *sns.Service.
type Topics interface {
	Publish(ctx context.Context, caller iam.Caller, topicARN, subject, message string) (messageID string, err error)
}

// Targets are the services that can receive payloads. A nil service is not available.
type Targets struct {
	Functions Functions
	Machines  Machines
	Queues    Queues
	Topics    Topics
}

// Check rejects an ARN that is not a supported target.
func Check(arn string) error {
	parts := strings.Split(arn, ":")
	if len(parts) < 6 || parts[0] != "arn" {
		return wire.Errorf("ValidationException", "Parameter %s is not valid. Reason: Provided Arn is not in correct format.", arn)
	}
	if !slices.Contains([]string{"lambda", "states", "sqs", "sns"}, parts[2]) || parts[2] == "states" && parts[5] != "stateMachine" {
		return wire.Unsupported("events", "the target "+arn)
	}
	return nil
}

// NeedsRole reports whether the target can only be invoked as a role.
func NeedsRole(arn string) bool { return strings.Contains(arn, ":states:") }

// Send delivers a payload to a target once.
func (t Targets) Send(ctx context.Context, caller iam.Caller, arn string, payload []byte) error {
	missing := fmt.Errorf("there is no service for the target %s", arn)
	var err error
	switch strings.Split(arn+":::", ":")[2] {
	case "lambda":
		if t.Functions == nil {
			return missing
		}
		_, err = t.Functions.InvokeAsync(ctx, caller, lambda.Invocation{Function: arn, Payload: payload})
	case "states":
		if t.Machines == nil {
			return missing
		}
		_, err = t.Machines.Start(ctx, caller, arn, "", string(payload))
	case "sqs":
		if t.Queues == nil {
			return missing
		}
		_, err = t.Queues.Send(ctx, caller, arn, string(payload), nil)
	case "sns":
		if t.Topics == nil {
			return missing
		}
		_, err = t.Topics.Publish(ctx, caller, arn, "", string(payload))
	default:
		return missing
	}
	return err
}

// Policy limits the retries of a delivery.
type Policy struct {
	MaximumEventAgeInSeconds *int `json:",omitempty"` // 60 to 86400, the default
	MaximumRetryAttempts     *int `json:",omitempty"` // 0 to 185, the default
}

// Defaults of a policy.
const (
	maxAge      = 86400
	maxAttempts = 185
)

// Check validates the limits.
func (p *Policy) Check() error {
	if p == nil {
		return nil
	}
	if n := p.MaximumEventAgeInSeconds; n != nil && (*n < 60 || *n > maxAge) {
		return wire.Errorf("ValidationException", "MaximumEventAgeInSeconds %d: between 60 and %d", *n, maxAge)
	}
	if n := p.MaximumRetryAttempts; n != nil && (*n < 0 || *n > maxAttempts) {
		return wire.Errorf("ValidationException", "MaximumRetryAttempts %d: between 0 and %d", *n, maxAttempts)
	}
	return nil
}

func (p *Policy) limits() (retries int, age time.Duration) {
	retries, age = maxAttempts, maxAge*time.Second
	if p != nil && p.MaximumRetryAttempts != nil {
		retries = *p.MaximumRetryAttempts
	}
	if p != nil && p.MaximumEventAgeInSeconds != nil {
		age = time.Duration(*p.MaximumEventAgeInSeconds) * time.Second
	}
	return retries, age
}

// Delivery is the delivery of one payload to one target.
type Delivery struct {
	Targets Targets
	Clock   *clock.Clock
	// Target is an ARN.
	Target string
	// Payload returns the payload of an attempt. The first attempt is 1.
	Payload func(attempt int) []byte
	// As returns the caller that delivers. It is called before each attempt, because a role may be fixed between attempts.
	As     func() (iam.Caller, error)
	Policy *Policy
	// DeadLetters is the ARN of a queue, or empty. DeadLetterAs returns the caller that sends to it.
	DeadLetters  string
	DeadLetterAs func() (iam.Caller, error)
	// Dead is the body of the dead letter. Attributes are added to its message attributes.
	Dead       []byte
	Attributes map[string]string
}

// The pauses between attempts grow from the first to the last. AWS documents only that they grow and are random.
const (
	firstWait = time.Second
	lastWait  = 10 * time.Minute
)

// Run delivers the payload. It returns after success, after the last retry, or when the context ends.
func (d Delivery) Run(ctx context.Context) {
	retries, age := d.Policy.limits()
	born := d.Clock.Now()
	wait := firstWait
	for attempt := 1; ; attempt++ {
		caller, err := d.As()
		if err == nil {
			err = d.Targets.Send(ctx, caller, d.Target, d.Payload(attempt))
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		condition := ""
		switch {
		case final(err): // neither condition of a retry
		case attempt > retries:
			condition = "MaximumRetryAttempts"
		case d.Clock.Now().Add(wait).Sub(born) > age:
			condition = "MaximumEventAgeInSeconds"
		default:
			if d.Clock.Work(ctx, wait) != nil {
				return
			}
			wait = min(2*wait, lastWait)
			continue
		}
		d.bury(ctx, err, condition, attempt-1)
		return
	}
}

// final reports whether no retry can succeed. AWS sends such events to the dead-letter queue at once.
func final(err error) bool {
	var e *iam.Error
	return errors.As(err, &e) && e.HTTPStatus() < http.StatusInternalServerError && !strings.Contains(e.Code, "Throttl") &&
		!strings.Contains(e.Code, "TooMany")
}

// bury sends a dead letter. https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
func (d Delivery) bury(ctx context.Context, cause error, condition string, retries int) {
	code := "INTERNAL_ERROR"
	var e *iam.Error
	if errors.As(cause, &e) {
		code = e.Code
		switch {
		case strings.HasPrefix(code, "AccessDenied"):
			code = "NO_PERMISSIONS"
		case e.HTTPStatus() == http.StatusNotFound || strings.Contains(code, "DoesNotExist") || strings.Contains(code, "NotFound"):
			code = "NO_RESOURCE"
		}
	}
	slog.Warn("an event could not be delivered", "target", d.Target, "error", cause, "retries", retries)
	if d.DeadLetters == "" || d.Targets.Queues == nil {
		return
	}
	attributes := map[string]string{
		"ERROR_CODE": code, "ERROR_MESSAGE": cause.Error(), "RETRY_ATTEMPTS": strconv.Itoa(retries), "TARGET_ARN": d.Target,
	}
	if condition != "" {
		attributes["EXHAUSTED_RETRY_CONDITION"] = condition
	}
	maps.Copy(attributes, d.Attributes)
	caller, err := d.DeadLetterAs()
	if err == nil {
		_, err = d.Targets.Queues.Send(ctx, caller, d.DeadLetters, string(d.Dead), attributes)
	}
	if err != nil {
		slog.Warn("an event is lost", "target", d.Target, "dead letters", d.DeadLetters, "error", err)
	}
}

// Encode encodes without HTML escapes, so that payloads equal those of AWS byte for byte.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// JSON encodes a value that always has a JSON form.
func JSON(v any) []byte {
	raw, err := Encode(v)
	if err != nil {
		panic(err)
	}
	return raw
}
