package status

import (
	"slices"
	"time"

	"github.com/drover-run/drover/shared/upgrade"
)

// ToCome says whether a phase of an upgrade is one before it begins, if it does.
func ToCome(phase string) bool {
	return phase == UpgradeScheduled || phase == UpgradeDelayed || phase == UpgradeMissed
}

// Refused says whether an upgrade was asked for that does not begin as things are: planning says so, and no execution tries it.
func (u *Upgrade) Refused() bool {
	return u != nil && u.Phase == string(upgrade.Blocked) && u.Execution == ""
}

// lateness orders the phases before an upgrade begins.
var lateness = map[string]int{UpgradeScheduled: 1, UpgradeDelayed: 2, UpgradeMissed: 3}

// Same says whether an upgrade that is to come is the one that was told of as b: to the same release, asked for by the same.
func (u *Upgrade) Same(b *Upgrade) bool {
	return u != nil && b != nil && (ToCome(b.Phase) || b.Refused()) && u.To == b.To && u.Origin == b.Origin
}

// Previous is an upgrade that is to come as it was told of before, nil when it was not.
func (s *Status) Previous(u *Upgrade) *Upgrade {
	for _, told := range []*Upgrade{s.Upgrade, s.NextUpgrade} {
		if u.Same(told) {
			return told
		}
	}
	return nil
}

// InheritLateness keeps what was told of an upgrade that is late for the same time.
func (u *Upgrade) InheritLateness(told *Upgrade, now time.Time) {
	if told.At != nil && u.At != nil && told.At.Equal(*u.At) && !u.At.After(now) && lateness[told.Phase] > lateness[UpgradeScheduled] &&
		lateness[told.Phase] >= lateness[u.Phase] {
		u.Phase, u.Message = told.Phase, told.Message
	}
}

// Forgo takes out what an execution was to begin after the upgrade that is under way: it is over, or begins. That it was missed stays to be
// read.
func (s *Status) Forgo(execution string) {
	if s.NextUpgrade != nil && s.NextUpgrade.Execution == execution && s.NextUpgrade.Phase != UpgradeMissed {
		s.NextUpgrade = nil
	}
}

// History is how many upgrades that are over a status keeps.
const History = 10

// Is says whether both are the same upgrade, which is over: as it began or, if it never did, as it was told.
func (u *Upgrade) Equal(b *Upgrade) bool {
	if u == nil || b == nil {
		return false
	}
	if u.Started != nil || b.Started != nil {
		return u.Started != nil && b.Started != nil && u.Started.Equal(*b.Started)
	}
	at := u.At == nil && b.At == nil || u.At != nil && b.At != nil && u.At.Equal(*b.At)
	return at && u.Phase == b.Phase && u.Execution == b.Execution && u.To == b.To && u.Origin == b.Origin
}

// Remember an upgrade that is over, once, however often it is told. Of one that never began what was told first stays.
func (s *Status) Remember(u Upgrade) {
	is := func(o Upgrade) bool { return o.Equal(&u) }
	if u.Started == nil && slices.ContainsFunc(s.Upgrades, is) {
		return
	}
	s.Upgrades = slices.Insert(slices.DeleteFunc(s.Upgrades, is), 0, u)
	s.Upgrades = s.Upgrades[:min(len(s.Upgrades), History)]
}

// Judged has the condition Upgraded say what became of the upgrade that the status shows, where no execution says so:
// it was missed, refused, or taken back, and then that of the one before counts again.
func (s *Status) Judged(now time.Time) {
	u := s.Upgrade
	if c := s.Condition(Upgraded); u != nil && u.Phase != UpgradeMissed && ToCome(u.Phase) && c != nil && c.Reason == ReasonUpgradeBlocked {
		u = nil // one that was refused is to begin, or another is
		if len(s.Upgrades) > 0 {
			u = &s.Upgrades[0]
		}
	}
	switch {
	case u == nil:
		s.Unset(Upgraded)
	case u.Phase == UpgradeMissed:
		s.Set(Condition{Type: Upgraded, Status: "False", Reason: ReasonUpgradeMissed, Message: u.Message}, now)
	case u.Phase == string(upgrade.Done):
		s.Set(Condition{Type: Upgraded, Status: "True", Reason: ReasonUpgraded, Message: u.Message}, now)
	case GapForState(u.Phase).Phase == Stopped:
		s.Set(Condition{Type: Upgraded, Status: "False", Reason: GapForState(u.Phase).Reason, Message: u.Message}, now)
	}
}

// DropScheduled takes out the upgrade that was to come: what is to be seen is the one that was last.
func (s *Status) DropScheduled() {
	s.Upgrade = nil
	if len(s.Upgrades) > 0 {
		last := s.Upgrades[0]
		s.Upgrade = &last
	}
}
