package handler

// What people read of an upgrade: its phase, its steps, and what it waits for or why it stopped.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// upgradeStopped is the error that the machine gives to what this function itself ended.
const upgradeStopped = status.ReasonUpgradeStopped

// history is how many upgrades that are over the status keeps.
const history = 10

// tell writes an upgrade into the status. nil keeps the checks that were told of it before.
func (h *Handler) tell(ctx context.Context, cluster string, r *upgrade.Record, checks []status.Check, message string) error {
	u := describe(r)
	u.Checks, u.Message = checks, message
	return h.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		u := u
		if old := s.Upgrade; checks == nil && old != nil && old.Execution == u.Execution {
			u.Checks = old.Checks
		}
		s.Upgrade = &u
		if r.State.Over() {
			remember(s, u)
		}
		condition := status.Condition{Type: status.Upgraded, Status: "False", Message: message}
		switch r.State {
		case upgrade.Done:
			condition.Status, condition.Reason = "True", status.ReasonUpgraded
		case upgrade.Blocked:
			condition.Reason = status.ReasonUpgradeBlocked
		case upgrade.Stopped:
			condition.Reason = status.ReasonUpgradeStopped
		default:
			condition.Reason = status.ReasonUpgrading
		}
		s.Set(condition, h.Now())
		h.phase(s, r, message)
	})
}

// phase of the cluster. That its spec was not followed is the cluster's own state; of any other origin it is Ready or not as before.
func (h *Handler) phase(s *status.Status, r *upgrade.Record, message string) {
	converged := s.Condition(status.Converged)
	switch {
	case !r.State.Over():
		s.Phase, s.Message = status.Upgrading, message
	case r.State != upgrade.Done && r.Origin == upgrade.OriginSpec:
		reason := status.ReasonUpgradeStopped
		if r.State == upgrade.Blocked {
			reason = status.ReasonUpgradeBlocked
		}
		s.Phase, s.Message = status.Stopped, message
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: reason, Message: message}, h.Now())
	case s.Phase != status.Upgrading:
	case converged != nil && converged.Status == "True":
		s.Phase, s.Message = status.Ready, status.AsSpecified // as the next converge would say: it would write nothing else
	case converged != nil:
		s.Phase, s.Message = status.Failed, converged.Message
	}
}

// remember an upgrade that is over, once: one that stopped and went on is one.
func remember(s *status.Status, u status.Upgrade) {
	s.Upgrades = slices.DeleteFunc(s.Upgrades, func(o status.Upgrade) bool {
		return o.Started != nil && u.Started != nil && o.Started.Equal(*u.Started)
	})
	s.Upgrades = slices.Insert(s.Upgrades, 0, u)
	s.Upgrades = s.Upgrades[:min(len(s.Upgrades), history)]
}

func describe(r *upgrade.Record) status.Upgrade {
	u := status.Upgrade{
		Phase: string(r.State), From: r.From.Release, FromVersion: r.From.KubernetesVersion, To: r.Target.Release, ToVersion: r.Target.KubernetesVersion,
		Origin: string(r.Origin), Execution: r.Execution, Started: when(r.Started), Ended: when(r.Ended),
	}
	for _, s := range r.Steps {
		u.Steps = append(u.Steps, status.UpgradeStep{Name: told(s), Started: when(s.Started), Ended: when(s.Ended)})
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

// waiting tells that an upgrade waits for its cluster, or has waited for too long. While another upgrade is under way the status is
// that one's.
func (h *Handler) waiting(ctx context.Context, in events.UpgradeRequest, to upgrade.Target, phase, message string) error {
	return h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		if s.Phase == status.Upgrading {
			return
		}
		s.Upgrade = &status.Upgrade{
			Phase: phase, To: to.Release, ToVersion: to.KubernetesVersion, Origin: in.Origin, At: when(in.Started), Execution: in.Execution, Message: message,
		}
		if phase == status.UpgradeMissed {
			remember(s, *s.Upgrade)
			s.Set(status.Condition{Type: status.Upgraded, Status: "False", Reason: status.ReasonUpgradeMissed, Message: message}, h.Now())
		}
	})
}

// refused tells of an upgrade that cannot be made at all, and passes on why. Who started it by hand reads that where it was started: the
// cluster and its status stay as they are.
func (h *Handler) refused(ctx context.Context, in events.UpgradeRequest, why error) error {
	var stopped *stop
	if !errors.As(why, &stopped) || in.Origin == "" {
		return why
	}
	now := when(h.Now())
	err := h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		s.Upgrade = &status.Upgrade{
			Phase: string(upgrade.Blocked), To: in.Release, ToVersion: in.KubernetesVersion, Origin: in.Origin, Ended: now, Execution: in.Execution, Message: stopped.message,
		}
		s.Set(status.Condition{Type: status.Upgraded, Status: "False", Reason: status.ReasonUpgradeBlocked, Message: stopped.message}, h.Now())
	})
	return errors.Join(why, err)
}
