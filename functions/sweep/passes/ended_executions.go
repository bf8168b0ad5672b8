package passes

import (
	"context"
	"errors"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// EndedExecutions continues the work of executions of drover-converge that ended without a report: they were aborted, timed out, or could
// not write the status. It records the end and releases the lease. The work continues after a pause that grows with each failure. If a
// removal of drover ended the execution, it continues at once. Step Functions sends an event of such an end: see Handle.
type EndedExecutions struct {
	State      EndedState
	Executions ConvergeExecutions
	Now        func() time.Time
}

// ConvergeExecutions starts executions of drover-converge: a subset of stepfunctions.Executions.
type ConvergeExecutions interface {
	work.Executions
	Converge(ctx context.Context, cluster, specVersion, after string) error
}

// EndedState holds the leases and statuses of clusters, and what is due: a subset of store.State.
type EndedState interface {
	Held(ctx context.Context) ([]string, error)
	Lease(ctx context.Context, cluster string) (store.Lease, error)
	Release(ctx context.Context, cluster, execution string) error
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	AddDue(ctx context.Context, cluster string, at time.Time) error
	work.StatusWriter
}

// Run checks the executions that hold a lease.
func (p EndedExecutions) Run(ctx context.Context) error {
	clusters, err := p.State.Held(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, cluster := range clusters {
		if err := p.release(ctx, cluster); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// Handle handles the event that an execution ended without success. An execution that reported its failure needs nothing. One that was
// stopped may have held the lease, or left work that no execution does: it had not planned yet, or waited for its next retry. The first
// sweep after a deployment continues what a removal of drover ended.
func (p EndedExecutions) Handle(ctx context.Context, ended events.ExecutionStatus) error {
	cluster := ended.Cluster()
	if cluster == "" || ended.Error == names.Removed {
		return nil
	}
	lease, err := p.State.Lease(ctx, cluster)
	if err != nil {
		return err
	}
	if lease.Execution == ended.ExecutionARN {
		return p.release(ctx, cluster)
	}
	if ended.Status == events.ExecutionFailed || names.IsUpgradeStep(cluster, ended.ExecutionARN) {
		return nil
	}
	document, err := p.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	at, pending := dueAfter(&document.Status, ended)
	if !pending {
		return nil
	}
	logging.From(ctx).Warn("execution stopped", "cluster", cluster, "execution", ended.ExecutionARN, "retry", at)
	return p.State.AddDue(ctx, cluster, at)
}

// dueAfter returns when a cluster is converged after an execution without the lease was stopped. A cluster that waits for an operator
// keeps waiting, unless there is a newer spec. To converge a cluster without pending work changes nothing.
func dueAfter(s *status.Status, ended events.ExecutionStatus) (at time.Time, pending bool) {
	switch {
	case s.Phase == status.Deleted:
		return at, false
	case s.Phase != status.Failed || s.ObservedVersion != s.PlannedVersion:
		return ended.Stopped().Add(backoff.QuickRetries[0]).Truncate(time.Second), true
	case s.RetryAt != nil && s.Execution == ended.ExecutionARN: // it waited for its next retry
		return *s.RetryAt, true
	}
	return at, false
}

// release releases the lease of a cluster if its execution ended.
func (p EndedExecutions) release(ctx context.Context, cluster string) error {
	lease, err := p.State.Lease(ctx, cluster)
	if err != nil || lease.Execution == "" {
		return err
	}
	running, removed, err := p.Executions.State(ctx, lease.Execution)
	if err != nil || running {
		return err
	}
	if removed {
		return p.resume(ctx, cluster, lease.Execution)
	}
	logging.From(ctx).Warn("execution ended without a report", "cluster", cluster, "execution", lease.Execution)
	var retry *time.Time
	err = p.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		s.FailUnreported(cluster, lease.Execution, p.Now())
		retry = s.RetryUnreported(lease.Execution)
	})
	if err != nil {
		return err
	}
	if retry != nil {
		if err := p.State.AddDue(ctx, cluster, *retry); err != nil {
			return err
		}
	}
	return p.State.Release(ctx, cluster, lease.Execution)
}

// resume continues the work of an execution that a removal of drover ended. The new execution takes over the lease, and the requested rolls
// are documents. The execution of an upgrade's step has no successor: the upgrade continues, see UpgradeEnder.
func (p EndedExecutions) resume(ctx context.Context, cluster, execution string) error {
	logging.From(ctx).Info("execution ended with the removal of drover", "cluster", cluster, "execution", execution)
	if !names.IsUpgradeStep(cluster, execution) {
		if err := p.Executions.Converge(ctx, cluster, "", execution); err != nil {
			return err
		}
	}
	return p.State.Release(ctx, cluster, execution)
}
