package stepfunctions

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
)

const (
	account = "111122223333"
	region  = "eu-central-1"
	trust   = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"states.amazonaws.com"},` +
		`"Action":"sts:AssumeRole"}]}`
	authorizedMachine = `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":"lambda:InvokeFunction","Resource":"arn:aws:lambda:eu-central-1:111122223333:function:good*"},
		{"Effect":"Allow","Action":"states:StartExecution","Resource":"arn:aws:states:eu-central-1:111122223333:stateMachine:child"}]}`
)

// functions are Go functions in this process. Package lambda tests the API.
type functions map[string]func(payload []byte) (lambda.Result, error)

func (f functions) Invoke(_ context.Context, caller iam.Caller, in lambda.Invocation) (lambda.Result, error) {
	arn := "arn:aws:lambda:eu-central-1:111122223333:function:" + in.Function
	if err := caller.Authorize("lambda:InvokeFunction", arn, nil); err != nil {
		return lambda.Result{}, err
	}
	do := f[in.Function]
	if do == nil {
		return lambda.Result{}, &iam.Error{Code: "ResourceNotFoundException", Message: "Function not found: " + arn, Status: 404}
	}
	return do(in.Payload)
}

func (f functions) InvokeAsync(context.Context, iam.Caller, lambda.Invocation) (string, error) {
	return "request", nil
}

type event struct {
	source, kind string
	resources    []string
	detail       map[string]any
}

type world struct {
	*Service
	identities *iam.Service
	client     *sfn.Client
	url        string
	role       string
	functions  functions
	events     chan event

	mu      sync.Mutex
	metrics map[string]float64
	logs    []string
}

func (w *world) WriteLog(group, _, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs = append(w.logs, group+" "+line)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		identities: iam.New(account, region, nil), functions: functions{}, events: make(chan event, 100), metrics: map[string]float64{},
	}
	role, err := w.identities.CreateRole(iam.Role{Name: "machine", TrustDocument: trust})
	require.NoError(t, err)
	require.NoError(t, w.identities.PutRolePolicy("machine", "p", authorizedMachine))
	w.role = w.identities.RoleARN(role)
	w.Service = New(Config{
		Account: account, Region: region, Roles: w.identities, Functions: w.functions, Logs: w,
		Emit: func(_ context.Context, source, kind string, resources []string, detail any) {
			raw, err := json.Marshal(detail)
			if err != nil {
				panic(err)
			}
			e := event{source: source, kind: kind, resources: resources}
			_ = json.Unmarshal(raw, &e.detail)
			w.events <- e
		},
		Metric: func(_, name string, _ map[string]string, value float64, _ string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.metrics[name] += value
		},
		SDK: func(_ context.Context, _ iam.Caller, service, action string, parameters map[string]any) (any, error) {
			if parameters["InstanceId"] == "i-missing" {
				return nil, &iam.Error{Code: "ValidationError", Message: "No active Lifecycle Action found", Status: 400}
			}
			if parameters["InstanceId"] == "i-busy" {
				return nil, &iam.Error{Code: "ResourceContentionFault", Message: "busy", Status: 500}
			}
			return map[string]any{"Called": service + ":" + action}, nil
		},
	})
	t.Cleanup(w.Close)
	ep := endpoint.New(w.identities, nil)
	ep.Handle(w.Wire())
	server := httptest.NewServer(ep)
	t.Cleanup(server.Close)
	w.url = server.URL
	_, admin := w.identities.Admin()
	w.client = w.caller(admin)
	return w
}

func (w *world) caller(c iam.Credentials) *sfn.Client {
	return sfn.New(sfn.Options{
		Region: region, BaseEndpoint: aws.String(w.url), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken),
	})
}

func (w *world) create(t *testing.T, name, states string) string {
	t.Helper()
	out, err := w.client.CreateStateMachine(t.Context(), &sfn.CreateStateMachineInput{
		Name: aws.String(name), RoleArn: aws.String(w.role), Definition: aws.String(`{"QueryLanguage":"JSONata","StartAt":"A","States":{` +
			states + `}}`),
	})
	require.NoError(t, err)
	return *out.StateMachineArn
}

// run starts an execution and waits for its last event.
func (w *world) run(t *testing.T, machine, input string) *sfn.DescribeExecutionOutput {
	t.Helper()
	out, err := w.client.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: aws.String(machine), Input: aws.String(input)})
	require.NoError(t, err)
	return w.end(t, *out.ExecutionArn)
}

func (w *world) end(t *testing.T, execution string) *sfn.DescribeExecutionOutput {
	t.Helper()
	for e := range w.events {
		if e.resources[0] == execution && e.detail["status"] != "RUNNING" {
			break
		}
	}
	x, err := w.client.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: aws.String(execution)})
	require.NoError(t, err)
	return x
}

func task(function string) string {
	return `"A":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Arguments":{"FunctionName":"` + function +
		`","Payload":"{% $states.input %}"},"End":true}`
}

