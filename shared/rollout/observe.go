package rollout

// What facts say about the members of a run.

import (
	"time"

	"github.com/drover-run/drover/shared/upgrade"
)

// observe brings members to the state that the newest facts show.
func (t *ticking) observe() {
	t.each(func(i int, m *MemberRun, member *Member) {
		switch m.State {
		case Blocked, Skipped, RolledBack, NotRolledBack:
			return
		case Failed:
			// A member that failed before it began may have begun since. A rollback then includes it.
			if f, counts := t.about(m); counts && f.Attempt.State.begun() && !m.Begun {
				m.Begun, m.Changed = true, true
			}
			return
		}
		if t.isDeleted(m, member) {
			t.set(m, Skipped, ReasonDeleted)
			return
		}
		if m.State == Waiting {
			t.observeWaiting(m, member)
			return
		}
		if f, counts := t.about(m); counts {
			t.observeAttempt(i, m, member, f)
		}
	})
}

// isDeleted reports whether the cluster was deleted or recreated since the plan was made.
func (t *ticking) isDeleted(m *MemberRun, member *Member) bool {
	f, found := t.in.Facts[m.Cluster]
	if found {
		return member.Stack != "" && f.Stack != "" && f.Stack != member.Stack
	}
	at, reported := t.in.FactsAt[member.Cell]
	return reported && at.After(t.r.Started) && at.After(m.Started)
}

// observeWaiting takes a member out that needs no change anymore.
func (t *ticking) observeWaiting(m *MemberRun, member *Member) {
	f, found := t.in.Facts[m.Cluster]
	switch {
	case !found:
	case f.Pinned:
		t.set(m, Skipped, ReasonPinned)
	case m.Attempt == 0 && same(f.Deployed, member.To):
		t.set(m, Skipped, ReasonUpToDate)
	}
}

// about returns the fact of a member if it is newer than what the record has seen, and about the member's last attempt. Other facts say
// nothing about it.
func (t *ticking) about(m *MemberRun) (f *Fact, counts bool) {
	fact, found := t.in.Facts[m.Cluster]
	a := fact.Attempt
	counts = found && a != nil && m.attempted(t.r, a) &&
		fact.Observed.After(m.Started) && fact.Observed.After(m.Look)
	return &fact, counts
}

// observeAttempt applies a fact about the last attempt of a member that is at risk or Good.
func (t *ticking) observeAttempt(i int, m *MemberRun, member *Member, f *Fact) {
	a := f.Attempt
	m.Begun = m.Begun || a.State.begun()
	m.Changed = m.Changed || a.State == AttemptDone || a.State == AttemptStopped
	switch a.State {
	case AttemptOvertaken:
		t.set(m, Skipped, ReasonOvertaken)
	case AttemptWithdrawn:
		switch {
		case m.State != Started && m.State != Withdrawing:
		case m.Rollback:
			m.Rollback, m.Begun = false, true
			t.set(m, m.PriorState, m.PriorReason)
		default:
			t.wait(m)
		}
	case AttemptBlocked:
		switch {
		case !m.State.inFlight():
		case m.Rollback:
			t.set(m, Failed, ReasonRollback)
		default:
			m.Check = a.Check
			t.set(m, Blocked, ReasonCheck)
		}
	case AttemptStopped:
		if m.State.atRisk() && m.Rollback {
			t.set(m, Failed, ReasonRollback)
		} else if m.State.atRisk() {
			t.set(m, Failed, ReasonUpgrade)
		}
	case AttemptBegun:
		if m.State.inFlight() {
			t.set(m, Changing, "")
		}
	case AttemptDone:
		t.observeDone(i, m, member, f)
	}
}

