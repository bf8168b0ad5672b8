package lambda

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
)

func TestInvoke(t *testing.T) {
	w := newWorld(t)
	created := w.create(t, func(in *sdk.CreateFunctionInput) {
		in.Timeout, in.Environment = aws.Int32(600), &types.Environment{Variables: map[string]string{"DROVER_STATE_BUCKET": "state"}}
	})
	require.Equal(t, "arn:aws:lambda:eu-central-1:111122223333:function:fn", *created.FunctionArn)

	t.Run("returns the result", func(t *testing.T) {
		out := w.invoke(t, `{"do":"echo","text":"grüße <&>"}`)
		require.Nil(t, out.FunctionError)
		require.Equal(t, `"grüße <&>"`, string(out.Payload))
		require.Equal(t, "$LATEST", *out.ExecutedVersion)
	})
	t.Run("reuses a warm environment", func(t *testing.T) {
		var first, second struct{ Served, PID int }
		require.NoError(t, json.Unmarshal(w.invoke(t, `{"do":"count"}`).Payload, &first))
		require.NoError(t, json.Unmarshal(w.invoke(t, `{"do":"count"}`).Payload, &second))
		require.Equal(t, first.PID, second.PID)
		require.Equal(t, first.Served+1, second.Served)
	})
	t.Run("sets the environment variables", func(t *testing.T) {
		for variable, want := range map[string]string{
			"DROVER_STATE_BUCKET": "state", "AWS_REGION": region, "_HANDLER": "bootstrap", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128",
			"AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/fn", "AWS_ENDPOINT_URL": w.config.Endpoint(),
		} {
			var got map[string]string
			require.NoError(t, json.Unmarshal(w.invoke(t, `{"do":"environment","text":"`+variable+`"}`).Payload, &got))
			require.Equal(t, want, got[variable], variable)
			require.Equal(t, "10m0s", got["left"], "to the minute")
			require.Equal(t, *created.FunctionArn, got["arn"])
			require.Len(t, got["request"], 36)
		}
	})
	t.Run("provides the role's credentials", func(t *testing.T) {
		var got map[string]string
		require.NoError(t, json.Unmarshal(w.invoke(t, `{"do":"environment","text":"AWS_ACCESS_KEY_ID"}`).Payload, &got))
		caller, _, _, err := w.identities.Caller(got["AWS_ACCESS_KEY_ID"])
		require.NoError(t, err)
		require.Equal(t, w.role, caller.RoleARN())
		require.Equal(t, "fn", caller.SessionName())
	})
	t.Run("keeps an error's name", func(t *testing.T) {
		out := w.invoke(t, `{"do":"fail","text":"slow down"}`)
		require.Equal(t, "Unhandled", *out.FunctionError)
		require.JSONEq(t, `{"errorType":"Throttled","errorMessage":"slow down"}`, string(out.Payload))
	})
	t.Run("names a wrapped error by its outermost type", func(t *testing.T) {
		require.Contains(t, string(w.invoke(t, `{"do":"wrap"}`).Payload), `"errorType":"wrapError"`)
	})
	t.Run("starts a new environment after a panic", func(t *testing.T) {
		out := w.invoke(t, `{"do":"panic","text":"ouch"}`)
		require.Equal(t, "Unhandled", *out.FunctionError)
		require.Contains(t, string(out.Payload), "ouch")
		require.Equal(t, `"well"`, string(w.invoke(t, `{"do":"echo","text":"well"}`).Payload))
	})
	t.Run("reports the exit status", func(t *testing.T) {
		out := w.invoke(t, `{"do":"exit"}`)
		require.Contains(t, string(out.Payload), `"errorType":"Runtime.ExitError"`)
		require.Contains(t, string(out.Payload), "Runtime exited with error: exit status 3")
	})
	t.Run("rejects a result over 6 MB", func(t *testing.T) {
		require.Len(t, w.invoke(t, `{"do":"large","size":6000000}`).Payload, 6000002)
		out := w.invoke(t, `{"do":"large","size":6291600}`)
		require.Contains(t, string(out.Payload), "Function.ResponseSizeTooLarge")
	})
	t.Run("rejects a payload that is not JSON", func(t *testing.T) {
		_, err := w.client.Invoke(t.Context(), &sdk.InvokeInput{FunctionName: aws.String("fn"), Payload: []byte("{")})
		require.ErrorContains(t, err, "InvalidRequestContentException")
	})
	t.Run("runs nothing in a dry run", func(t *testing.T) {
		out, err := w.client.Invoke(t.Context(), &sdk.InvokeInput{FunctionName: aws.String("fn"), InvocationType: types.InvocationTypeDryRun})
		require.NoError(t, err)
		require.EqualValues(t, 204, out.StatusCode)
	})
	t.Run("fails when the function does not exist", func(t *testing.T) {
		_, err := w.client.Invoke(t.Context(), &sdk.InvokeInput{FunctionName: aws.String("none")})
		var missing *types.ResourceNotFoundException
		require.ErrorAs(t, err, &missing)
	})
	t.Run("denies a caller without permission", func(t *testing.T) {
		_, c, err := w.identities.AssumeRoleAs(w.role, "other", "lambda.amazonaws.com")
		require.NoError(t, err)
		_, err = clientOf(w.config.Endpoint(), c).Invoke(t.Context(), &sdk.InvokeInput{FunctionName: aws.String("fn")})
		require.ErrorContains(t, err, "is not authorized to perform: lambda:InvokeFunction")
	})
}

