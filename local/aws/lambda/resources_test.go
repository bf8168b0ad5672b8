package lambda

import (
	"encoding/json"
	"maps"
	"runtime"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/resource"
)

// functionRequest returns a request for a function, as in the CDK app's template.
func (w *world) functionRequest() resource.Request {
	admin, _ := w.identities.Admin()
	w.objects["packages/fn.zip"] = w.zip
	return resource.Request{
		StackName: "drover", LogicalID: "Function", Caller: admin, Tags: map[string]string{"aws:cloudformation:stack-name": "drover"},
		Properties: map[string]any{
			"FunctionName": "fn", "Role": w.role, "Runtime": "provided.al2023", "Handler": "bootstrap", "Timeout": "10", "MemorySize": 128.0,
			"Architectures": []any{architectures[runtime.GOARCH]}, "Code": map[string]any{"S3Bucket": "packages", "S3Key": "fn.zip"},
			"Environment":      map[string]any{"Variables": map[string]any{"DROVER_STATE_BUCKET": "first"}},
			"LoggingConfig":    map[string]any{"LogFormat": "JSON", "LogGroup": "/aws/lambda/fn", "SystemLogLevel": "WARN"},
			"TracingConfig":    map[string]any{"Mode": "Active"},
			"DeadLetterConfig": map[string]any{"TargetArn": "arn:aws:sqs:eu-central-1:111122223333:dead"},
			"Tags":             []any{map[string]any{"Key": "a", "Value": "b"}}, "ReservedConcurrentExecutions": 5.0,
		},
	}
}

func TestFunctionResource(t *testing.T) {
	w := newWorld(t)
	provider := w.Resources()["AWS::Lambda::Function"]
	r := w.functionRequest()
	made, err := provider.Create(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "fn", made.PhysicalID)
	require.Equal(t, "arn:aws:lambda:eu-central-1:111122223333:function:fn", made.Attributes["Arn"])
	got, err := w.client.GetFunction(t.Context(), &sdk.GetFunctionInput{FunctionName: aws.String("fn")})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b", "aws:cloudformation:stack-name": "drover"}, got.Tags)
	require.EqualValues(t, 5, *got.Concurrency.ReservedConcurrentExecutions)
	require.Equal(t, "Active", string(got.Configuration.TracingConfig.Mode))
	variable := func() string {
		var got map[string]string
		require.NoError(t, json.Unmarshal(w.invoke(t, `{"do":"environment","text":"DROVER_STATE_BUCKET"}`).Payload, &got))
		return got["DROVER_STATE_BUCKET"]
	}
	require.Equal(t, "first", variable())

	_, err = provider.Create(t.Context(), r)
	require.ErrorContains(t, err, "Function already exist")

	r.PhysicalID, r.Old = made.PhysicalID, r.Properties
	r.Properties = maps.Clone(r.Properties)
	r.Properties["Environment"] = map[string]any{"Variables": map[string]any{"DROVER_STATE_BUCKET": "second"}}
	delete(r.Properties, "ReservedConcurrentExecutions")
	_, err = provider.Update(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "second", variable())
	got, err = w.client.GetFunction(t.Context(), &sdk.GetFunctionInput{FunctionName: aws.String("fn")})
	require.NoError(t, err)
	require.Nil(t, got.Concurrency)

	require.NoError(t, provider.Delete(t.Context(), r))
	require.NoError(t, provider.Delete(t.Context(), r), "deleting twice succeeds")
}

func TestFunctionResourceRefuses(t *testing.T) {
	w := newWorld(t)
	provider := w.Resources()["AWS::Lambda::Function"]
	for name, test := range map[string]struct {
		change func(*resource.Request)
		want   string
	}{
		"inline code": {func(r *resource.Request) {
			r.Properties["Code"] = map[string]any{"ZipFile": "exports = 1"}
		}, "[ZipFile] is not permitted"},
		"rejects an unknown property": {func(r *resource.Request) { r.Properties["Layers"] = []any{} }, "[Layers] is not permitted"},
		"a number as a variable": {func(r *resource.Request) {
			r.Properties["Environment"] = map[string]any{"Variables": map[string]any{"A_B": 1.0}}
		}, "expected type: String"},
		"another architecture": {func(r *resource.Request) {
			r.Properties["Architectures"] = []any{map[string]string{"amd64": "arm64", "arm64": "x86_64"}[runtime.GOARCH]}
		}, "does not support the architecture"},
		"a caller who may not": {func(r *resource.Request) {
			caller, _, err := w.identities.AssumeRoleAs(w.role, "cloudformation", "lambda.amazonaws.com")
			require.NoError(t, err)
			r.Caller = caller
		}, "lambda:CreateFunction"},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.functionRequest()
			test.change(&r)
			_, err := provider.Create(t.Context(), r)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestPermissionAndEventConfigResources(t *testing.T) {
	w := newWorld(t)
	_, err := w.Resources()["AWS::Lambda::Function"].Create(t.Context(), w.functionRequest())
	require.NoError(t, err)
	admin, _ := w.identities.Admin()
	const rule = "arn:aws:events:eu-central-1:111122223333:rule/specs"
	permissions := w.Resources()["AWS::Lambda::Permission"]
	p := resource.Request{StackName: "drover", LogicalID: "Allow", Caller: admin, Properties: map[string]any{
		"Action": "lambda:InvokeFunction", "FunctionName": "arn:aws:lambda:eu-central-1:111122223333:function:fn",
		"Principal": "events.amazonaws.com", "SourceArn": rule,
	}}
	made, err := permissions.Create(t.Context(), p)
	require.NoError(t, err)
	events := w.identities.ServiceCaller("events.amazonaws.com", rule)
	_, err = w.Invoke(t.Context(), events, Invocation{Function: "fn", Payload: []byte(`{"do":"echo"}`)})
	require.NoError(t, err)
	p.PhysicalID = made.PhysicalID
	require.NoError(t, permissions.Delete(t.Context(), p))
	_, err = w.Invoke(t.Context(), events, Invocation{Function: "fn", Payload: []byte(`{"do":"echo"}`)})
	var denied *iam.Error
	require.ErrorAs(t, err, &denied)

	configs := w.Resources()["AWS::Lambda::EventInvokeConfig"]
	c := resource.Request{StackName: "drover", LogicalID: "Retries", Caller: admin, Properties: map[string]any{
		"FunctionName": "fn", "Qualifier": "$LATEST", "MaximumRetryAttempts": 1.0, "MaximumEventAgeInSeconds": 3600.0,
		"DestinationConfig": map[string]any{"OnFailure": map[string]any{"Destination": "arn:aws:sqs:eu-central-1:111122223333:dead"}},
	}}
	_, err = configs.Create(t.Context(), c)
	require.NoError(t, err)
	got, err := w.client.GetFunctionEventInvokeConfig(t.Context(), &sdk.GetFunctionEventInvokeConfigInput{FunctionName: aws.String("fn")})
	require.NoError(t, err)
	require.EqualValues(t, 1, *got.MaximumRetryAttempts)
	c.Properties["MaximumRetryAttempts"] = 3.0
	_, err = configs.Update(t.Context(), c)
	require.ErrorContains(t, err, "between 0 and 2")
	require.NoError(t, configs.Delete(t.Context(), c))
	_, err = w.client.GetFunctionEventInvokeConfig(t.Context(), &sdk.GetFunctionEventInvokeConfigInput{FunctionName: aws.String("fn")})
	require.ErrorContains(t, err, "ResourceNotFoundException")
}
