package status

// The transitions: every change of the phase of a cluster or of its upgrade, with the message and the conditions that belong to it.

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/upgrade"
)

// busy reports whether an execution changes the cluster. That execution records the phase.
func (s *Status) busy() bool {
	return s.Phase == Converging || s.Phase == Upgrading || s.Phase == Deleting
}

// RecordAccepted records an upload as accepted. An older upload, which a slow function read, changes nothing.
func (s *Status) RecordAccepted(upload Upload) {
	if s.Accepted == nil || !upload.UploadedAt.Before(s.Accepted.UploadedAt) {
		s.Accepted = &upload
	}
}

// AcceptedVersion is the version of the accepted upload; empty if there is none.
func (s *Status) AcceptedVersion() string {
	if s.Accepted == nil {
		return ""
	}
	return s.Accepted.Version
}

// AcceptSpec records that the newest spec was accepted. If planning has handled this version, the event is late or repeated, and planning
// has recorded more.
func (s *Status) AcceptSpec(upload Upload, warnings api.SpecWarnings, paused bool, now time.Time) {
	s.RecordAccepted(upload)
	s.ObservedVersion = upload.Version
	if s.PlannedVersion == upload.Version {
		return
	}
	s.Set(Condition{Type: SpecAccepted, Status: "True", Reason: ReasonValid}, now)
	s.Warn(warnings, now)
	switch {
	case !s.busy():
		s.Phase, s.Message = Pending, "the spec was accepted"
	case s.Phase == Upgrading:
	case paused:
		s.Message = "spec.paused is true: drover finishes the stacks that are changing now, and starts nothing else"
	default:
		s.Message = "a newer spec was accepted: drover applies it after the stacks that are changing now"
	}
}

// RejectSpec records that the newest spec was rejected. The phase changes only if the cluster has no last good spec, and if no operation is
// in flight: such an operation records its own phase, and drains read the phase to see whether the cluster is deleted.
func (s *Status) RejectSpec(version, reason, message string, now time.Time) {
	s.ObservedVersion = version
	s.Set(Condition{Type: SpecAccepted, Status: "False", Reason: reason, Message: message}, now)
	if s.PlannedVersion == "" && !s.busy() && !s.deletionEnded() {
		s.Phase, s.Message = Stopped, "no usable spec was uploaded yet"
	}
}

// deletionEnded reports whether the deletion of the cluster ended: it is deleted, failed, or was refused by deletion protection. An invalid
// upload must not hide that, and must not end the retries of a failed deletion.
func (s *Status) deletionEnded() bool {
	c := s.Condition(Converged)
	return c != nil && (s.Phase == Failed || c.Reason == ReasonDeleted || c.Reason == ReasonDeletionProtected)
}

// WithdrawSpec records that the spec was deleted. A cluster that was never planned has no stacks, and is Deleted at once.
func (s *Status) WithdrawSpec(message string, now time.Time) {
	s.ObservedVersion = ""
	s.Set(Condition{Type: SpecAccepted, Status: "False", Reason: ReasonSpecAbsent, Message: message}, now)
	if (s.Phase == Stopped || s.Phase == Pending) && s.PlannedVersion == "" && s.Condition(Converged) == nil {
		s.Phase, s.Message = Deleted, "the spec was deleted before drover created anything"
	}
}

// BeginConverge records that an execution changes the stacks: to converge the cluster, or as a step of an upgrade.
func (s *Status) BeginConverge(execution string, upgrading bool, message string, now time.Time) {
	s.Phase, s.Execution, s.RetryAt, s.Message = Converging, execution, nil, message
	if upgrading {
		s.Phase = Upgrading
	}
	s.Set(Condition{Type: Converged, Status: "False", Reason: ReasonConverging, Message: message}, now)
}

// BeginDeletion records that an execution deletes the cluster, and which stacks it deletes now. No spec applies from here on.
func (s *Status) BeginDeletion(execution string, changes []Change, message string, now time.Time) {
	s.Phase, s.Execution, s.Message, s.GoodVersion = Deleting, execution, message, ""
	s.Plan = append(s.Plan, changes...)
	s.Set(Condition{Type: Converged, Status: "False", Reason: ReasonDeleting, Message: message}, now)
}

// RefuseDeletion records that the cluster is not deleted, although its spec was.
func (s *Status) RefuseDeletion(reason, message string, now time.Time) {
	s.Phase, s.Message = Stopped, message
	s.Set(Condition{Type: Converged, Status: "False", Reason: reason, Message: message}, now)
}

