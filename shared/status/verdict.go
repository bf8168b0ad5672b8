package status

// The verdict on a round: phase, message and conditions. The report function records it and, after an upgrade, so
// does the upgrade function.

import (
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/upgrade"
)

// Verdict on a cluster.
type Verdict struct {
	Phase     Phase
	Message   string
	Condition Condition
	// Version of the spec that was judged and not converged to; empty if planning has recorded it.
	Version string
	// upgrade is the pending upgrade, or the upgrade in flight. It is set only if the stacks match the effective spec.
	upgrade *events.PlannedUpgrade
	// spec reports whether only the newest spec is unusable: a cluster that matches its last good spec stays Ready.
	spec bool
	// accepted is the condition of the newest spec, if that spec or the last good one was planned; nil otherwise.
	accepted *Condition
}

// unusedSpecPrefix begins the message of a cluster that is Ready though its newest spec cannot be used.
const unusedSpecPrefix = "the cluster matches its last good spec; the newest spec is not used: "

// Judge returns the verdict on a plan without changes, or on the reason why there is no plan.
func Judge(p *events.PlanResult) Verdict {
	if p.Outcome == events.OutcomeStopped {
		v := Verdict{Phase: Stopped, Message: p.Message, Version: p.SpecVersion, Condition: Condition{
			Type: Converged, Status: "False", Reason: p.Reason, Message: p.Message,
		}}
		if slices.Contains([]string{ReasonSpecInvalid, ReasonSpecAbsent, ReasonReleaseUnusable, ReasonAddonWithoutPermission}, p.Reason) {
			v.Condition.Type, v.spec = SpecAccepted, true
		}
		v.accepted = acceptedCondition(p)
		return v
	}
	v := Verdict{Phase: Ready, Message: AsSpecified, Condition: Condition{Type: Converged, Status: "True", Reason: ReasonUpToDate}}
	v.upgrades(p.Upgrade)
	v.accepted = acceptedCondition(p)
	if p.Rejected != nil && v.Phase == Ready {
		v.Message = unusedSpecPrefix + p.Rejected.Message
	}
	return v
}

// Apply writes a verdict into a status.
func (v *Verdict) Apply(s *Status, now time.Time) {
	if v.upgradeEnded(s) {
		return
	}
	v.adoptMessage(s)
	if v.Phase != Failed {
		s.Failures, s.RetryAt, s.FailedTry = 0, nil, 0
	}
	s.Phase, s.Message = v.Phase, v.Message
	if v.Condition.Reason == ReasonPaused {
		s.GoodVersion = "" // the last good spec, which is not paused, no longer applies
	}
	if v.Version != "" {
		s.PlannedVersion = v.Version
	}
	switch converged := s.Condition(Converged); {
	case v.Phase == Ready || v.upgrade != nil:
		s.RecordConverged(now)
	case v.spec && converged != nil && converged.Status == "True":
		s.Phase, s.Message = Ready, unusedSpecPrefix+v.Message
	case v.spec:
		s.Set(Condition{Type: Converged, Status: "False", Reason: v.Condition.Reason, Message: v.Message}, now)
	}
	s.MentionDrains()
	if v.accepted != nil {
		s.Set(*v.accepted, now)
	}
	s.Set(v.Condition, now)
}

// acceptedCondition returns the condition of the newest spec; nil if planning does not know it, or if it is the verdict itself.
func acceptedCondition(p *events.PlanResult) *Condition {
	switch {
	case p.Rejected != nil:
		return &Condition{Type: SpecAccepted, Status: "False", Reason: p.Rejected.Reason, Message: p.Rejected.Message}
	case p.Accepted:
		return &Condition{Type: SpecAccepted, Status: "True", Reason: ReasonValid}
	}
	return nil
}

// upgrades adds the pending upgrade, or the upgrade in flight, to the verdict.
func (v *Verdict) upgrades(u *events.PlannedUpgrade) {
	v.upgrade = u
	if u == nil {
		return
	}
	state := upgrade.State(u.State)
	gap := GapForState(u.State)
	switch {
	case state == upgrade.Checking || state == upgrade.Running:
		// Its execution records its end.
		v.Phase, v.Message = Upgrading, u.Message
		return
	case u.Start != nil:
		v.Phase, v.Message = Upgrading, u.Message
	case gap.Phase == Stopped:
		v.Phase, v.Message = Stopped, u.Message
	default:
		v.Message = ButRelease + u.Message
	}
	if u.Spec {
		v.Condition.Status, v.Condition.Reason, v.Condition.Message = "False", gap.Reason, v.Message
	}
}

// AfterUpgrade is what the status of a cluster shows after an upgrade, without the upgrade itself.
type AfterUpgrade struct {
	// Next records the next upgrade, until the cluster is planned again.
	Next func(*Status)
	// Verdict is the verdict of a plan without changes, and Observe records the deployed state. Both are nil if planning finds changes.
	// Observe is also nil if planning refuses.
	Verdict *Verdict
	Observe func(*Status)
}

// UpgradeGap describes a cluster that is not at the release of its spec, because an upgrade is pending or ended early.
type UpgradeGap struct {
	// Upgrade is the state of the upgrade that would bring it there.
	Upgrade string
	Reason  string
	Phase   Phase
}

var gaps = []UpgradeGap{
	{UpgradeScheduled, ReasonUpgradeScheduled, Ready},
	{string(upgrade.Blocked), ReasonUpgradeBlocked, Stopped},
	{string(upgrade.Stopped), ReasonUpgradeStopped, Stopped},
}

// GapForState returns the gap after an upgrade in a state; the zero UpgradeGap if there is none.
func GapForState(state string) UpgradeGap {
	return findGap(func(g UpgradeGap) bool { return g.Upgrade == state })
}

// GapForReason returns the gap that the reason of a condition stands for; the zero UpgradeGap if it is none.
func GapForReason(reason string) UpgradeGap {
	return findGap(func(g UpgradeGap) bool { return g.Reason == reason })
}

func findGap(is func(UpgradeGap) bool) UpgradeGap {
	if i := slices.IndexFunc(gaps, is); i >= 0 {
		return gaps[i]
	}
	return UpgradeGap{}
}

// adoptMessage uses the message of the ended upgrade, which knows the cause. Planning does not.
func (v *Verdict) adoptMessage(s *Status) {
	if v.Phase != Stopped || v.upgrade == nil {
		return
	}
	for _, u := range s.Upgrades {
		if u.Phase == v.upgrade.State && u.To == v.upgrade.Release && u.Message != "" {
			v.Message, v.Condition.Message = u.Message, u.Message
			return
		}
	}
}

// upgradeEnded reports whether the upgrade that this verdict would start has already ended. Another execution found and made it first. The
// end of the upgrade recorded the state of the cluster.
func (v *Verdict) upgradeEnded(s *Status) bool {
	return v.upgrade != nil && v.upgrade.Start != nil && slices.ContainsFunc(s.Upgrades, func(u Upgrade) bool {
		return u.Ended != nil && strings.HasSuffix(u.Execution, ":"+v.upgrade.Name)
	})
}
