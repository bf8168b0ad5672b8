// Package logging carries a structured logger in a context. shared/lambdaruntime creates the logger of an invocation.
package logging

import (
	"context"
	"log/slog"
)

type key struct{}

// With returns a context that carries a logger.
func With(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, key{}, log)
}

// From returns the logger that a context carries, or the default logger.
func From(ctx context.Context) *slog.Logger {
	if log, ok := ctx.Value(key{}).(*slog.Logger); ok {
		return log
	}
	return slog.Default()
}
