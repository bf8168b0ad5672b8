package handler

import (
	"context"
	"fmt"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

// earlyCheck runs the checks of a scheduled upgrade before its time, and records the findings in the status. So there is time to fix what
// blocks. It does not write the record.
func earlyCheck(ctx context.Context, c *call) (events.UpgradeResult, error) {
	findings, err := c.Checker.Check(ctx, c.in.Upgrade)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	now := when(c.Now())
	err = c.State.UpdateStatus(ctx, c.in.Cluster, func(s *status.Status) {
		u := s.Upgrade
		if u == nil || u.Phase != status.UpgradeScheduled || u.To != c.in.Release || u.Origin != c.in.Origin {
			return // the upgrade has begun or was withdrawn since
		}
		u.Checks, u.Checked = findings, now
	})
	return events.UpgradeResult{
		Outcome: events.UpgradeNothing, Message: fmt.Sprintf("early checks: %d of them found something", len(findings)),
	}, err
}
