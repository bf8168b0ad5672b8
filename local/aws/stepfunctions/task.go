package stepfunctions

// Tasks: the service integrations.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/local/engine/wire"
)

// rejectUnsupported rejects a machine with a task that no execution could perform.
func (s *Service) rejectUnsupported(m *asl.Machine) error {
	for _, r := range m.Resources() {
		switch {
		case r.Service == "lambda" && r.Action == "invoke":
		case r.Job && r.ARN != startAndWait:
			return wire.Unsupported("states", "the task "+r.ARN)
		case r.Service == "states" && r.Action == "startExecution" && !r.Token:
		case strings.HasPrefix(r.Service, "aws-sdk:"):
		default:
			return wire.Unsupported("states", "the task "+r.ARN)
		}
	}
	return nil
}

// task performs one task as the machine's role.
func (s *Service) task(ctx context.Context, x *execution, t asl.Task) (json.RawMessage, error) {
	if t.Token != "" {
		s.mu.Lock()
		s.waiting[t.Token] = x.MachineARN
		s.mu.Unlock()
	}
	caller, err := s.caller(x)
	if err != nil {
		return nil, &asl.Failure{Name: "States.Permissions", Cause: err.Error()}
	}
	switch {
	case t.Resource.Service == "lambda":
		return s.invoke(ctx, caller, t.Arguments)
	case t.Resource.Job:
		return s.runExecution(ctx, x, caller, t)
	case t.Resource.Service == "states":
		_, started, err := s.startExecution(caller, t.Arguments)
		return started, err
	}
	return s.call(ctx, caller, strings.TrimPrefix(t.Resource.Service, "aws-sdk:"), t.Resource.Action, t.Arguments)
}

// arguments decodes a task's arguments. It rejects an unknown argument by name.
func arguments(raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &asl.Failure{Name: "States.Runtime", Cause: "The task's arguments are not supported by the local account: " + err.Error()}
	}
	return nil
}

// metadata adds the members that each integration's result has.
func metadata(requestID string, result map[string]any) json.RawMessage {
	result["SdkHttpMetadata"] = map[string]any{"HttpStatusCode": 200}
	result["SdkResponseMetadata"] = map[string]any{"RequestId": requestID}
	return encode(result)
}

// encode returns JSON with sorted keys.
func encode(values map[string]any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(values) // JSON values
	return bytes.TrimSpace(b.Bytes())
}

// invoke performs arn:aws:states:::lambda:invoke.
// https://docs.aws.amazon.com/step-functions/latest/dg/connect-lambda.html
func (s *Service) invoke(ctx context.Context, caller iam.Caller, raw json.RawMessage) (json.RawMessage, error) {
	var in struct {
		FunctionName, InvocationType, Qualifier, ClientContext, LogType string
		Payload                                                         json.RawMessage
	}
	if err := arguments(raw, &in); err != nil {
		return nil, err
	}
	if in.Qualifier != "" || in.ClientContext != "" || in.LogType != "" {
		return nil, &asl.Failure{
			Name: "States.Runtime", Cause: "lambda:invoke with Qualifier, ClientContext or LogType is not supported by the local account",
		}
	}
	if s.config.Functions == nil {
		return nil, &asl.Failure{Name: "Lambda.ServiceException", Cause: "there are no functions"}
	}
	call := lambda.Invocation{Function: in.FunctionName, Payload: in.Payload}
	if in.InvocationType == "Event" {
		id, err := s.config.Functions.InvokeAsync(ctx, caller, call)
		if err != nil {
			return nil, serviceFailure("Lambda", "AWSLambda", err)
		}
		return metadata(id, map[string]any{"StatusCode": 202, "Payload": ""}), nil
	}
	r, err := s.config.Functions.Invoke(ctx, caller, call)
	switch {
	case err != nil:
		return nil, serviceFailure("Lambda", "AWSLambda", err)
	case r.FunctionError != "":
		var failure struct {
			ErrorType string `json:"errorType"`
		}
		if json.Unmarshal(r.Payload, &failure) != nil || failure.ErrorType == "" {
			failure.ErrorType = "Lambda.Unknown"
		}
		return nil, &asl.Failure{Name: failure.ErrorType, Cause: string(r.Payload)}
	}
	var payload any = json.RawMessage(r.Payload)
	if !json.Valid(r.Payload) {
		payload = string(r.Payload)
	}
	return metadata(r.RequestID, map[string]any{"ExecutedVersion": "$LATEST", "StatusCode": 200, "Payload": payload}), nil
}

// sdkNames are the prefixes of error names. Other services get theirs from the resource.
var sdkNames = map[string]string{"autoscaling": "AutoScaling", "cloudformation": "CloudFormation", "dynamodb": "DynamoDb"}

// call performs arn:aws:states:::aws-sdk:service:action.
// https://docs.aws.amazon.com/step-functions/latest/dg/supported-services-awssdk.html
func (s *Service) call(ctx context.Context, caller iam.Caller, service, action string, raw json.RawMessage) (json.RawMessage, error) {
	prefix := sdkNames[service]
	if prefix == "" {
		prefix = capital(service)
	}
	parameters := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&parameters); err != nil {
		return nil, &asl.Failure{Name: "States.Runtime", Cause: "The task's arguments are no JSON object"}
	}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if r := []rune(name); len(r) == 0 || !unicode.IsUpper(r[0]) {
			return nil, &asl.Failure{Name: "States.Runtime", Cause: fmt.Sprintf("The parameter '%s' is not in PascalCase.", name)}
		}
	}
	if s.config.SDK == nil {
		return nil, &asl.Failure{Name: "States.Runtime", Cause: "aws-sdk tasks are not supported by this account"}
	}
	result, err := s.config.SDK(ctx, caller, service, capital(action), parameters)
	if err != nil {
		return nil, serviceFailure(prefix, prefix, err)
	}
	out, err := json.Marshal(result)
	if err != nil {
		return nil, &asl.Failure{Name: "States.Runtime", Cause: err.Error()}
	}
	if string(out) == "null" {
		out = []byte("{}")
	}
	return out, nil
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// serviceFailure names an API's error as Step Functions does. Modeled exceptions keep their names; other errors get the
// service's general name. https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
func serviceFailure(prefix, general string, err error) error {
	var e *iam.Error
	if !errors.As(err, &e) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return &asl.Failure{Name: prefix + ".SdkClientException", Cause: err.Error()}
	}
	name := prefix + "." + general + "Exception"
	if code, ok := strings.CutSuffix(e.Code, "Fault"); ok {
		name = prefix + "." + code + "Exception"
	} else if strings.HasSuffix(e.Code, "Exception") && e.Code != "AccessDeniedException" {
		name = prefix + "." + e.Code
	}
	return &asl.Failure{
		Name: name, Cause: fmt.Sprintf("%s (Service: %s, Status Code: %d, Error Code: %s)", e.Message, prefix, e.HTTPStatus(), e.Code),
	}
}
