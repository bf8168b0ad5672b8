package handler

// The upgrade in the status: its phase and its steps, and what it waits for or why it stopped.

import (
	"cmp"
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
func (r *run) recordProgress(ctx context.Context, checks []status.Check, message string) error {
	if !r.record.State.Over() {
		return r.State.UpdateStatus(ctx, r.in.Cluster, func(s *status.Status) { r.apply(s, checks, message, aftermath{}) })
	}
	return r.recordEnd(ctx, func(s *status.Status, a aftermath) {
		r.apply(s, checks, message, a)
		a.Next(s)
		if a.Observe != nil && !a.busy { // an execution for a step may have ended before it recorded the stacks
			a.Observe(s)
		}
	})
}

// aftermath is what the status shows after an upgrade, besides the upgrade.
type aftermath struct {
	status.PostUpgrade
	// busy is true while an execution converges the cluster.
	busy bool
	// fence is the fence of the lease. An execution for a step may have taken the lease, and ended before it wrote the status.
	fence int64
	// earlier is true if the upgrade belongs to an earlier cluster of this name. Then it does not answer the present spec.
	earlier bool
}

// maxAttempts limits how often recordEnd starts again while other executions converge the cluster.
const maxAttempts = 4

// recordEnd writes the end of an upgrade to the status. If a later holder of the lease has written the status since the aftermath was read,
// that holder has newer facts, and recordEnd reads it again.
func (r *run) recordEnd(ctx context.Context, change func(*status.Status, aftermath)) error {
	for range maxAttempts {
		a, err := r.readAftermath(ctx)
		if err != nil {
			return err
		}
		stale := false
		err = r.State.UpdateStatus(ctx, r.in.Cluster, func(s *status.Status) {
			if stale = s.Fence > a.fence; !stale {
				change(s, a)
			}
		})
		if err != nil || !stale {
			return err
		}
	}
	return &fault.Transient{
		Cause: fmt.Errorf("telling how the upgrade of %s ended: others converge it meanwhile: %w", r.in.Cluster, store.ErrConflict),
	}
}

// readAftermath reads the lease first, so that an execution that takes the lease during the other reads has a higher fence.
func (r *run) readAftermath(ctx context.Context) (a aftermath, err error) {
	lease, err := r.State.Lease(ctx, r.in.Cluster)
	if err != nil {
		return a, err
	}
	a.fence = lease.Fence
	if a.PostUpgrade, err = r.Planner.After(ctx, r.in.Cluster); err != nil || lease.Execution == "" {
		return a, err
	}
	a.busy, err = r.Executions.Running(ctx, lease.Execution)
	return a, err
}

// recordStop writes the end of an upgrade. If the upgrade belongs to an earlier cluster of this name, it writes only while the status still
// shows that upgrade.
func (r *run) recordStop(ctx context.Context, message string) error {
	current, err := r.Checker.IsCurrent(ctx, r.in.Cluster, r.record)
	if err != nil {
		return err
	}
	if current {
		return r.recordProgress(ctx, nil, message)
	}
	return r.recordEnd(ctx, func(s *status.Status, a aftermath) {
		if a.earlier = true; s.Upgrade != nil && s.Upgrade.Execution == r.record.Execution {
			r.apply(s, nil, message, a)
		}
	})
}

// apply sets the upgrade, its condition and the phase of the cluster in a status.
func (r *run) apply(s *status.Status, checks []status.Check, message string, a aftermath) {
	u := describe(r.record)
	u.Checks, u.Checked, u.Message = checks, when(r.Now()), message
	if checks == nil {
		u.Checked = nil
		if old := s.Upgrade; old != nil && old.Execution == u.Execution {
			u.Checks, u.Checked = old.Checks, old.Checked
		}
	}
	if old := s.Upgrade; old != nil && (old.Phase == status.UpgradeScheduled || old.Phase == status.UpgradeDelayed) && old.To != u.To &&
		s.NextUpgrade == nil {
		s.NextUpgrade = old // this upgrade began before the scheduled one
	}
	s.Upgrade = &u
	s.Forgo(u.Execution)
	state, origin := r.record.State, r.record.Origin
	if state == upgrade.Checking && (origin == upgrade.OriginHand || origin == upgrade.OriginRollback) {
		s.Unset(status.RequestAccepted) // an earlier request was refused, this one is accepted
	}
	if state.Over() {
		s.Remember(u)
		s.Fence = a.fence
		if state == upgrade.Stopped && !a.busy && !a.earlier {
			s.Unplan()
		}
	}
	condition := status.Condition{Type: status.Upgraded, Status: "False", Message: message}
	switch state {
	case upgrade.Done:
		condition.Status, condition.Reason = "True", status.ReasonUpgraded
	case upgrade.Blocked, upgrade.Stopped:
		condition.Reason = status.GapForState(string(state)).Reason
	default:
		condition.Reason = status.ReasonUpgrading
	}
	s.Set(condition, r.Now())
	r.applyPhase(s, message, a)
}

// applyPhase sets the phase of the cluster.
//
//  1. A cluster that is being deleted keeps its phase.
//  2. During an upgrade the phase is Upgrading.
//  3. If an upgrade of the spec was blocked or stopped, the spec is not applied: the cluster is not Converged.
//  4. After any other upgrade the phase is the result of planning. If planning found changes, it is what the condition Converged states.
func (r *run) applyPhase(s *status.Status, message string, a aftermath) {
	converged := s.Condition(status.Converged)
	bySpec := !a.earlier && (r.record.Origin == upgrade.OriginSpec || r.record.Over == "" && a.Verdict == nil)
	switch {
	case s.Phase == status.Deleting || s.Phase == status.Deleted:
	case !r.record.State.Over():
		s.Phase, s.Message = status.Upgrading, message
	case r.record.State != upgrade.Done && bySpec:
		gap := status.GapForState(string(r.record.State))
		s.Phase, s.Message = gap.Phase, message
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: gap.Reason, Message: message}, r.Now())
	case s.Phase != status.Upgrading && s.Phase != status.Failed || converged == nil:
	case a.busy && converged.Reason == status.ReasonConverging:
		s.Phase, s.Message = status.Converging, converged.Message // the running execution records its result
	case a.Verdict != nil:
		v := *a.Verdict
		v.Apply(s, r.Now())
	case s.Phase == status.Failed:
	case converged.Status == "True":
		s.Phase, s.Message = status.Ready, status.AsSpecified
		if override := r.record.OverrideReason(upgrade.Target{}); override != "" {
			s.Message = status.ButRelease + override
		}
	default:
		s.Phase, s.Message = cmp.Or(status.GapForReason(converged.Reason).Phase, status.Failed), converged.Message
	}
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

