package audit

// Executions of drover-converge for clusters that need one. The reasons are part of the executions' names.

import (
	"context"
	"errors"
	"time"

	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// startConverge converges a cluster at this audit.
func (r *auditRun) startConverge(ctx context.Context, cluster string, s *status.Status, why names.Retry) error {
	_, err := r.startConvergeOnce(ctx, cluster, s, why, r.now)
	return err
}

// retryConverge converges a cluster whose next retry is due, unless its last execution still runs: that one retries itself.
func (r *auditRun) retryConverge(ctx context.Context, cluster string, s *status.Status) error {
	if s.Execution != "" {
		if running, err := r.Executions.Running(ctx, s.Execution); err != nil || running {
			return err
		}
	}
	return r.startConverge(ctx, cluster, s, names.RetryDue)
}

// repeatConverge converges a cluster because of a difference that exists since a time: at once, and again after 15 minutes, 30,
// one hour and so on. So a repair that does not help becomes rare. A repair that could not be started is started by
// the next audit.
func (r *auditRun) repeatConverge(ctx context.Context, cluster string, s *status.Status, why names.Retry,
	since time.Time) (begun bool, err error) {
	return r.startConvergeOnce(ctx, cluster, s, why, since.Add(backoff.Repeats(r.now.Sub(since))))
}

// startConvergeOnce converges a cluster, once for each minute at which it was due: a repeated audit starts no second execution. The next
// audit starts the clusters beyond maxStarts.
func (r *auditRun) startConvergeOnce(ctx context.Context, cluster string, s *status.Status, why names.Retry,
	at time.Time) (begun bool, err error) {
	if r.starts.Add(1) > maxStarts {
		return false, nil
	}
	begun, err = r.Executions.StartRetry(ctx, cluster, s.PlannedVersion, string(why)+" "+at.UTC().Truncate(time.Minute).Format(time.RFC3339))
	if err != nil {
		return false, err
	}
	if !begun {
		r.starts.Add(-1)
		return false, nil
	}
	logging.From(ctx).Warn("converging again", "cluster", cluster, "reason", why)
	return true, nil
}

// replaceStuck stops an execution that no known event will resume, and starts another. The sweep resumes an execution that has a waiter.
func (r *auditRun) replaceStuck(ctx context.Context, cluster string, s *status.Status) error {
	lease, err := r.State.Lease(ctx, cluster)
	if err != nil {
		return err
	}
	if lease.Execution != "" {
		running, err := r.Executions.Running(ctx, lease.Execution)
		if err != nil || !running { // the sweep records that it ended
			return err
		}
		if s.IsDelayed(r.now.Add(-period)) { // it polls with pauses, so it has no waiter
			return nil
		}
		for _, change := range s.Plan {
			w, err := r.State.Waiter(ctx, names.Stack(cluster, change.Stack))
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if err == nil && w.Execution == lease.Execution {
				return nil
			}
		}
		logging.From(ctx).Warn("execution stuck", "cluster", cluster, "execution", lease.Execution)
		if err := r.Executions.Stop(ctx, lease.Execution, "nothing would resume this execution: drover's audit starts another one"); err != nil {
			return err
		}
		if err := r.State.Release(ctx, cluster, lease.Execution); err != nil {
			return err
		}
	}
	return r.startConverge(ctx, cluster, s, names.RetrySilentExecution)
}
