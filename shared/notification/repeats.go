package notification

// A retry by drover that fails as before is not sent again.

import (
	"regexp"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// isNew reports whether the phase of a cluster, or its message, is worth a notification.
func isNew(before, after *status.Status) bool {
	sent := before.NotifiedFailure
	isProgress, otherExecution := urgencies[after.Phase] == Progress, after.Execution != before.Execution
	sameSpec := sent != nil && sent.SpecVersion == after.PlannedVersion
	automatic := sameSpec && names.IsRetry(after.Execution) // drover started the execution itself
	retriesItself := sameSpec && !otherExecution
	switch {
	case automatic && isProgress && otherExecution: // the start of an automatic retry; its later changes are compared below
		return false
	case retriesItself && before.Phase == status.Failed && (after.Phase == status.Converging || after.Phase == status.Deleting):
		return false
	case (automatic || retriesItself) && after.Phase == status.Failed:
		return *sent != failure(after)
	case after.Phase != before.Phase:
		return true
	case isProgress:
		return false
	case after.Phase == status.Failed && otherExecution: // a user or operator started it and waits for the result
		return true
	}
	// The drains at the end of a roll finish one after the other, each with another message.
	return withoutIDs(status.WithoutDrains(after.Message)) != withoutIDs(status.WithoutDrains(before.Message))
}

// RecordSent adds to a status, before it is written, the failure that Diff reports. The next Diff compares with it.
func RecordSent(before, after *status.Status) {
	if !isNew(before, after) {
		return
	}
	after.NotifiedFailure = nil
	if after.Phase == status.Failed {
		f := failure(after)
		after.NotifiedFailure = &f
	}
}

// failure returns what two failures of a cluster are compared by.
func failure(s *status.Status) status.Failure {
	f := status.Failure{SpecVersion: s.PlannedVersion, Message: withoutIDs(s.Message)}
	if c := s.Condition(status.Converged); c != nil {
		f.Reason = c.Reason
	}
	return f
}

// ids match what differs between two attempts with the same failure: IDs of requests and hosts, UUIDs of tokens, executions and stacks,
// and IDs of instances.
var ids = regexp.MustCompile(
	`(?i)(?:request ?id|host ?id): [^\s,;)]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\bi-(?:[0-9a-f]{17}|[0-9a-f]{8})\b`)

// withoutIDs returns a message with its IDs replaced.
func withoutIDs(message string) string { return ids.ReplaceAllString(message, "…") }