func TestExecution(t *testing.T) {
	w := newWorld(t)
	w.functions["good"] = func(payload []byte) (lambda.Result, error) {
		return lambda.Result{RequestID: "r", Payload: []byte(`{"got":` + string(payload) + `}`)}, nil
	}
	machine := w.create(t, "m", strings.Replace(task("good"), `"End":true`, `"Output":"{% $states.result.Payload %}","End":true`, 1))
	require.Equal(t, "arn:aws:states:eu-central-1:111122223333:stateMachine:m", machine)
	start, err := w.client.StartExecution(t.Context(), &sfn.StartExecutionInput{
		StateMachineArn: aws.String(machine), Name: aws.String("first"), Input: aws.String(`{"a": 1}`),
	})
	require.NoError(t, err)
	require.Equal(t, "arn:aws:states:eu-central-1:111122223333:execution:m:first", *start.ExecutionArn)

	begun := <-w.events
	require.Equal(t, "aws.states", begun.source)
	require.Equal(t, "Step Functions Execution Status Change", begun.kind)
	require.Equal(t, map[string]any{
		"executionArn": *start.ExecutionArn, "stateMachineArn": machine, "name": "first", "status": "RUNNING",
		"startDate": begun.detail["startDate"],
		"stopDate":  nil, "input": `{"a": 1}`, "inputDetails": map[string]any{"included": true}, "output": nil, "outputDetails": nil,
		"error": nil, "cause": nil,
	}, begun.detail)
	ended := <-w.events
	require.Equal(t, "SUCCEEDED", ended.detail["status"])
	require.Equal(t, `{"got":{"a":1}}`, ended.detail["output"])

	x, err := w.client.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: start.ExecutionArn})
	require.NoError(t, err)
	require.Equal(t, types.ExecutionStatusSucceeded, x.Status)
	require.Equal(t, `{"got":{"a":1}}`, *x.Output)
	require.WithinDuration(t, time.Now(), *x.StopDate, time.Minute)
	require.Equal(t, 1, w.Executions()[0].Transitions)

	h, err := w.client.GetExecutionHistory(t.Context(), &sfn.GetExecutionHistoryInput{ExecutionArn: start.ExecutionArn, MaxResults: 4})
	require.NoError(t, err)
	require.Equal(t, types.HistoryEventTypeTaskStateEntered, h.Events[1].Type)
	require.Equal(t, "A", *h.Events[1].StateEnteredEventDetails.Name)
	require.Equal(t, `{"a":1}`, *h.Events[1].StateEnteredEventDetails.Input)
	require.Equal(t, "lambda", *h.Events[2].TaskScheduledEventDetails.ResourceType)
	require.WithinDuration(t, time.Now(), *h.Events[0].Timestamp, time.Minute)
	rest, err := w.client.GetExecutionHistory(t.Context(), &sfn.GetExecutionHistoryInput{
		ExecutionArn: start.ExecutionArn, NextToken: h.NextToken,
	})
	require.NoError(t, err)
	require.Len(t, rest.Events, 3)
	back, err := w.client.GetExecutionHistory(t.Context(), &sfn.GetExecutionHistoryInput{ExecutionArn: start.ExecutionArn, ReverseOrder: true})
	require.NoError(t, err)
	require.Equal(t, types.HistoryEventTypeExecutionSucceeded, back.Events[0].Type)
	require.Equal(t, `{"got":{"a":1}}`, *back.Events[0].ExecutionSucceededEventDetails.Output)

	list, err := w.client.ListExecutions(t.Context(), &sfn.ListExecutionsInput{
		StateMachineArn: aws.String(machine), StatusFilter: types.ExecutionStatusRunning,
	})
	require.NoError(t, err)
	require.Empty(t, list.Executions)
	list, err = w.client.ListExecutions(t.Context(), &sfn.ListExecutionsInput{StateMachineArn: aws.String(machine)})
	require.NoError(t, err)
	require.Len(t, list.Executions, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Equal(t, 1.0, w.metrics["ExecutionsStarted"])
	require.Equal(t, 1.0, w.metrics["ExecutionsSucceeded"])
	require.Zero(t, w.metrics["ExecutionsFailed"])
}