// observeDone applies a fact about a complete attempt.
func (t *ticking) observeDone(i int, m *MemberRun, member *Member, f *Fact) {
	target := member.To
	if m.Rollback {
		target = member.From
	}
	atTarget := same(f.Deployed, target)
	switch {
	case m.State.inFlight() && !atTarget:
		t.set(m, Changing, "") // the fact of the pin is older
		return
	case m.Rollback && m.State.inFlight():
		t.set(m, RolledBack, "")
		return
	case m.State.inFlight():
		t.set(m, Settling, "")
	}
	seen := wholeSecond(f.Observed)
	observed := !m.Look.IsZero() && seen.Sub(m.Look) <= maxGap
	m.Look = seen
	if !atTarget || f.unwellReason() != "" {
		m.WellSince = time.Time{}
		if m.UnwellSince.IsZero() {
			m.UnwellSince = seen
		}
		if m.State == Good {
			m.GoodSince, m.RegressedAt = time.Time{}, seen
			t.set(m, Settling, "")
		}
		return
	}
	m.UnwellSince = time.Time{}
	if m.WellSince.IsZero() || !observed {
		m.WellSince = seen
		if m.State == Good {
			m.GoodSince = seen // the soak counts observed time
		}
	}
	if settled := m.WellSince.Add(time.Duration(t.p.Stages[i].Settle)); m.State == Settling && !seen.Before(settled) {
		m.GoodSince, m.RegressedAt = seen, time.Time{}
		t.set(m, Good, "")
	}
}

// expire fails members that are past their time.
func (t *ticking) expire() {
	t.each(func(i int, m *MemberRun, member *Member) {
		s := &t.p.Stages[i]
		if !m.State.atRisk() {
			return
		}
		limit, reason := m.Started.Add(time.Duration(s.Deadline)), ReasonDeadline
		if m.State == Settling {
			if f := t.in.Facts[m.Cluster]; !m.UnwellSince.IsZero() {
				if unwellReason := f.unwellReason(); unwellReason != "" {
					reason = unwellReason
				}
				if unwell := m.UnwellSince.Add(max(4*time.Duration(s.Settle), minUnwellSettling)); unwell.Before(limit) {
					limit = unwell
				}
			}
			if !m.WellSince.IsZero() {
				t.tickBy(m.WellSince.Add(time.Duration(s.Settle)))
			}
		}
		if !m.RegressedAt.IsZero() {
			limit, reason = m.RegressedAt.Add(time.Duration(s.Deadline)), ReasonRegressed
			if unwell := m.UnwellSince.Add(max(time.Duration(s.Settle), minUnwellRegressed)); !m.UnwellSince.IsZero() && unwell.Before(limit) {
				limit = unwell
			}
		}
		if m.Rollback {
			reason = ReasonRollback
		}
		if t.now.After(limit) {
			m.Changed = m.Changed || m.Begun
			t.set(m, Failed, reason)
			return
		}
		t.tickBy(limit.Add(time.Second))
	})
}

// rejudge returns failed members to Settling if their newest facts show that they are well.
func (t *ticking) rejudge() (count int) {
	t.each(func(_ int, m *MemberRun, member *Member) {
		f, found := t.in.Facts[m.Cluster]
		if m.State != Failed || m.Rollback || !found || f.Attempt == nil || !m.attempted(t.r, f.Attempt) || !f.Observed.After(m.Started) ||
			f.Attempt.State != AttemptDone || !same(f.Deployed, member.To) || f.unwellReason() != "" {
			return
		}
		m.Begun, m.Changed = true, true
		m.Look, m.WellSince, m.UnwellSince, m.GoodSince = wholeSecond(f.Observed), wholeSecond(f.Observed), time.Time{}, time.Time{}
		m.RegressedAt = t.now // its deadline counts from here
		t.set(m, Settling, "")
		count++
	})
	return count
}

// attempted reports whether an attempt is the last one of the member.
func (m *MemberRun) attempted(r *Run, a *Attempt) bool {
	return a.Rollout == r.Rollout && a.Run == r.Number && a.Number == m.Attempt
}

// same reports whether a cluster is pinned to the release of a target.
func same(have, want upgrade.Target) bool {
	return have.Release == want.Release && have.SHA256 == want.SHA256
}
