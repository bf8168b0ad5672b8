package rollout_test

// The invariants of fleets, checked on each record that the model writes. The checks count and compare for themselves.

import (
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
)

// invariants are the names under which checks are counted.
var invariants = []string{
	"F1",  // A member starts only within maxFailures and maxConcurrency.
	"F2",  // The failed members stay within the budget.
	"F3",  // Each record follows the one before it, and assignments are those of the newest record.
	"F4",  // Stages run in order. A stage opens and passes only when its gates are open.
	"F5",  // A member is Good after settle, and a stage passes after its soak: both count only observed time.
	"F6",  // A member is Good only by a fact about its present attempt.
	"F7",  // The members of a run are those of its plan.
	"F8",  // Each decision has its effect once, and only on the plan that it names.
	"F9",  // No member starts against a brake, a freeze or the gates of its cluster.
	"F10", // Work in flight finishes, and a withdrawn start never begins.
	"F17", // The members in flight in a cell stay within its limit.
	"F18", // A cluster gets the release of the plan, with the same content.
	"F20", // Each waiting member has one reason, which is true.
	"F21", // A rollback returns only clusters that the run changed.
	"F22", // A run ends when its clusters and cells work.
}

// recount counts the members of stages by state.
type recount struct{ waiting, atRisk, good, failed, blocked, flying int }

func isAtRisk(s rollout.State) bool {
	return s == rollout.Started || s == rollout.Withdrawing || s == rollout.Changing || s == rollout.Settling
}

func count(members []rollout.MemberRun, except map[int]bool, offset int) (n recount) {
	for i, m := range members {
		switch {
		case except[offset+i] || m.State == rollout.Waiting:
			n.waiting++
		case isAtRisk(m.State):
			n.atRisk++
			if m.State != rollout.Settling {
				n.flying++
			}
		case m.State == rollout.Good:
			n.good++
		case m.State == rollout.Failed:
			n.failed++
		case m.State == rollout.Blocked:
			n.blocked++
		}
	}
	return n
}

// offsets returns the index of the first member of each stage, and the number of all members.
func (m *model) offsets() []int {
	at := []int{0}
	for _, s := range m.plan.Stages {
		at = append(at, at[len(at)-1]+len(s.Members))
	}
	return at
}

// shares reports whether two stages share a failure budget.
func (m *model) shares(i, k int) bool {
	return i == k || m.plan.Stages[i].SharedFailures && m.plan.Stages[i].Of == m.plan.Stages[k].Of
}

// check compares a record with the one before it and with what its tick read.
func (m *model) check(w *world, before, after *rollout.Run, in *rollout.Inputs) error {
	if after.Sequence != before.Sequence+1 {
		return fmt.Errorf("F3: sequence %d follows %d", after.Sequence, before.Sequence)
	}
	m.follow(w, before, in)
	for _, check := range []func(*world, *rollout.Run, *rollout.Run, *rollout.Inputs) error{
		m.checkMembers, m.checkDecisions, m.checkStarts, m.checkTransitions, m.checkPasses, m.checkReasons, m.checkFailures,
	} {
		if err := check(w, before, after, in); err != nil {
			return err
		}
	}
	return nil
}

// follow updates what the facts have shown about the attempts of the record.
func (m *model) follow(w *world, before *rollout.Run, in *rollout.Inputs) {
	for i := range before.Members {
		member, s := &before.Members[i], &w.Streaks[i]
		if member.Attempt != s.Attempt {
			*s = streak{Attempt: member.Attempt}
		}
		f, found := in.Facts[member.Cluster]
		if !found || f.Attempt == nil || f.Attempt.Number != member.Attempt || !f.Observed.After(member.Started) || !f.Observed.After(s.Look) {
			continue
		}
		if f.Attempt.State != rollout.AttemptDone {
			continue
		}
		well := f.Deployed == modelTo && f.NotReady == 0
		if !well {
			s.Since, s.Well = time.Time{}, time.Time{}
		} else if s.Since.IsZero() {
			s.Since, s.Well = f.Observed, f.Observed
		} else if s.Well.IsZero() || f.Observed.Sub(s.Look) > 15*time.Minute {
			s.Well = f.Observed
		}
		s.Look = f.Observed
	}
}

// checkMembers: the members are those of the plan (F7), and each has one state and a reason that fits it (F20).
func (m *model) checkMembers(_ *world, _, after *rollout.Run, _ *rollout.Inputs) error {
	n := 0
	for _, s := range m.plan.Stages {
		for _, member := range s.Members {
			m.checks["F7"]++
			if n >= len(after.Members) || after.Members[n].Cluster != member.Cluster {
				return fmt.Errorf("F7: member %d is not %s", n, member.Cluster)
			}
			got := after.Members[n]
			reasons := rollout.Reasons(got.State)
			if len(reasons) == 0 && got.Reason != "" || len(reasons) > 0 && !slices.Contains(reasons, got.Reason) {
				return fmt.Errorf("F20: %s is %s with the reason %q", got.Cluster, got.State, got.Reason)
			}
			n++
		}
	}
	if n != len(after.Members) {
		return fmt.Errorf("F7: %d members, the plan has %d", len(after.Members), n)
	}
	return nil
}

