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

// Refusal says why an upgrade that begins now would be refused before anything is written, and is empty when it would not be, or would
// wait. What cannot be read is for the upgrade itself to tell of.
func (h *Handler) Refusal(ctx context.Context, in events.Upgrade) string {
	r, _, err := h.State.Upgrade(ctx, in.Cluster)
	if err != nil || r != nil && !r.State.Over() { // it waits for that one, and the cluster is another by then
		return ""
	}
	j, err := h.travel(ctx, events.UpgradeRequest{Upgrade: in}, r)
	if j.moving != "" {
		return ""
	}
	if err == nil && !there(j) {
		_, err = h.steps(ctx, j, in.Rollback)
	}
	var why *stop
	if !errors.As(err, &why) {
		return ""
	}
	return why.message
}

// StepName is what people read of a step.
func StepName(s upgrade.Step) string { return told(s) }
