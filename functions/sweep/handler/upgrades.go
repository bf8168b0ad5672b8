package handler

// Upgrades that did not begin when they were to, and those whose execution ended without a word.

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// busy tells of an upgrade whose time came while its cluster is being converged: after half an hour it is delayed, after two hours it is
// missed. Then the next plan says when it is tried again, if it is.
func (h *Handler) busy(ctx context.Context, due store.Due, holder string) error {
	late := h.Now().Sub(due.At)
	if late < upgrade.Delayed {
		return nil
	}
	phase, message := status.UpgradeDelayed, fmt.Sprintf("it was to begin at %s and waits for %s", due.At.Format(time.RFC3339), holder)
	if late >= upgrade.Late {
		phase = status.UpgradeMissed
		message = fmt.Sprintf("it was to begin at %s, and for %s the cluster was busy: %s. It begins in the next window, or at another time in spec.upgrade.at",
			due.At.Format(time.RFC3339), upgrade.Late, holder)
	}
	upgrades := false
	err := h.State.UpdateStatus(ctx, due.Cluster, func(s *status.Status) {
		u := s.Upgrade
		if upgrades = u != nil && status.ToCome(u.Phase) && u.At != nil && u.At.Equal(due.At); !upgrades || u.Phase == phase {
			return
		}
		u.Phase, u.Message = phase, message
		if phase == status.UpgradeMissed {
			s.Set(status.Condition{Type: status.Upgraded, Status: "False", Reason: status.ReasonUpgradeMissed, Message: message}, h.Now())
		}
	})
	return err
}

// upgrading looks after a cluster whose upgrade is under way, or was to begin. An execution that is over and did not say so is told of
// by another, which knows how to end an upgrade; one that was never seen is started once more by planning.
func (r *round) upgrading(ctx context.Context, cluster string, s *status.Status) (done bool, err error) {
	u := s.Upgrade
	switch {
	case u == nil:
		return false, nil
	case u.Phase == status.UpgradeScheduled && u.At != nil && r.now.Sub(*u.At) >= period && s.Phase != status.Converging && s.Phase != status.Failed:
		return true, r.start(ctx, cluster, s, "its upgrade did not begin")
	case (u.Phase == string(upgrade.Checking) || u.Phase == string(upgrade.Running)) && u.Execution != "":
		running, err := r.Executions.Running(ctx, u.Execution)
		if err != nil || running {
			return s.Phase == status.Upgrading, err
		}
		boundary.Log(ctx).Warn("an upgrade ended without a word", "cluster", cluster, "execution", u.Execution)
		return true, r.Upgrade.Start(ctx, names.UpgradeStart(cluster, "ended "+u.Execution, 0, r.now), events.Upgrade{Cluster: cluster, Ended: u.Execution})
	}
	return false, nil
}
