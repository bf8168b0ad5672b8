package handler_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/publish/handler"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/uploads"
)

// calls records what the handler has done.
type calls []string

func (c *calls) Check(_ context.Context, name string) error {
	*c = append(*c, "check "+name)
	return nil
}

func (c *calls) UpdateIgnored(context.Context, store.Lister) error {
	*c = append(*c, "list ignored")
	return nil
}

func TestHandle(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	for name, test := range map[string]struct{ key, call string }{
		"checks a release":                  {"releases/r1.yaml", "check r1"},
		"checks the channels":               {"releases/channels.yaml", "check channels"},
		"lists a key that is no release":    {"releases/a/r1.yaml", "list ignored"},
		"lists a spec, which admit handles": {"clusters/demo.yaml", "list ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			made := calls{}
			h := &handler.Handler{Checker: &made, Uploads: uploads.Uploads{State: &made}}
			in := events.Event[events.Object]{}
			in.Detail.Object.Key = test.key
			_, err := h.Handle(t.Context(), in)
			require.NoError(t, err)
			require.Equal(t, calls{test.call}, made)
		})
	}
}
