package status

import (
	"slices"
	"time"

	"github.com/drover-run/drover/shared/upgrade"
)

// IsPending reports whether a phase of an upgrade precedes its start.
func IsPending(phase string) bool {
	return phase == UpgradeScheduled || phase == UpgradeDelayed || phase == UpgradeMissed
}

// Refused reports whether planning refused a requested upgrade. No execution starts it.
func (u *Upgrade) Refused() bool {
	return u != nil && u.Phase == string(upgrade.Blocked) && u.Execution == ""
}

// inFlight reports whether an execution checks or makes the upgrade.
func (u *Upgrade) inFlight() bool {
	return u.Phase == string(upgrade.Checking) || u.Phase == string(upgrade.Running)
}

// lateness orders the phases before an upgrade begins.
var lateness = map[string]int{UpgradeScheduled: 1, UpgradeDelayed: 2, UpgradeMissed: 3}

// IsRecordedAs reports whether b is an earlier record of the pending upgrade u: it is pending or refused, with the same release and origin.
func (u *Upgrade) IsRecordedAs(b *Upgrade) bool {
	return u != nil && b != nil && (IsPending(b.Phase) || b.Refused()) && u.To == b.To && u.Origin == b.Origin
}

// RecordedBefore returns the earlier record of a pending upgrade; nil if there is none.
func (s *Status) RecordedBefore(u *Upgrade) *Upgrade {
	for _, recorded := range []*Upgrade{s.Upgrade, s.NextUpgrade} {
		if u.IsRecordedAs(recorded) {
			return recorded
		}
	}
	return nil
}

// InheritLateness keeps the phase and the message of an upgrade that was recorded as late for the same time.
func (u *Upgrade) InheritLateness(recorded *Upgrade, now time.Time) {
	if recorded.At != nil && u.At != nil && recorded.At.Equal(*u.At) && !u.At.After(now) &&
		lateness[recorded.Phase] > lateness[UpgradeScheduled] &&
		lateness[recorded.Phase] >= lateness[u.Phase] {
		u.Phase, u.Message = recorded.Phase, recorded.Message
	}
}

// DropQueued removes the queued upgrade of an execution, which has ended or starts it. A missed upgrade stays.
func (s *Status) DropQueued(execution string) {
	if s.NextUpgrade != nil && s.NextUpgrade.Execution == execution && s.NextUpgrade.Phase != UpgradeMissed {
		s.NextUpgrade = nil
	}
}

// History is the number of ended upgrades in a status.
const History = 10

// IsSameEnded reports whether both are the same ended upgrade. It compares when they began or, if they never began, how they were recorded.
func (u *Upgrade) IsSameEnded(b *Upgrade) bool {
	if u == nil || b == nil {
		return false
	}
	if u.Started != nil || b.Started != nil {
		return u.Started != nil && b.Started != nil && u.Started.Equal(*b.Started)
	}
	at := u.At == nil && b.At == nil || u.At != nil && b.At != nil && u.At.Equal(*b.At)
	return at && u.Phase == b.Phase && u.Execution == b.Execution && u.To == b.To && u.Origin == b.Origin
}

// AddHistory adds an ended upgrade to the history, once. Of an upgrade that never began, the first entry stays.
func (s *Status) AddHistory(u Upgrade) {
	is := func(o Upgrade) bool { return o.IsSameEnded(&u) }
	if u.Started == nil && slices.ContainsFunc(s.Upgrades, is) {
		return
	}
	s.Upgrades = slices.Insert(slices.DeleteFunc(s.Upgrades, is), 0, u)
	s.Upgrades = s.Upgrades[:min(len(s.Upgrades), History)]
}

// hasEnded reports whether the history has the end of the upgrade of an execution.
func (s *Status) hasEnded(execution string) bool {
	return slices.ContainsFunc(s.Upgrades, func(u Upgrade) bool {
		return u.Execution == execution && upgrade.State(u.Phase).Final()
	})
}

// SetUpgraded sets the condition Upgraded for an upgrade whose result no execution records: it was missed or refused. If it was withdrawn,
// the condition is set for the upgrade before it.
func (s *Status) SetUpgraded(now time.Time) {
	u := s.Upgrade
	if c := s.Condition(Upgraded); u != nil && u.Phase != UpgradeMissed && IsPending(u.Phase) && c != nil && c.Reason == ReasonUpgradeBlocked {
		u = nil // the refused upgrade is scheduled now, or another one is
		if len(s.Upgrades) > 0 {
			u = &s.Upgrades[0]
		}
	}
	switch {
	case u == nil:
		s.Unset(Upgraded)
	case u.Phase == UpgradeMissed:
		s.setMissed(u.Message, now)
	case u.Phase == string(upgrade.Done):
		s.Set(Condition{Type: Upgraded, Status: "True", Reason: ReasonUpgraded, Message: u.Message}, now)
	case GapForState(u.Phase).Phase == Stopped:
		s.Set(Condition{Type: Upgraded, Status: "False", Reason: GapForState(u.Phase).Reason, Message: u.Message}, now)
	}
}

// DropScheduled removes the scheduled upgrade. The status shows the last ended one.
func (s *Status) DropScheduled() {
	s.Upgrade = nil
	if len(s.Upgrades) > 0 {
		last := s.Upgrades[0]
		s.Upgrade = &last
	}
}
