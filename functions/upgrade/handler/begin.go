package handler

import (
	"context"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// begin disables alarms and opens the first step.
func begin(ctx context.Context, c *call) (events.UpgradeResult, error) {
	if err := c.loadOwned(ctx); err != nil {
		return events.UpgradeResult{}, err
	}
	if c.record.State != upgrade.Running {
		if err := c.selectAlarms(ctx); err != nil {
			return events.UpgradeResult{}, err
		}
		c.record.State, c.record.Last = upgrade.Running, nil
		c.openStep()
		// The record is written first, so that stop knows which alarms to enable.
		if err := c.write(ctx); err != nil {
			return events.UpgradeResult{}, err
		}
	}
	if err := c.Alarms.DisableActions(ctx, c.record.Alarms); err != nil {
		return events.UpgradeResult{}, err
	}
	return c.startStep(ctx)
}

// selectAlarms adds to the record the alarms to disable: those of the spec that are enabled, and whose tags allow it. An alarm that a user
// disabled is not added, and so stays disabled afterwards.
func (c *call) selectAlarms(ctx context.Context) error {
	spec, err := c.Checker.Spec(ctx, c.in.Cluster)
	if err != nil {
		return err
	}
	alarms, err := c.Alarms.Describe(ctx, spec.Spec.Upgrade.Alarms)
	if err != nil {
		return err
	}
	for _, a := range alarms {
		if a.Actions && a.Silence && !slices.Contains(c.record.Alarms, a.Name) {
			c.record.Alarms = append(c.record.Alarms, a.Name)
		}
	}
	return nil
}

// openStep opens the next step. A step that an earlier execution started keeps that time; old nodes get the full time again.
func (c *call) openStep() {
	if c.record.Step >= len(c.record.Steps) {
		return
	}
	s := &c.record.Steps[c.record.Step]
	s.Converged, s.Opened = time.Time{}, c.Now().UTC()
	if s.Started.IsZero() {
		s.Started = s.Opened
	}
}

// startStep has the machine start drover-converge for the open step. Without an open step, the machine calls finish.
func (c *call) startStep(ctx context.Context) (events.UpgradeResult, error) {
	if c.record.Step >= len(c.record.Steps) {
		return events.UpgradeResult{
			Outcome: events.UpgradeDone, Message: "every step is made",
		}, c.recordProgress(ctx, nil, "the result is checked")
	}
	s := c.record.Steps[c.record.Step]
	if wait, err := c.rollBack(ctx, s); err != nil || wait.Outcome != "" {
		if err == nil {
			err = c.recordProgress(ctx, nil, wait.Message)
		}
		return wait, err
	}
	return events.UpgradeResult{
		Outcome: events.UpgradeGo, Message: route.StepName(s), Kind: string(s.Kind),
		Name: names.UpgradeStepExecution(c.in.Cluster, c.record.Execution, c.record.Step, c.record.Try),
	}, c.recordProgress(ctx, nil, route.StepName(s))
}
