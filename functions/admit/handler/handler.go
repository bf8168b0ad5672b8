// Package handler admits uploaded specs: it handles the S3 events of the specs bucket. shared/admission judges the spec that exists now,
// and ignores the rest of the event.
package handler

import (
	"context"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/uploads"
)

// Admitter judges the spec of a cluster: admission.Admitter.
type Admitter interface {
	Admit(ctx context.Context, cluster string) error
}

// Handler admits specs.
type Handler struct {
	Admitter Admitter
	Uploads  uploads.Uploads
}

// Handle handles one S3 event.
func (h *Handler) Handle(ctx context.Context, in events.Event[events.Object]) (struct{}, error) {
	return struct{}{}, h.Uploads.Handle(ctx, in.Detail.Object.Key, names.ClusterOfKey, h.Admitter.Admit)
}