func TestExecutionNames(t *testing.T) {
	w := newWorld(t)
	machine := w.create(t, "m", `"A":{"Type":"Wait","Seconds":3600,"End":true}`)
	start := func(input string) (*sfn.StartExecutionOutput, error) {
		return w.client.StartExecution(t.Context(), &sfn.StartExecutionInput{
			StateMachineArn: aws.String(machine), Name: aws.String("n"), Input: aws.String(input),
		})
	}
	first, err := start(`{"a":1}`)
	require.NoError(t, err)
	again, err := start(`{"a":1}`)
	require.NoError(t, err)
	require.Equal(t, first.ExecutionArn, again.ExecutionArn)
	require.Equal(t, first.StartDate, again.StartDate)
	var exists *types.ExecutionAlreadyExists
	_, err = start(`{"a":2}`)
	require.ErrorAs(t, err, &exists, "another input")
	_, err = w.client.StopExecution(t.Context(), &sfn.StopExecutionInput{
		ExecutionArn: first.ExecutionArn, Error: aws.String("Operator"), Cause: aws.String("enough"),
	})
	require.NoError(t, err)
	x := w.end(t, *first.ExecutionArn)
	require.Equal(t, types.ExecutionStatusAborted, x.Status)
	require.Equal(t, "Operator", *x.Error)
	_, err = start(`{"a":1}`)
	require.ErrorAs(t, err, &exists, "the same input, but it is over")
}

