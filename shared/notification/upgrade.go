package notification

// Scheduled upgrades, and the progress of upgrades.

import (
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// cancelled is the phase in the notice of a scheduled upgrade that was removed before it began.
const cancelled = "Cancelled"

// upgradeUrgencies of the phases that ended, or do not begin without an operator. The others are progress.
var upgradeUrgencies = map[string]string{
	string(upgrade.Done): Result, string(upgrade.Blocked): Problem, string(upgrade.Stopped): Problem, status.UpgradeDelayed: Problem,
	status.UpgradeMissed: Problem,
}

// upgrades compares the current upgrade of a status and the queued one. A queued upgrade may have become the current one, and the reverse.
func upgrades(cluster string, before, after *status.Status) (notices []Notice) {
	was, waited, is, waits := before.Upgrade, before.NextUpgrade, after.Upgrade, after.NextUpgrade
	switch {
	case waited != nil && waits == nil && same(waited, is) && (!same(was, is) || was.Ended != nil): // the queued upgrade began
		was, waited = waited, nil
	case waits != nil && waited == nil && same(was, waits) && !same(was, is): // another upgrade began first
		was, waited = nil, was
	case waits != nil && waited == nil && same(is, waits): // the upgrade is retried
		waited = is
	}
	if n, does := upgrading(cluster, was, is, before.Upgrades); does && !shown(before.Upgrades, was, is) {
		notices = append(notices, n)
	}
	if n, does := upgrading(cluster, waited, waits, before.Upgrades); does {
		notices = append(notices, n)
	}
	return notices
}

func same(a, b *status.Upgrade) bool {
	return a != nil && b != nil && a.To == b.To && a.Origin == b.Origin
}

// shown reports whether the current upgrade ended earlier and is shown again in place of one that did not begin. Both were sent before.
func shown(upgrades []status.Upgrade, was, is *status.Upgrade) bool {
	return is != nil && (was.Refused() || was != nil && was.Phase == status.UpgradeMissed) &&
		slices.ContainsFunc(upgrades, func(u status.Upgrade) bool { return u.IsSameEnded(is) })
}

// upgrading reports a change of an upgrade: of its phase, its time, its step, or what blocks it.
func upgrading(cluster string, was, is *status.Upgrade, earlier []status.Upgrade) (Notice, bool) {
	phase := ""
	switch {
	case was != nil && status.IsPending(was.Phase) && was.Phase != status.UpgradeMissed && isRemoved(was, is, earlier):
		taken := *was
		is, phase, taken.At, taken.Message = &taken, cancelled, nil, "it was cancelled, and does not begin"
	case is == nil || was != nil && progress(*was) == progress(*is):
		return Notice{}, false
	default:
		phase = is.Phase
	}
	detail := events.UpgradeChange{
		Cluster: cluster, Phase: phase, From: is.From, FromVersion: is.FromVersion, To: is.To, ToVersion: is.ToVersion, Origin: is.Origin,
		At:   is.At,
		Step: open(is), Message: is.Message, Execution: is.Execution,
	}
	message := fmt.Sprintf("release %s to %s", or(is.From, "?"), is.To)
	if is.ToVersion != "" {
		message += " (Kubernetes " + is.ToVersion + ")"
	}
	if is.Phase == status.UpgradeScheduled && is.At != nil {
		message += ", within five minutes of " + is.At.UTC().Format(time.RFC3339)
	}
	if what := or(is.Message, detail.Step); what != "" {
		message += ": " + what
	}
	if is.Checked != nil && is.Ended != nil && is.Checked.Before(*is.Ended) && len(is.Checks) > 0 {
		message += fmt.Sprintf("\nThe checks at %s found this, which may be fixed since:", is.Checked.UTC().Format(time.RFC3339))
	}
	for _, c := range is.Checks {
		if phase == cancelled {
			break // nothing must be fixed
		}
		message += fmt.Sprintf("\n%s: %s %s", c.Name, c.Message, c.Next)
	}
	return Notice{
		DetailType: events.ClusterUpgradeChange, Detail: detail,
		Subject: fmt.Sprintf("drover: the upgrade of %.45s is %s", cluster, phase), Message: message,
		Attributes: map[string]string{"cluster": cluster, "state": phase, "urgency": urgency(phase, was, is)},
	}, true
}

// urgency of a phase. A scheduled upgrade that a check would block is a problem, unless it is the retry of an upgrade that the same check
// blocked.
func urgency(phase string, was, is *status.Upgrade) string {
	known := same(was, is) && was.Phase == string(upgrade.Blocked) && found(was) == found(is)
	if phase == status.UpgradeScheduled && !known && slices.ContainsFunc(is.Checks, func(c status.Check) bool { return c.Blocks }) {
		return Problem
	}
	return or(upgradeUrgencies[phase], Progress)
}

// found returns the names of the checks that failed.
func found(u *status.Upgrade) (all string) {
	for _, c := range u.Checks {
		all += fmt.Sprint(c.Name, c.Blocks, " ")
	}
	return all
}

// isRemoved reports whether a scheduled upgrade was removed: the status shows none, or one that ended before. An upgrade that began was not
// removed.
func isRemoved(was, is *status.Upgrade, earlier []status.Upgrade) bool {
	if is == nil || slices.ContainsFunc(earlier, func(u status.Upgrade) bool { return u.IsSameEnded(is) }) {
		return true
	}
	return is.Ended != nil && !same(was, is)
}

// progress returns the fields of an upgrade whose change is worth a notice.
func progress(u status.Upgrade) string {
	at := ""
	if status.IsPending(u.Phase) && u.At != nil {
		at = u.At.UTC().Format(time.RFC3339)
	}
	what := ""
	switch {
	case u.Phase == status.UpgradeScheduled: // what the early checks found
		what = found(&u)
	case u.Phase == status.UpgradeDelayed: // the execution that it waits for changes often
	case upgradeUrgencies[u.Phase] == Problem:
		what = u.Message
	}
	return fmt.Sprint(u.Phase, " ", u.To, " ", u.ToVersion, " ", at, " ", open(&u), " ", u.Execution, " ", what)
}

// open returns the name of the step in flight.
func open(u *status.Upgrade) string {
	for _, s := range u.Steps {
		if s.Started != nil && s.Ended == nil && u.Ended == nil {
			return s.Name
		}
	}
	return ""
}
