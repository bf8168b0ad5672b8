package invariants

// What happens to members and stages after the start: transitions, passes, reasons and failures.

import (
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/upgrade"
)

// checkTransitions: nothing that has begun is interrupted or forgotten (F10). One evaluation is a member of a record.
func (c *checking) checkTransitions() error {
	forgiven := c.forgiven()
	return c.each(func(_, i int, _ *rollout.Member) error {
		was, now := c.Before.Members[i], c.After.Members[i]
		f, found := c.In.Facts[now.Cluster]
		this := found && isAbout(c.Before, &was, &f)
		c.Checks["F10"]++
		left := now.State == rollout.Waiting || now.State == rollout.Started ||
			now.State == rollout.Skipped && now.Reason != rollout.ReasonDeleted
		overtaken := now.State == rollout.Skipped && now.Reason == rollout.ReasonOvertaken && this &&
			f.Attempt.State == rollout.AttemptOvertaken
		switch {
		case AtRisk(was.State) && left && (now.Attempt > was.Attempt || now.State != was.State) && !now.Rollback && !overtaken:
			if !this || f.Attempt.State != rollout.AttemptWithdrawn {
				return fmt.Errorf("F10: %s was %s and is %s, and no fact shows that it was withdrawn", now.Cluster, was.State, now.State)
			}
			if c.Denies != nil && c.Denies(i, was.Attempt) {
				return fmt.Errorf("F10: %s was withdrawn, and its cell has begun", now.Cluster)
			}
		case (was.State == rollout.Failed || was.State == rollout.Blocked) && left && !now.Rollback && !forgiven[now.Cluster]:
			return fmt.Errorf("F10: %s was %s and is %s without a decision", now.Cluster, was.State, now.State)
		case was.State == rollout.Skipped && now.State != rollout.Skipped:
			return fmt.Errorf("F10: %s was skipped and is %s", now.Cluster, now.State)
		}
		return nil
	})
}

// checkGood: Good refers to this attempt (F6), and to a cluster that was well for settle (F5). One evaluation of F6 is a member that
// becomes Good, or one in flight or Good about which the tick reads a new fact. One of F5 is a member that becomes Good, or one that has to
// settle for longer: it is not Good.
func (c *checking) checkGood() error {
	return c.each(func(k, i int, member *rollout.Member) error {
		was, now, s := &c.Before.Members[i], &c.After.Members[i], &c.Streaks[i]
		isGood, becomes := now.State == rollout.Good, now.State == rollout.Good && was.State != rollout.Good
		if was.Rollback || !isGood && !AtRisk(was.State) && was.State != rollout.Good {
			return nil
		}
		f, found := c.In.Facts[now.Cluster]
		if becomes || s.IsNew {
			c.Checks["F6"]++
		}
		switch this := found && isAbout(c.Before, was, &f); {
		case becomes && (!this || f.Attempt.State != rollout.AttemptDone || !has(&f, &member.To)):
			return fmt.Errorf("F6: %s is Good, and no fact about this attempt shows it", now.Cluster)
		case isGood && !s.Look.IsZero() && s.ObservedSince.IsZero():
			return fmt.Errorf("F6: %s is Good, and its last look did not find it well", now.Cluster)
		}
		settle := time.Duration(c.Plan.Stages[k].Settle)
		isSettled := !s.ObservedSince.IsZero() && s.Look.Sub(s.ObservedSince) >= settle
		if becomes || now.State == rollout.Settling && !isSettled {
			c.Checks["F5"]++
		}
		if becomes && !isSettled {
			return fmt.Errorf("F5: %s is Good, and was not well for %s", now.Cluster, settle)
		}
		return nil
	})
}

