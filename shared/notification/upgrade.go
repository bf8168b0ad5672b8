package notification

// Scheduled upgrades, and the progress of upgrades.

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// cancelledPhase is the phase in the notice of a scheduled upgrade that was removed before it began.
const cancelledPhase = "Cancelled"

// upgradeUrgencies of the phases that ended, or do not begin without an operator. The others are progress.
var upgradeUrgencies = map[string]string{
	string(upgrade.Done): Result, string(upgrade.Blocked): Problem, string(upgrade.Stopped): Problem, status.UpgradeDelayed: Problem,
	status.UpgradeMissed: Problem,
}

// upgradeNotices compares the current upgrade of a status and the queued one. A queued upgrade may have become the current one, and the
// reverse.
func upgradeNotices(cluster string, before, after *status.Status) (notices []Notice) {
	previous, previousQueued, current, queued := before.Upgrade, before.NextUpgrade, after.Upgrade, after.NextUpgrade
	queuedBegan := previousQueued != nil && queued == nil && sameRequest(previousQueued, current) &&
		(!sameRequest(previous, current) || previous.Ended != nil)
	anotherBegan := queued != nil && previousQueued == nil && sameRequest(previous, queued) && !sameRequest(previous, current)
	isRetried := queued != nil && previousQueued == nil && sameRequest(current, queued)
	switch {
	case queuedBegan:
		previous, previousQueued = previousQueued, nil
	case anotherBegan:
		previous, previousQueued = nil, previous
	case isRetried:
		previousQueued = current
	}
	if n, ok := upgradeNotice(cluster, previous, current, before.Upgrades); ok && !isShownAgain(before.Upgrades, previous, current) {
		notices = append(notices, n)
	}
	if n, ok := upgradeNotice(cluster, previousQueued, queued, before.Upgrades); ok {
		notices = append(notices, n)
	}
	return notices
}

// sameRequest reports whether two upgrades have one target and one origin.
func sameRequest(a, b *status.Upgrade) bool {
	return a != nil && b != nil && a.To == b.To && a.Origin == b.Origin
}

// isShownAgain reports whether the current upgrade ended earlier and is shown again in place of one that did not begin. Both were sent
// before.
func isShownAgain(upgrades []status.Upgrade, previous, current *status.Upgrade) bool {
	return current != nil && (previous.Refused() || previous != nil && previous.Phase == status.UpgradeMissed) &&
		slices.ContainsFunc(upgrades, func(u status.Upgrade) bool { return u.IsSameEnded(current) })
}

// upgradeNotice reports a change of an upgrade: of its phase, its time, its step, or what blocks it.
func upgradeNotice(cluster string, previous, current *status.Upgrade, earlier []status.Upgrade) (Notice, bool) {
	phase := ""
	switch {
	case previous != nil && status.IsPending(previous.Phase) && previous.Phase != status.UpgradeMissed &&
		isRemoved(previous, current, earlier):
		removed := *previous
		current, phase, removed.At, removed.Message = &removed, cancelledPhase, nil, "it was cancelled, and does not begin"
	case current == nil || previous != nil && noticedFields(*previous) == noticedFields(*current):
		return Notice{}, false
	default:
		phase = current.Phase
	}
	detail := events.UpgradeChange{
		Cluster: cluster, Phase: phase, From: current.From, FromVersion: current.FromVersion, To: current.To, ToVersion: current.ToVersion,
		Origin: current.Origin, At: current.At,
		Step: openStep(current), Message: current.Message, Execution: current.Execution,
	}
	message := fmt.Sprintf("release %s to %s", cmp.Or(current.From, "?"), current.To)
	if current.ToVersion != "" {
		message += " (Kubernetes " + current.ToVersion + ")"
	}
	if current.Phase == status.UpgradeScheduled && current.At != nil {
		message += ", within five minutes of " + current.At.UTC().Format(time.RFC3339)
	}
	if what := cmp.Or(current.Message, detail.Step); what != "" {
		message += ": " + what
	}
	if current.Checked != nil && current.Ended != nil && current.Checked.Before(*current.Ended) && len(current.Checks) > 0 {
		message += fmt.Sprintf("\nThe checks at %s found this, which may be fixed since:", current.Checked.UTC().Format(time.RFC3339))
	}
	for _, c := range current.Checks {
		if phase == cancelledPhase {
			break // nothing must be fixed
		}
		message += fmt.Sprintf("\n%s: %s %s", c.Name, c.Message, c.Next)
	}
	return Notice{
		DetailType: events.ClusterUpgradeChange, Detail: detail,
		Subject: fmt.Sprintf("drover: the upgrade of %.45s is %s", cluster, phase), Message: message,
		Attributes: map[string]string{"cluster": cluster, "state": phase, "urgency": upgradeUrgency(phase, previous, current)},
	}, true
}

// upgradeUrgency of a phase. A scheduled upgrade that a check would block is a problem, unless it is the retry of an upgrade that the same
// check blocked.
func upgradeUrgency(phase string, previous, current *status.Upgrade) string {
	known := sameRequest(previous, current) && previous.Phase == string(upgrade.Blocked) && failedChecks(previous) == failedChecks(current)
	if phase == status.UpgradeScheduled && !known && slices.ContainsFunc(current.Checks, func(c status.Check) bool { return c.Blocks }) {
		return Problem
	}
	return cmp.Or(upgradeUrgencies[phase], Progress)
}

// failedChecks returns the names of the checks that failed.
func failedChecks(u *status.Upgrade) (all string) {
	for _, c := range u.Checks {
		all += fmt.Sprint(c.Name, c.Blocks, " ")
	}
	return all
}

// isRemoved reports whether a scheduled upgrade was removed: the status shows none, or one that ended before. An upgrade that began was not
// removed.
func isRemoved(previous, current *status.Upgrade, earlier []status.Upgrade) bool {
	if current == nil || slices.ContainsFunc(earlier, func(u status.Upgrade) bool { return u.IsSameEnded(current) }) {
		return true
	}
	return current.Ended != nil && !sameRequest(previous, current)
}

// noticedFields returns the fields of an upgrade whose change is worth a notice.
func noticedFields(u status.Upgrade) string {
	at := ""
	if status.IsPending(u.Phase) && u.At != nil {
		at = u.At.UTC().Format(time.RFC3339)
	}
	what := ""
	switch {
	case u.Phase == status.UpgradeScheduled: // what the early checks found
		what = failedChecks(&u)
	case u.Phase == status.UpgradeDelayed: // the execution that it waits for changes often
	case upgradeUrgencies[u.Phase] == Problem:
		what = u.Message
	}
	return fmt.Sprint(u.Phase, " ", u.To, " ", u.ToVersion, " ", at, " ", openStep(&u), " ", u.Execution, " ", what)
}

// openStep returns the name of the step in flight.
func openStep(u *status.Upgrade) string {
	for _, s := range u.Steps {
		if s.Started != nil && s.Ended == nil && u.Ended == nil {
			return s.Name
		}
	}
	return ""
}
