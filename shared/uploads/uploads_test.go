package uploads_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
	"github.com/drover-run/drover/shared/uploads"
)

// fake records which files are judged, and how often the ignored uploads are listed.
type fake struct {
	judged []string
	listed []store.Lister
	err    error
}

func (f *fake) judge(_ context.Context, name string) error {
	f.judged = append(f.judged, name)
	return f.err
}

func (f *fake) UpdateIgnored(_ context.Context, specs store.Lister) error {
	f.listed = append(f.listed, specs)
	return f.err
}

func TestHandle(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	bucket := storetest.NewBucket("specs")
	nameOf := func(key string) (string, bool) { return strings.CutPrefix(key, "files/") }
	for name, test := range map[string]struct {
		key    string
		judged []string
		listed []store.Lister
	}{
		"judges a file":           {"files/demo", []string{"demo"}, nil},
		"lists a key without one": {"demo", nil, []store.Lister{bucket}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, failure := range []error{nil, errors.New("throttled")} {
				f := &fake{err: failure}
				err := uploads.Uploads{State: f, Specs: bucket}.Handle(t.Context(), test.key, nameOf, f.judge)
				require.Equal(t, failure, err)
				require.Equal(t, test.judged, f.judged)
				require.Equal(t, test.listed, f.listed)
			}
		})
	}
}
