package handler

// Upgrades that a run of a rollout assigned.

import (
	"context"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/upgrade"
)

// beginAssigned records in the cell's copy of the assignment that the attempt begins. The function fleet withdraws assignments in the same
// object. Both writes are conditional, so an attempt is either begun or withdrawn. A withdrawn or replaced attempt does not begin.
func (c *call) beginAssigned(ctx context.Context) (events.UpgradeResult, error) {
	if !upgrade.IsRolloutKey(c.in.Key) {
		return events.UpgradeResult{}, nil
	}
	a, etag, err := c.assignment(ctx)
	switch {
	case err != nil:
		return events.UpgradeResult{}, err
	case a == nil:
		return c.nothing("the rollout no longer assigns this upgrade")
	case a.Begun:
		return events.UpgradeResult{}, nil
	case a.Withdrawn:
		return c.nothing("the rollout withdrew this upgrade before it began")
	}
	a.Begun = true
	_, err = c.State.PutAssignment(ctx, a, etag)
	return events.UpgradeResult{}, err
}

// refuseAssigned records in the cell's copy why the attempt cannot begin. The rollout then counts the member as Blocked.
func (c *call) refuseAssigned(ctx context.Context, message string) error {
	if !upgrade.IsRolloutKey(c.in.Key) {
		return nil
	}
	a, etag, err := c.assignment(ctx)
	if err != nil || a == nil || a.Withdrawn && !a.Begun || a.Check != "" {
		return err
	}
	a.Check, a.Message = preflight.UpgradePossible, message
	_, err = c.State.PutAssignment(ctx, a, etag)
	return err
}

// assignment reads the cell's copy of the assignment; nil if it is of another attempt.
func (c *call) assignment(ctx context.Context) (*rollout.CellAssignment, string, error) {
	a, etag, err := c.State.Assignment(ctx, c.in.Cluster)
	if err != nil || a == nil || a.Key() != c.in.Key {
		return nil, "", err
	}
	return a, etag, nil
}
