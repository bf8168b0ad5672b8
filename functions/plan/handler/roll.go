package handler

// Rolls that the input of an execution requests: it names pools.

import (
	"context"
	"errors"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// recordRolls records the pools that an execution is to roll. From then on the roll is part of the desired state, and
// any execution may make it. The time is that of the execution's start, so its later rounds request nothing more.
func (h *Handler) recordRolls(ctx context.Context, in events.PlanRequest, spec *api.Cluster) error {
	if len(in.Roll) == 0 {
		return nil
	}
	if err := planner.VerifyRoll(in.Cluster, in.Roll, spec); err != nil {
		return err
	}
	if err := h.State.AddRolls(ctx, in.Cluster, in.Roll, in.Started); err != nil {
		return err
	}
	return h.clearRefusal(ctx, in.Cluster)
}

// requeueRolls is recordRolls while another execution holds the lease. That execution may have planned already, so the sweep starts another
// one after it.
func (h *Handler) requeueRolls(ctx context.Context, in events.PlanRequest) error {
	if len(in.Roll) == 0 {
		return nil
	}
	spec, err := h.Planner.SpecToRoll(ctx, in.Cluster)
	if err != nil {
		return err
	}
	if err := h.recordRolls(ctx, in, spec); err != nil {
		return err
	}
	return h.State.AddDue(ctx, in.Cluster, in.Started)
}

// recordRefusal records the refusal of a request in the status, until the next request or the next spec. A cluster that has no status,
// or is deleted, gets none.
func (h *Handler) recordRefusal(ctx context.Context, cluster, message string) error {
	c, err := h.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) || err == nil && c.Status.Phase == status.Deleted {
		return nil
	}
	if err != nil {
		return err
	}
	return h.State.UpdateStatus(ctx, cluster, func(s *status.Status) { s.Refuse(status.ReasonRollRefused, message, h.Now()) })
}

// clearRefusal removes the refusal of an earlier request from the status.
func (h *Handler) clearRefusal(ctx context.Context, cluster string) error {
	c, err := h.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) || err == nil && c.Status.Condition(status.RequestAccepted) == nil {
		return nil
	}
	if err != nil {
		return err
	}
	return h.State.UpdateStatus(ctx, cluster, func(s *status.Status) { s.Unset(status.RequestAccepted) })
}
