package handler

// What was put off: rolls and upgrades at a time, those asked for while a cluster was busy, and clusters whose channel moved.

import (
	"context"
	"errors"
	"time"

	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/store"
)

// Starter starts to converge: a subset of executions.Executions.
type Starter interface {
	ConvergeDue(ctx context.Context, cluster string, at time.Time) error
}

// due starts what is due. A cluster that is busy is left for the next sweep: its execution may have planned before the time came.
func (h *Handler) due(ctx context.Context) error {
	dues, err := h.State.Dues(ctx, h.Now())
	if err != nil {
		return err
	}
	var failed []error
	for _, due := range dues {
		if err := h.start(ctx, due); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (h *Handler) start(ctx context.Context, due store.Due) error {
	lease, err := h.State.Lease(ctx, due.Cluster)
	if err != nil {
		return err
	}
	if lease.Execution != "" {
		running, err := h.Executions.Running(ctx, lease.Execution)
		if err != nil {
			return err
		}
		if running {
			return h.busy(ctx, due, lease.Execution)
		}
	}
	boundary.Log(ctx).Info("due", "cluster", due.Cluster, "at", due.At)
	if err := h.Start.ConvergeDue(ctx, due.Cluster, due.At); err != nil {
		return err
	}
	return h.State.Done(ctx, due)
}
