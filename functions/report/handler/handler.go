// Package handler implements the report function, the last function of drover-converge. It records the verdict in the
// status, and store.State sends the notices of that change. Then it releases the lease. Then it checks for a newer
// spec, so that a spec that arrived during the execution is not missed.
package handler

import (
	"context"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// Specs is the specs bucket: a subset of store.Objects.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// State is the state bucket: a subset of store.State.
type State interface {
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	// UpdateStatus sends the notifications before it writes.
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
	// AmendStatus is UpdateStatus for a cluster that has a status.
	AmendStatus(ctx context.Context, cluster string, change func(*status.Status)) error
	Lease(ctx context.Context, cluster string) (store.Lease, error)
	Release(ctx context.Context, cluster, execution string) error
	DeletePendingWork(ctx context.Context, cluster string) error
	Upgrade(ctx context.Context, cluster string) (*upgrade.Record, string, error)
	PutUpgrade(ctx context.Context, cluster string, record *upgrade.Record, etag string) (string, error)
}

// Handler handles reports.
type Handler struct {
	Specs Specs
	State State
	Now   func() time.Time
}

// Handle records the verdict on a round, releases the lease, and decides whether the execution plans again.
func (h *Handler) Handle(ctx context.Context, in events.ReportRequest) (events.ReportResult, error) {
	v := judge(in)
	if in.Plan != nil && in.Plan.Fence > 0 {
		lease, err := h.State.Lease(ctx, in.Cluster)
		if err != nil {
			return events.ReportResult{}, err
		}
		if lease.IsReleased(in.Plan.Fence) {
			// An earlier call of this execution released the lease, and its answer was lost. The verdict is recorded, and others may have
			// recorded more since.
			return h.decideNext(ctx, in, v)
		}
		if err := lease.Check(in.Cluster, in.Execution, in.Plan.Fence); err != nil {
			logging.From(ctx).Warn("lease taken over", "cluster", in.Cluster, "error", err.Error())
			// The new holder reports whether the cluster converges, and starts what follows.
			return events.ReportResult{Failed: v.Phase != status.Deleted, Reason: err.Error()}, nil
		}
	}
	// DeletePendingWork precedes the status. If the report is aborted between them, the status still shows Deleting, and
	// the report is repeated.
	if v.Phase == status.Deleted && in.Plan.Fence > 0 {
		if err := h.State.DeletePendingWork(ctx, in.Cluster); err != nil {
			return events.ReportResult{}, err
		}
	}
	if err := h.clearOverride(ctx, in); err != nil {
		return events.ReportResult{}, err
	}
	outdated, err := h.isOutdated(ctx, in)
	if err != nil {
		return events.ReportResult{}, err
	}
	recorded, err := h.record(ctx, in, &v, outdated)
	if err != nil {
		return events.ReportResult{}, err
	}
	switch {
	case !recorded:
		logging.From(ctx).Warn("status belongs to another execution", "cluster", in.Cluster)
	case outdated:
		logging.From(ctx).Info("planned spec is outdated", "cluster", in.Cluster, "planned", in.Plan.SpecVersion)
	}
	if err := h.State.Release(ctx, in.Cluster, in.Execution); err != nil {
		return events.ReportResult{}, err
	}
	result, err := h.decideNext(ctx, in, v)
	result.Again = result.Again || outdated && err == nil // also if the newer version was deleted since: the deletion must be planned
	return result, err
}

// decideNext decides how the execution continues after the verdict is recorded: it plans again, at once or after a pause, or it ends.
func (h *Handler) decideNext(ctx context.Context, in events.ReportRequest, v verdict) (events.ReportResult, error) {
	again, err := h.hasNewerSpec(ctx, in)
	result := events.ReportResult{Again: again, Failed: v.Phase == status.Failed, Reason: v.Message}
	if err != nil || again || len(v.quick) == 0 {
		return result, err
	}
	result.WaitSeconds, err = h.secondsUntilRetry(ctx, in, v.quick)
	result.Again = result.WaitSeconds > 0
	return result, err
}
