package handler

// The checks of upgrades that are to come: they run in advance, so that what blocks is not learnt of when it is night.

import (
	"context"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
)

// notice is how long before its time an upgrade is looked at once more.
const notice = 24 * time.Hour

// ahead has the upgrade function look at an upgrade that is to come: when it is known of, and again in the last day. While the cluster
// changes there is nothing to be seen.
func (r *round) ahead(ctx context.Context, cluster string, s *status.Status) error {
	u := s.Upgrade
	switch {
	case u == nil, u.Phase != status.UpgradeScheduled, u.At == nil, !r.now.Before(*u.At), lacks(u) != "":
		return nil
	case s.Phase == status.Converging, s.Phase == status.Upgrading, s.Phase == status.Deleting:
		return nil
	case u.Checked != nil && (u.At.Sub(r.now) > notice || u.At.Sub(*u.Checked) <= notice):
		return nil
	case r.starts.Add(1) > maxStarts: // the next audit does it
		return nil
	}
	name := names.UpgradeStart(cluster, names.EarlyCheckKey(u.Origin, u.To, *u.At), 0, r.now)
	return r.Upgrade.Start(ctx, name, events.Upgrade{
		Cluster: cluster, Release: u.To, KubernetesVersion: u.ToVersion, Origin: u.Origin, Look: true,
	})
}

// lacks says why the checks of an upgrade that is to come cannot run yet: planning could not read its release, and tries again.
func lacks(u *status.Upgrade) string {
	if u.Checked == nil && len(u.Checks) > 0 && u.Checks[0].Name == preflight.UpgradePossible {
		return u.Checks[0].Message
	}
	return ""
}
