package handler

// The override of a spec by an upgrade ends once the cluster converged to a spec that names its release.

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/store"
)

// clearOverride clears the override in the record of the upgrade. If another upgrade began since planning, it changes nothing. A conflict
// may come from S3 alone, so the record is read again.
func (h *Handler) clearOverride(ctx context.Context, in events.ReportRequest) error {
	if in.Plan == nil || in.Plan.OverrideCleared == 0 || in.Plan.Outcome != events.OutcomeUnchanged {
		return nil
	}
	const attempts = 4
	for range attempts {
		record, etag, err := h.State.Upgrade(ctx, in.Cluster)
		if err != nil || record == nil || record.Number != in.Plan.OverrideCleared {
			return err
		}
		record.ClearOverride()
		if _, err = h.State.PutUpgrade(ctx, in.Cluster, record, etag); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return &fault.Transient{Cause: fmt.Errorf("clearing the override of %s: %w", in.Cluster, store.ErrConflict)}
}
