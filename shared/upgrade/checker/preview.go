package checker

import (
	"context"
	"errors"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// Preview returns the input of the checks for an upgrade, with its remaining steps. It has no steps if there is nothing to do. An upgrade
// that cannot begin is a *route.StopError.
func (c *Checker) Preview(ctx context.Context, in events.Upgrade) (*preflight.Plan, error) {
	record, _, err := c.State.Upgrade(ctx, in.Cluster)
	if err != nil {
		return nil, err
	}
	r, err := c.ResolveRoute(ctx, in, record)
	if r.Busy != "" {
		return nil, route.Stopf("the stack of the control plane %s: try again when that has finished", r.Busy)
	}
	if err != nil {
		return nil, err
	}
	p := r.Checked(in.Cluster, in.Rollback, nil)
	if r.Finished() {
		return p, nil
	}
	var steps []upgrade.Step
	open := 0
	if last := r.Last.LastChange(); last.CanContinue(r.From, r.To) {
		steps, open = last.Steps, last.Step
	}
	steps, open, err = c.RemainingSteps(ctx, in, &r, steps, open)
	if err == nil {
		p.Steps = steps[min(open, len(steps)):]
	}
	return p, err
}

// Answer returns the immediate answer to an upgrade that an operator starts now: it is refused, or there is nothing to do. The outcome is
// empty if the upgrade would begin or wait.
func (c *Checker) Answer(ctx context.Context, in events.Upgrade) (events.UpgradeResult, error) {
	record, _, err := c.State.Upgrade(ctx, in.Cluster)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if record != nil && !record.State.Final() {
		running, err := c.Executions.Running(ctx, record.Execution)
		if err != nil {
			return events.UpgradeResult{}, err
		}
		if running { // any other upgrade waits for this one, which changes the cluster first
			current, err := c.IsCurrent(ctx, in.Cluster, record)
			if err != nil || !current || !route.Same(in, record) {
				return events.UpgradeResult{}, err
			}
			return events.UpgradeResult{Outcome: events.UpgradeNothing, Message: record.Execution + " already makes this upgrade"}, nil
		}
	}
	r, err := c.ResolveRoute(ctx, in, record)
	switch {
	case r.Busy != "":
		return events.UpgradeResult{}, nil
	case err == nil && r.Finished():
		return events.UpgradeResult{Outcome: events.UpgradeNothing, Message: "the cluster is at " + r.To.String()}, nil
	case err == nil:
		_, err = c.steps(ctx, &r, in.Rollback)
	}
	var why *route.StopError
	if errors.As(err, &why) {
		return events.UpgradeResult{Outcome: events.UpgradeRefused, Message: why.Message}, nil
	}
	return events.UpgradeResult{}, err
}

// Check runs the checks of an upgrade that has not begun. An upgrade that cannot begin is a finding.
func (c *Checker) Check(ctx context.Context, in events.Upgrade) ([]status.Check, error) {
	plan, err := c.Preview(ctx, in)
	var why *route.StopError
	switch {
	case errors.As(err, &why):
		return []status.Check{
			{Name: preflight.UpgradePossible, Blocks: true, Message: why.Message, Next: "Correct it before the upgrade is due, " +
				"or cancel the upgrade."},
		}, nil
	case err != nil:
		return nil, err
	}
	facts, err := c.Facts.Before(ctx, plan)
	if err != nil {
		return nil, err
	}
	return preflight.Before(facts, plan), nil
}
