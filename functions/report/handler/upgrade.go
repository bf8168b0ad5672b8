package handler

// What a cluster that is what its spec says makes of the record of its upgrade.

import (
	"context"
	"errors"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/store"
)

// served has the record say that a spec which was converged to has the word again. Where another upgrade began
// meanwhile there is nothing to say.
func (h *Handler) served(ctx context.Context, in events.ReportRequest) error {
	if in.Plan == nil || in.Plan.Served == 0 || in.Plan.Outcome != events.OutcomeUnchanged {
		return nil
	}
	record, etag, err := h.State.Upgrade(ctx, in.Cluster)
	if err != nil || record == nil || record.Number != in.Plan.Served {
		return err
	}
	record.ClearOverride()
	if _, err = h.State.PutUpgrade(ctx, in.Cluster, record, etag); errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}