// checkPasses: a stage passes after those before it, with its approvals, within its budget, and while nothing waits or is at risk (F4). Its
// Good members had their soak, which is uninterrupted observed time (F5). One evaluation of F4 is a stage that passes, or the open stage
// while it must not. One of F5 is a Good member of a stage that passes, or of the open stage while only its soak is missing.
func (c *checking) checkPasses() error {
	at, isOpen := c.offsets(), true
	for k := range c.Plan.Stages {
		s, passes := &c.Plan.Stages[k], !c.After.Stages[k].Passed.IsZero()
		if !c.Before.Stages[k].Passed.IsZero() {
			isOpen = isOpen && passes // it may have lost its pass
			continue
		}
		members := c.After.Members[at[k]:at[k+1]]
		n := count(members, nil, 0)
		isSkipped := !slices.ContainsFunc(members, func(m rollout.MemberRun) bool { return m.State != rollout.Skipped })
		bad := 0
		for other := range c.Plan.Stages {
			if c.shares(k, other) {
				all := count(c.After.Members[at[other]:at[other+1]], nil, 0)
				bad += all.failed + all.blocked
			}
		}
		mustNot := !isOpen || !isSkipped && (n.waiting+n.atRisk > 0 || bad > s.MaxFailures || n.good <= n.failed+n.blocked ||
			len(c.After.Stages[k].After) < len(s.After))
		if passes || mustNot && isOpen {
			c.Checks["F4"]++
		}
		if passes && mustNot {
			return fmt.Errorf("F4: stage %s passes with %+v", s.Name, n)
		}
		settle, soak := time.Duration(s.Settle), time.Duration(s.Soak)
		for i, member := range members {
			streak := c.Streaks[at[k]+i]
			isShort := streak.WellSince.IsZero() || streak.Look.Sub(streak.WellSince) < settle+soak || streak.Look.Sub(streak.ObservedSince) < soak
			if member.State != rollout.Good || mustNot || !passes && !isShort {
				continue
			}
			if c.Checks["F5"]++; passes && isShort {
				return fmt.Errorf("F5: stage %s passes, and %s was seen well from %s to %s", s.Name, member.Cluster, streak.ObservedSince, streak.Look)
			}
		}
		isOpen = isOpen && passes
	}
	return nil
}

// checkReasons: the reason of each waiting member is true of what the tick read (F20). One evaluation is a member that waits.
func (c *checking) checkReasons() error {
	at := c.offsets()
	return c.each(func(k, i int, planned *rollout.Member) error {
		member := &c.After.Members[i]
		if member.State != rollout.Waiting {
			return nil
		}
		c.Checks["F20"]++
		if !c.holds(k, planned, member, count(c.After.Members[at[k]:at[k+1]], nil, 0)) {
			return fmt.Errorf("F20: %s waits for %s, which does not hold", member.Cluster, member.Reason)
		}
		if !member.Until.IsZero() && member.Until.Before(seconds(c.Now)) {
			return fmt.Errorf("F20: %s waits until %s, which has passed", member.Cluster, member.Until)
		}
		return nil
	})
}

// holds reports whether the reason of a waiting member is true. own counts the members of its stage.
func (c *checking) holds(k int, planned *rollout.Member, member *rollout.MemberRun, own recount) bool {
	s := &c.Plan.Stages[k]
	f, found := c.In.Facts[member.Cluster]
	cell := c.In.Cells[planned.Cell]
	switch member.Reason {
	case rollout.ReasonPaused:
		return c.After.PausedBy != ""
	case rollout.ReasonHalted:
		return c.After.Halt != nil
	case rollout.ReasonStage:
		return slices.ContainsFunc(c.After.Stages[:k], func(s rollout.StageRun) bool { return s.Passed.IsZero() })
	case rollout.ReasonApproval:
		return len(c.After.Stages[k].Before) < len(s.Before)
	case rollout.ReasonAlarm:
		return c.alarmed(s)
	case rollout.ReasonWindow:
		return c.shut(s)
	case rollout.ReasonUnreported:
		return !found || c.Now.Sub(f.Observed) > time.Hour
	case rollout.ReasonClusterPaused:
		return f.Paused
	case rollout.ReasonFreeze:
		return c.frozen(&f)
	case rollout.ReasonClusterWindow:
		return c.closed(&f)
	case rollout.ReasonIncompatibleVersion:
		return c.unreachable(&f, planned)
	case rollout.ReasonReleaseUnusable:
		return slices.Contains(cell.Unusable, planned.To.SHA256)
	case rollout.ReasonBusy:
		return f.Busy
	case rollout.ReasonNotReady:
		return f.Unready
	case rollout.ReasonSlots:
		return own.atRisk >= s.MaxConcurrency
	case rollout.ReasonBudget:
		return own.atRisk < s.MaxConcurrency
	case rollout.ReasonCellLimit:
		flying := 0
		_ = c.each(func(_, i int, other *rollout.Member) error {
			if m := &c.After.Members[i]; other.Cell == planned.Cell && AtRisk(m.State) && m.State != rollout.Settling {
				flying++
			}
			return nil
		})
		return cell.Limit > 0 && flying+cell.Others >= cell.Limit
	}
	return false
}

// unreachable reports whether the Kubernetes version of a cluster does not lead to that of its release.
func (c *checking) unreachable(f *rollout.Fact, planned *rollout.Member) bool {
	have, to := upgrade.Minor(f.Deployed.KubernetesVersion), upgrade.Minor(planned.To.KubernetesVersion)
	oldest := to - 1
	for _, r := range c.Plan.Subject.Releases {
		if r.SHA256 == planned.To.SHA256 && r.UpgradeFrom != "" {
			oldest = upgrade.Minor(r.UpgradeFrom)
		}
	}
	return have > to || have < oldest
}

