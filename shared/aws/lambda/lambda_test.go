package lambda

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
)

// functions is a client of a server that answers as Lambda does.
func functions(t *testing.T, serve http.HandlerFunc) *Functions {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return New(aws.Config{
		Region: "eu-central-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	})
}

const (
	streamedPath = "/2021-11-15/functions/drover-demo-relay/response-streaming-invocations"
	bufferedPath = "/2015-03-31/functions/drover-demo-relay/invocations"
)

// event writes one event of a stream.
func event(t *testing.T, w http.ResponseWriter, kind, contentType, payload string) {
	t.Helper()
	var encoded bytes.Buffer
	headers := eventstream.Headers{}
	headers.Set(":message-type", eventstream.StringValue("event"))
	headers.Set(":event-type", eventstream.StringValue(kind))
	headers.Set(":content-type", eventstream.StringValue(contentType))
	require.NoError(t, eventstream.NewEncoder().Encode(&encoded, eventstream.Message{Headers: headers, Payload: []byte(payload)}))
	_, err := w.Write(encoded.Bytes())
	require.NoError(t, err)
	w.(http.Flusher).Flush()
}

func chunk(t *testing.T, w http.ResponseWriter, payload string) {
	t.Helper()
	event(t, w, "PayloadChunk", "application/octet-stream", payload)
}

func complete(t *testing.T, w http.ResponseWriter, payload string) {
	t.Helper()
	event(t, w, "InvokeComplete", "application/json", payload)
}

func failWith(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Amzn-Errortype", code)
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"Message":"no"}`))
}

func TestExists(t *testing.T) {
	code := ""
	f := functions(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/2015-03-31/functions/drover-demo-relay/configuration", r.URL.Path)
		if code != "" {
			failWith(w, http.StatusNotFound, code)
			return
		}
		_, _ = w.Write([]byte(`{}`))
	})
	for _, test := range []struct {
		code          string
		exists, fails bool
	}{{exists: true}, {code: "ResourceNotFoundException"}, {code: "AccessDeniedException", fails: true}} {
		code = test.code
		exists, err := f.Exists(t.Context(), "drover-demo-relay")
		require.Equal(t, test.exists, exists, code)
		require.Equal(t, test.fails, err != nil, code)
	}
}

func TestInvoke(t *testing.T) {
	invoke := func(t *testing.T, f *Functions) (string, error) {
		t.Helper()
		response, err := f.Invoke(t.Context(), "drover-demo-relay", []byte(`{"method":"GET"}`))
		if err != nil {
			return "", err
		}
		read, err := io.ReadAll(response)
		require.NoError(t, response.Close())
		return string(read), err
	}

	t.Run("returns chunks as they arrive", func(t *testing.T) {
		next := make(chan bool)
		f := functions(t, func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, streamedPath, r.URL.Path)
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.JSONEq(t, `{"method":"GET"}`, string(body))
			chunk(t, w, "one ")
			<-next
			chunk(t, w, "two")
			complete(t, w, `{}`)
		})
		response, err := f.Invoke(t.Context(), "drover-demo-relay", []byte(`{"method":"GET"}`))
		require.NoError(t, err)
		first := make([]byte, 10)
		n, err := response.Read(first)
		require.NoError(t, err)
		require.Equal(t, "one ", string(first[:n]))
		close(next)
		rest, err := io.ReadAll(response)
		require.NoError(t, err)
		require.Equal(t, "two", string(rest))
		require.NoError(t, response.Close())
	})

	t.Run("ends with its context", func(t *testing.T) {
		f := functions(t, func(w http.ResponseWriter, r *http.Request) {
			chunk(t, w, "one")
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		response, err := f.Invoke(ctx, "drover-demo-relay", nil)
		require.NoError(t, err)
		_, err = response.Read(make([]byte, 10))
		require.NoError(t, err)
		cancel()
		_, err = io.ReadAll(response)
		require.Error(t, err)
		require.NoError(t, response.Close())
	})

	t.Run("reports what a function ended with", func(t *testing.T) {
		f := functions(t, func(w http.ResponseWriter, _ *http.Request) {
			chunk(t, w, "half")
			complete(t, w, `{"ErrorCode":"Unhandled","ErrorDetails":"{\"errorType\":\"Sandbox.Timedout\",\"errorMessage\":\"Task timed out\"}"}`)
		})
		read, err := invoke(t, f)
		require.Equal(t, "half", read)
		require.Equal(t, "Sandbox.Timedout", fault.Code(err))
		require.EqualError(t, err, "function drover-demo-relay failed: Sandbox.Timedout: Task timed out")
	})

	t.Run("reports a response that is cut off", func(t *testing.T) {
		f := functions(t, func(w http.ResponseWriter, _ *http.Request) { chunk(t, w, "half") })
		read, err := invoke(t, f)
		require.Equal(t, "half", read)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})

	t.Run("returns the errors of Lambda with their codes", func(t *testing.T) {
		f := functions(t, func(w http.ResponseWriter, _ *http.Request) {
			failWith(w, http.StatusNotFound, "ResourceNotFoundException")
		})
		_, err := invoke(t, f)
		require.Equal(t, "ResourceNotFoundException", fault.Code(err))
		require.True(t, f.Streams())
	})

	t.Run("returns whole responses where the region does not stream", func(t *testing.T) {
		var paths []string
		answer := `{"status":200}`
		f := functions(t, func(w http.ResponseWriter, r *http.Request) {
			paths = append(paths, r.URL.Path)
			switch {
			case r.URL.Path == streamedPath:
				failWith(w, http.StatusNotFound, "UnknownOperationException")
			case answer == "":
				w.Header().Set("X-Amz-Function-Error", "Unhandled")
				_, _ = w.Write([]byte(`{"errorMessage":"exit status 1","errorType":"Runtime.ExitError"}`))
			default:
				_, _ = w.Write([]byte(answer))
			}
		})
		_, err := invoke(t, f)
		require.Error(t, err)
		require.False(t, f.Streams())
		read, err := invoke(t, f)
		require.NoError(t, err)
		require.Equal(t, answer, read)
		answer = ""
		_, err = invoke(t, f)
		require.Equal(t, "Runtime.ExitError", fault.Code(err))
		require.Equal(t, []string{streamedPath, bufferedPath, bufferedPath}, paths)
	})

	t.Run("knows the two ways in which access is denied", func(t *testing.T) {
		for message, streams := range map[string]bool{
			"Unable to determine service/operation name to be authorized":                false,
			"User: x is not authorized to perform: lambda:InvokeFunction on resource: y": true,
		} {
			f := functions(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
				w.WriteHeader(http.StatusForbidden)
				_, _ = fmt.Fprintf(w, `{"Message":%q}`, message)
			})
			_, err := invoke(t, f)
			require.Equal(t, "AccessDeniedException", fault.Code(err))
			require.Equal(t, streams, f.Streams(), message)
		}
	})
}
