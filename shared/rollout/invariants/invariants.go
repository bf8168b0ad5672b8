// Package invariants checks the records of runs against the invariants of fleets. Its checks count and compare for themselves, so that they
// share no mistake with rollout.Tick. The model test of shared/rollout and the storm use it.
package invariants

import (
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/upgrade"
)

// Names are the names under which checks are counted. F12 and F13 are about more than one run: the model test does not have them.
var Names = []string{
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

// maxPause is the longest pause between two facts that counts as observed.
const maxPause = 15 * time.Minute

// Checker checks the records of one run.
type Checker struct {
	Plan *rollout.Plan
	// Checks counts the checks by invariant.
	Checks map[string]int
}

// History is what the checks know of earlier records of the run.
type History struct {
	// Streaks are those of the members, in the order of the plan.
	Streaks []Streak
	// Failures counts the members that failed before they settled, by failure budget.
	Failures map[string]int
}

// Streak is what the facts available to the records have shown of the last attempt of a member.
type Streak struct {
	Attempt int
	// Since is when the cluster became well.
	Since time.Time
	// Well is the start of the time in which it was well and observed without a long pause.
	Well time.Time
	// Look is the time of the last fact.
	Look time.Time
}

// NewHistory returns the history of a run that begins.
func NewHistory(p *rollout.Plan) History {
	return History{Streaks: make([]Streak, p.Size()), Failures: map[string]int{}}
}

// Step is a record with the one before it, and what its tick read.
type Step struct {
	Before, After *rollout.Run
	In            *rollout.Inputs
	Now           time.Time
	// Denies reports whether the cell of a member shows that an attempt was not withdrawn. It may be nil.
	Denies func(member, attempt int) bool
}

// checking is one step of a run.
type checking struct {
	*Checker
	*History
	Step
}

// Check checks a record. The error begins with the name of the invariant that is broken.
func (c *Checker) Check(h *History, s Step) error {
	ch := &checking{c, h, s}
	if s.After.Sequence != s.Before.Sequence+1 {
		return fmt.Errorf("F3: sequence %d follows %d", s.After.Sequence, s.Before.Sequence)
	}
	ch.follow()
	for _, check := range []func() error{
		ch.checkMembers, ch.checkDecisions, ch.checkStarts, ch.checkTransitions, ch.checkPasses, ch.checkReasons, ch.checkFailures,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// recount counts the members of stages by state.
type recount struct{ waiting, atRisk, good, failed, blocked, flying int }

// AtRisk reports whether a member in a state has started and is not Good yet.
func AtRisk(s rollout.State) bool {
	return s == rollout.Started || s == rollout.Withdrawing || s == rollout.Changing || s == rollout.Settling
}

func count(members []rollout.MemberRun, except map[int]bool, offset int) (n recount) {
	for i, m := range members {
		switch {
		case except[offset+i] || m.State == rollout.Waiting:
			n.waiting++
		case AtRisk(m.State):
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
func (c *Checker) offsets() []int {
	at := []int{0}
	for i := range c.Plan.Stages {
		at = append(at, at[len(at)-1]+len(c.Plan.Stages[i].Members))
	}
	return at
}

// each calls visit for every member with its stage, until one returns an error.
func (c *Checker) each(visit func(k, i int, member *rollout.Member) error) error {
	i := 0
	for k := range c.Plan.Stages {
		for j := range c.Plan.Stages[k].Members {
			if err := visit(k, i, &c.Plan.Stages[k].Members[j]); err != nil {
				return err
			}
			i++
		}
	}
	return nil
}

// shares reports whether two stages share a failure budget.
func (c *Checker) shares(i, k int) bool {
	return i == k || c.Plan.Stages[i].SharedFailures && c.Plan.Stages[i].Of == c.Plan.Stages[k].Of
}

// has reports whether a cluster is pinned to a target.
func has(f *rollout.Fact, target *upgrade.Target) bool {
	return f.Deployed.Release == target.Release && f.Deployed.SHA256 == target.SHA256
}

// isWell reports whether a fact shows a cluster that works with a target.
func isWell(f *rollout.Fact, target *upgrade.Target) bool {
	return has(f, target) && f.NotReady*10 <= f.Nodes && len(f.Alarms) == 0
}

// isAbout reports whether a fact is about the last attempt of a member, and newer than its start.
func isAbout(r *rollout.Run, m *rollout.MemberRun, f *rollout.Fact) bool {
	a := f.Attempt
	return a != nil && a.Rollout == r.Rollout && a.Run == r.Number && a.Number == m.Attempt && f.Observed.After(m.Started)
}

func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// follow updates what the facts have shown about the attempts of the record.
func (c *checking) follow() {
	_ = c.each(func(_, i int, member *rollout.Member) error {
		m, s := &c.Before.Members[i], &c.Streaks[i]
		if m.Attempt != s.Attempt {
			*s = Streak{Attempt: m.Attempt}
		}
		f, found := c.In.Facts[m.Cluster]
		if !found || !isAbout(c.Before, m, &f) || !seconds(f.Observed).After(s.Look) || f.Attempt.State != rollout.AttemptDone {
			return nil
		}
		seen := seconds(f.Observed)
		if !isWell(&f, &member.To) {
			s.Since, s.Well = time.Time{}, time.Time{}
		} else if s.Since.IsZero() {
			s.Since, s.Well = seen, seen
		} else if s.Well.IsZero() || seen.Sub(s.Look) > maxPause {
			s.Well = seen
		}
		s.Look = seen
		return nil
	})
}

// checkMembers: the members are those of the plan (F7), and each has one state and a reason that fits it (F20).
func (c *checking) checkMembers() error {
	if got, want := len(c.After.Members), c.Plan.Size(); got != want {
		return fmt.Errorf("F7: %d members, the plan has %d", got, want)
	}
	return c.each(func(_, i int, member *rollout.Member) error {
		c.Checks["F7"]++
		got := c.After.Members[i]
		if got.Cluster != member.Cluster {
			return fmt.Errorf("F7: member %d is not %s", i, member.Cluster)
		}
		reasons := rollout.Reasons(got.State)
		if len(reasons) == 0 && got.Reason != "" || len(reasons) > 0 && !slices.Contains(reasons, got.Reason) {
			return fmt.Errorf("F20: %s is %s with the reason %q", got.Cluster, got.State, got.Reason)
		}
		return nil
	})
}

// checkDecisions: a decision applies once, and a forward one only to the plan that it names (F8).
func (c *checking) checkDecisions() error {
	for name, answer := range c.Before.Decided {
		c.Checks["F8"]++
		if c.After.Decided[name] != answer {
			return fmt.Errorf("F8: the decision %s was answered twice", name)
		}
	}
	for _, d := range c.In.Decisions {
		answer, answered := c.After.Decided[d.Name]
		switch {
		case !answered:
			return fmt.Errorf("F8: the decision %s was not answered", d.Name)
		case answer.Version == d.Version && answer.Applied && d.Spec.Plan != c.After.Plan && !d.Spec.Verb.Brakes():
			return fmt.Errorf("F8: the decision %s of another plan was applied", d.Name)
		}
	}
	for i := range c.After.Stages {
		for _, name := range slices.Concat(c.After.Stages[i].Before, c.After.Stages[i].After) {
			if !c.After.Decided[name].Applied {
				return fmt.Errorf("F8: the approval %s is not a decision that applied", name)
			}
		}
	}
	return nil
}

// braked reports whether decisions or the state of the run forbid starts.
func (c *checking) braked() bool {
	paused := c.Before.PausedBy != ""
	fresh := slices.Clone(c.In.Decisions)
	slices.SortStableFunc(fresh, func(a, b rollout.Decided) int { return a.At.Compare(b.At) })
	done, since := map[string]bool{}, time.Time{}
	for _, d := range fresh {
		if _, applied := c.Before.Decided[d.Name]; applied || done[d.Name] {
			continue
		}
		done[d.Name] = true
		switch {
		case d.Spec.Verb == api.VerbPause:
			paused, since = true, d.At
		case d.Spec.Verb == api.VerbResume && d.Spec.Plan == c.Before.Plan && d.At.After(since):
			paused = false // a pause of the same second prevails
		case d.Spec.Verb == api.VerbAbort:
			return true
		}
	}
	return paused || c.After.Halt != nil || c.After.Ending != ""
}

// frozen reports whether a freeze holds a cluster that the run does not ignore.
func (c *checking) frozen(f *rollout.Fact) bool {
	for _, freeze := range c.In.Freezes {
		if slices.Contains(c.After.Overrides, freeze.Metadata.Name) {
			continue
		}
		if holds, _ := api.Frozen([]api.Freeze{freeze}, api.StopRollouts, f.AllLabels(), c.Now); holds != nil {
			return true
		}
	}
	return false
}

// closed reports whether the window of a cluster is closed.
func (c *checking) closed(f *rollout.Fact) bool {
	o := f.Opening
	return o != nil && (o.Never || c.Now.Before(o.Opens) || !o.Closes.IsZero() && !c.Now.Before(o.Closes))
}

// shut reports whether the window of a stage is closed.
func (c *checking) shut(s *rollout.Stage) bool {
	if s.Window == nil {
		return false
	}
	open, _ := s.Window.Opening(c.Now)
	return !open
}

// alarmed reports whether an alarm of a stage is in ALARM or absent.
func (c *checking) alarmed(s *rollout.Stage) bool {
	return slices.ContainsFunc(s.Alarms, func(name string) bool {
		alarm, found := c.In.Alarms[name]
		return !found || alarm.InAlarm
	})
}

// checkLimits: the members in flight are within the limits of their cells when one starts (F17).
func (c *checking) checkLimits(started map[int]bool) error {
	c.Checks["F17"]++
	flying, starts := map[string]int{}, map[string]bool{}
	_ = c.each(func(_, i int, member *rollout.Member) error {
		if m := &c.After.Members[i]; AtRisk(m.State) && m.State != rollout.Settling {
			flying[member.Cell]++
		}
		starts[member.Cell] = starts[member.Cell] || started[i]
		return nil
	})
	for name := range starts {
		if cell := c.In.Cells[name]; starts[name] && cell.Limit > 0 && flying[name]+cell.Others > cell.Limit {
			return fmt.Errorf("F17: %d members in flight and %d of other runs, the cell allows %d", flying[name], cell.Others, cell.Limit)
		}
	}
	return nil
}

// checkStarts: each start is within its budget (F1), in the open stage (F4), not forbidden by what the tick read (F9), and within the limit
// of its cell (F17).
func (c *checking) checkStarts() error {
	at := c.offsets()
	started := map[int]bool{}
	for i := range c.After.Members {
		if c.After.Members[i].Attempt > c.Before.Members[i].Attempt && !c.After.Members[i].Back {
			started[i] = true
		}
	}
	if err := c.checkLimits(started); err != nil || len(started) == 0 {
		return err
	}
	isBraked := c.braked()
	return c.each(func(k, i int, _ *rollout.Member) error {
		if !started[i] {
			return nil
		}
		s, member := &c.Plan.Stages[k], c.After.Members[i]
		c.Checks["F9"]++
		f, found := c.In.Facts[member.Cluster]
		switch {
		case isBraked:
			return fmt.Errorf("F9: %s starts against a brake", member.Cluster)
		case c.frozen(&f):
			return fmt.Errorf("F9: %s starts in a freeze", member.Cluster)
		case !found || f.Paused || c.closed(&f):
			return fmt.Errorf("F9: %s starts although its cluster does not allow it", member.Cluster)
		case c.shut(s) || c.alarmed(s):
			return fmt.Errorf("F9: %s starts although its stage does not allow it", member.Cluster)
		}
		for earlier := range k {
			if c.Checks["F4"]++; c.After.Stages[earlier].Passed.IsZero() {
				return fmt.Errorf("F4: %s starts before stage %d has passed", member.Cluster, earlier+1)
			}
		}
		if len(c.After.Stages[k].Before) < len(s.Before) {
			return fmt.Errorf("F4: %s starts without an approval", member.Cluster)
		}
		own, failed, atRisk := count(c.After.Members[at[k]:at[k+1]], started, at[k]), 0, 0
		for other := range c.Plan.Stages {
			if c.shares(k, other) {
				n := count(c.After.Members[at[other]:at[other+1]], started, at[other])
				failed, atRisk = failed+n.failed, atRisk+n.atRisk
			}
		}
		if s.Budget == api.BudgetSoft {
			atRisk = 0
		}
		if c.Checks["F1"]++; own.atRisk >= s.MaxConcurrency || failed+atRisk > s.MaxFailures {
			return fmt.Errorf("F1: %s starts with %d failed and %d at risk", member.Cluster, failed, own.atRisk)
		}
		delete(started, i) // it counts for the next one
		return nil
	})
}

// forgiven returns the clusters of decisions that applied in this step and give members another attempt, or take them out.
func (c *checking) forgiven() map[string]bool {
	clusters := map[string]bool{}
	for _, d := range c.In.Decisions {
		_, old := c.Before.Decided[d.Name]
		if !old && c.After.Decided[d.Name].Applied && (d.Spec.Verb == api.VerbRetry || d.Spec.Verb == api.VerbSkip) {
			for _, cluster := range d.Spec.Clusters {
				clusters[cluster] = true
			}
		}
	}
	return clusters
}

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

// Published checks that assignments follow from a stored record, and that none replaces those of a later one (F3). The arguments are the
// sequence of the record from which they were derived, of the stored one, and of the assignments that were there.
func (c *Checker) Published(sequence, stored, before int64) error {
	c.Checks["F3"]++
	switch {
	case sequence > stored:
		return fmt.Errorf("F3: assignments of record %d are published, the stored one is %d", sequence, stored)
	case sequence < before:
		return fmt.Errorf("F3: assignments of record %d replace those of %d", sequence, before)
	}
	return nil
}

// Assignment checks that an assignment has the release of the plan (F18). A rollback goes to the release before, on clusters that the run
// touched (F21).
func (c *Checker) Assignment(a rollout.Assignment, member *rollout.Member, touched bool) error {
	want := &member.To
	if a.Back {
		want = &member.From
		if c.Checks["F21"]++; !touched {
			return fmt.Errorf("F21: %s is rolled back, and the run did not change it", a.Cluster)
		}
	}
	if c.Checks["F18"]++; a.To.Name != want.Release || a.To.SHA256 != want.SHA256 {
		return fmt.Errorf("F18: %s gets %s", a.Cluster, a.To.Name)
	}
	return nil
}