// recordWaiting records that an upgrade waits for its cluster, or was missed. If another upgrade is in flight, that one stays in
// status.upgrade, and this one is status.nextUpgrade.
func (r *run) recordWaiting(ctx context.Context, to upgrade.Target, phase, message string) error {
	u := status.Upgrade{
		Phase: phase, To: to.Release, ToVersion: to.KubernetesVersion, Origin: string(startOf(r.in).Origin), At: when(dueAt(r.in)),
		Execution: r.in.Execution, Message: message,
	}
	from, err := r.deployedTarget(ctx)
	if err != nil {
		return err
	}
	return r.State.UpdateStatus(ctx, r.in.Cluster, func(s *status.Status) {
		other := s.Upgrade
		if other != nil && (other.Execution == u.Execution ||
			other.Phase != string(upgrade.Checking) && other.Phase != string(upgrade.Running)) {
			other = nil
		}
		u.From, u.FromVersion = from.Release, from.KubernetesVersion
		if other != nil {
			u.From, u.FromVersion = other.To, other.ToVersion // this one begins after the other
		}
		if phase == status.UpgradeMissed {
			s.Remember(u)
		}
		if other != nil {
			s.NextUpgrade = &u
			return
		}
		s.Forgo(u.Execution)
		s.Upgrade = &u
		if phase == status.UpgradeMissed {
			s.Set(status.Condition{Type: status.Upgraded, Status: "False", Reason: status.ReasonUpgradeMissed, Message: message}, r.Now())
		}
	})
}

// deployedTarget reads the deployed release; zero if the cluster has none that is known.
func (r *run) deployedTarget(ctx context.Context) (upgrade.Target, error) {
	target, err := r.Checker.Deployed(ctx, r.in.Cluster)
	var absent *route.StopError
	if errors.As(err, &absent) {
		return upgrade.Target{}, nil
	}
	return target, err
}

// refuse records an upgrade that cannot begin. A request by an operator is refused, which is the answer to the operator and no failed
// upgrade. Any other upgrade is blocked. If this execution claimed the upgrade before, stop records the reason.
func (r *run) refuse(ctx context.Context, last *upgrade.Record, why error) (events.UpgradeResult, error) {
	var stopped *route.StopError
	switch {
	case !errors.As(why, &stopped), r.in.Origin == "" && r.hasClaimed(last):
		return events.UpgradeResult{}, why
	case r.in.Origin == "":
		return events.UpgradeResult{Outcome: events.UpgradeRefused, Message: stopped.Message}, r.recordRefusal(ctx, stopped.Message)
	}
	from, err := r.deployedTarget(ctx)
	if err != nil {
		return events.UpgradeResult{}, errors.Join(why, err)
	}
	u := status.Upgrade{
		Phase: string(upgrade.Blocked), From: from.Release, FromVersion: from.KubernetesVersion, To: r.in.Release,
		ToVersion: r.in.KubernetesVersion, Origin: r.in.Origin, Ended: when(r.Now()), Execution: r.in.Execution, Message: stopped.Message,
	}
	err = r.State.UpdateStatus(ctx, r.in.Cluster, func(s *status.Status) {
		s.Upgrade = &u
		s.Remember(u)
		s.Set(status.Condition{Type: status.Upgraded, Status: "False", Reason: status.ReasonUpgradeBlocked, Message: stopped.Message}, r.Now())
	})
	return events.UpgradeResult{}, errors.Join(why, err)
}

// recordRefusal records the refusal of a request in the status, until the next request or the next spec. It skips a cluster that has no
// status or is deleted.
func (r *run) recordRefusal(ctx context.Context, message string) error {
	c, err := r.State.Status(ctx, r.in.Cluster)
	if errors.Is(err, store.ErrNotFound) || err == nil && c.Status.Phase == status.Deleted {
		return nil
	}
	if err != nil {
		return err
	}
	return r.State.UpdateStatus(ctx, r.in.Cluster, func(s *status.Status) { s.Refuse(status.ReasonUpgradeRefused, message, r.Now()) })
}
