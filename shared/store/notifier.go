package store

import (
	"context"

	"github.com/drover-run/drover/shared/status"
)

// Notifier learns of each change before State writes it. If it returns an error, State does not write the change and returns the error.
// So a notification may be sent twice, but never too few times.
type Notifier interface {
	// StatusChanging reports a change of a cluster's status. The notifier may add what it sent to after, which is written next. It adds to
	// sent what a repeated attempt of the same write must not send again.
	StatusChanging(ctx context.Context, cluster string, before, after *status.Status, sent map[string]bool) error
	// IgnoredChanging reports a change of the uploads that drover does not read.
	IgnoredChanging(ctx context.Context, before, after []status.IgnoredUpload) error
	// ReleaseChanging reports a new verdict on a release.
	ReleaseChanging(ctx context.Context, release string, before, after *status.ReleaseStatus) error
}

// Silent notifies of nothing. It is for callers that change no verdict: readers of the state, and functions that record progress only.
var Silent Notifier = silent{}

type silent struct{}

func (silent) StatusChanging(context.Context, string, *status.Status, *status.Status, map[string]bool) error {
	return nil
}

func (silent) IgnoredChanging(context.Context, []status.IgnoredUpload, []status.IgnoredUpload) error {
	return nil
}

func (silent) ReleaseChanging(context.Context, string, *status.ReleaseStatus, *status.ReleaseStatus) error {
	return nil
}
