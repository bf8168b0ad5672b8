package checker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// oneUpload answers every read of the specs bucket.
type oneUpload struct {
	object store.Object
	err    error
}

func (u oneUpload) Get(context.Context, string, int64) (store.Object, error) { return u.object, u.err }

func TestUnusableUploads(t *testing.T) {
	large := &store.TooLarge{Version: "v1"}
	failed := errors.New("read failed")
	for name, test := range map[string]struct {
		upload oneUpload
		// spec and release begin the messages of both; empty if the error is no *route.StopError.
		spec, release string
		err           error
	}{
		"absent": {
			upload:  oneUpload{err: store.ErrNotFound},
			release: "there is no release releases/r2.yaml: upload it, or name another",
		},
		"too large": {upload: oneUpload{err: large}, spec: large.Error(), release: large.Error()},
		"invalid": {
			upload:  oneUpload{object: store.Object{Body: []byte("kind: Other\n"), Version: "v1"}},
			spec:    "the newest spec cannot be used: clusters/demo.yaml:",
			release: "the release releases/r2.yaml cannot be used: releases/r2.yaml:",
		},
		"unreadable": {upload: oneUpload{err: failed}, err: failed},
	} {
		t.Run(name, func(t *testing.T) {
			requireStop := func(message string, err error) {
				t.Helper()
				var stop *route.StopError
				if errors.As(err, &stop); message == "" {
					require.Equal(t, test.err, err)
					return
				}
				require.NotNil(t, stop, err)
				require.True(t, strings.HasPrefix(stop.Message, message), stop.Message)
			}
			c := &Checker{Specs: test.upload}
			spec, version, err := c.NewestSpec(t.Context(), "demo")
			require.Nil(t, spec)
			require.Empty(t, version)
			requireStop(test.spec, err)
			requireStop(test.release, c.readRelease(t.Context(), &route.Route{To: upgrade.Target{Release: "r2"}}))
		})
	}
}
