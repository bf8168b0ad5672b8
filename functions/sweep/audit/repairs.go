package audit

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

// repairs starts drover-converge for clusters that need it. The reasons are part of the executions' names.
type repairs struct{ *round }

// start converges a cluster at this audit.
func (r repairs) start(ctx context.Context, cluster string, s *status.Status, why names.Retry) error {
	_, err := r.startOnce(ctx, cluster, s, why, r.now)
	return err
}

// retry converges a cluster whose next retry is due, unless its last execution still runs: that one retries itself.
func (r repairs) retry(ctx context.Context, cluster string, s *status.Status) error {
	if s.Execution != "" {
		if running, err := r.Executions.Running(ctx, s.Execution); err != nil || running {
			return err
		}
	}
	return r.start(ctx, cluster, s, names.RetryDue)
}

// repeat converges a cluster because of something that lasts since a time: at once, and again after 15 minutes, 30,
// one hour and so on. So a repair that does not help becomes rare. A repair that could not be started is started by
// the next audit.
func (r repairs) repeat(ctx context.Context, cluster string, s *status.Status, why names.Retry, since time.Time) (begun bool, err error) {
	return r.startOnce(ctx, cluster, s, why, since.Add(backoff.Repeats(r.now.Sub(since))))
}

// startOnce converges a cluster, once for each minute at which it was due: a repeated audit starts no second execution. The next audit
// starts the clusters beyond maxStarts.
func (r repairs) startOnce(ctx context.Context, cluster string, s *status.Status, why names.Retry, at time.Time) (begun bool, err error) {
	if r.starts.Add(1) > maxStarts {
		return false, nil
	}
	begun, err = r.Executions.StartRetry(ctx, cluster, s.SpecVersion, string(why)+" "+at.UTC().Truncate(time.Minute).Format(time.RFC3339))
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
func (r repairs) replaceStuck(ctx context.Context, cluster string, s *status.Status) error {
	lease, err := r.State.Lease(ctx, cluster)
	if err != nil {
		return err
	}
	if lease.Execution != "" {
		running, err := r.Executions.Running(ctx, lease.Execution)
		if err != nil || !running { // the sweep records that it ended
			return err
		}
		if s.IsDelayed(r.now.Add(-period)) { // it polls, and each poll takes its time
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
	return r.start(ctx, cluster, s, names.RetrySilentExecution)
}
