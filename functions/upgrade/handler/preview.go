package handler

// What an upgrade would do, for those who ask before they start one.

import (
	"context"
	"errors"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

// Preview is what the checks would be told of an upgrade, with the steps that are still to be made. It only reads. An upgrade that
// cannot be made is an error that says why; without steps, the cluster is there already.
func (h *Handler) Preview(ctx context.Context, in events.Upgrade) (*preflight.Plan, error) {
	r, _, err := h.State.Upgrade(ctx, in.Cluster)
	if err != nil {
		return nil, err
	}
	j, err := h.travel(ctx, events.UpgradeRequest{Upgrade: in}, r)
	if j.moving != "" {
		return nil, stopf("the stack of the control plane %s: ask again when that is over", j.moving)
	}
	if err != nil {
		return nil, err
	}
	p := j.checked(in.Cluster, in.Rollback, nil)
	if there(j) {
		return p, nil
	}
	var steps []upgrade.Step
	open := 0
	if last := j.last.Changed(); last.Fits(j.from, j.to) {
		steps, open = last.Steps, last.Step
	}
	steps, open, err = h.way(ctx, events.UpgradeRequest{Upgrade: in}, j, steps, open)
	if err == nil {
		p.Steps = steps[min(open, len(steps)):]
	}
	return p, err
}

// Answer is what the check would answer at once to an upgrade that is started by hand now: that it is refused, or that there is nothing to
// do. Its Outcome is empty when the upgrade would begin or wait. It only reads.
func (h *Handler) Answer(ctx context.Context, in events.Upgrade) (events.UpgradeResult, error) {
	request := events.UpgradeRequest{Upgrade: in}
	r, _, err := h.State.Upgrade(ctx, in.Cluster)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if r != nil && !r.State.Over() {
		running, err := h.Executions.Running(ctx, r.Execution)
		if err != nil {
			return events.UpgradeResult{}, err
		}
		if running { // any other upgrade waits for this one, and the cluster is another by then
			if of, err := h.of(ctx, in.Cluster, r); err != nil || !of || !same(request, r) {
				return events.UpgradeResult{}, err
			}
			return events.UpgradeResult{Outcome: events.UpgradeNothing, Message: r.Execution + " makes this upgrade already"}, nil
		}
	}
	j, err := h.travel(ctx, request, r)
	switch {
	case j.moving != "":
		return events.UpgradeResult{}, nil
	case err == nil && there(j):
		return events.UpgradeResult{Outcome: events.UpgradeNothing, Message: "the cluster is at " + j.to.String()}, nil
	case err == nil:
		_, err = h.steps(ctx, j, in.Rollback)
	}
	var why *stop
	if errors.As(err, &why) {
		return events.UpgradeResult{Outcome: events.UpgradeRefused, Message: why.message}, nil
	}
	return events.UpgradeResult{}, err
}

// StepName is what people read of a step.
func StepName(s upgrade.Step) string { return told(s) }
