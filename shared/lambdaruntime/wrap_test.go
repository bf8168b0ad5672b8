package lambdaruntime

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
)

// Without Wrap, the runtime would report a wrapped fault as *fmt.wrapError. No Catch of a state machine matches that.
func TestWrapReportsTheFaultsName(t *testing.T) {
	handlers := map[string]struct {
		handle Handler[int, int]
		want   string
	}{
		"a wrapped fault": {func(context.Context, int) (int, error) {
			return 0, fmt.Errorf("while changing: %w", &fault.StackFailed{Cause: errors.New("x")})
		}, "StackFailed"},
		"an error without a name": {func(context.Context, int) (int, error) { return 0, errors.New("x") }, "Internal"},
		"a panic":                 {func(context.Context, int) (int, error) { panic("x") }, "Internal"},
	}
	for name, test := range handlers {
		t.Run(name, func(t *testing.T) {
			_, err := Wrap("test", test.handle)(t.Context(), 1)
			var response messages.InvokeResponse_Error
			require.ErrorAs(t, err, &response)
			require.Equal(t, test.want, response.Type)
		})
	}
	out, err := Wrap("test", func(_ context.Context, in int) (int, error) { return in + 1, nil })(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, 2, out)
}
