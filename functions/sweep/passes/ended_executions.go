package passes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// EndedExecutions releases the leases of executions that ended without a report: they were aborted or timed out. It
// records that, and starts no other execution: an operator may have aborted this one. If a removal of drover ended it,
// another execution continues its work.
type EndedExecutions struct {
	State      Leases
	Executions ConvergeExecutions
	Now        func() time.Time
}

// ConvergeExecutions starts executions of drover-converge: a subset of stepfunctions.Executions.
type ConvergeExecutions interface {
	Executions
	Converge(ctx context.Context, cluster, specVersion, after string) error
}

// Leases holds the leases of clusters: a subset of store.State.
type Leases interface {
	Held(ctx context.Context) ([]string, error)
	Lease(ctx context.Context, cluster string) (store.Lease, error)
	Release(ctx context.Context, cluster, execution string) error
	StatusWriter
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
	message := fmt.Sprintf("execution %s ended without a report: run drover converge %s to continue", lease.Execution, cluster)
	err = p.State.UpdateStatus(ctx, cluster, func(s *status.Status) { s.FailUnreported(lease.Execution, message, p.Now()) })
	if err != nil {
		return err
	}
	return p.State.Release(ctx, cluster, lease.Execution)
}

// resume continues the work of an execution that a removal of drover ended. The new execution takes over the lease, and the requested rolls
// are documents. The execution of an upgrade's step has no successor: the upgrade continues, see UpgradeEnder.
func (p EndedExecutions) resume(ctx context.Context, cluster, execution string) error {
	logging.From(ctx).Info("execution ended with the removal of drover", "cluster", cluster, "execution", execution)
	if !names.MakesUpgrade(cluster, execution) {
		if err := p.Executions.Converge(ctx, cluster, "", execution); err != nil {
			return err
		}
	}
	return p.State.Release(ctx, cluster, execution)
}
