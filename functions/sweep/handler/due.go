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

// startsAtOnce bounds what one sweep starts: when a channel moves or a window opens, all clusters that follow it are due at the same
// minute, and the limits of AWS's APIs are the account's.
const startsAtOnce = 25

// due starts what is due, the oldest first and those of one time by name. A cluster that is busy is left for the next sweep: its execution
// may have planned before the time came. So is what is over the bound.
func (h *Handler) due(ctx context.Context) error {
	dues, err := h.State.Dues(ctx, h.Now())
	if err != nil {
		return err
	}
	var failed []error
	started := 0
	for i, due := range dues {
		if started == startsAtOnce {
			boundary.Log(ctx).Info("more is due than starts at once", "left", len(dues)-i)
			break
		}
		holder, err := h.State.Holder(ctx, due.Cluster, h.Executions.Running)
		switch {
		case err != nil:
		case holder != "":
			err = h.busy(ctx, due, holder)
		default:
			started++ // also one that fails: AWS may ask for less
			err = h.start(ctx, due)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (h *Handler) start(ctx context.Context, due store.Due) error {
	boundary.Log(ctx).Info("due", "cluster", due.Cluster, "at", due.At)
	if err := h.Start.ConvergeDue(ctx, due.Cluster, due.At); err != nil {
		return err
	}
	return h.State.Done(ctx, due)
}
