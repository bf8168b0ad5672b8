package lambdaruntime

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
)

// Handler is the type of function that aws-lambda-go starts, with its payload types.
type Handler[I, O any] func(context.Context, I) (O, error)

// Wrap gives a handler a logger on standard output, and names its errors for state machines. The runtime reports the name of the
// outermost Go type as errorType. Without Wrap, a wrapped fault would be reported as *wrapError, which no Catch of a state machine
// matches.
func Wrap[I, O any](step string, handle Handler[I, O]) Handler[I, O] {
	return WrapTo(os.Stdout, step, handle)
}

// WrapTo is Wrap with another destination for logs.
func WrapTo[I, O any](logs io.Writer, step string, handle Handler[I, O]) Handler[I, O] {
	base := slog.New(slog.NewJSONHandler(logs, nil)).With("step", step)
	return func(ctx context.Context, in I) (out O, err error) {
		log := base
		if lc, ok := lambdacontext.FromContext(ctx); ok {
			log = log.With("requestId", lc.AwsRequestID)
		}
		ctx = logging.With(ctx, log)
		start := time.Now()
		defer func() {
			if panicked := recover(); panicked != nil {
				log.Error("panic", "value", fmt.Sprint(panicked), "stack", string(debug.Stack()))
				err = &fault.Internal{Cause: fmt.Errorf("panic: %v", panicked)}
			}
			if err != nil {
				name := fault.NameOf(err)
				log.Error("failed", "fault", name, "error", err.Error(), "took", time.Since(start).String())
				err = messages.InvokeResponse_Error{Type: name, Message: err.Error()}
			}
		}()
		return handle(ctx, in)
	}
}