// FailUnreported records that an execution ended without a report, for example because it was aborted. It counts as a failure that may pass
// soon, and sets the time of the next retry. It changes nothing if the status shows another execution, or a verdict.
func (s *Status) FailUnreported(cluster, execution string, now time.Time) {
	if s.Phase != Converging && s.Phase != Deleting || s.Execution != execution {
		return
	}
	s.RetryAt = nil
	message := fmt.Sprintf("execution %s ended without a report: run drover converge %s to continue", execution, cluster)
	if pauses := slices.Concat(backoff.QuickRetries, backoff.Retries); s.Failures < len(pauses) {
		at := now.Add(pauses[s.Failures]).UTC().Truncate(time.Second)
		s.RetryAt = &at
		message = fmt.Sprintf("execution %s ended without a report: drover continues; to prevent that, set spec.paused", execution)
	}
	s.Failures++
	s.Phase, s.Message = Failed, message
	s.Set(Condition{Type: Converged, Status: "False", Reason: ReasonExecutionEnded, Message: message}, now)
}

// RetryUnreported returns when drover continues the work of an execution that ended without a report; nil if it does not.
func (s *Status) RetryUnreported(execution string) *time.Time {
	if c := s.Condition(Converged); s.Phase != Failed || s.Execution != execution || c == nil || c.Reason != ReasonExecutionEnded {
		return nil
	}
	return s.RetryAt
}

// RecordConverged records that no change is left: the plan, the instances that did not join, and the drift that planning found are removed.
func (s *Status) RecordConverged(now time.Time) {
	s.Plan = nil
	s.ClearNotJoined()
	s.ClearDrift(now)
}

// UpgradeEnd is what applies to a cluster when its upgrade has ended. It is zero during the upgrade.
type UpgradeEnd struct {
	AfterUpgrade
	// Busy reports whether an execution converges the cluster.
	Busy bool
	// Fence is the fence of the lease. An execution for a step may have taken the lease, and ended before it wrote the status.
	Fence int64
	// Earlier reports whether the upgrade belongs to an earlier cluster of this name. Then it does not answer the present spec.
	Earlier bool
}

// RecordUpgrade records an upgrade as its execution describes it, its condition, and the phase of the cluster. If u has no checks, those of
// an earlier call of the same execution stay. Progress of an upgrade whose end is recorded changes nothing: a function that ran when its
// execution was stopped writes late.
func (s *Status) RecordUpgrade(u Upgrade, r *upgrade.Record, end UpgradeEnd, now time.Time) {
	if !r.State.Final() && s.hasEnded(u.Execution) {
		return
	}
	old := s.Upgrade
	if u.Checks == nil && old != nil && old.Execution == u.Execution {
		u.Checks, u.Checked = old.Checks, old.Checked
	}
	if old != nil && (old.Phase == UpgradeScheduled || old.Phase == UpgradeDelayed) && old.To != u.To && s.NextUpgrade == nil {
		s.NextUpgrade = old // this upgrade began before the scheduled one
	}
	s.Upgrade = &u
	s.DropQueued(u.Execution)
	if r.State == upgrade.Checking && (r.Origin == upgrade.OriginCommand || r.Origin == upgrade.OriginRollback) {
		s.Unset(RequestAccepted) // an earlier request was refused, this one is accepted
	}
	if r.State.Final() {
		s.AddHistory(u)
		s.Fence = end.Fence
		if r.State == upgrade.Stopped && !end.Busy && !end.Earlier {
			s.DropPlan()
		}
	}
	condition := Condition{Type: Upgraded, Status: "False", Reason: ReasonUpgrading, Message: u.Message}
	switch r.State {
	case upgrade.Done:
		condition.Status, condition.Reason = "True", ReasonUpgraded
	case upgrade.Blocked, upgrade.Stopped:
		condition.Reason = GapForState(string(r.State)).Reason
	}
	s.Set(condition, now)
	s.setUpgradePhase(u.Message, r, end, now)
}

// setUpgradePhase sets the phase of a cluster during an upgrade or after it.
//
//  1. A cluster that is being deleted keeps its phase.
//  2. During an upgrade the phase is Upgrading.
//  3. If an upgrade of the spec was blocked or stopped, the spec is not applied: the cluster is not Converged.
//  4. After any other upgrade the phase is the result of planning. If planning found changes, it is what the condition Converged states.
func (s *Status) setUpgradePhase(message string, r *upgrade.Record, end UpgradeEnd, now time.Time) {
	converged := s.Condition(Converged)
	bySpec := !end.Earlier && (r.Origin == upgrade.OriginSpec || r.Overridden == "" && end.Verdict == nil)
	switch {
	case s.Phase == Deleting || s.Phase == Deleted:
	case !r.State.Final():
		s.Phase, s.Message = Upgrading, message
	case r.State != upgrade.Done && bySpec:
		gap := GapForState(string(r.State))
		s.Phase, s.Message = gap.Phase, message
		s.Set(Condition{Type: Converged, Status: "False", Reason: gap.Reason, Message: message}, now)
	case s.Phase != Upgrading && s.Phase != Failed || converged == nil:
	case end.Busy && converged.Reason == ReasonConverging:
		s.Phase, s.Message = Converging, converged.Message // the running execution records its result
	case end.Verdict != nil:
		v := *end.Verdict
		v.Apply(s, now)
	case s.Phase == Failed:
	case converged.Status == "True":
		s.Phase, s.Message = Ready, AsSpecified
		if override := r.OverrideReason(upgrade.Target{}); override != "" {
			s.Message = ButRelease + override
		}
		s.MentionDrains()
	default:
		s.Phase, s.Message = cmp.Or(GapForReason(converged.Reason).Phase, Failed), converged.Message
	}
}