func TestTasks(t *testing.T) {
	w := newWorld(t)
	w.functions["good"] = func([]byte) (lambda.Result, error) {
		return lambda.Result{RequestID: "r", Payload: []byte(`"well"`)}, nil
	}
	w.functions["good-fails"] = func([]byte) (lambda.Result, error) {
		return lambda.Result{FunctionError: "Unhandled", Payload: []byte(`{"errorType":"Throttled","errorMessage":"slow"}`)}, nil
	}
	w.functions["good-unknown"] = func([]byte) (lambda.Result, error) {
		return lambda.Result{FunctionError: "Unhandled", Payload: []byte(`null`)}, nil
	}
	w.functions["good-throttled"] = func([]byte) (lambda.Result, error) {
		return lambda.Result{}, &iam.Error{Code: "TooManyRequestsException", Message: "Rate Exceeded.", Status: 429}
	}
	w.functions["good-lost"] = func([]byte) (lambda.Result, error) { return lambda.Result{}, errors.New("connection reset") }
	w.functions["forbidden"] = w.functions["good"]
	child := w.create(t, "child", `"A":{"Type":"Succeed"}`)
	sdk := func(instance string) string {
		return `"A":{"Type":"Task","Resource":"arn:aws:states:::aws-sdk:autoscaling:completeLifecycleAction","Arguments":{"InstanceId":"` +
			instance + `"},"End":true}`
	}
	for name, test := range map[string]struct{ states, output, fault string }{
		"a function's answer has its wrapping": {
			task("good"),
			`{"ExecutedVersion":"$LATEST","Payload":"well","SdkHttpMetadata":{"HttpStatusCode":200},` +
				`"SdkResponseMetadata":{"RequestId":"r"},"StatusCode":200}`, "",
		},
		"a function's error is the error": {task("good-fails"), "", "Throttled"},
		"an error without a type":         {task("good-unknown"), "", "Lambda.Unknown"},
		"a throttle of Lambda":            {task("good-throttled"), "", "Lambda.TooManyRequestsException"},
		"a function that is not there":    {task("good-bye"), "", "Lambda.ResourceNotFoundException"},
		"a lost connection":               {task("good-lost"), "", "Lambda.SdkClientException"},
		"a role that may not":             {task("forbidden"), "", "Lambda.AWSLambdaException"},
		"an unknown parameter": {
			strings.Replace(task("good"), `"FunctionName"`, `"Async":true,"FunctionName"`, 1), "", "States.Runtime",
		},
		"an SDK call":                        {sdk("i-1"), `{"Called":"autoscaling:CompleteLifecycleAction"}`, ""},
		"an SDK error that is not modeled":   {sdk("i-missing"), "", "AutoScaling.AutoScalingException"},
		"an SDK error that is":               {sdk("i-busy"), "", "AutoScaling.ResourceContentionException"},
		"an SDK parameter in the wrong case": {strings.Replace(sdk("i-1"), "InstanceId", "instanceId", 1), "", "States.Runtime"},
		"another execution": {
			`"A":{"Type":"Task","Resource":"arn:aws:states:::states:startExecution","Arguments":{"StateMachineArn":"` + child +
				`","Name":"c","Input":{"a":1}},"Output":"{% $states.result.ExecutionArn %}","End":true}`,
			`"arn:aws:states:eu-central-1:111122223333:execution:child:c"`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			machine := w.create(t, strings.NewReplacer(" ", "-", "'", "").Replace(name), test.states)
			x := w.run(t, machine, `{}`)
			if test.fault != "" {
				require.Equal(t, types.ExecutionStatusFailed, x.Status)
				require.Equal(t, test.fault, *x.Error, *x.Cause)
				return
			}
			require.Equal(t, types.ExecutionStatusSucceeded, x.Status, "%v %v", x.Error, x.Cause)
			require.Equal(t, test.output, *x.Output)
		})
	}
}