func TestLogs(t *testing.T) {
	t.Run("writes text", func(t *testing.T) {
		w := newWorld(t)
		w.create(t, nil)
		out := w.invoke(t, `{"do":"print","text":"hello"}`)
		text := w.logs.text()
		require.Regexp(t,
			`(?s)^START RequestId: [-0-9a-f]{36} Version: \$LATEST\nhello\nand to stderr\nEND RequestId: .*\nREPORT RequestId: `+
				`.*\tDuration: [0-9.]+ ms\tBilled Duration: \d+ ms\tMemory Size: 128 MB\tMax Memory Used: [1-9]\d* MB\tInit Duration: `+
				`[0-9.]+ ms\t$`, text)
		require.Equal(t, "/aws/lambda/fn", w.logs.group)
		tail, err := base64.StdEncoding.DecodeString(*out.LogResult)
		require.NoError(t, err)
		require.Equal(t, text+"\n", string(tail))
		w.invoke(t, `{"do":"print","text":"again"}`)
		require.Equal(t, 1, strings.Count(w.logs.text(), "Init Duration"), "a warm start has no init phase")
	})
	t.Run("writes JSON to a configured group", func(t *testing.T) {
		w := newWorld(t)
		w.create(t, func(in *sdk.CreateFunctionInput) {
			in.LoggingConfig = &types.LoggingConfig{LogFormat: types.LogFormatJson, LogGroup: aws.String("drover")}
		})
		w.invoke(t, `{"do":"print","text":"hello"}`)
		require.Contains(t, w.logs.text(), `"type":"platform.report"`)
		require.NotContains(t, w.logs.text(), "REPORT RequestId")
		require.Equal(t, "drover", w.logs.group)
	})
	t.Run("loses lines for a group that does not exist", func(t *testing.T) {
		w := newWorld(t)
		w.create(t, nil)
		w.invoke(t, `{"do":"print","text":"hello"}`)
		w.logs.groups, w.logs.lines = map[string]bool{}, nil // nothing runs now
		w.invoke(t, `{"do":"print","text":"again"}`)
		require.Empty(t, w.logs.text())
		require.Empty(t, w.logs.groups)
	})
	t.Run("creates the group if its role may", func(t *testing.T) {
		w := newWorld(t)
		w.logs.groups = map[string]bool{}
		may := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"logs:CreateLogGroup",` +
			`"Resource":"arn:aws:logs:eu-central-1:111122223333:log-group:/aws/lambda/fn:*"}]}`
		require.NoError(t, w.identities.PutRolePolicy("function", "group", may))
		w.create(t, nil)
		w.invoke(t, `{"do":"print","text":"hello"}`)
		require.Contains(t, w.logs.text(), "hello")
	})
	t.Run("drops lines without permission", func(t *testing.T) {
		w := newWorld(t)
		require.NoError(t, w.identities.DeleteRolePolicy("function", "logs"))
		w.create(t, nil)
		w.invoke(t, `{"do":"print","text":"hello"}`)
		require.Empty(t, w.logs.text())
	})
}

func TestTimeout(t *testing.T) {
	w := newWorld(t)
	w.create(t, func(in *sdk.CreateFunctionInput) { in.Timeout = aws.Int32(1) })
	out := w.invoke(t, `{"do":"echo","sleep":60000}`)
	require.Contains(t, string(out.Payload), `"errorType":"Sandbox.Timedout"`)
	require.Contains(t, string(out.Payload), "Task timed out after 1.00 seconds")
	require.Eventually(t, func() bool { // a second is short on a busy machine
		return string(w.invoke(t, `{"do":"echo","text":"well"}`).Payload) == `"well"`
	}, time.Minute, time.Millisecond, "the next one has a new environment")
}

func TestInitExit(t *testing.T) {
	w := newWorld(t)
	w.create(t, func(in *sdk.CreateFunctionInput) {
		in.Environment = &types.Environment{Variables: map[string]string{"BROKEN_START": "yes"}}
	})
	out := w.invoke(t, `{}`)
	require.Contains(t, string(out.Payload), "Runtime exited with error: exit status 1")
	require.Contains(t, w.logs.text(), "cannot start")
}

func TestBrokenBootstrap(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string][]byte
		mode  os.FileMode
	}{
		"it is not there":       {map[string][]byte{"other": []byte("x")}, 0o755},
		"it may not be started": {map[string][]byte{"bootstrap": []byte("#!/bin/sh\n")}, 0o644},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var err error
			w.zip, err = archive(test.files, test.mode)
			require.NoError(t, err)
			w.create(t, nil)
			require.Contains(t, string(w.invoke(t, `{}`).Payload), `"errorType":"Runtime.InvalidEntrypoint"`)
		})
	}
}

func TestConcurrency(t *testing.T) {
	w := newWorld(t)
	w.create(t, func(in *sdk.CreateFunctionInput) { in.Timeout = aws.Int32(120) })
	pids := make(chan int, 3)
	payload := []byte(`{"do":"meet","text":"` + t.TempDir() + `","size":3}`) // no invocation ends before all have started
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			out, err := w.client.Invoke(context.Background(), &sdk.InvokeInput{FunctionName: aws.String("fn"), Payload: payload})
			if err == nil {
				var c struct{ PID int }
				_ = json.Unmarshal(out.Payload, &c)
				pids <- c.PID
			}
		})
	}
	group.Wait()
	close(pids)
	different := map[int]bool{}
	for pid := range pids {
		different[pid] = true
	}
	require.Len(t, different, 3, "each has its own environment while all run at once")
	require.Zero(t, w.Concurrency.unreservedTotal(), "all have ended")

	_, err := w.client.PutFunctionConcurrency(t.Context(), &sdk.PutFunctionConcurrencyInput{
		FunctionName: aws.String("fn"), ReservedConcurrentExecutions: aws.Int32(0),
	})
	require.NoError(t, err)
	_, err = w.client.Invoke(t.Context(), &sdk.InvokeInput{FunctionName: aws.String("fn")})
	var throttled *types.TooManyRequestsException
	require.ErrorAs(t, err, &throttled)
}

func TestKill(t *testing.T) {
	w := newWorld(t)
	w.create(t, nil)
	var got map[string]string
	require.NoError(t, json.Unmarshal(w.invoke(t, `{"do":"environment","text":"AWS_ACCESS_KEY_ID"}`).Payload, &got))
	done := make(chan *sdk.InvokeOutput, 1)
	go func() {
		out, _ := w.client.Invoke(context.Background(), &sdk.InvokeInput{
			FunctionName: aws.String("fn"), Payload: []byte(`{"do":"echo","sleep":60000}`),
		})
		done <- out
	}()
	require.Eventually(t, func() bool {
		f, err := w.find("fn")
		if err != nil {
			return false
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.busy) == 1
	}, time.Minute, time.Millisecond)
	require.True(t, w.Kill(got["AWS_ACCESS_KEY_ID"]))
	require.Contains(t, string((<-done).Payload), "signal: killed")
	require.False(t, w.Kill("AKIANOBODY"))
}

func TestAsynchronous(t *testing.T) {
	const queue = "arn:aws:sqs:eu-central-1:111122223333:dead"
	t.Run("sends a failed event to both queues after three runs", func(t *testing.T) {
		w := newWorld(t)
		w.create(t, func(in *sdk.CreateFunctionInput) {
			in.DeadLetterConfig = &types.DeadLetterConfig{TargetArn: aws.String(queue + "-letters")}
		})
		_, err := w.client.PutFunctionEventInvokeConfig(t.Context(), &sdk.PutFunctionEventInvokeConfigInput{
			FunctionName: aws.String("fn"), DestinationConfig: &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: aws.String(queue)}},
		})
		require.NoError(t, err)
		out, err := w.client.Invoke(t.Context(), &sdk.InvokeInput{
			FunctionName: aws.String("fn"), InvocationType: types.InvocationTypeEvent, Payload: []byte(`{"do":"fail","text":"no"}`),
		})
		require.NoError(t, err)
		require.EqualValues(t, 202, out.StatusCode)
		record := <-w.queues.sent
		require.Equal(t, queue, record.queue)
		var r struct {
			RequestContext struct {
				Condition              string
				ApproximateInvokeCount int
			}
			RequestPayload  struct{ Do string }
			ResponsePayload struct{ ErrorType string }
		}
		require.NoError(t, json.Unmarshal([]byte(record.body), &r))
		require.Equal(t, "RetriesExhausted", r.RequestContext.Condition)
		require.Equal(t, 3, r.RequestContext.ApproximateInvokeCount)
		require.Equal(t, "fail", r.RequestPayload.Do)
		require.Equal(t, "Throttled", r.ResponsePayload.ErrorType)
		letter := <-w.queues.sent
		require.Equal(t, queue+"-letters", letter.queue)
		require.JSONEq(t, `{"do":"fail","text":"no"}`, letter.body)
		require.Equal(t, "no", letter.attributes["ErrorMessage"])
		require.Equal(t, 3, strings.Count(w.logs.text(), "START RequestId"))
	})
	t.Run("runs an event once without retries", func(t *testing.T) {
		w := newWorld(t)
		w.create(t, nil)
		_, err := w.client.PutFunctionEventInvokeConfig(t.Context(), &sdk.PutFunctionEventInvokeConfigInput{
			FunctionName: aws.String("fn"), MaximumRetryAttempts: aws.Int32(0),
			DestinationConfig: &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: aws.String(queue)}},
		})
		require.NoError(t, err)
		_, err = w.client.Invoke(t.Context(), &sdk.InvokeInput{
			FunctionName: aws.String("fn"), InvocationType: types.InvocationTypeEvent, Payload: []byte(`{"do":"exit"}`),
		})
		require.NoError(t, err)
		require.Contains(t, (<-w.queues.sent).body, `"approximateInvokeCount":1`)
	})
	t.Run("rejects an event over 1 MB", func(t *testing.T) {
		w := newWorld(t)
		w.create(t, nil)
		_, err := w.client.Invoke(t.Context(), &sdk.InvokeInput{
			FunctionName: aws.String("fn"), InvocationType: types.InvocationTypeEvent, Payload: []byte(`"` + strings.Repeat("x", 1<<20) + `"`),
		})
		var large *types.RequestTooLargeException
		require.ErrorAs(t, err, &large)
	})
}

func TestPermissions(t *testing.T) {
	w := newWorld(t)
	w.create(t, nil)
	const rule = "arn:aws:events:eu-central-1:111122223333:rule/specs"
	call := func(source string) error {
		_, err := w.Invoke(t.Context(), w.identities.ServiceCaller("events.amazonaws.com", source), Invocation{
			Function: "fn", Payload: []byte(`{"do":"echo"}`),
		})
		return err
	}
	require.Error(t, call(rule), "no permission exists yet")
	in := &sdk.AddPermissionInput{
		FunctionName: aws.String("fn"), StatementId: aws.String("specs"), Action: aws.String("lambda:InvokeFunction"),
		Principal: aws.String("events.amazonaws.com"), SourceArn: aws.String(rule),
	}
	_, err := w.client.AddPermission(t.Context(), in)
	require.NoError(t, err)
	require.NoError(t, call(rule))
	require.Error(t, call(rule+"-other"), "the permission is for one rule")
	_, err = w.client.AddPermission(t.Context(), in)
	var exists *types.ResourceConflictException
	require.ErrorAs(t, err, &exists)
	policy, err := w.client.GetPolicy(t.Context(), &sdk.GetPolicyInput{FunctionName: aws.String("fn")})
	require.NoError(t, err)
	require.Contains(t, *policy.Policy, `"AWS:SourceArn":"`+rule+`"`)
	_, err = w.client.RemovePermission(t.Context(), &sdk.RemovePermissionInput{
		FunctionName: aws.String("fn"), StatementId: aws.String("specs"),
	})
	require.NoError(t, err)
	require.Error(t, call(rule))
}

func TestManage(t *testing.T) {
	w := newWorld(t)
	w.objects["packages/f.zip"] = w.zip
	w.create(t, func(in *sdk.CreateFunctionInput) {
		in.Code = &types.FunctionCode{S3Bucket: aws.String("packages"), S3Key: aws.String("f.zip")}
	})
	ctx := t.Context()
	before, err := w.client.GetFunction(ctx, &sdk.GetFunctionInput{
		FunctionName: aws.String("arn:aws:lambda:eu-central-1:111122223333:function:fn"),
	})
	require.NoError(t, err)
	require.EqualValues(t, len(w.zip), before.Configuration.CodeSize)
	var first, second struct{ PID int }
	require.NoError(t, json.Unmarshal(w.invoke(t, `{"do":"count"}`).Payload, &first))
	updated, err := w.client.UpdateFunctionConfiguration(ctx, &sdk.UpdateFunctionConfigurationInput{
		FunctionName: aws.String("fn"), MemorySize: aws.Int32(256), Timeout: aws.Int32(20),
	})
	require.NoError(t, err)
	require.EqualValues(t, 256, *updated.MemorySize)
	require.NotEqual(t, *before.Configuration.RevisionId, *updated.RevisionId)
	require.NoError(t, json.Unmarshal(w.invoke(t, `{"do":"count"}`).Payload, &second))
	require.NotEqual(t, first.PID, second.PID, "changed settings need a new environment")
	list, err := w.client.ListFunctions(ctx, &sdk.ListFunctionsInput{})
	require.NoError(t, err)
	require.Len(t, list.Functions, 1)
	_, err = w.client.GetFunction(ctx, &sdk.GetFunctionInput{FunctionName: aws.String("fn"), Qualifier: aws.String("7")})
	require.ErrorContains(t, err, "ResourceNotFoundException")
	_, err = w.client.DeleteFunction(ctx, &sdk.DeleteFunctionInput{FunctionName: aws.String("fn")})
	require.NoError(t, err)
	_, err = w.client.GetFunctionConfiguration(ctx, &sdk.GetFunctionConfigurationInput{FunctionName: aws.String("fn")})
	require.ErrorContains(t, err, "ResourceNotFoundException")
}

func TestCreateRefuses(t *testing.T) {
	w := newWorld(t)
	other := map[string]types.Architecture{"amd64": "arm64", "arm64": "x86_64"}[runtime.GOARCH]
	up, err := archive(map[string][]byte{"../bootstrap": []byte("x")}, 0o755)
	require.NoError(t, err)
	for name, test := range map[string]struct {
		change func(*sdk.CreateFunctionInput)
		want   string
	}{
		"another architecture": {func(in *sdk.CreateFunctionInput) {
			in.Architectures = []types.Architecture{other}
		}, "does not support the architecture " + string(other)},
		"another runtime": {func(in *sdk.CreateFunctionInput) {
			in.Runtime = types.RuntimePython312
		}, "does not support the runtime python3.12"},
		"rejects an unknown parameter": {func(in *sdk.CreateFunctionInput) { in.Layers = []string{"arn:aws:lambda:x"} }, "the parameter Layers"},
		"too little memory":            {func(in *sdk.CreateFunctionInput) { in.MemorySize = aws.Int32(64) }, "MemorySize 64"},
		"too long a timeout":           {func(in *sdk.CreateFunctionInput) { in.Timeout = aws.Int32(901) }, "Timeout 901"},
		"a role that is not there": {func(in *sdk.CreateFunctionInput) {
			in.Role = aws.String("arn:aws:iam::111122223333:role/none")
		}, "cannot be assumed by Lambda"},
		"a reserved variable": {func(in *sdk.CreateFunctionInput) {
			in.Environment = &types.Environment{Variables: map[string]string{"AWS_REGION": "x"}}
		}, "reserved keys"},
		"too large an environment": {func(in *sdk.CreateFunctionInput) {
			in.Environment = &types.Environment{Variables: map[string]string{"BIG": strings.Repeat("x", 4096)}}
		}, "4KB"},
		"what is no archive": {func(in *sdk.CreateFunctionInput) {
			in.Code = &types.FunctionCode{ZipFile: []byte("no")}
		}, "Could not unzip"},
		"an archive that leads out": {func(in *sdk.CreateFunctionInput) { in.Code = &types.FunctionCode{ZipFile: up} }, "leads out"},
		"a package that is nowhere": {func(in *sdk.CreateFunctionInput) {
			in.Code = &types.FunctionCode{S3Bucket: aws.String("b"), S3Key: aws.String("k")}
		}, "NoSuchKey"},
		"a topic for dead letters": {func(in *sdk.CreateFunctionInput) {
			in.DeadLetterConfig = &types.DeadLetterConfig{TargetArn: aws.String("arn:aws:sns:eu-central-1:111122223333:t")}
		}, "dead-letter target"},
	} {
		t.Run(name, func(t *testing.T) {
			in := &sdk.CreateFunctionInput{
				FunctionName: aws.String("g"), Role: aws.String(w.role), Runtime: types.RuntimeProvidedal2023, Handler: aws.String("bootstrap"),
				Architectures: []types.Architecture{types.Architecture(architectures[runtime.GOARCH])}, Code: &types.FunctionCode{ZipFile: w.zip},
			}
			test.change(in)
			_, err := w.client.CreateFunction(t.Context(), in)
			var api smithy.APIError
			require.ErrorAs(t, err, &api)
			require.ErrorContains(t, err, test.want)
		})
	}
}
