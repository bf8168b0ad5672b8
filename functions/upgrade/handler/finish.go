package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// settleTime is how long pods and alarms may take after the last step until a failed check stops the upgrade.
const settleTime = 15 * time.Minute

// maxBaseline limits a baseline, in bytes: one line each for a hundred thousand workloads.
const maxBaseline = 16 << 20

// finish runs the final checks and ends the upgrade.
func finish(ctx context.Context, c *call) (events.UpgradeResult, error) {
	if err := c.loadOwned(ctx); err != nil {
		return events.UpgradeResult{}, err
	}
	message := fmt.Sprintf("the cluster is at %s", c.record.Target)
	if c.record.State == upgrade.Done { // an earlier call wrote this, and may have failed before it wrote the status
		return events.UpgradeResult{Outcome: events.UpgradeDone, Message: message}, c.recordProgress(ctx, nil, message)
	}
	checks, err := c.runFinalChecks(ctx)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if preflight.Blocks(checks) {
		findings := "the final checks failed: " + describeBlocking(checks)
		if err := c.recordProgress(ctx, checks, findings); err != nil {
			return events.UpgradeResult{}, err
		}
		last := c.record.Steps[len(c.record.Steps)-1]
		if passed := c.Now().Sub(last.Ended); passed < settleTime {
			return busy(findings, backoff.StepCalls.Pause(c.Now().Sub(last.Started))), nil
		}
		return events.UpgradeResult{}, route.Stopf("%s", findings)
	}
	if err := c.closeRecord(ctx, upgrade.Done); err != nil {
		return events.UpgradeResult{}, err
	}
	return events.UpgradeResult{Outcome: events.UpgradeDone, Message: message}, c.recordProgress(ctx, checks, message)
}

// runFinalChecks runs the checks after the last step.
func (c *call) runFinalChecks(ctx context.Context) ([]status.Check, error) {
	way, err := c.Checker.LoadRoute(ctx, c.in.Cluster, c.record)
	if err != nil {
		return nil, err
	}
	plan := way.Checked(c.in.Cluster, c.record.Origin == upgrade.OriginRollback, c.record.Steps)
	if plan.NodesSince, err = c.Checker.NodesSince(ctx, c.in.Cluster, plan.After.Spec.Pools); err != nil {
		return nil, err
	}
	facts, err := c.Facts.After(ctx, plan)
	if err != nil {
		return nil, err
	}
	var before preflight.Baseline
	object, err := c.State.Get(ctx, names.UpgradeBaseline(c.in.Cluster, firstNumber(c.record)), maxBaseline)
	switch {
	case errors.Is(err, store.ErrNotFound): // it has expired
		before.Lost = true
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(object.Body, &before); err != nil {
			return nil, fmt.Errorf("reading the baseline of the workloads of %s: %w", c.in.Cluster, err)
		}
	}
	return append([]status.Check{}, preflight.After(before, facts, plan)...), nil
}

// closeRecord ends an upgrade: it enables the alarms and writes the end state.
func (c *call) closeRecord(ctx context.Context, state upgrade.State) error {
	if err := c.Alarms.EnableActions(ctx, c.record.Alarms); err != nil {
		return err
	}
	if c.record.State, c.record.Ended, c.record.Alarms = state, c.Now().UTC(), nil; state != upgrade.Blocked {
		if err := c.adopt(ctx); err != nil {
			return err
		}
	}
	return c.write(ctx)
}

// adopt records the upgrade as the answer to the newest spec, if that names the upgrade's target.
func (c *call) adopt(ctx context.Context) error {
	spec, version, err := c.Checker.NewestSpec(ctx, c.in.Cluster)
	var unusable *route.StopError
	if err != nil && !errors.As(err, &unusable) {
		return err
	}
	c.record.Adopt(spec, version)
	return nil
}
