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
func begin(ctx context.Context, r *run) (events.UpgradeResult, error) {
	if err := r.loadOwned(ctx); err != nil {
		return events.UpgradeResult{}, err
	}
	if r.record.State != upgrade.Running {
		if err := r.selectAlarms(ctx); err != nil {
			return events.UpgradeResult{}, err
		}
		r.record.State, r.record.Last = upgrade.Running, nil
		r.openStep()
		// The record is written first, so that stop knows which alarms to enable.
		if err := r.write(ctx); err != nil {
			return events.UpgradeResult{}, err
		}
	}
	if err := r.Alarms.DisableActions(ctx, r.record.Alarms); err != nil {
		return events.UpgradeResult{}, err
	}
	return r.startStep(ctx)
}

// selectAlarms adds to the record the alarms to disable: those of the spec that are enabled, and whose tags allow it. An alarm that a user
// disabled is not added, and so stays disabled afterwards.
func (r *run) selectAlarms(ctx context.Context) error {
	spec, err := r.Checker.Spec(ctx, r.in.Cluster)
	if err != nil {
		return err
	}
	alarms, err := r.Alarms.Describe(ctx, spec.Spec.Upgrade.Alarms)
	if err != nil {
		return err
	}
	for _, a := range alarms {
		if a.Actions && a.Silence && !slices.Contains(r.record.Alarms, a.Name) {
			r.record.Alarms = append(r.record.Alarms, a.Name)
		}
	}
	return nil
}

// openStep opens the next step. A step that an earlier execution started keeps that time; old nodes get the full time again.
func (r *run) openStep() {
	if r.record.Step >= len(r.record.Steps) {
		return
	}
	s := &r.record.Steps[r.record.Step]
	s.Converged, s.Opened = time.Time{}, r.Now().UTC()
	if s.Started.IsZero() {
		s.Started = s.Opened
	}
}

// startStep has the machine start drover-converge for the open step. Without an open step, the machine calls finish.
func (r *run) startStep(ctx context.Context) (events.UpgradeResult, error) {
	if r.record.Step >= len(r.record.Steps) {
		return events.UpgradeResult{
			Outcome: events.UpgradeDone, Message: "every step is made",
		}, r.recordProgress(ctx, nil, "the result is checked")
	}
	s := r.record.Steps[r.record.Step]
	return events.UpgradeResult{
		Outcome: events.UpgradeGo, Message: route.StepName(s), Kind: string(s.Kind),
		Name: names.UpgradeExecution(r.in.Cluster, r.record.Execution, r.record.Step, r.record.Try),
	}, r.recordProgress(ctx, nil, route.StepName(s))
}
