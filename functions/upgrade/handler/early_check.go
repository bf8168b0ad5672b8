package handler

import (
	"context"
	"fmt"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

// earlyCheck runs the checks of a scheduled upgrade before its time, and records the findings in the status. So there is time to fix what
// blocks. It does not write the record.
func earlyCheck(ctx context.Context, r *run) (events.UpgradeResult, error) {
	findings, err := r.Checker.Check(ctx, r.in.Upgrade)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	now := when(r.Now())
	err = r.State.UpdateStatus(ctx, r.in.Cluster, func(s *status.Status) {
		u := s.Upgrade
		if u == nil || u.Phase != status.UpgradeScheduled || u.To != r.in.Release || u.Origin != r.in.Origin {
			return // the upgrade has begun or was withdrawn since
		}
		u.Checks, u.Checked = findings, now
	})
	return events.UpgradeResult{
		Outcome: events.UpgradeNothing, Message: fmt.Sprintf("early checks: %d of them found something", len(findings)),
	}, err
}
