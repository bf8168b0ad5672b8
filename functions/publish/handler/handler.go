// Package handler handles the S3 events of releases and of the channels file. shared/releases checks the file that exists now, whatever the
// event says. A key that drover does not read is listed in the document of unread uploads.
package handler

import (
	"context"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

// Checker checks a release or the channels: releases.Checker.
type Checker interface {
	Check(ctx context.Context, name string) error
}

// State keeps the document of unread uploads: a subset of store.State.
type State interface {
	UpdateUnread(ctx context.Context, specs store.Lister) error
}

// Handler checks releases.
type Handler struct {
	Checker Checker
	State   State
	Specs   store.Lister
}

// Handle handles one S3 event. It uses only the key, so a late or repeated event is harmless.
func (h *Handler) Handle(ctx context.Context, in events.Event[events.Object]) (struct{}, error) {
	var done struct{}
	name, ok := names.ReleaseOfKey(in.Detail.Object.Key)
	if !ok {
		logging.From(ctx).Warn("unread upload", "key", in.Detail.Object.Key)
		return done, h.State.UpdateUnread(ctx, h.Specs)
	}
	return done, h.Checker.Check(ctx, name)
}
