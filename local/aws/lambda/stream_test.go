package lambda

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
)

// endedResponse is a response that has ended.
type endedResponse struct {
	body   string
	chunks int
	end    *types.InvokeWithResponseStreamCompleteEvent
}

// stream invokes the function. The SDK closes the body of a request once the response begins. If net/http is still reading that body, it
// closes the connection, and the response breaks off: https://github.com/aws/aws-sdk-go-v2/issues/2737. Then stream invokes again.
func (w *world) stream(t *testing.T, event string) (got endedResponse) {
	t.Helper()
	var err error
	for range 5 {
		if got, err = w.streamOnce(t, event); !errors.Is(err, net.ErrClosed) {
			break
		}
	}
	require.NoError(t, err)
	require.NotNil(t, got.end, "there was no InvokeComplete")
	return got
}

func (w *world) streamOnce(t *testing.T, event string) (got endedResponse, err error) {
	t.Helper()
	out, err := w.client.InvokeWithResponseStream(t.Context(), &sdk.InvokeWithResponseStreamInput{
		FunctionName: aws.String("fn"), Payload: []byte(event), LogType: types.LogTypeTail,
	})
	require.NoError(t, err)
	require.Equal(t, "$LATEST", *out.ExecutedVersion)
	defer out.GetStream().Close()
	for e := range out.GetStream().Events() {
		require.Nil(t, got.end, "nothing follows InvokeComplete")
		switch e := e.(type) {
		case *types.InvokeWithResponseStreamResponseEventMemberPayloadChunk:
			got.body += string(e.Value.Payload)
			got.chunks++
		case *types.InvokeWithResponseStreamResponseEventMemberInvokeComplete:
			got.end = &e.Value
		}
	}
	return got, out.GetStream().Err()
}

func TestInvokeWithResponseStream(t *testing.T) {
	w := newWorld(t)
	w.create(t, func(in *sdk.CreateFunctionInput) { in.Timeout = aws.Int32(600) })
	file := filepath.Join(t.TempDir(), "ended")

	t.Run("returns chunks while the function writes them", func(t *testing.T) {
		out, err := w.client.InvokeWithResponseStream(t.Context(), &sdk.InvokeWithResponseStreamInput{
			FunctionName: aws.String("fn"), Payload: []byte(`{"do":"stream","text":"part","size":2,"pause":60000,"file":"` + file + `"}`),
		})
		require.NoError(t, err)
		defer out.GetStream().Close()
		first := (<-out.GetStream().Events()).(*types.InvokeWithResponseStreamResponseEventMemberPayloadChunk)
		require.Equal(t, "part", string(first.Value.Payload), "a minute before the function ends")
	})
	t.Run("returns the whole response", func(t *testing.T) {
		got := w.stream(t, `{"do":"stream","text":"part","size":3,"pause":20,"file":"`+file+`"}`)
		require.Equal(t, "partpartpart", got.body)
		require.Greater(t, got.chunks, 1)
		require.Nil(t, got.end.ErrorCode)
		require.NotEmpty(t, *got.end.LogResult)
	})
	t.Run("returns the result of a function that does not stream", func(t *testing.T) {
		require.Equal(t, `"hello"`, w.stream(t, `{"do":"echo","text":"hello"}`).body)
	})
	t.Run("ends with the error of a trailer", func(t *testing.T) {
		got := w.stream(t, `{"do":"stream","text":"part","size":1}`)
		require.Equal(t, "part", got.body)
		require.Equal(t, "Throttled", *got.end.ErrorCode)
		require.JSONEq(t, `{"errorType":"Throttled","errorMessage":"enough"}`, *got.end.ErrorDetails)
	})
	t.Run("ends with the error of a function", func(t *testing.T) {
		got := w.stream(t, `{"do":"fail","text":"no"}`)
		require.Empty(t, got.body)
		require.Equal(t, "Throttled", *got.end.ErrorCode)
		require.Equal(t, "Runtime.ExitError", *w.stream(t, `{"do":"exit"}`).end.ErrorCode)
	})
	t.Run("streams more than a buffered response may have", func(t *testing.T) {
		text := strings.Repeat("x", 1<<15)
		require.Len(t, w.stream(t, `{"do":"stream","text":"`+text+`","size":200,"file":"`+file+`"}`).body, 200<<15)
		out := w.invoke(t, `{"do":"stream","text":"`+text+`","size":200,"file":"`+file+`"}`)
		require.Contains(t, string(out.Payload), "Function.ResponseSizeTooLarge")
	})
	t.Run("fails a buffered invocation with the error of a trailer", func(t *testing.T) {
		out := w.invoke(t, `{"do":"stream","text":"part","size":1}`)
		require.Equal(t, "Unhandled", *out.FunctionError)
		require.JSONEq(t, `{"errorType":"Throttled","errorMessage":"enough"}`, string(out.Payload))
	})
	t.Run("continues when the caller has left", func(t *testing.T) {
		require.NoError(t, os.Remove(file))
		ctx, cancel := context.WithCancel(t.Context())
		out, err := w.client.InvokeWithResponseStream(ctx, &sdk.InvokeWithResponseStreamInput{
			FunctionName: aws.String("fn"), Payload: []byte(`{"do":"stream","text":"part","size":3,"pause":100,"file":"` + file + `"}`),
		})
		require.NoError(t, err)
		<-out.GetStream().Events()
		cancel()
		_ = out.GetStream().Close()
		require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, time.Minute, 10*time.Millisecond)
	})
	t.Run("denies a caller without permission", func(t *testing.T) {
		_, c, err := w.identities.AssumeRoleAs(w.role, "other", "lambda.amazonaws.com")
		require.NoError(t, err)
		_, err = clientOf(w.config.Endpoint(), c).InvokeWithResponseStream(t.Context(), &sdk.InvokeWithResponseStreamInput{
			FunctionName: aws.String("fn"),
		})
		require.ErrorContains(t, err, "is not authorized to perform: lambda:InvokeFunction")
	})
	t.Run("rejects a payload over 6 MB", func(t *testing.T) {
		_, err := w.client.InvokeWithResponseStream(t.Context(), &sdk.InvokeWithResponseStreamInput{
			FunctionName: aws.String("fn"), Payload: []byte(`"` + strings.Repeat("x", 6<<20) + `"`),
		})
		var large *types.RequestTooLargeException
		require.ErrorAs(t, err, &large)
	})
}

func TestStreamTimeout(t *testing.T) {
	w := newWorld(t)
	w.create(t, func(in *sdk.CreateFunctionInput) { in.Timeout = aws.Int32(2) })
	got := w.stream(t, `{"do":"stream","text":"part","size":2,"pause":60000}`)
	require.Equal(t, "part", got.body)
	require.Equal(t, "Sandbox.Timedout", *got.end.ErrorCode)
}

func TestNoStreaming(t *testing.T) {
	w := newWorld(t)
	w.create(t, nil)
	for _, code := range []string{UnknownOperation, UnknownPath} {
		w.config.NoStreaming = code
		_, err := w.client.InvokeWithResponseStream(t.Context(), &sdk.InvokeWithResponseStreamInput{FunctionName: aws.String("fn")})
		var api smithy.APIError
		require.ErrorAs(t, err, &api)
		require.Equal(t, code, api.ErrorCode())
	}
	require.Equal(t, `"hello"`, string(w.invoke(t, `{"do":"echo","text":"hello"}`).Payload))
}
