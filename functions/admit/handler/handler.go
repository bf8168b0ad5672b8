// Package handler admits uploaded specs: it handles the S3 events of the specs bucket. shared/admission judges the spec that exists now,
// whatever the event says. A key that drover does not read is listed in the document of unread uploads.
package handler

import (
	"context"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

// Admitter judges the spec of a cluster: admission.Admitter.
type Admitter interface {
	Admit(ctx context.Context, cluster string) error
}

// State keeps the document of unread uploads: a subset of store.State.
type State interface {
	UpdateUnread(ctx context.Context, specs store.Lister) error
}

// Handler admits specs.
type Handler struct {
	Admitter Admitter
	State    State
	Specs    store.Lister
}

// Handle handles one S3 event. It uses only the key, so a late or repeated event is harmless.
func (h *Handler) Handle(ctx context.Context, in events.Event[events.Object]) (struct{}, error) {
	var done struct{}
	key := in.Detail.Object.Key
	cluster, ok := names.ClusterOfKey(key)
	if !ok {
		logging.From(ctx).Warn("unread upload", "key", key)
		return done, h.State.UpdateUnread(ctx, h.Specs)
	}
	return done, h.Admitter.Admit(ctx, cluster)
}
