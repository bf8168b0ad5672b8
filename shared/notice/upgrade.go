package notice

// Upgrades: that one is to come, and how it goes.

import (
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

// cancelled is the phase that is told of an upgrade that was to come and was taken back.
const cancelled = "Cancelled"

// upgradeUrgencies of the phases that are over, or will not begin by themselves. The others are progress.
var upgradeUrgencies = map[string]string{
	"Done": Result, "Blocked": Problem, "Stopped": Problem, status.UpgradeDelayed: Problem, status.UpgradeMissed: Problem,
}

// upgrading tells of a change of a cluster's upgrade: of its phase, its time, its step, or what is in its way.
func upgrading(cluster string, before, after *status.Status) (Notice, bool) {
	was, is := before.Upgrade, after.Upgrade
	phase := ""
	switch {
	case was != nil && status.ToCome(was.Phase) && was.Phase != status.UpgradeMissed && gone(was, is):
		taken := *was
		is, phase, taken.At, taken.Message = &taken, cancelled, nil, "it was taken back: it does not begin"
	case is == nil || was != nil && progress(*was) == progress(*is):
		return Notice{}, false
	default:
		phase = is.Phase
	}
	detail := events.UpgradeChange{
		Cluster: cluster, Phase: phase, From: is.From, FromVersion: is.FromVersion, To: is.To, ToVersion: is.ToVersion, Origin: is.Origin, At: is.At,
		Step: open(is), Message: is.Message, Execution: is.Execution,
	}
	message := fmt.Sprintf("release %s to %s", or(is.From, "?"), is.To)
	if is.ToVersion != "" {
		message += " (Kubernetes " + is.ToVersion + ")"
	}
	if is.Phase == status.UpgradeScheduled && is.At != nil {
		message += ", at " + is.At.UTC().Format(time.RFC3339)
	}
	if said := or(is.Message, detail.Step); said != "" {
		message += ": " + said
	}
	for _, c := range is.Checks {
		message += fmt.Sprintf("\n%s: %s %s", c.Name, c.Message, c.Next)
	}
	return Notice{
		DetailType: events.ClusterUpgradeChange, Detail: detail,
		Subject: fmt.Sprintf("drover: the upgrade of %.45s is %s", cluster, phase), Message: message,
		Attributes: map[string]string{"cluster": cluster, "state": phase, "urgency": or(upgradeUrgencies[phase], Progress)},
	}, true
}

// gone says whether an upgrade that was to come was taken back: there is none any more, or one that was over before. One that began is
// not gone.
func gone(was, is *status.Upgrade) bool {
	if is == nil {
		return true
	}
	if status.ToCome(is.Phase) {
		return false // another, or at another time: that is told
	}
	return is.Ended != nil && (is.To != was.To || is.Origin != was.Origin)
}

// progress is what of an upgrade is worth telling when it changes.
func progress(u status.Upgrade) string {
	at := ""
	if status.ToCome(u.Phase) && u.At != nil {
		at = u.At.UTC().Format(time.RFC3339)
	}
	said := ""
	if upgradeUrgencies[u.Phase] == Problem {
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
