package handler_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/admit/handler"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/uploads"
)

// calls records what the handler has done.
type calls []string

func (c *calls) Admit(_ context.Context, cluster string) error {
	*c = append(*c, "admit "+cluster)
	return nil
}

func (c *calls) UpdateIgnored(context.Context, store.Lister) error {
	*c = append(*c, "list ignored")
	return nil
}

func TestHandle(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	for name, test := range map[string]struct{ key, call string }{
		"admits the spec of a cluster":           {"clusters/demo.yaml", "admit demo"},
		"admits an invalid name, to reject it":   {"clusters/Ünïcode.yaml", "admit Ünïcode"},
		"lists a key that is no spec":            {"clusters/a/demo.yaml", "list ignored"},
		"lists a release, which publish handles": {"releases/r1.yaml", "list ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			made := calls{}
			h := &handler.Handler{Admitter: &made, Uploads: uploads.Uploads{State: &made}}
			in := events.Event[events.Object]{}
			in.Detail.Object.Key = test.key
			_, err := h.Handle(t.Context(), in)
			require.NoError(t, err)
			require.Equal(t, calls{test.call}, made)
		})
	}
}
