package handler_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/publish/handler"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

// fake records which releases are checked, and how often the unread uploads are listed.
type fake struct {
	checked []string
	listed  int
	specs   store.Lister
	err     error
}

func (f *fake) Check(_ context.Context, name string) error {
	f.checked = append(f.checked, name)
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
		key     string
		checked []string
		listed  int
	}{
		"checks a release":                   {"releases/r1.yaml", []string{"r1"}, 0},
		"checks the channels":                {"releases/channels.yaml", []string{"channels"}, 0},
		"lists a key with another extension": {"releases/r1.yml", nil, 1},
		"lists a key in a subfolder":         {"releases/a/r1.yaml", nil, 1},
		"lists a key without a name":         {"releases/.yaml", nil, 1},
		"lists a spec, which admit handles":  {"clusters/demo.yaml", nil, 1},
		"lists a key outside its folder":     {"r1.yaml", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, failure := range []error{nil, errors.New("throttled")} {
				f, bucket := &fake{err: failure}, storetest.NewBucket("specs")
				h := &handler.Handler{Checker: f, State: f, Specs: bucket}
				in := events.Event[events.Object]{}
				in.Detail.Object.Key = test.key
				_, err := h.Handle(t.Context(), in)
				require.Equal(t, failure, err)
				require.Equal(t, test.checked, f.checked)
				require.Equal(t, test.listed, f.listed)
				if f.listed > 0 {
					require.Same(t, bucket, f.specs)
				}
			}
		})
	}
}
