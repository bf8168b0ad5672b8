package handler

// What people read of an upgrade: its phase, its steps, and what it waits for or why it stopped.

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
)

// upgradeStopped is the error that the machine gives to what this function itself ended.
const upgradeStopped = status.ReasonUpgradeStopped

// tell writes an upgrade into the status. nil keeps the checks that were told of it before. When it is over that is told together with what
// comes after it, and what the cluster is without it: nobody converges a cluster for an upgrade that changed nothing.
func (h *Handler) tell(ctx context.Context, cluster string, r *upgrade.Record, checks []status.Check, message string) error {
	if !r.State.Over() {
		return h.State.UpdateStatus(ctx, cluster, func(s *status.Status) { h.say(s, r, checks, message, end{}) })
	}
	return h.tellEnd(ctx, cluster, func(s *status.Status, e end) {
		h.say(s, r, checks, message, e)
		e.Next(s)
		if e.Observe != nil && !e.busy { // an execution that was to make a step may have ended before it told what came of it
			e.Observe(s)
		}
	})
}

// end is what is to be told at the end of an upgrade beside it.
type end struct {
	status.Afterwards
	// busy says that the cluster is being converged.
	busy bool
	// fence of the lease as it is by then: an execution that was to make a step may have had it, and ended before it told so.
	fence int64
	// earlier says that the upgrade was of an earlier cluster of this name: no spec of the one that is there asked for it.
	earlier bool
}

// looks bounds how often the end is looked at anew, while others converge the cluster.
const looks = 4

// tellEnd writes the end of an upgrade into the status. Who took the lease since that was looked at, and wrote there,
// knows more: then it is looked at again.
func (h *Handler) tellEnd(ctx context.Context, cluster string, change func(*status.Status, end)) error {
	for range looks {
		e, err := h.end(ctx, cluster)
		if err != nil {
			return err
		}
		late := false
		err = h.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
			if late = s.Fence > e.fence; !late {
				change(s, e)
			}
		})
		if err != nil || !late {
			return err
		}
	}
	return &fault.Transient{
		Cause: fmt.Errorf("telling how the upgrade of %s ended: others converge it meanwhile: %w", cluster, store.ErrConflict),
	}
}

// end looks at the lease first: whoever takes it while the rest is looked at has a later fence.
func (h *Handler) end(ctx context.Context, cluster string) (e end, err error) {
	lease, err := h.State.Lease(ctx, cluster)
	if err != nil {
		return e, err
	}
	e.fence = lease.Fence
	if e.Afterwards, err = h.Planner.After(ctx, cluster); err != nil || lease.Execution == "" {
		return e, err
	}
	e.busy, err = h.Executions.Running(ctx, lease.Execution)
	return e, err
}

// tellOf does the same of an upgrade that was perhaps of an earlier cluster of this name: then only if it is the one that the status
// still shows.
func (h *Handler) tellOf(ctx context.Context, cluster string, r *upgrade.Record, message string) error {
	of, err := h.of(ctx, cluster, r)
	if err != nil {
		return err
	}
	if of {
		return h.tell(ctx, cluster, r, nil, message)
	}
	return h.tellEnd(ctx, cluster, func(s *status.Status, e end) {
		if e.earlier = true; s.Upgrade != nil && s.Upgrade.Execution == r.Execution {
			h.say(s, r, nil, message, e)
		}
	})
}

func (h *Handler) say(s *status.Status, r *upgrade.Record, checks []status.Check, message string, e end) {
	u := describe(r)
	u.Checks, u.Checked, u.Message = checks, when(h.Now()), message
	if checks == nil {
		u.Checked = nil
		if old := s.Upgrade; old != nil && old.Execution == u.Execution {
			u.Checks, u.Checked = old.Checks, old.Checked
		}
	}
	if old := s.Upgrade; old != nil && (old.Phase == status.UpgradeScheduled || old.Phase == status.UpgradeDelayed) && old.To != u.To &&
		s.NextUpgrade == nil {
		s.NextUpgrade = old // this one began before it
	}
	s.Upgrade = &u
	s.Forgo(u.Execution)
	if r.State == upgrade.Checking && (r.Origin == upgrade.OriginHand || r.Origin == upgrade.OriginRollback) {
		s.Unset(status.RequestAccepted) // this request was accepted
	}
	if r.State.Over() {
		s.Remember(u)
		s.Fence = e.fence // tellEnd reads it again when a later holder of the lease has written
		if r.State == upgrade.Stopped && !e.busy && !e.earlier {
			s.Unplan()
		}
	}
	condition := status.Condition{Type: status.Upgraded, Status: "False", Message: message}
	switch r.State {
	case upgrade.Done:
		condition.Status, condition.Reason = "True", status.ReasonUpgraded
	case upgrade.Blocked, upgrade.Stopped:
		condition.Reason = status.LackOf(string(r.State)).Reason
	default:
		condition.Reason = status.ReasonUpgrading
	}
	s.Set(condition, h.Now())
	h.phase(s, r, message, e)
}

