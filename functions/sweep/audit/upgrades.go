package audit

// Upgrades that did not start at their time, and those whose end the status does not show.

import (
	"context"
	"fmt"

	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// upgradeEnder ends upgrades that their own execution did not end.
func (r *auditRun) upgradeEnder() work.UpgradeEnder {
	return work.UpgradeEnder{Executions: r.Executions, Upgrade: r.Upgrade, Now: r.Now}
}

// lateUpgrades records upgrades that did not start at their time.
func (r *auditRun) lateUpgrades() work.LateUpgrades {
	return work.LateUpgrades{Specs: r.Specs, State: r.State, Now: r.Now}
}

// checkUpgrades handles the upgrades that the status shows as in flight or pending. It returns done if it started an execution.
func (r *auditRun) checkUpgrades(ctx context.Context, cluster string, s *status.Status) (done bool, err error) {
	u := s.Upgrade
	if next := s.NextUpgrade; u != nil && r.isUpgradeOverdue(next) {
		if err := r.recordQueuedUpgrade(ctx, cluster, *next, u.To); err != nil {
			return false, err
		}
	}
	switch {
	case u == nil:
		return false, nil
	case work.UpgradeInFlight(u):
		// Its record may be finished while the status is not.
		return false, r.upgradeEnder().End(ctx, cluster, u.Execution)
	case s.NextUpgrade != nil && s.NextUpgrade.Execution == "" && s.Phase == status.Ready && u.Ended != nil:
		return r.repeatConverge(ctx, cluster, s, names.RetryNextUpgrade, *u.Ended)
	case s.Phase == status.Upgrading && u.Ended != nil:
		// The execution that wrote the phase did not know that the upgrade had ended, and no other execution corrects it.
		return r.repeatConverge(ctx, cluster, s, names.RetryAfterUpgrade, *u.Ended)
	case r.isUpgradeOverdue(u):
		return r.startOverdueUpgrade(ctx, cluster, s)
	}
	return false, nil
}

// mustPlanUpgrade reports whether an upgrade is pending that the status does not show, or that may begin earlier than the status says. The
// first happens if the execution that should have planned it was aborted, for example after a channel moved. The second happens if the
// freeze that it waits for was deleted. Any other recorded upgrade waits for its time. A failed cluster waits for its next retry, and an
// upgrading cluster plans again at the end.
func (r *auditRun) mustPlanUpgrade(cluster string, s *status.Status, next *status.Upgrade) bool {
	if next == nil || s.Phase != status.Ready && s.Phase != status.Stopped || r.due[cluster] {
		return false
	}
	recorded := s.RecordedBefore(next)
	return recorded == nil || recorded.Refused() && !next.Refused() ||
		next.At != nil && recorded.At != nil && next.At.Before(*recorded.At)
}

// isUpgradeOverdue reports whether a pending upgrade did not start at its time.
func (r *auditRun) isUpgradeOverdue(u *status.Upgrade) bool {
	return u != nil && status.IsPending(u.Phase) && u.Phase != status.UpgradeMissed && u.At != nil && r.now.Sub(*u.At) >= period
}

// recordQueuedUpgrade records that an upgrade is late because it waits for the upgrade in flight.
func (r *auditRun) recordQueuedUpgrade(ctx context.Context, cluster string, next status.Upgrade, to string) error {
	if waits, err := r.hasWaiter(ctx, cluster, next); waits || err != nil {
		return err
	}
	return r.lateUpgrades().Record(ctx, cluster, *next.At, fmt.Sprintf("it waits for the upgrade to %s, which is in flight", to))
}

// hasWaiter reports whether an execution waits to start the upgrade. Such an execution records the delay itself. If
// the execution has ended, it is removed from the status, and planning decides about the upgrade.
func (r *auditRun) hasWaiter(ctx context.Context, cluster string, u status.Upgrade) (bool, error) {
	if u.Execution == "" {
		return false, nil
	}
	running, err := r.Executions.Running(ctx, u.Execution)
	if err != nil || running {
		return running, err
	}
	return false, r.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		for _, o := range []*status.Upgrade{s.Upgrade, s.NextUpgrade} {
			if o != nil && o.Execution == u.Execution && status.IsPending(o.Phase) {
				o.Execution = ""
			}
		}
	})
}

// startOverdueUpgrade records that an upgrade is late, whatever the cluster's phase. If nothing blocks it, planning or its
// execution was lost, and the cluster is planned again.
func (r *auditRun) startOverdueUpgrade(ctx context.Context, cluster string, s *status.Status) (done bool, err error) {
	if waits, err := r.hasWaiter(ctx, cluster, *s.Upgrade); waits || err != nil {
		return false, err
	}
	at, why := *s.Upgrade.At, fmt.Sprintf("the cluster is %s", s.Phase)
	if s.Message != "" {
		why += ": " + s.Message
	}
	if blocked := blockedReason(s.Upgrade); blocked != "" {
		why = "a check blocks it: " + blocked
	}
	if err := r.lateUpgrades().Record(ctx, cluster, at, why); err != nil {
		return false, err
	}
	if r.due[cluster] {
		return false, nil // the sweep starts it
	}
	accepted := s.Condition(status.SpecAccepted)
	if (s.Phase == status.Ready || s.Phase == status.Upgrading) && (accepted == nil || accepted.Status == "True") {
		return true, r.startConverge(ctx, cluster, s, names.RetryUpgradeNotBegun)
	}
	return false, nil
}
