// Package boundary is the edge between a handler and the Lambda runtime: structured logs on the way in, fault names on
// the way out. The runtime reports the outermost Go type's name as errorType; a wrapped fault would become *wrapError
// and no Catch would match, so the name is set here, once.
package boundary

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/drover-run/drover/shared/fault"
)

// Handler is what aws-lambda-go starts, with its payload types.
type Handler[I, O any] func(context.Context, I) (O, error)

// Wrap makes a handler's errors readable by state machines and its logs, on standard output, by people.
func Wrap[I, O any](step string, handle Handler[I, O]) Handler[I, O] {
	return WrapTo(os.Stdout, step, handle)
}

// WrapTo is Wrap with the logs elsewhere.
func WrapTo[I, O any](logs io.Writer, step string, handle Handler[I, O]) Handler[I, O] {
	base := slog.New(slog.NewJSONHandler(logs, nil)).With("step", step)
	return func(ctx context.Context, in I) (out O, err error) {
		log := base
		if lc, ok := lambdacontext.FromContext(ctx); ok {
			log = log.With("requestId", lc.AwsRequestID)
		}
		ctx = context.WithValue(ctx, logKey{}, log)
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

type logKey struct{}

// Log is the logger of the invocation that ctx belongs to.
func Log(ctx context.Context) *slog.Logger {
	if log, ok := ctx.Value(logKey{}).(*slog.Logger); ok {
		return log
	}
	return slog.Default()
}
