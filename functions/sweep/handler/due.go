package handler

// What was put off: rolls and upgrades at a time, those asked for while a cluster was busy, and clusters whose channel moved.

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/store"
)

// Starter starts to converge: a subset of stepfunctions.Executions.
type Starter interface {
	ConvergeDue(ctx context.Context, cluster string, at time.Time) error
}

// startsAtOnce bounds what one sweep starts: when a channel moves or a window opens, all clusters that follow it are due at the same
// minute, and the limits of AWS's APIs are the account's.
const startsAtOnce = 25

// due starts what is due, the clusters of which that is longest so first and those of one time by name. A cluster
// that is busy is left for the next sweep: its execution may have planned before the time came. So is what is over
// the bound.
func (h *Handler) due(ctx context.Context) error {
	dues, err := h.State.Dues(ctx, h.Now())
	if err != nil {
		return err
	}
	var clusters []string
	var inspections []store.Due
	of := map[string][]store.Due{}
	for _, due := range dues {
		if due.Inspect {
			inspections = append(inspections, due)
			continue
		}
		if of[due.Cluster] == nil {
			clusters = append(clusters, due.Cluster)
		}
		of[due.Cluster] = append(of[due.Cluster], due)
	}
	var failed []error
	started := 0
	for i, cluster := range clusters {
		if started == startsAtOnce {
			logging.From(ctx).Info("more is due than starts at once", "left", len(clusters)-i)
			break
		}
		holder, err := h.State.Holder(ctx, cluster, h.Executions.Running)
		switch {
		case err != nil:
		case holder != "":
			for _, due := range of[cluster] {
				err = errors.Join(err, h.busy(ctx, due, holder))
			}
		default:
			started++ // also one that fails: AWS may ask for less
			err = h.start(ctx, of[cluster])
		}
		failed = append(failed, err)
	}
	return errors.Join(append(failed, h.inspect(ctx, inspections))...)
}

// inspect audits clusters of which a stack was changed outside drover. What fails, or has to wait, is left to the next audit.
func (h *Handler) inspect(ctx context.Context, requests []store.Due) error {
	if len(requests) == 0 {
		return nil
	}
	clusters := map[string]bool{}
	for _, request := range requests {
		clusters[request.Cluster] = true
	}
	logging.From(ctx).Info("auditing changed clusters", "clusters", slices.Sorted(maps.Keys(clusters)))
	failed := []error{h.auditOf(ctx, clusters)}
	for _, request := range requests {
		failed = append(failed, h.State.Done(ctx, request))
	}
	return errors.Join(failed...)
}

// start converges a cluster once for all that is due. The newest time names the execution: if that was started
// before, the older had come, too. It is forgotten last, so that who is cut off here starts no other for one of the
// older.
func (h *Handler) start(ctx context.Context, dues []store.Due) error {
	newest := dues[len(dues)-1]
	logging.From(ctx).Info("due", "cluster", newest.Cluster, "at", newest.At)
	if err := h.Start.ConvergeDue(ctx, newest.Cluster, newest.At); err != nil {
		return err
	}
	for _, due := range dues {
		if err := h.State.Done(ctx, due); err != nil {
			return err
		}
	}
	return nil
}