func TestTaskTokens(t *testing.T) {
	w := newWorld(t)
	tokens := make(chan string, 1)
	w.functions["good"] = func(payload []byte) (lambda.Result, error) {
		var token string
		_ = json.Unmarshal(payload, &token)
		tokens <- token
		return lambda.Result{Payload: []byte(`null`)}, nil
	}
	machine := w.create(t, "m",
		`"A":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke.waitForTaskToken","Arguments":{"FunctionName":"good",`+
			`"Payload":"{% $states.context.Task.Token %}"},"End":true}`)
	begin := func() (string, string) {
		out, err := w.client.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: aws.String(machine)})
		require.NoError(t, err)
		return *out.ExecutionArn, <-tokens
	}
	execution, token := begin()
	_, err := w.client.SendTaskHeartbeat(t.Context(), &sfn.SendTaskHeartbeatInput{TaskToken: aws.String(token)})
	require.NoError(t, err)

	other, err := w.identities.CreateRole(iam.Role{Name: "other", TrustDocument: trust})
	require.NoError(t, err)
	_, c, err := w.identities.AssumeRoleAs(w.identities.RoleARN(other), "other", "states.amazonaws.com")
	require.NoError(t, err)
	_, err = w.caller(c).SendTaskSuccess(t.Context(), &sfn.SendTaskSuccessInput{TaskToken: aws.String(token), Output: aws.String(`1`)})
	require.ErrorContains(t, err, "not authorized to perform: states:SendTaskSuccess on resource: "+machine)

	_, err = w.client.SendTaskSuccess(t.Context(), &sfn.SendTaskSuccessInput{TaskToken: aws.String(token), Output: aws.String(`{`)})
	var output *types.InvalidOutput
	require.ErrorAs(t, err, &output)
	_, err = w.client.SendTaskSuccess(t.Context(), &sfn.SendTaskSuccessInput{
		TaskToken: aws.String(token), Output: aws.String(`{"done":true}`),
	})
	require.NoError(t, err)
	require.Equal(t, `{"done":true}`, *w.end(t, execution).Output)
	_, err = w.client.SendTaskSuccess(t.Context(), &sfn.SendTaskSuccessInput{TaskToken: aws.String(token), Output: aws.String(`1`)})
	var ended *types.TaskTimedOut
	require.ErrorAs(t, err, &ended)

	execution, token = begin()
	_, err = w.client.SendTaskFailure(t.Context(), &sfn.SendTaskFailureInput{
		TaskToken: aws.String(token), Error: aws.String("StackFailed"), Cause: aws.String("no"),
	})
	require.NoError(t, err)
	require.Equal(t, "StackFailed", *w.end(t, execution).Error)

	var invalid *types.InvalidToken
	_, err = w.client.SendTaskHeartbeat(t.Context(), &sfn.SendTaskHeartbeatInput{TaskToken: aws.String("nonsense")})
	require.ErrorAs(t, err, &invalid)
	var unknown *types.TaskDoesNotExist
	_, err = w.client.SendTaskHeartbeat(t.Context(), &sfn.SendTaskHeartbeatInput{TaskToken: aws.String(strings.Repeat("A", 64))})
	require.ErrorAs(t, err, &unknown)
}

func TestMachines(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	machine := w.create(t, "m", `"A":{"Type":"Succeed"}`)
	require.Equal(t, machine, w.create(t, "m", `"A":{"Type":"Succeed"}`), "the same machine again")
	before, err := w.client.DescribeStateMachine(ctx, &sfn.DescribeStateMachineInput{StateMachineArn: aws.String(machine)})
	require.NoError(t, err)
	require.Equal(t, types.StateMachineTypeStandard, before.Type)
	updated, err := w.client.UpdateStateMachine(ctx, &sfn.UpdateStateMachineInput{
		StateMachineArn: aws.String(machine),
		Definition:      aws.String(`{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Succeed","Output":2}}}`),
	})
	require.NoError(t, err)
	require.NotEqual(t, *before.RevisionId, *updated.RevisionId)
	require.Equal(t, `2`, *w.run(t, machine, `{}`).Output)
	list, err := w.client.ListStateMachines(ctx, &sfn.ListStateMachinesInput{})
	require.NoError(t, err)
	require.Len(t, list.StateMachines, 1)
	_, err = w.client.TagResource(ctx, &sfn.TagResourceInput{
		ResourceArn: aws.String(machine), Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}},
	})
	require.NoError(t, err)
	tags, err := w.client.ListTagsForResource(ctx, &sfn.ListTagsForResourceInput{ResourceArn: aws.String(machine)})
	require.NoError(t, err)
	require.Equal(t, "v", *tags.Tags[0].Value)
	valid, err := w.client.ValidateStateMachineDefinition(ctx, &sfn.ValidateStateMachineDefinitionInput{
		Definition: aws.String(`{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Pass","Next":"B"}}}`),
	})
	require.NoError(t, err)
	require.Equal(t, types.ValidateStateMachineDefinitionResultCodeFail, valid.Result)
	require.Equal(t, "MISSING_TRANSITION_TARGET", *valid.Diagnostics[0].Code)
	require.Equal(t, "/States/A/Next", *valid.Diagnostics[0].Location)
	_, err = w.client.DeleteStateMachine(ctx, &sfn.DeleteStateMachineInput{StateMachineArn: aws.String(machine)})
	require.NoError(t, err)
	_, err = w.client.DescribeStateMachine(ctx, &sfn.DescribeStateMachineInput{StateMachineArn: aws.String(machine)})
	var missing *types.StateMachineDoesNotExist
	require.ErrorAs(t, err, &missing)
}

