package lambdaruntime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
)

// Each line has the step and the request id: a log stream in CloudWatch has the lines of many invocations.
func TestLogs(t *testing.T) {
	invoke := func(t *testing.T, handle Handler[string, int]) (lines []map[string]any, err error) {
		t.Helper()
		var out bytes.Buffer
		ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "request-1"})
		_, err = WrapTo(&out, "change", handle)(ctx, "the-task-token")
		require.NotContains(t, out.String(), "the-task-token", "payloads hold task tokens, which are not logged")
		for line := range strings.Lines(out.String()) {
			var fields map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &fields))
			require.Equal(t, "change", fields["step"])
			require.Equal(t, "request-1", fields["requestId"])
			lines = append(lines, fields)
		}
		return lines, err
	}
	t.Run("have what the handler logs", func(t *testing.T) {
		lines, err := invoke(t, func(ctx context.Context, _ string) (int, error) {
			logging.From(ctx).Info("stack changed", "stack", "network")
			return 0, nil
		})
		require.NoError(t, err)
		require.Len(t, lines, 1, "success has no line of its own")
		require.Equal(t, "stack changed", lines[0]["msg"])
		require.Equal(t, "network", lines[0]["stack"])
	})
	t.Run("have each failure with its fault and cause", func(t *testing.T) {
		lines, err := invoke(t, func(context.Context, string) (int, error) {
			return 0, fmt.Errorf("changing network: %w", &fault.Throttled{Cause: errors.New("Rate exceeded")})
		})
		require.Equal(t, messages.InvokeResponse_Error{Type: "Throttled", Message: "changing network: Rate exceeded"}, err)
		require.Len(t, lines, 1)
		require.Equal(t, "ERROR", lines[0]["level"])
		require.Equal(t, "Throttled", lines[0]["fault"])
		require.Equal(t, "changing network: Rate exceeded", lines[0]["error"])
		require.NotEmpty(t, lines[0]["took"])
	})
	t.Run("have each panic with its stack", func(t *testing.T) {
		lines, err := invoke(t, func(context.Context, string) (int, error) { panic("index out of range") })
		require.ErrorContains(t, err, "panic: index out of range")
		require.Len(t, lines, 2)
		require.Equal(t, "index out of range", lines[0]["value"])
		require.Contains(t, lines[0]["stack"], "logs_test.go")
		require.Equal(t, "Internal", lines[1]["fault"])
	})
	t.Run("go somewhere without an invocation", func(t *testing.T) { require.NotNil(t, logging.From(t.Context())) })
}