// checkDecisions: a decision applies once, and a forward one only to the plan that it names (F8).
func (m *model) checkDecisions(_ *world, before, after *rollout.Run, in *rollout.Inputs) error {
	for name, answer := range before.Decided {
		m.checks["F8"]++
		if after.Decided[name] != answer {
			return fmt.Errorf("F8: the decision %s was answered twice", name)
		}
	}
	for _, d := range in.Decisions {
		answer, answered := after.Decided[d.Name]
		switch {
		case !answered:
			return fmt.Errorf("F8: the decision %s was not answered", d.Name)
		case answer.Version == d.Version && answer.Applied && d.Spec.Plan != after.Plan && !d.Spec.Verb.Brakes():
			return fmt.Errorf("F8: the decision %s of another plan was applied", d.Name)
		}
	}
	for i := range after.Stages {
		for _, name := range slices.Concat(after.Stages[i].Before, after.Stages[i].After) {
			if !after.Decided[name].Applied {
				return fmt.Errorf("F8: the approval %s is not a decision that applied", name)
			}
		}
	}
	return nil
}

// braked reports whether decisions or the state of the run forbid starts.
func braked(before, after *rollout.Run, in *rollout.Inputs) bool {
	paused := before.PausedBy != ""
	fresh := slices.Clone(in.Decisions)
	slices.SortStableFunc(fresh, func(a, b rollout.Decided) int { return a.At.Compare(b.At) })
	done, since := map[string]bool{}, time.Time{}
	for _, d := range fresh {
		if _, applied := before.Decided[d.Name]; applied || done[d.Name] {
			continue
		}
		done[d.Name] = true
		switch {
		case d.Spec.Verb == api.VerbPause:
			paused, since = true, d.At
		case d.Spec.Verb == api.VerbResume && d.Spec.Plan == before.Plan && d.At.After(since):
			paused = false // a pause of the same second prevails
		case d.Spec.Verb == api.VerbAbort:
			return true
		}
	}
	return paused || after.Halt != nil || after.Ending != ""
}

// checkStarts: each start is within its budget (F1), in the open stage (F4), not forbidden by what the tick read (F9), and within the limit
// of its cell (F17).
func (m *model) checkStarts(_ *world, before, after *rollout.Run, in *rollout.Inputs) error {
	at := m.offsets()
	started := map[int]bool{}
	for i := range after.Members {
		if after.Members[i].Attempt > before.Members[i].Attempt && !after.Members[i].Back {
			started[i] = true
		}
	}
	flying := count(after.Members, nil, 0).flying
	if m.checks["F17"]++; len(started) > 0 && m.limit > 0 && flying > m.limit {
		return fmt.Errorf("F17: %d members in flight, the cell allows %d", flying, m.limit)
	}
	isBraked := braked(before, after, in)
	for k, s := range m.plan.Stages {
		for i := at[k]; i < at[k+1]; i++ {
			if !started[i] {
				continue
			}
			member := after.Members[i]
			m.checks["F9"]++
			f, found := in.Facts[member.Cluster]
			switch {
			case isBraked:
				return fmt.Errorf("F9: %s starts against a brake", member.Cluster)
			case len(in.Freezes) > 0:
				return fmt.Errorf("F9: %s starts in a freeze", member.Cluster)
			case !found || f.Paused || f.Opening != nil && member.Started.Before(f.Opening.Opens):
				return fmt.Errorf("F9: %s starts although its cluster does not allow it", member.Cluster)
			}
			for earlier := range k {
				if m.checks["F4"]++; after.Stages[earlier].Passed.IsZero() {
					return fmt.Errorf("F4: %s starts before stage %d has passed", member.Cluster, earlier+1)
				}
			}
			if len(after.Stages[k].Before) < len(s.Before) {
				return fmt.Errorf("F4: %s starts without an approval", member.Cluster)
			}
			own, failed, atRisk := count(after.Members[at[k]:at[k+1]], started, at[k]), 0, 0
			for other := range m.plan.Stages {
				if m.shares(k, other) {
					n := count(after.Members[at[other]:at[other+1]], started, at[other])
					failed, atRisk = failed+n.failed, atRisk+n.atRisk
				}
			}
			if s.Budget == api.BudgetSoft {
				atRisk = 0
			}
			if m.checks["F1"]++; own.atRisk >= s.MaxConcurrency || failed+atRisk > s.MaxFailures {
				return fmt.Errorf("F1: %s starts with %d failed and %d at risk", member.Cluster, failed, own.atRisk)
			}
			delete(started, i) // it counts for the next one
		}
	}
	return nil
}

