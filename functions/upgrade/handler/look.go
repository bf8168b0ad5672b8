package handler

// The checks of an upgrade that is to come, before its time: so that what is in its way is heard of while somebody is there to mend it.

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
)

// look runs the checks, as a dry run does, and tells what they found. The record stays as it is, and so does the cluster.
func (h *Handler) look(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	found, err := h.foresee(ctx, in.Upgrade)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	now := when(h.Now())
	err = h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		u := s.Upgrade
		if u == nil || u.Phase != status.UpgradeScheduled || u.To != in.Release || u.Origin != in.Origin {
			return // it began meanwhile, or was taken back
		}
		u.Checks, u.Checked = found, now
	})
	return events.UpgradeResult{
		Outcome: events.UpgradeNothing, Message: fmt.Sprintf("looked ahead: %d checks found something", len(found)),
	}, err
}

// foresee says what the checks find now. That it could not be made at all is a finding, too.
func (h *Handler) foresee(ctx context.Context, in events.Upgrade) ([]status.Check, error) {
	plan, err := h.Preview(ctx, in)
	var stopped *stop
	switch {
	case errors.As(err, &stopped):
		return []status.Check{
			{Name: preflight.UpgradePossible, Blocks: true, Message: stopped.message, Next: "Correct it before the time comes, or " +
				"take the upgrade back."},
		}, nil
	case err != nil:
		return nil, err
	}
	facts, err := h.Facts.Before(ctx, plan)
	if err != nil {
		return nil, err
	}
	return preflight.Before(facts, plan), nil
}
