package rollout

// How far the attempt of an assignment is, from the cell's copy and the record of the cluster's upgrade.

import (
	"slices"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/upgrade"
)

// Request returns the upgrade that the assignment requests from a cluster with this stack of the control plane. It returns nil if there is
// no assignment, if it was withdrawn before its upgrade began, if a check refused it, or if the cluster was recreated.
func (a *CellAssignment) Request(stack string) *upgrade.RolloutRequest {
	if a == nil || a.Withdrawn && !a.Begun || a.Check != "" || a.Stack != stack {
		return nil
	}
	return &upgrade.RolloutRequest{Key: a.Key(), Release: a.To.Name, SHA256: a.To.SHA256, Rollback: a.Rollback}
}

// Respected returns the freezes that the run of the assignment does not ignore.
func (a *CellAssignment) Respected(freezes []api.Freeze) []api.Freeze {
	if a == nil || len(a.Overrides) == 0 {
		return freezes
	}
	return slices.DeleteFunc(slices.Clone(freezes), func(f api.Freeze) bool { return slices.Contains(a.Overrides, f.Metadata.Name) })
}

// Progress returns how far the attempt is. record is that of the cluster's last upgrade, and nil if it was never upgraded. spec is nil if
// the cluster has no valid spec.
func (a *CellAssignment) Progress(record *upgrade.Record, spec *api.Cluster, deployed upgrade.Target) AttemptState {
	key := a.Key()
	if u := record.Of(key); u != nil {
		switch {
		case u.State == upgrade.Stopped && u.OvertakenBy(spec):
			return AttemptOvertaken
		case u.State == upgrade.Stopped:
			return AttemptStopped
		case u.State == upgrade.Blocked:
			return AttemptBlocked
		case u.State == upgrade.Done:
			return AttemptDone
		}
		return AttemptBegun
	}
	reached := deployed.Release == a.To.Name && deployed.SHA256 == a.To.SHA256
	switch {
	case record.HasAnswered(key):
		return AttemptOvertaken // by a later upgrade
	case a.Check != "":
		return AttemptBlocked
	case a.Begun:
		return AttemptBegun
	case a.Withdrawn:
		return AttemptWithdrawn
	case reached && a.Rollback:
		return AttemptDone
	case reached, record.RequestsOther(spec, deployed, a.To.Name):
		return AttemptOvertaken
	}
	return AttemptOpen
}

// Ended reports whether the cell has nothing left to do for an attempt in this state.
func (s AttemptState) Ended() bool { return s != AttemptOpen && s != AttemptBegun }
