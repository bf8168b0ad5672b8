package handler

import (
	"cmp"
	"context"
	"fmt"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// describeEnd returns why an execution that ended without a report stops its upgrade.
func (c *call) describeEnd(ctx context.Context, execution string) error {
	how, err := c.Executions.Ended(ctx, execution)
	if err != nil {
		return err
	}
	return route.Stopf("execution %s ended with the status %s", execution, cmp.Or(how, "unknown"))
}

// takeOver makes this execution the owner of the upgrade whose execution a removal of drover ended. It does so before it waits for the
// cluster, so that the next sweep starts no other execution for it. The outcome is Nothing if the upgrade has another owner.
func (c *call) takeOver(ctx context.Context, last *upgrade.Record, etag string) (events.UpgradeResult, error) {
	switch {
	case last != nil && last.State.Final() && last.Execution == c.in.Continues:
		return events.UpgradeResult{}, c.describeEnd(ctx, c.in.Continues) // its end may be missing in the status
	case last == nil || last.State.Final() || last.Execution != c.in.Continues && last.Execution != c.in.Execution:
		return events.UpgradeResult{Outcome: events.UpgradeNothing, Message: "the upgrade has ended, or another execution continues it"}, nil
	}
	c.record, c.etag = last, etag
	current, err := c.Checker.IsCurrent(ctx, c.in.Cluster, last)
	switch {
	case err != nil:
		return events.UpgradeResult{}, err
	case last.Execution == c.in.Execution && current:
		return events.UpgradeResult{}, nil
	case !current:
		return events.UpgradeResult{}, route.Stopf("%s", ofDeletedCluster)
	}
	last.Execution = c.in.Execution
	if err := c.write(ctx); err != nil {
		return events.UpgradeResult{}, err
	}
	message := fmt.Sprintf("drover was removed, which ended %s; the upgrade continues", c.in.Continues)
	return events.UpgradeResult{}, c.recordProgress(ctx, nil, message)
}