// checkFailures: between decisions that forgive, the members that fail before they settle are bounded (F2). One evaluation is a stage with
// members at risk when the tick began: it may have failed them.
func (c *checking) checkFailures() error {
	for _, d := range c.In.Decisions {
		forgives := d.Spec.Verb == api.VerbRetry || d.Spec.Verb == api.VerbSkip || d.Spec.Verb == api.VerbResume
		if _, old := c.Before.Answers[d.Name]; !old && forgives && c.After.Answers[d.Name].Applied {
			c.Failures = map[string]int{}
		}
	}
	at := c.offsets()
	for k := range c.Plan.Stages {
		s := &c.Plan.Stages[k]
		pool := s.Name
		if s.SharedFailures {
			pool = s.FromStage
		}
		for i := at[k]; i < at[k+1]; i++ {
			now := c.After.Members[i]
			if now.State == rollout.Failed && AtRisk(c.Before.Members[i].State) && now.Reason != rollout.ReasonRegressed && !now.Rollback {
				c.Failures[pool]++
			}
		}
		most := s.MaxFailures + 1
		if s.Budget == api.BudgetSoft {
			most = s.MaxFailures + s.MaxConcurrency
		}
		if count(c.Before.Members[at[k]:at[k+1]], nil, 0).atRisk > 0 {
			c.Checks["F2"]++
		}
		if c.Failures[pool] > most {
			return fmt.Errorf("F2: %d members of %s failed, at most %d may", c.Failures[pool], pool, most)
		}
	}
	return nil
}

// rollsBack reports whether the run rolls a stage back, or has done so.
func (c *checking) rollsBack() bool {
	return slices.ContainsFunc(c.After.Stages, func(s rollout.StageRun) bool { return s.Rollback != "" })
}

// checkRollback: a rollback returns only members of its stage, and only those that the run changed (F21). One evaluation is a member of a
// halted run that returns, or one that must not.
func (c *checking) checkRollback() error {
	if c.After.Halt == nil {
		return nil
	}
	return c.each(func(k, i int, _ *rollout.Member) error {
		member, mustNot := &c.After.Members[i], c.After.Stages[k].Rollback == "" || !c.Touched(i)
		if member.Rollback || mustNot {
			c.Checks["F21"]++
		}
		if member.Rollback && mustNot {
			return fmt.Errorf("F21: %s is rolled back, and the run did not change it, or its stage is not rolled back", member.Cluster)
		}
		return nil
	})
}

// checkProgress: a run that has not ended, and that is not paused, waits for something that ends (F22). One evaluation is such a run.
//
//  1. A member in flight ends at its deadline.
//  2. A run that failures halted names a member to blame, for its users.
//  3. A run without members in flight has an open stage. In that stage members wait, for reasons that F20 checks, or it soaks, waits for an
//     approval or for an alarm. It is halted if it has more failures than it allows.
func (c *checking) checkProgress() error {
	r := c.After
	if r.State.Final() || r.PausedBy != "" {
		return nil
	}
	c.Checks["F22"]++
	isAtRisk, isBlamed := false, c.rollsBack()
	err := c.each(func(k, i int, _ *rollout.Member) error {
		m := &r.Members[i]
		since := m.Started
		if !m.RegressedAt.IsZero() {
			since = m.RegressedAt
		}
		isAtRisk = isAtRisk || AtRisk(m.State)
		isBlamed = isBlamed || m.State == rollout.Failed || m.State == rollout.Blocked
		if deadline := time.Duration(c.Plan.Stages[k].Deadline); AtRisk(m.State) && seconds(c.Now).Sub(since) > deadline {
			return fmt.Errorf("F22: %s is %s after its deadline", m.Cluster, m.State)
		}
		return nil
	})
	switch {
	case err != nil || isAtRisk:
		return err
	case r.Ending != "":
		return fmt.Errorf("F22: the run has no member in flight, approaches %s and does not end", r.Ending)
	case r.Halt != nil && r.Halt.Cause == rollout.HaltFailures && !isBlamed:
		return fmt.Errorf("F22: the run is halted because of failures, and no member failed")
	case r.Halt != nil:
		return nil
	}
	at := c.offsets()
	for k := range c.Plan.Stages {
		if !r.Stages[k].Passed.IsZero() {
			continue
		}
		n := count(r.Members[at[k]:at[k+1]], nil, 0)
		if n.waiting == 0 && n.good <= n.failed+n.blocked {
			return fmt.Errorf("F22: stage %s has %+v, and the run is neither halted nor done", c.Plan.Stages[k].Name, n)
		}
		return nil
	}
	return fmt.Errorf("F22: all stages have passed, and the run is %s", r.State)
}
