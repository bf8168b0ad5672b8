package handler

// The upgrade in the status: its phase and its steps, and what it waits for or why it stopped.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// recordProgress writes the upgrade to the status. If checks is nil, the checks of an earlier call stay. At the end of the upgrade it also
// writes what applies to the cluster afterwards, since an upgrade that changed nothing starts no drover-converge.
func (c *call) recordProgress(ctx context.Context, checks []status.Check, message string) error {
	if !c.record.State.Final() {
		return c.State.UpdateStatus(ctx, c.in.Cluster, func(s *status.Status) { c.apply(s, checks, message, status.UpgradeEnd{}) })
	}
	return c.recordEnd(ctx, func(s *status.Status, a status.UpgradeEnd) {
		c.apply(s, checks, message, a)
		a.Next(s)
		if a.Observe != nil && !a.Busy { // an execution for a step may have ended before it recorded the stacks
			a.Observe(s)
		}
	})
}

// maxAttempts limits how often recordEnd starts again while other executions converge the cluster.
const maxAttempts = 4

// recordEnd writes the end of an upgrade to the status. If a later holder of the lease has written the status since readEnd read the lease,
// that holder has newer facts, and recordEnd reads them again.
func (c *call) recordEnd(ctx context.Context, change func(*status.Status, status.UpgradeEnd)) error {
	for range maxAttempts {
		a, err := c.readEnd(ctx)
		if err != nil {
			return err
		}
		stale := false
		err = c.State.UpdateStatus(ctx, c.in.Cluster, func(s *status.Status) {
			if stale = s.Fence > a.Fence; !stale {
				change(s, a)
			}
		})
		if err != nil || !stale {
			return err
		}
	}
	return &fault.Transient{
		Cause: fmt.Errorf("recording the end of the upgrade of %s: another execution converges the cluster: %w", c.in.Cluster, store.ErrConflict),
	}
}

// readEnd reads the lease first, so that an execution that takes the lease during the other reads has a higher fence.
func (c *call) readEnd(ctx context.Context) (a status.UpgradeEnd, err error) {
	lease, err := c.State.Lease(ctx, c.in.Cluster)
	if err != nil {
		return a, err
	}
	a.Fence = lease.Fence
	if a.AfterUpgrade, err = c.Planner.AfterUpgrade(ctx, c.in.Cluster); err != nil || lease.Execution == "" {
		return a, err
	}
	a.Busy, err = c.Executions.Running(ctx, lease.Execution)
	return a, err
}

// recordStop writes the end of an upgrade. If the upgrade belongs to an earlier cluster of this name, it writes only while the status still
// shows that upgrade.
func (c *call) recordStop(ctx context.Context, message string) error {
	current, err := c.Checker.IsCurrent(ctx, c.in.Cluster, c.record)
	if err != nil {
		return err
	}
	if current {
		return c.recordProgress(ctx, nil, message)
	}
	return c.recordEnd(ctx, func(s *status.Status, a status.UpgradeEnd) {
		if a.Earlier = true; s.Upgrade != nil && s.Upgrade.Execution == c.record.Execution {
			c.apply(s, nil, message, a)
		}
	})
}

// apply sets the upgrade, its condition and the phase of the cluster in a status.
func (c *call) apply(s *status.Status, checks []status.Check, message string, a status.UpgradeEnd) {
	u := describe(c.record)
	u.Message = message
	if checks != nil {
		u.Checks, u.Checked = checks, when(c.Now())
	}
	s.RecordUpgrade(u, c.record, a, c.Now())
}

// describe converts a record for the status.
func describe(r *upgrade.Record) status.Upgrade {
	u := status.Upgrade{
		Phase: string(r.State), From: r.From.Release, FromVersion: r.From.KubernetesVersion, To: r.Target.Release,
		ToVersion: r.Target.KubernetesVersion,
		Origin:    string(r.Origin), Execution: r.Execution, Started: when(r.Started), Ended: when(r.Ended),
		Images: r.Images,
	}
	for _, s := range r.Steps {
		step := status.UpgradeStep{Name: route.StepName(s), Started: when(s.Started), Ended: when(s.Ended)}
		if !s.Started.IsZero() && s.Opened.After(s.Started) {
			step.Opened = when(s.Opened)
		}
		u.Steps = append(u.Steps, step)
	}
	return u
}

// when is a time in the status: in UTC and whole seconds, or nil for a zero time.
func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}

// recordWaiting records that an upgrade waits for its cluster, or was missed.
func (c *call) recordWaiting(ctx context.Context, to upgrade.Target, phase, message string) error {
	u := status.Upgrade{
		Phase: phase, To: to.Release, ToVersion: to.KubernetesVersion, Origin: string(startOf(c.in).Origin), At: when(dueAt(c.in)),
		Execution: c.in.Execution, Message: message,
	}
	from, err := c.deployedTarget(ctx)
	if err != nil {
		return err
	}
	u.From, u.FromVersion = from.Release, from.KubernetesVersion
	return c.State.UpdateStatus(ctx, c.in.Cluster, func(s *status.Status) { s.RecordWaiting(u, c.Now()) })
}

// deployedTarget reads the deployed release; zero if the cluster has none that is known.
func (c *call) deployedTarget(ctx context.Context) (upgrade.Target, error) {
	target, err := c.Checker.Deployed(ctx, c.in.Cluster)
	var absent *route.StopError
	if errors.As(err, &absent) {
		return upgrade.Target{}, nil
	}
	return target, err
}

// refuse records an upgrade that cannot begin. A request by an operator is refused, which is the answer to the operator and no failed
// upgrade. Any other upgrade is blocked. If this execution claimed the upgrade before, stop records the reason.
func (c *call) refuse(ctx context.Context, last *upgrade.Record, why error) (events.UpgradeResult, error) {
	var stopped *route.StopError
	switch {
	case !errors.As(why, &stopped), c.in.Origin == "" && c.hasClaimed(last):
		return events.UpgradeResult{}, why
	case c.in.Origin == "":
		return events.UpgradeResult{Outcome: events.UpgradeRefused, Message: stopped.Message}, c.recordRefusal(ctx, stopped.Message)
	}
	if err := c.refuseAssigned(ctx, stopped.Message); err != nil {
		return events.UpgradeResult{}, err
	}
	from, err := c.deployedTarget(ctx)
	if err != nil {
		return events.UpgradeResult{}, errors.Join(why, err)
	}
	u := status.Upgrade{
		From: from.Release, FromVersion: from.KubernetesVersion, To: c.in.Release, ToVersion: c.in.KubernetesVersion, Origin: c.in.Origin,
		Ended: when(c.Now()), Execution: c.in.Execution, Message: stopped.Message,
	}
	err = c.State.UpdateStatus(ctx, c.in.Cluster, func(s *status.Status) { s.BlockUpgrade(u, c.Now()) })
	return events.UpgradeResult{}, errors.Join(why, err)
}

// recordRefusal records the refusal of a request in the status, until the next request or the next spec. It skips a cluster that has no
// status or is deleted.
func (c *call) recordRefusal(ctx context.Context, message string) error {
	cluster, err := c.State.Status(ctx, c.in.Cluster)
	if errors.Is(err, store.ErrNotFound) || err == nil && cluster.Status.Phase == status.Deleted {
		return nil
	}
	if err != nil {
		return err
	}
	return c.State.UpdateStatus(ctx, c.in.Cluster, func(s *status.Status) { s.Refuse(status.ReasonUpgradeRefused, message, c.Now()) })
}
