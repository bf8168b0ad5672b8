package audit

// Early checks of scheduled upgrades, so that an operator can fix what blocks them before their time.

import (
	"context"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
)

// leadTime is how long before its time a scheduled upgrade is checked again.
const leadTime = 24 * time.Hour

// checkScheduledUpgrade has the upgrade function check a scheduled upgrade: when it is scheduled, and again in the last day.
// It does not check while the cluster changes.
func (r *auditRun) checkScheduledUpgrade(ctx context.Context, cluster string, s *status.Status) error {
	u := s.Upgrade
	switch {
	case u == nil, u.Phase != status.UpgradeScheduled, u.At == nil, !r.now.Before(*u.At), blockedReason(u) != "":
		return nil
	case s.Phase == status.Converging, s.Phase == status.Upgrading, s.Phase == status.Deleting:
		return nil
	case u.Checked != nil && (u.At.Sub(r.now) > leadTime || u.At.Sub(*u.Checked) <= leadTime):
		return nil
	case r.starts.Add(1) > maxStarts: // the next audit does it
		return nil
	}
	name := names.UpgradeExecution(cluster, names.EarlyCheckKey(u.Origin, u.To, *u.At), 0, r.now)
	return r.Upgrade.Start(ctx, name, events.Upgrade{
		Cluster: cluster, Release: u.To, KubernetesVersion: u.ToVersion, Origin: u.Origin, CheckOnly: true,
	})
}

// blockedReason says why the checks of a scheduled upgrade cannot run yet: planning could not read its release, and tries again.
func blockedReason(u *status.Upgrade) string {
	if u.Checked == nil && len(u.Checks) > 0 && u.Checks[0].Name == preflight.UpgradePossible {
		return u.Checks[0].Message
	}
	return ""
}