// checkTransitions: nothing that has begun is interrupted or forgotten (F10), and Good refers to this attempt (F6).
func (m *model) checkTransitions(w *world, before, after *rollout.Run, in *rollout.Inputs) error {
	retried := map[string]bool{}
	for _, d := range in.Decisions {
		_, old := before.Decided[d.Name]
		if !old && after.Decided[d.Name].Applied && (d.Spec.Verb == api.VerbRetry || d.Spec.Verb == api.VerbSkip) {
			for _, cluster := range d.Spec.Clusters {
				retried[cluster] = true
			}
		}
	}
	for i := range after.Members {
		was, now := before.Members[i], after.Members[i]
		f, found := in.Facts[now.Cluster]
		this := found && f.Attempt != nil && f.Attempt.Number == was.Attempt && f.Observed.After(was.Started)
		m.checks["F10"]++
		left := now.State == rollout.Waiting || now.State == rollout.Started ||
			now.State == rollout.Skipped && now.Reason != rollout.ReasonDeleted
		switch {
		case isAtRisk(was.State) && left && (now.Attempt > was.Attempt || now.State != was.State) && !now.Back:
			if !this || f.Attempt.State != rollout.AttemptWithdrawn {
				return fmt.Errorf("F10: %s was %s and is %s, and no fact shows that it was withdrawn", now.Cluster, was.State, now.State)
			}
			if c := w.Clusters[i]; c.Has.Attempt == was.Attempt && c.State != rollout.AttemptWithdrawn && c.Stack == 0 {
				return fmt.Errorf("F10: %s was withdrawn, and its cell is %s", now.Cluster, c.State)
			}
		case (was.State == rollout.Failed || was.State == rollout.Blocked) && left && !now.Back && !retried[now.Cluster]:
			return fmt.Errorf("F10: %s was %s and is %s without a decision", now.Cluster, was.State, now.State)
		case was.State == rollout.Skipped && now.State != rollout.Skipped:
			return fmt.Errorf("F10: %s was skipped and is %s", now.Cluster, now.State)
		}
		if now.State == rollout.Good && was.State != rollout.Good && !was.Back {
			m.checks["F6"]++
			if !this || f.Attempt.State != rollout.AttemptDone || f.Deployed != modelTo {
				return fmt.Errorf("F6: %s is Good, and no fact about this attempt shows it", now.Cluster)
			}
			m.checks["F5"]++
			if s := w.Streaks[i]; s.Well.IsZero() || s.Look.Sub(s.Well) < settle {
				return fmt.Errorf("F5: %s is Good, and was not well for %s", now.Cluster, settle)
			}
		}
	}
	return nil
}

// checkPasses: a stage passes after its soak, on newer looks of its Good members (F4), of uninterrupted time (F5).
func (m *model) checkPasses(w *world, before, after *rollout.Run, _ *rollout.Inputs) error {
	at := m.offsets()
	for k, s := range m.plan.Stages {
		if !before.Stages[k].Passed.IsZero() || after.Stages[k].Passed.IsZero() {
			continue
		}
		m.checks["F4"]++
		members := after.Members[at[k]:at[k+1]]
		n := count(members, nil, 0)
		skipped := !slices.ContainsFunc(members, func(m rollout.MemberRun) bool { return m.State != rollout.Skipped })
		if skipped {
			continue
		}
		bad := 0
		for other := range m.plan.Stages {
			if m.shares(k, other) {
				all := count(after.Members[at[other]:at[other+1]], nil, 0)
				bad += all.failed + all.blocked
			}
		}
		if n.waiting+n.atRisk > 0 || bad > s.MaxFailures || n.good <= n.failed+n.blocked || len(after.Stages[k].After) < len(s.After) {
			return fmt.Errorf("F4: stage %s passes with %+v", s.Name, n)
		}
		for i, member := range members {
			streak := w.Streaks[at[k]+i]
			m.checks["F5"]++
			short := streak.Since.IsZero() || streak.Look.Sub(streak.Since) < settle+soak || streak.Look.Sub(streak.Well) < soak
			if member.State == rollout.Good && short {
				return fmt.Errorf("F5: stage %s passes, and %s was seen well from %s to %s", s.Name, member.Cluster, streak.Well, streak.Look)
			}
		}
	}
	return nil
}