// PlanUpgrade records the pending upgrade that planning found; nil if there is none. It removes a pending upgrade that was withdrawn. An
// upgrade that an execution waits to start stays, because that execution records it.
func (s *Status) PlanUpgrade(next *Upgrade, now time.Time) {
	switch {
	case next != nil:
		s.Upgrade = next
		s.SetUpgraded(now)
	case s.Upgrade != nil && IsPending(s.Upgrade.Phase) && s.Upgrade.Execution == "", s.Upgrade.Refused():
		// It was withdrawn, or no work is left.
		s.DropScheduled()
		s.SetUpgraded(now)
	}
	s.QueueUpgrade(nil)
}

// QueueUpgrade records the upgrade that follows the one in Upgrade; nil if there is none. An upgrade that an
// execution waits to start stays.
func (s *Status) QueueUpgrade(next *Upgrade) {
	if q := s.NextUpgrade; q == nil || q.Execution == "" || q.Phase == UpgradeMissed {
		s.NextUpgrade = next
	}
}

// RecordWaiting records that an upgrade waits for its cluster, or was missed. If another upgrade is in flight, that one stays in Upgrade,
// and this one is NextUpgrade: it begins at the release of the other.
func (s *Status) RecordWaiting(u Upgrade, now time.Time) {
	other := s.Upgrade
	if other != nil && (other.Execution == u.Execution || !other.inFlight()) {
		other = nil
	}
	if other != nil {
		u.From, u.FromVersion = other.To, other.ToVersion
	}
	if u.Phase == UpgradeMissed {
		s.AddHistory(u)
	}
	if other != nil {
		s.NextUpgrade = &u
		return
	}
	s.DropQueued(u.Execution)
	s.Upgrade = &u
	if u.Phase == UpgradeMissed {
		s.setMissed(u.Message, now)
	}
}

// BlockUpgrade records an upgrade that its execution refused to begin.
func (s *Status) BlockUpgrade(u Upgrade, now time.Time) {
	u.Phase = string(upgrade.Blocked)
	s.Upgrade = &u
	s.AddHistory(u)
	s.Set(Condition{Type: Upgraded, Status: "False", Reason: ReasonUpgradeBlocked, Message: u.Message}, now)
}

// LatePhase returns the phase of an upgrade that has not begun: Delayed half an hour after its time, Missed after two hours. It is
// empty before.
func LatePhase(at, now time.Time) string {
	switch late := now.Sub(at); {
	case late >= upgrade.MissedAfter:
		return UpgradeMissed
	case late >= upgrade.DelayedAfter:
		return UpgradeDelayed
	}
	return ""
}

// missedFor continues the message of a missed upgrade: how late it is, and how to start it.
const missedFor = ". It is more than %s late. %s"

// RecordLate records that the pending upgrade of a time did not begin then, and why. phase is Delayed or Missed. The message of a missed
// upgrade says how to start it, which depends on the spec; nil if none is valid. A missed upgrade is recorded once.
func (s *Status) RecordLate(at time.Time, phase, why string, spec *api.Cluster, now time.Time) {
	for _, u := range []*Upgrade{s.Upgrade, s.NextUpgrade} {
		if u == nil || !IsPending(u.Phase) || u.Phase == phase || u.Phase == UpgradeMissed || u.At == nil || !u.At.Equal(at) {
			continue
		}
		u.Phase, u.Message = phase, fmt.Sprintf("it was due at %s: %s", at.UTC().Format(time.RFC3339), why)
		if phase == UpgradeDelayed {
			continue
		}
		u.Message += fmt.Sprintf(missedFor, upgrade.MissedAfter, upgrade.RetryHint(spec, upgrade.Origin(u.Origin), now))
		s.AddHistory(*u)
		if u == s.Upgrade { // otherwise the condition describes the upgrade in flight
			s.setMissed(u.Message, now)
		}
	}
}

func (s *Status) setMissed(message string, now time.Time) {
	s.Set(Condition{Type: Upgraded, Status: "False", Reason: ReasonUpgradeMissed, Message: message}, now)
}
