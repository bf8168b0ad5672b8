package audit

import (
	"context"
	"fmt"

	"github.com/drover-run/drover/functions/sweep/passes"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// upgrades handles upgrades that did not start at their time, and those whose end the status does not show.
type upgrades struct{ *round }

// ender ends upgrades that their own execution did not end.
func (r upgrades) ender() passes.UpgradeEnder {
	return passes.UpgradeEnder{Executions: r.Executions, Upgrade: r.Upgrade, Now: r.Now}
}

// late records upgrades that did not start at their time.
func (r upgrades) late() passes.LateUpgrades {
	return passes.LateUpgrades{Specs: r.Specs, State: r.State, Now: r.Now}
}

// check handles the upgrades that the status shows as in flight or pending. It returns done if it started an execution.
func (r upgrades) check(ctx context.Context, cluster string, s *status.Status) (done bool, err error) {
	u := s.Upgrade
	if next := s.NextUpgrade; u != nil && r.isOverdue(next) {
		if err := r.recordQueued(ctx, cluster, *next, u.To); err != nil {
			return false, err
		}
	}
	switch {
	case u == nil:
		return false, nil
	case passes.UpgradeInFlight(u):
		// Its record may be finished while the status is not.
		return false, r.ender().End(ctx, cluster, u.Execution)
	case s.NextUpgrade != nil && s.NextUpgrade.Execution == "" && s.Phase == status.Ready && u.Ended != nil:
		return repairs{r.round}.repeat(ctx, cluster, s, names.RetryNextUpgrade, *u.Ended)
	case s.Phase == status.Upgrading && u.Ended != nil:
		// The execution that wrote the phase did not know that the upgrade had ended, and no other execution corrects it.
		return repairs{r.round}.repeat(ctx, cluster, s, names.RetryAfterUpgrade, *u.Ended)
	case r.isOverdue(u):
		return r.startOverdue(ctx, cluster, s)
	}
	return false, nil
}

// isUnrecorded reports whether an upgrade is pending that the status does not show. This happens if the execution that should have planned
// it was aborted, for example after a channel moved. A recorded upgrade waits for its time. A failed cluster waits for its next retry, and
// an upgrading cluster plans again at the end.
func (r upgrades) isUnrecorded(cluster string, s *status.Status, next *status.Upgrade) bool {
	return next != nil && s.RecordedBefore(next) == nil && (s.Phase == status.Ready || s.Phase == status.Stopped) && !r.due[cluster]
}

// isOverdue reports whether a pending upgrade did not start at its time.
func (r upgrades) isOverdue(u *status.Upgrade) bool {
	return u != nil && status.IsPending(u.Phase) && u.Phase != status.UpgradeMissed && u.At != nil && r.now.Sub(*u.At) >= period
}

// recordQueued records that an upgrade is late because it waits for the upgrade in flight.
func (r upgrades) recordQueued(ctx context.Context, cluster string, next status.Upgrade, to string) error {
	if waits, err := r.hasWaiter(ctx, cluster, next); waits || err != nil {
		return err
	}
	return r.late().Record(ctx, cluster, *next.At, fmt.Sprintf("it waits for the upgrade to %s, which is in flight", to))
}

// hasWaiter reports whether an execution waits to start the upgrade. Such an execution records the delay itself. If
// the execution has ended, it is removed from the status, and planning decides about the upgrade.
func (r upgrades) hasWaiter(ctx context.Context, cluster string, u status.Upgrade) (bool, error) {
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

// startOverdue records that an upgrade is late, whatever the cluster's phase. If nothing blocks it, planning or its
// execution was lost, and the cluster is planned again.
func (r upgrades) startOverdue(ctx context.Context, cluster string, s *status.Status) (done bool, err error) {
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
	if err := r.late().Record(ctx, cluster, at, why); err != nil {
		return false, err
	}
	if r.due[cluster] {
		return false, nil // the sweep starts it
	}
	accepted := s.Condition(status.SpecAccepted)
	if (s.Phase == status.Ready || s.Phase == status.Upgrading) && (accepted == nil || accepted.Status == "True") {
		return true, repairs{r.round}.start(ctx, cluster, s, names.RetryUpgradeNotBegun)
	}
	return false, nil
}
