// Package uploads handles the S3 events of the specs bucket, for admit and publish. It reads only the key from an
// event. Then the caller judges the file that exists now. So a late or repeated event is harmless.
package uploads

import (
	"context"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/store"
)

// State keeps the document of ignored uploads: a subset of store.State.
type State interface {
	UpdateIgnored(ctx context.Context, specs store.Lister) error
}

// Uploads are the files of the specs bucket.
type Uploads struct {
	State State
	Specs store.Lister
}

// Handle judges the file with a key. nameOf returns its name. If drover does not read the key, Handle lists it in the document of ignored
// uploads instead.
func (u Uploads) Handle(
	ctx context.Context, key string, nameOf func(key string) (name string, ok bool), judge func(ctx context.Context, name string) error,
) error {
	name, ok := nameOf(key)
	if !ok {
		logging.From(ctx).Warn("upload ignored", "key", key)
		return u.State.UpdateIgnored(ctx, u.Specs)
	}
	return judge(ctx, name)
}
