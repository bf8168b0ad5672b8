package handler

// What was heard and is acted on by nobody: its execution was stopped before it began, or left the cluster to another one which then ended
// without looking.

import "github.com/drover-run/drover/shared/status"

// unacted says that nobody has acted on the spec of a cluster that somebody heard of. A spec that cannot be used is not to be acted on, and whoever
// stopped the last execution meant it.
func unacted(s *status.Status) bool {
	accepted := s.Condition(status.SpecAccepted)
	return rests(s) && s.ObservedVersion != "" && s.ObservedVersion != s.SpecVersion && accepted != nil && accepted.Status == "True"
}

// undeleted says that nobody has acted on the deletion of a cluster's spec. A deletion that was begun, or told to be refused, names no version.
func undeleted(s *status.Status) bool { return rests(s) && s.SpecVersion != "" }

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
