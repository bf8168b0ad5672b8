package audit

import (
	"slices"

	"github.com/drover-run/drover/shared/status"
)

// specPending reports whether a spec was accepted that no execution acts on: its execution was aborted before it planned, or left the
// cluster to another one, which ended without a check for newer specs. An invalid spec is not pending. Nor is one whose execution ended
// without a report: it has retries of its own. See ADR 39.
func specPending(s *status.Status) bool {
	accepted := s.Condition(status.SpecAccepted)
	return idle(s) && s.ObservedVersion != "" && s.ObservedVersion != s.PlannedVersion && accepted != nil && accepted.Status == "True"
}

// accountNotReady reports whether the first creation of a cluster waits for room in the account.
func accountNotReady(s *status.Status) bool {
	converged := s.Condition(status.Converged)
	return s.Phase == status.Stopped && converged != nil && converged.Reason == status.ReasonAccountNotReady
}

// deletionPending reports whether no execution acts on the deletion of a cluster's spec. After a deletion was started or refused,
// PlannedVersion is empty. A failed deletion waits for its retry or for an operator. If the cluster is Stopped for another reason, an
// invalid upload stopped it, and the deletion is still pending.
func deletionPending(s *status.Status) bool {
	if s.PlannedVersion != "" {
		return idle(s)
	}
	final := []string{status.ReasonDeletionProtected, status.ReasonSpecAbsent}
	converged := s.Condition(status.Converged)
	return s.Phase == status.Stopped && converged != nil && !slices.Contains(final, converged.Reason)
}

// idle reports whether no execution works on a cluster, and none ended without a report.
func idle(s *status.Status) bool {
	converged := s.Condition(status.Converged)
	switch s.Phase {
	case status.Ready, status.Stopped:
		return true
	case status.Failed:
		return converged == nil || converged.Reason != status.ReasonExecutionEnded
	}
	return false
}