// checkReasons: the reason of each waiting member is true of what the tick read (F20).
func (m *model) checkReasons(w *world, _, after *rollout.Run, in *rollout.Inputs) error {
	at := m.offsets()
	for k, s := range m.plan.Stages {
		open := true
		for earlier := range k {
			open = open && !after.Stages[earlier].Passed.IsZero()
		}
		for i := at[k]; i < at[k+1]; i++ {
			member := after.Members[i]
			if member.State != rollout.Waiting {
				continue
			}
			m.checks["F20"]++
			f, found := in.Facts[member.Cluster]
			own := count(after.Members[at[k]:at[k+1]], nil, 0)
			ok := true
			switch member.Reason {
			case rollout.ReasonPaused:
				ok = after.PausedBy != ""
			case rollout.ReasonHalted:
				ok = after.Halt != nil
			case rollout.ReasonStage:
				ok = !open
			case rollout.ReasonApproval:
				ok = len(after.Stages[k].Before) < len(s.Before)
			case rollout.ReasonAlarm:
				ok = in.Alarms[alarmName].Ringing
			case rollout.ReasonUnreported:
				ok = !found || w.Now.Sub(f.Observed) > time.Hour
			case rollout.ReasonClusterPaused:
				ok = f.Paused
			case rollout.ReasonFreeze:
				ok = len(in.Freezes) > 0
			case rollout.ReasonClusterWindow:
				ok = f.Opening != nil && w.Now.Before(f.Opening.Opens)
			case rollout.ReasonSlots:
				ok = own.atRisk >= s.MaxConcurrency
			case rollout.ReasonBudget:
				ok = own.atRisk < s.MaxConcurrency
			case rollout.ReasonCellLimit:
				ok = m.limit > 0 && count(after.Members, nil, 0).flying >= m.limit
			case rollout.ReasonKubernetes:
				ok = f.Deployed.KubernetesVersion > "1.37"
			default:
				ok = false
			}
			if !ok {
				return fmt.Errorf("F20: %s waits for %s, which does not hold", member.Cluster, member.Reason)
			}
			if !member.Until.IsZero() && member.Until.Before(w.Now) {
				return fmt.Errorf("F20: %s waits until %s, which has passed", member.Cluster, member.Until)
			}
		}
	}
	return nil
}

// checkFailures: between decisions that forgive, the members that fail before they settle are bounded (F2).
func (m *model) checkFailures(w *world, before, after *rollout.Run, in *rollout.Inputs) error {
	for _, d := range in.Decisions {
		forgives := d.Spec.Verb == api.VerbRetry || d.Spec.Verb == api.VerbSkip || d.Spec.Verb == api.VerbResume
		if _, old := before.Decided[d.Name]; !old && forgives && after.Decided[d.Name].Applied {
			w.Failures = map[string]int{}
		}
	}
	at := m.offsets()
	for k, s := range m.plan.Stages {
		pool := s.Name
		if s.SharedFailures {
			pool = s.Of
		}
		for i := at[k]; i < at[k+1]; i++ {
			now := after.Members[i]
			if now.State == rollout.Failed && isAtRisk(before.Members[i].State) && now.Reason != rollout.ReasonRegressed && !now.Back {
				w.Failures[pool]++
			}
		}
		most := s.MaxFailures + 1
		if s.Budget == api.BudgetSoft {
			most = s.MaxFailures + s.MaxConcurrency
		}
		if m.checks["F2"]++; w.Failures[pool] > most {
			return fmt.Errorf("F2: %d members of %s failed, at most %d may", w.Failures[pool], pool, most)
		}
	}
	return nil
}

// checkPublished: assignments follow from a stored record, and none replaces those of a later one (F3).
func (m *model) checkPublished(w *world, r *rollout.Run) error {
	m.checks["F3"]++
	switch {
	case r.Sequence > w.Run.Sequence:
		return fmt.Errorf("F3: assignments of record %d are published, the stored one is %d", r.Sequence, w.Run.Sequence)
	case r.Sequence < w.Sequence:
		return fmt.Errorf("F3: assignments of record %d replace those of %d", r.Sequence, w.Sequence)
	}
	return nil
}

// checkAssignment: an assignment has the release of the plan (F18). A rollback goes to the release before, on clusters that the run changed
// (F21).
func (m *model) checkAssignment(w *world, i int, a rollout.Assignment) error {
	want := modelTo
	if a.Back {
		want = modelFrom
		if m.checks["F21"]++; !w.Clusters[i].Touched && w.Clusters[i].Exists && w.Clusters[i].Stack == 0 {
			return fmt.Errorf("F21: %s is rolled back, and the run did not change it", a.Cluster)
		}
	}
	if m.checks["F18"]++; a.To.Name != want.Release || a.To.SHA256 != want.SHA256 {
		return fmt.Errorf("F18: %s gets %s", a.Cluster, a.To.Name)
	}
	return nil
}
