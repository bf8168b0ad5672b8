// Package handler plans one cluster for an execution of drover-converge. shared/planner plans. This package takes the
// lease if something differs, records rolls that the execution requests, and writes the outcome to the status. An
// unchanged cluster with an unchanged spec costs reads only.
package handler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Planner plans clusters: planner.Planner.
type Planner interface {
	Plan(ctx context.Context, in planner.Request) (planner.Outcome, error)
	PlanDeletion(ctx context.Context, cluster string) (planner.Deletion, error)
	QueuedUpgrade(ctx context.Context, cluster string) (*planner.QueuedUpgrade, error)
	SpecToRoll(ctx context.Context, cluster string) (*api.Cluster, error)
	Persist(ctx context.Context, o *planner.Outcome) (planKey string, err error)
	PersistDeletion(ctx context.Context, deletion plan.Plan) (planKey string, err error)
}

// State is the state bucket: a subset of store.State.
type State interface {
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
	AddRolls(ctx context.Context, cluster string, pools []string, at time.Time) error
	AddDue(ctx context.Context, cluster string, at time.Time) error
	Lease(ctx context.Context, cluster string) (store.Lease, error)
	Acquire(ctx context.Context, cluster string, seen store.Lease, execution string) (store.Lease, error)
}

// Executions reports whether the holder of a lease still runs: a subset of stepfunctions.Executions.
type Executions interface {
	Running(ctx context.Context, execution string) (bool, error)
}

// Handler plans.
type Handler struct {
	Planner    Planner
	State      State
	Executions Executions
	Now        func() time.Time
}

// maxAttempts bounds the attempts to take the lease when other executions take it at the same moment.
const maxAttempts = 4

// Handle plans once. If the outcome is Changes or Deletes, the execution holds the lease. For other outcomes it may hold it. report
// releases it.
func (h *Handler) Handle(ctx context.Context, in events.PlanRequest) (events.PlanResult, error) {
	for range maxAttempts {
		result, err := h.attempt(ctx, in)
		var stopped *planner.Stop
		var refused *planner.RollRefused
		switch {
		case errors.As(err, &refused):
			logging.From(ctx).Info("roll refused", "cluster", in.Cluster, "roll", in.Roll, "reason", refused.Message)
			result.Outcome, result.Reason, result.Message = events.OutcomeRefused, status.ReasonRollRefused, refused.Message
			return result, h.recordRefusal(ctx, in.Cluster, refused.Message)
		case errors.As(err, &stopped):
			logging.From(ctx).Info("planning stopped", "cluster", in.Cluster, "reason", stopped.Reason, "message", stopped.Message)
			stopped.Fill(&result)
			return result, nil
		case !errors.Is(err, store.ErrConflict):
			return result, err
		}
	}
	return events.PlanResult{}, &fault.Transient{
		Cause: fmt.Errorf("taking the lease of %s: conflicted with other executions %d times", in.Cluster, maxAttempts),
	}
}

// attempt plans once. It ends as Busy if another execution holds the lease. It takes the lease only if something differs.
// store.ErrConflict means: try again.
func (h *Handler) attempt(ctx context.Context, in events.PlanRequest) (events.PlanResult, error) {
	result := events.PlanResult{Cluster: in.Cluster, Stages: plan.Plan{}.Stages()}
	lease, err := h.State.Lease(ctx, in.Cluster)
	if err != nil {
		return result, err
	}
	result.Seen = lease.Fence
	if lease.Execution != "" && lease.Execution != in.Execution {
		running, err := h.Executions.Running(ctx, lease.Execution)
		if err != nil {
			return result, err
		}
		if running {
			logging.From(ctx).Info("lease held", "cluster", in.Cluster, "execution", lease.Execution)
			result.Outcome = events.OutcomeBusy
			if err := h.requeueRolls(ctx, in); err != nil {
				return result, err
			}
			return result, h.recordQueuedUpgrade(ctx, in.Cluster)
		}
	}
	if lease.Execution == in.Execution {
		in.Roll = nil // this call is a retry: the rolls were recorded before the lease was taken
	}
	outcome, err := h.Planner.Plan(ctx, planner.Request{
		Cluster: in.Cluster, StacksOfStatus: in.Execution != "", Roll: in.Roll,
		Accept: func(ctx context.Context, spec *api.Cluster) error { return h.recordRolls(ctx, in, spec) },
	})
	if errors.Is(err, planner.ErrAbsent) {
		return h.delete(ctx, in, lease, result)
	}
	result.SpecVersion, result.Accepted, result.Rejected = outcome.SpecVersion, outcome.Accepted, outcome.Rejected
	if err != nil {
		return result, err
	}
	result.Upgrade, result.OverrideCleared = outcome.Upgrade, outcome.OverrideCleared
	if len(outcome.Plan.Changes) == 0 {
		result.Outcome = events.OutcomeUnchanged
		return result, h.record(ctx, in, &outcome, lease.Fence)
	}
	if lease, err = h.State.Acquire(ctx, in.Cluster, lease, in.Execution); err != nil {
		return result, err
	}
	result.Fence, result.Seen, result.Outcome, result.Stages = lease.Fence, lease.Fence, events.OutcomeChanges, outcome.Plan.Stages()
	if result.PlanKey, err = h.Planner.Persist(ctx, &outcome); err != nil {
		return result, err
	}
	return result, h.record(ctx, in, &outcome, lease.Fence)
}

// record writes the outcome to the status.
func (h *Handler) record(ctx context.Context, in events.PlanRequest, outcome *planner.Outcome, fence int64) error {
	return h.updateStatus(ctx, in.Cluster, fence, func(s *status.Status) { outcome.Record(s, in.Execution, h.Now()) })
}

// updateStatus changes the status under a fence. If a later holder of the lease wrote the status, it stays: then everything that was read
// here is stale, and the error is store.ErrConflict.
func (h *Handler) updateStatus(ctx context.Context, cluster string, fence int64, change func(*status.Status)) error {
	stale := false
	err := h.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		if stale = s.Fence > fence; stale {
			return
		}
		s.Fence = fence
		change(s)
	})
	if err == nil && stale {
		return store.ErrConflict
	}
	return err
}

// recordQueuedUpgrade records the upgrade that waits while another execution upgrades the cluster. The sweep plans
// again when its time comes.
func (h *Handler) recordQueuedUpgrade(ctx context.Context, cluster string) error {
	queued, err := h.Planner.QueuedUpgrade(ctx, cluster)
	if err != nil || queued == nil {
		return err
	}
	if !queued.RecheckAt.IsZero() {
		if err := h.State.AddDue(ctx, cluster, queued.RecheckAt); err != nil {
			return err
		}
	}
	return h.State.UpdateStatus(ctx, cluster, queued.Write)
}
