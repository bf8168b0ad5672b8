package notice

// What drover tries again by itself and that ends the same is no news: it was told, and nobody asked for the try.

import (
	"regexp"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// news says whether the phase of a cluster, or the verdict on it, is to be told.
func news(before, after *status.Status) bool {
	told, progress, other := before.ToldFailure, urgencies[after.Phase] == Progress, after.Execution != before.Execution
	known := told != nil && told.SpecVersion == after.SpecVersion
	again, retries := known && names.IsAgain(after.Execution), known && !other // drover's own execution; one that tries again itself
	switch {
	case again && progress && other: // its first words; what others say of the cluster meanwhile is told
		return false
	case retries && before.Phase == status.Failed && (after.Phase == status.Converging || after.Phase == status.Deleting):
		return false
	case (again || retries) && after.Phase == status.Failed:
		return *told != failure(after)
	case after.Phase != before.Phase:
		return true
	case progress:
		return false
	case after.Phase == status.Failed && other: // somebody tried, and waits for an answer
		return true
	}
	// That a roll's last drains end one after the other is no news.
	return words(status.WithoutDrains(after.Message)) != words(status.WithoutDrains(before.Message))
}

// Remember notes in a status, which is not written yet, what Between tells of its phase.
func Remember(before, after *status.Status) {
	if !news(before, after) {
		return
	}
	after.ToldFailure = nil
	if after.Phase == status.Failed {
		f := failure(after)
		after.ToldFailure = &f
	}
}

// failure of a cluster, as it compares with another.
func failure(s *status.Status) status.Failure {
	f := status.Failure{SpecVersion: s.SpecVersion, Message: words(s.Message)}
	if c := s.Condition(status.Converged); c != nil {
		f.Reason = c.Reason
	}
	return f
}

// ids are what AWS's words have of one try only: the ids of requests and hosts, the UUIDs of tokens, executions and stacks, and the
// instances that are made anew with each try.
var ids = regexp.MustCompile(
	`(?i)(?:request ?id|host ?id): [^\s,;)]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\bi-(?:[0-9a-f]{17}|[0-9a-f]{8})\b`)

// words are a message without its ids.
func words(message string) string { return ids.ReplaceAllString(message, "…") }
