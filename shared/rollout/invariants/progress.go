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

// checkTransitions: nothing that has begun is interrupted or forgotten (F10), and Good refers to this attempt (F6).
func (c *checking) checkTransitions() error {
	forgiven := c.forgiven()
	return c.each(func(k, i int, member *rollout.Member) error {
		was, now := c.Before.Members[i], c.After.Members[i]
		f, found := c.In.Facts[now.Cluster]
		this := found && isAbout(c.Before, &was, &f)
		c.Checks["F10"]++
		left := now.State == rollout.Waiting || now.State == rollout.Started ||
			now.State == rollout.Skipped && now.Reason != rollout.ReasonDeleted
		overtaken := now.State == rollout.Skipped && now.Reason == rollout.ReasonOvertaken && this &&
			f.Attempt.State == rollout.AttemptOvertaken
		switch {
		case AtRisk(was.State) && left && (now.Attempt > was.Attempt || now.State != was.State) && !now.Back && !overtaken:
			if !this || f.Attempt.State != rollout.AttemptWithdrawn {
				return fmt.Errorf("F10: %s was %s and is %s, and no fact shows that it was withdrawn", now.Cluster, was.State, now.State)
			}
			if c.Denies != nil && c.Denies(i, was.Attempt) {
				return fmt.Errorf("F10: %s was withdrawn, and its cell has begun", now.Cluster)
			}
		case (was.State == rollout.Failed || was.State == rollout.Blocked) && left && !now.Back && !forgiven[now.Cluster]:
			return fmt.Errorf("F10: %s was %s and is %s without a decision", now.Cluster, was.State, now.State)
		case was.State == rollout.Skipped && now.State != rollout.Skipped:
			return fmt.Errorf("F10: %s was skipped and is %s", now.Cluster, now.State)
		}
		if now.State == rollout.Good && was.State != rollout.Good && !was.Back {
			c.Checks["F6"]++
			if !this || f.Attempt.State != rollout.AttemptDone || !has(&f, &member.To) {
				return fmt.Errorf("F6: %s is Good, and no fact about this attempt shows it", now.Cluster)
			}
			c.Checks["F5"]++
			settle := time.Duration(c.Plan.Stages[k].Settle)
			if s := c.Streaks[i]; s.Well.IsZero() || s.Look.Sub(s.Well) < settle {
				return fmt.Errorf("F5: %s is Good, and was not well for %s", now.Cluster, settle)
			}
		}
		return nil
	})
}

// checkPasses: a stage passes after its soak, on newer looks of its Good members (F4), of uninterrupted time (F5).
func (c *checking) checkPasses() error {
	at := c.offsets()
	for k := range c.Plan.Stages {
		s := &c.Plan.Stages[k]
		if !c.Before.Stages[k].Passed.IsZero() || c.After.Stages[k].Passed.IsZero() {
			continue
		}
		c.Checks["F4"]++
		members := c.After.Members[at[k]:at[k+1]]
		n := count(members, nil, 0)
		skipped := !slices.ContainsFunc(members, func(m rollout.MemberRun) bool { return m.State != rollout.Skipped })
		if skipped {
			continue
		}
		bad := 0
		for other := range c.Plan.Stages {
			if c.shares(k, other) {
				all := count(c.After.Members[at[other]:at[other+1]], nil, 0)
				bad += all.failed + all.blocked
			}
		}
		if n.waiting+n.atRisk > 0 || bad > s.MaxFailures || n.good <= n.failed+n.blocked || len(c.After.Stages[k].After) < len(s.After) {
			return fmt.Errorf("F4: stage %s passes with %+v", s.Name, n)
		}
		settle, soak := time.Duration(s.Settle), time.Duration(s.Soak)
		for i, member := range members {
			streak := c.Streaks[at[k]+i]
			c.Checks["F5"]++
			short := streak.Since.IsZero() || streak.Look.Sub(streak.Since) < settle+soak || streak.Look.Sub(streak.Well) < soak
			if member.State == rollout.Good && short {
				return fmt.Errorf("F5: stage %s passes, and %s was seen well from %s to %s", s.Name, member.Cluster, streak.Well, streak.Look)
			}
		}
	}
	return nil
}

// checkReasons: the reason of each waiting member is true of what the tick read (F20).
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
	case rollout.ReasonUnpublished:
		return slices.Contains(cell.Unpublished, planned.To.SHA256)
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

// checkFailures: between decisions that forgive, the members that fail before they settle are bounded (F2).
func (c *checking) checkFailures() error {
	for _, d := range c.In.Decisions {
		forgives := d.Spec.Verb == api.VerbRetry || d.Spec.Verb == api.VerbSkip || d.Spec.Verb == api.VerbResume
		if _, old := c.Before.Decided[d.Name]; !old && forgives && c.After.Decided[d.Name].Applied {
			c.Failures = map[string]int{}
		}
	}
	at := c.offsets()
	for k := range c.Plan.Stages {
		s := &c.Plan.Stages[k]
		pool := s.Name
		if s.SharedFailures {
			pool = s.Of
		}
		for i := at[k]; i < at[k+1]; i++ {
			now := c.After.Members[i]
			if now.State == rollout.Failed && AtRisk(c.Before.Members[i].State) && now.Reason != rollout.ReasonRegressed && !now.Back {
				c.Failures[pool]++
			}
		}
		most := s.MaxFailures + 1
		if s.Budget == api.BudgetSoft {
			most = s.MaxFailures + s.MaxConcurrency
		}
		if c.Checks["F2"]++; c.Failures[pool] > most {
			return fmt.Errorf("F2: %d members of %s failed, at most %d may", c.Failures[pool], pool, most)
		}
	}
	return nil
}
