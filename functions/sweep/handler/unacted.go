package handler

// What was heard and is acted on by nobody: its execution was stopped before it began, or left the cluster to another one which then
// ended without looking.

import (
	"slices"

	"github.com/drover-run/drover/shared/status"
)

// unacted says that nobody has acted on the spec of a cluster that somebody heard of. A spec that cannot be used is not to be acted on,
// and whoever stopped the last execution meant it.
func unacted(s *status.Status) bool {
	accepted := s.Condition(status.SpecAccepted)
	return rests(s) && s.ObservedVersion != "" && s.ObservedVersion != s.SpecVersion && accepted != nil && accepted.Status == "True"
}

// undeleted says that nobody has acted on the deletion of a cluster's spec. One that was begun names no version any more, nor does one
// that is told to be refused; a try that failed waits for the next one, or for people. What counts as stopped all the same was left by an
// upload that could not be used.
func undeleted(s *status.Status) bool {
	if s.SpecVersion != "" {
		return rests(s)
	}
	final := []string{status.ReasonDeletionProtected, status.ReasonSpecAbsent, status.ReasonExecutionEnded}
	converged := s.Condition(status.Converged)
	return s.Phase == status.Stopped && converged != nil && !slices.Contains(final, converged.Reason)
}

// rests says that nobody is at a cluster, and that no person stopped who was.
func rests(s *status.Status) bool {
	converged := s.Condition(status.Converged)
	switch s.Phase {
	case status.Ready, status.Stopped:
		return true
	case status.Failed:
		return converged == nil || converged.Reason != status.ReasonExecutionEnded
	}
	return false
}
