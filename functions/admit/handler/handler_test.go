package handler_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/admit/handler"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

// fake records which clusters are admitted, and how often the unread uploads are listed.
type fake struct {
	admitted []string
	listed   int
	specs    store.Lister
	err      error
}

func (f *fake) Admit(_ context.Context, cluster string) error {
	f.admitted = append(f.admitted, cluster)
	return f.err
}

func (f *fake) UpdateUnread(_ context.Context, specs store.Lister) error {
	f.listed++
	f.specs = specs
	return f.err
}

func TestHandle(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	for name, test := range map[string]struct {
		key      string
		admitted []string
		listed   int
	}{
		"admits the spec of a cluster":              {"clusters/demo.yaml", []string{"demo"}, 0},
		"admits an invalid name, to reject it":      {"clusters/Ünïcode.yaml", []string{"Ünïcode"}, 0},
		"lists a key with another extension":        {"clusters/demo.yml", nil, 1},
		"lists a key in a subfolder":                {"clusters/a/demo.yaml", nil, 1},
		"lists a key without a name":                {"clusters/.yaml", nil, 1},
		"lists a key outside the folder of specs":   {"demo.yaml", nil, 1},
		"lists a release, which publish handles":    {"releases/r1.yaml", nil, 1},
		"lists the folder that the console creates": {"clusters/", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, failure := range []error{nil, errors.New("throttled")} {
				f, bucket := &fake{err: failure}, storetest.NewBucket("specs")
				h := &handler.Handler{Admitter: f, State: f, Specs: bucket}
				in := events.Event[events.Object]{}
				in.Detail.Object.Key = test.key
				_, err := h.Handle(t.Context(), in)
				require.Equal(t, failure, err)
				require.Equal(t, test.admitted, f.admitted)
				require.Equal(t, test.listed, f.listed)
				if f.listed > 0 {
					require.Same(t, bucket, f.specs)
				}
			}
		})
	}
}