func TestLogs(t *testing.T) {
	w := newWorld(t)
	out, err := w.client.CreateStateMachine(t.Context(), &sfn.CreateStateMachineInput{
		Name: aws.String("m"), RoleArn: aws.String(w.role),
		Definition: aws.String(`{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Fail","Error":"X"}}}`),
		LoggingConfiguration: &types.LoggingConfiguration{Level: types.LogLevelError, IncludeExecutionData: true,
			Destinations: []types.LogDestination{
				{CloudWatchLogsLogGroup: &types.CloudWatchLogsLogGroup{
					LogGroupArn: aws.String("arn:aws:logs:eu-central-1:111122223333:log-group:/aws/vendedlogs/states/m:*"),
				}},
			}},
	})
	require.NoError(t, err)
	w.run(t, *out.StateMachineArn, `{}`)
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Len(t, w.logs, 2)
	require.Contains(t, w.logs[0], `/aws/vendedlogs/states/m {`)
	require.Contains(t, w.logs[0], `"type":"FailStateEntered"`)
	require.Contains(t, w.logs[1], `"type":"ExecutionFailed"`)
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	machine := w.create(t, "m", `"A":{"Type":"Succeed"}`)
	stranger, err := w.identities.CreateRole(iam.Role{Name: "stranger", TrustDocument: strings.Replace(trust, "states.", "lambda.", 1)})
	require.NoError(t, err)
	create := func(change func(*sfn.CreateStateMachineInput)) func() error {
		return func() error {
			in := &sfn.CreateStateMachineInput{
				Name: aws.String("n"), RoleArn: aws.String(w.role),
				Definition: aws.String(`{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Succeed"}}}`),
			}
			change(in)
			_, err := w.client.CreateStateMachine(t.Context(), in)
			return err
		}
	}
	start := func(change func(*sfn.StartExecutionInput)) func() error {
		return func() error {
			in := &sfn.StartExecutionInput{StateMachineArn: aws.String(machine)}
			change(in)
			_, err := w.client.StartExecution(t.Context(), in)
			return err
		}
	}
	for name, test := range map[string]struct {
		do   func() error
		code string
	}{
		"an Express machine": {create(func(in *sfn.CreateStateMachineInput) {
			in.Type = types.StateMachineTypeExpress
		}), "UnsupportedByLocalAccount"},
		"a wrong definition": {create(func(in *sfn.CreateStateMachineInput) { in.Definition = aws.String(`{}`) }), "InvalidDefinition"},
		"a task that is not there": {create(func(in *sfn.CreateStateMachineInput) {
			in.Definition =
				aws.String(`{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Task",` +
					`"Resource":"arn:aws:states:::sns:publish","End":true}}}`)
		}), "UnsupportedByLocalAccount"},
		"a job of another service": {create(func(in *sfn.CreateStateMachineInput) {
			in.Definition =
				aws.String(`{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Task",` +
					`"Resource":"arn:aws:states:::ecs:runTask.sync:2","End":true}}}`)
		}), "UnsupportedByLocalAccount"},
		"a role for another service": {create(func(in *sfn.CreateStateMachineInput) {
			in.RoleArn = aws.String(w.identities.RoleARN(stranger))
		}), "AccessDeniedException"},
		"another definition": {create(func(in *sfn.CreateStateMachineInput) {
			in.Name = aws.String("m")
			in.Definition = aws.String(`{"QueryLanguage":"JSONata","StartAt":"B","States":{"B":{"Type":"Succeed"}}}`)
		}), "StateMachineAlreadyExists"},
		"a name with a space": {create(func(in *sfn.CreateStateMachineInput) { in.Name = aws.String("a b") }), "InvalidName"},
		"logging without a group": {create(func(in *sfn.CreateStateMachineInput) {
			in.LoggingConfiguration = &types.LoggingConfiguration{Level: types.LogLevelAll}
		}), "InvalidLoggingConfiguration"},
		"a version":                {create(func(in *sfn.CreateStateMachineInput) { in.Publish = true }), "UnsupportedByLocalAccount"},
		"an input that is no JSON": {start(func(in *sfn.StartExecutionInput) { in.Input = aws.String(`{`) }), "InvalidExecutionInput"},
		"an input over 256 KiB": {start(func(in *sfn.StartExecutionInput) {
			in.Input = aws.String(`"` + strings.Repeat("x", 256*1024) + `"`)
		}), "ValidationException"},
		"a name over 80 characters": {start(func(in *sfn.StartExecutionInput) { in.Name = aws.String(strings.Repeat("x", 81)) }), "InvalidName"},
		"a machine that is nowhere": {start(func(in *sfn.StartExecutionInput) {
			in.StateMachineArn = aws.String(machine + "x")
		}), "StateMachineDoesNotExist"},
		"an execution that is nowhere": {func() error {
			_, err := w.client.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{
				ExecutionArn: aws.String("arn:aws:states:eu-central-1:111122223333:execution:m:none"),
			})
			return err
		}, "ExecutionDoesNotExist"},
		"a redrive": {func() error {
			_, err := w.client.RedriveExecution(t.Context(), &sfn.RedriveExecutionInput{ExecutionArn: aws.String("x")})
			return err
		}, "UnsupportedByLocalAccount"},
		"a caller without permission": {func() error {
			_, c, err := w.identities.AssumeRoleAs(w.role, "other", "states.amazonaws.com")
			require.NoError(t, err)
			_, err = w.caller(c).StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: aws.String(machine)})
			return err
		}, "AccessDeniedException"},
	} {
		t.Run(name, func(t *testing.T) {
			var api smithy.APIError
			require.ErrorAs(t, test.do(), &api)
			require.Equal(t, test.code, api.ErrorCode(), api.ErrorMessage())
		})
	}
}