// phase of the cluster. That its spec was not followed is the cluster's own state; after an upgrade of any other origin it is what
// converging says of it or, where there is something to change, what it was. What becomes of a cluster that is being deleted is for others
// to tell, and so is what was said of it since.
func (h *Handler) phase(s *status.Status, r *upgrade.Record, message string, e end) {
	converged := s.Condition(status.Converged)
	asked := !e.earlier && (r.Origin == upgrade.OriginSpec || r.Over == "" && e.Verdict == nil)
	switch {
	case s.Phase == status.Deleting || s.Phase == status.Deleted:
	case !r.State.Over():
		s.Phase, s.Message = status.Upgrading, message
	case r.State != upgrade.Done && asked:
		lack := status.LackOf(string(r.State))
		s.Phase, s.Message = lack.Phase, message
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: lack.Reason, Message: message}, h.Now())
	case s.Phase != status.Upgrading && s.Phase != status.Failed || converged == nil:
	case e.busy && converged.Reason == status.ReasonConverging:
		s.Phase, s.Message = status.Converging, converged.Message // whoever is at it says how that ends
	case e.Verdict != nil:
		v := *e.Verdict
		v.Apply(s, h.Now())
	case s.Phase == status.Failed:
	case converged.Status == "True":
		s.Phase, s.Message = status.Ready, status.AsSpecified
		if instead := r.Instead(upgrade.Target{}); instead != "" {
			s.Message = status.ButRelease + instead
		}
	default:
		s.Phase, s.Message = cmp.Or(status.LackBecause(converged.Reason).Phase, status.Failed), converged.Message
	}
}

func describe(r *upgrade.Record) status.Upgrade {
	u := status.Upgrade{
		Phase: string(r.State), From: r.From.Release, FromVersion: r.From.KubernetesVersion, To: r.Target.Release,
		ToVersion: r.Target.KubernetesVersion,
		Origin:    string(r.Origin), Execution: r.Execution, Started: when(r.Started), Ended: when(r.Ended),
		Images: r.Images,
	}
	for _, s := range r.Steps {
		step := status.UpgradeStep{Name: told(s), Started: when(s.Started), Ended: when(s.Ended)}
		if !s.Started.IsZero() && s.Opened.After(s.Started) {
			step.Opened = when(s.Opened)
		}
		u.Steps = append(u.Steps, step)
	}
	return u
}

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}

// waiting tells that an upgrade waits for its cluster, for long, or for too long. While another upgrade is under way the status is that
// one's, and this one is told of beside it.
func (h *Handler) waiting(ctx context.Context, in events.UpgradeRequest, to upgrade.Target, phase, message string) error {
	u := status.Upgrade{
		Phase: phase, To: to.Release, ToVersion: to.KubernetesVersion, Origin: string(started(in).Origin), At: when(due(in)),
		Execution: in.Execution, Message: message,
	}
	from, _, err := h.deployed(ctx, in.Cluster)
	var absent *stop
	if err != nil && !errors.As(err, &absent) {
		return err
	}
	return h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		u.From, u.FromVersion = from.Release, from.KubernetesVersion
		if o := s.Upgrade; o != nil && (o.Phase == string(upgrade.Checking) || o.Phase == string(upgrade.Running)) && o.Execution != u.Execution {
			u.From, u.FromVersion = o.To, o.ToVersion // by then
		}
		if phase == status.UpgradeMissed {
			s.Remember(u)
		}
		if o := s.Upgrade; o != nil && (o.Phase == string(upgrade.Checking) || o.Phase == string(upgrade.Running)) && o.Execution != u.Execution {
			s.NextUpgrade = &u
			return
		}
		s.Forgo(u.Execution)
		s.Upgrade = &u
		if phase == status.UpgradeMissed {
			s.Set(status.Condition{Type: status.Upgraded, Status: "False", Reason: status.ReasonUpgradeMissed, Message: message}, h.Now())
		}
	})
}

// refused records an upgrade that cannot be made at all. One that was started by hand is refused: that is the answer
// to its operator, and no failure of an upgrade. Any other, and one that this execution claimed already, stops.
func (h *Handler) refused(ctx context.Context, in events.UpgradeRequest, r *upgrade.Record, why error) (events.UpgradeResult, error) {
	var stopped *stop
	switch {
	case !errors.As(why, &stopped), in.Origin == "" && claimed(in, r):
		return events.UpgradeResult{}, why
	case in.Origin == "":
		return events.UpgradeResult{Outcome: events.UpgradeRefused, Message: stopped.message}, h.recordRefusal(ctx, in.Cluster, stopped.message)
	}
	from, _, err := h.deployed(ctx, in.Cluster)
	var absent *stop
	if err != nil && !errors.As(err, &absent) {
		return events.UpgradeResult{}, errors.Join(why, err)
	}
	u := status.Upgrade{
		Phase: string(upgrade.Blocked), From: from.Release, FromVersion: from.KubernetesVersion, To: in.Release, ToVersion: in.KubernetesVersion,
		Origin: in.Origin, Ended: when(h.Now()), Execution: in.Execution, Message: stopped.message,
	}
	err = h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		s.Upgrade = &u
		s.Remember(u)
		s.Set(status.Condition{Type: status.Upgraded, Status: "False", Reason: status.ReasonUpgradeBlocked, Message: stopped.message}, h.Now())
	})
	return events.UpgradeResult{}, errors.Join(why, err)
}

// recordRefusal records the refusal of a request in the status, until the next request or the next spec. A cluster that has no status,
// or is deleted, gets none.
func (h *Handler) recordRefusal(ctx context.Context, cluster, message string) error {
	c, err := h.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) || err == nil && c.Status.Phase == status.Deleted {
		return nil
	}
	if err != nil {
		return err
	}
	return h.State.UpdateStatus(ctx, cluster, func(s *status.Status) { s.Refuse(status.ReasonUpgradeRefused, message, h.Now()) })
}
