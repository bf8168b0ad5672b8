package handler

// What an upgrade makes of the verdict on a cluster that is what it should be for now.

import (
	"context"
	"errors"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// upgrade says in the verdict that what the spec asks for is still to come, or is being made.
func (v *verdict) upgrade(u *events.PlannedUpgrade) {
	if u == nil {
		return
	}
	v.upgrading = true
	state := upgrade.State(u.State)
	switch {
	case state == upgrade.Checking || state == upgrade.Running:
		// Its execution says how it ends.
		v.phase, v.message = status.Upgrading, u.Message
		return
	case u.Start != nil:
		v.phase, v.message = status.Upgrading, u.Message
	case state == upgrade.Blocked || state == upgrade.Stopped:
		v.phase, v.message = status.Stopped, u.Message
	default:
		v.message = status.ButRelease + u.Message
	}
	if u.Spec {
		v.condition.Status, v.condition.Reason, v.condition.Message = "False", reasons[state], v.message
	}
}

// reasons for which a cluster is not what its spec says of releases, by the state of the upgrade.
var reasons = map[upgrade.State]string{
	status.UpgradeScheduled: status.ReasonUpgradeScheduled, upgrade.Blocked: status.ReasonUpgradeBlocked, upgrade.Stopped: status.ReasonUpgradeStopped,
}

// stays gives an upgrade's own words for why it ended, which planning does not know.
func (v *verdict) stays(in events.ReportRequest, s *status.Status) {
	if v.phase != status.Stopped || !v.upgrading || s.Upgrade == nil || s.Upgrade.Refused() || s.Upgrade.Message == "" || s.Upgrade.Phase != in.Plan.Upgrade.State {
		return
	}
	v.message, v.condition.Message = s.Upgrade.Message, s.Upgrade.Message
}

// served has the record say that a spec which was converged to has the word again. Where another upgrade began meanwhile there is nothing to say.
func (h *Handler) served(ctx context.Context, in events.ReportRequest) error {
	if in.Plan == nil || in.Plan.Served == 0 || in.Plan.Outcome != events.OutcomeUnchanged {
		return nil
	}
	record, etag, err := h.State.Upgrade(ctx, in.Cluster)
	if err != nil || record == nil || record.Number != in.Plan.Served {
		return err
	}
	record.Serve()
	if _, err = h.State.PutUpgrade(ctx, in.Cluster, record, etag); errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}