func TestStateMachineResource(t *testing.T) {
	w := newWorld(t)
	provider := w.Resources()["AWS::StepFunctions::StateMachine"]
	admin, _ := w.identities.Admin()
	request := resource.Request{
		StackName: "drover", LogicalID: "Converge", Caller: admin, Tags: map[string]string{"aws:cloudformation:stack-name": "drover"},
		Properties: map[string]any{
			"StateMachineName": "m", "RoleArn": w.role, "StateMachineType": "STANDARD", "TracingConfiguration": map[string]any{"Enabled": true},
			"DefinitionString":        `{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Succeed","Output":"${answer}"}}}`,
			"DefinitionSubstitutions": map[string]any{"answer": "first"},
			"LoggingConfiguration": map[string]any{"Level": "ERROR", "IncludeExecutionData": true, "Destinations": []any{
				map[string]any{"CloudWatchLogsLogGroup": map[string]any{"LogGroupArn": "arn:aws:logs:eu-central-1:111122223333:log-group:g:*"}},
			}},
		},
	}
	result, err := provider.Create(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "arn:aws:states:eu-central-1:111122223333:stateMachine:m", result.PhysicalID)
	require.Equal(t, "m", result.Attributes["Name"])
	require.Equal(t, `"first"`, *w.run(t, result.PhysicalID, `{}`).Output)
	_, err = provider.Create(t.Context(), request)
	require.ErrorContains(t, err, "already exists")
	request.PhysicalID = result.PhysicalID
	request.Properties["DefinitionSubstitutions"] = map[string]any{"answer": "second"}
	_, err = provider.Update(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, `"second"`, *w.run(t, result.PhysicalID, `{}`).Output)
	request.Properties["StateMachineVersion"] = "1"
	_, err = provider.Update(t.Context(), request)
	require.ErrorContains(t, err, "StateMachineVersion")
	require.NoError(t, provider.Delete(t.Context(), request))
	require.NoError(t, provider.Delete(t.Context(), request), "deleting twice succeeds")
}
