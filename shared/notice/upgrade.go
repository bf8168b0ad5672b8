package notice

// Upgrades: that one is to come, and how it goes.

import (
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// cancelled is the phase that is told of an upgrade that was to come and was taken back.
const cancelled = "Cancelled"

// upgradeUrgencies of the phases that are over, or will not begin by themselves. The others are progress.
var upgradeUrgencies = map[string]string{
	string(upgrade.Done): Result, string(upgrade.Blocked): Problem, string(upgrade.Stopped): Problem, status.UpgradeDelayed: Problem,
	status.UpgradeMissed: Problem,
}

// upgrades tells of the upgrade that a status shows, and of the one that waits behind it. One may have come to the place of the other.
func upgrades(cluster string, before, after *status.Status) (told []Notice) {
	was, waited, is, waits := before.Upgrade, before.NextUpgrade, after.Upgrade, after.NextUpgrade
	switch {
	case waited != nil && waits == nil && same(waited, is) && (!same(was, is) || was.Ended != nil): // its turn has come
		was, waited = waited, nil
	case waits != nil && waited == nil && same(was, waits) && !same(was, is): // another began before it
		was, waited = nil, was
	case waits != nil && waited == nil && same(is, waits): // it is tried again
		waited = is
	}
	if n, does := upgrading(cluster, was, is, before.Upgrades); does && !shown(before.Upgrades, was, is) {
		told = append(told, n)
	}
	if n, does := upgrading(cluster, waited, waits, before.Upgrades); does {
		told = append(told, n)
	}
	return told
}

func same(a, b *status.Upgrade) bool {
	return a != nil && b != nil && a.To == b.To && a.Origin == b.Origin
}

// shown says whether an upgrade that is over shows again in the place of one that did not begin: each was told of in its time.
func shown(upgrades []status.Upgrade, was, is *status.Upgrade) bool {
	return is != nil && (was.Refused() || was != nil && was.Phase == status.UpgradeMissed) &&
		slices.ContainsFunc(upgrades, func(u status.Upgrade) bool { return u.Is(is) })
}

// upgrading tells of a change of an upgrade: of its phase, its time, its step, or what is in its way.
func upgrading(cluster string, was, is *status.Upgrade, earlier []status.Upgrade) (Notice, bool) {
	phase := ""
	switch {
	case was != nil && status.ToCome(was.Phase) && was.Phase != status.UpgradeMissed && gone(was, is, earlier):
		taken := *was
		is, phase, taken.At, taken.Message = &taken, cancelled, nil, "it was taken back: it does not begin"
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
	if said := or(is.Message, detail.Step); said != "" {
		message += ": " + said
	}
	if is.Checked != nil && is.Ended != nil && is.Checked.Before(*is.Ended) && len(is.Checks) > 0 {
		message += fmt.Sprintf("\nThe checks found at %s, which may have passed since:", is.Checked.UTC().Format(time.RFC3339))
	}
	for _, c := range is.Checks {
		if phase == cancelled {
			break // nobody need mend it
		}
		message += fmt.Sprintf("\n%s: %s %s", c.Name, c.Message, c.Next)
	}
	return Notice{
		DetailType: events.ClusterUpgradeChange, Detail: detail,
		Subject: fmt.Sprintf("drover: the upgrade of %.45s is %s", cluster, phase), Message: message,
		Attributes: map[string]string{"cluster": cluster, "state": phase, "urgency": urgency(phase, was, is)},
	}, true
}

// urgency of a phase. One that is to come and that a check would block is a problem already, unless it was blocked by the same and is tried
// again.
func urgency(phase string, was, is *status.Upgrade) string {
	known := same(was, is) && was.Phase == string(upgrade.Blocked) && found(was) == found(is)
	if phase == status.UpgradeScheduled && !known && slices.ContainsFunc(is.Checks, func(c status.Check) bool { return c.Blocks }) {
		return Problem
	}
	return or(upgradeUrgencies[phase], Progress)
}

// found names what the checks found.
func found(u *status.Upgrade) (all string) {
	for _, c := range u.Checks {
		all += fmt.Sprint(c.Name, c.Blocks, " ")
	}
	return all
}

// gone says whether an upgrade that was to come was taken back: there is none any more, or one that was over before. One that began is
// not gone.
func gone(was, is *status.Upgrade, earlier []status.Upgrade) bool {
	if is == nil || slices.ContainsFunc(earlier, func(u status.Upgrade) bool { return u.Is(is) }) {
		return true
	}
	return is.Ended != nil && !same(was, is)
}

// progress is what of an upgrade is worth telling when it changes.
func progress(u status.Upgrade) string {
	at := ""
	if status.ToCome(u.Phase) && u.At != nil {
		at = u.At.UTC().Format(time.RFC3339)
	}
	said := ""
	switch {
	case u.Phase == status.UpgradeScheduled: // what was found in advance
		said = found(&u)
	case u.Phase == status.UpgradeDelayed: // one waits for whoever holds the cluster, one after the other
	case upgradeUrgencies[u.Phase] == Problem:
		said = u.Message
	}
	return fmt.Sprint(u.Phase, " ", u.To, " ", u.ToVersion, " ", at, " ", open(&u), " ", u.Execution, " ", said)
}

// open is the step that is being made.
func open(u *status.Upgrade) string {
	for _, s := range u.Steps {
		if s.Started != nil && s.Ended == nil && u.Ended == nil {
			return s.Name
		}
	}
	return ""
}
