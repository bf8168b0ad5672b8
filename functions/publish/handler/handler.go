// Package handler handles the S3 events of releases and of the channels file. shared/releases checks the file that exists now, whatever the
// event says.
package handler

import (
	"context"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/uploads"
)

// Checker checks a release or the channels: releases.Checker.
type Checker interface {
	Check(ctx context.Context, name string) error
}

// Handler checks releases.
type Handler struct {
	Checker Checker
	Uploads uploads.Uploads
}

// Handle handles one S3 event.
func (h *Handler) Handle(ctx context.Context, in events.Event[events.Object]) (struct{}, error) {
	return struct{}{}, h.Uploads.Handle(ctx, in.Detail.Object.Key, names.ReleaseOfKey, h.Checker.Check)
}
