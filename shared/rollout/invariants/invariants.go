// Package invariants checks the ticks of runs against the invariants of fleets. Its checks count and compare for themselves, so that they
// share no mistake with rollout.Tick. The model test of shared/rollout and the storm use it.
//
// Every tick is checked, also one that changes nothing: it decided that no member starts, that no stage passes, and that each reason still
// holds. An evaluation counts only if the tick could have broken the invariant: for example, F1 is evaluated if a member starts, or if
// members wait in a stage that has spent its budget. The comment of each check says what one evaluation is.
package invariants

import (
	"fmt"
	"slices"
	"time"

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
	"F22", // A run ends when its clusters and cells work: until then it waits for something that ends.
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
	// WellSince is when the cluster became well.
	WellSince time.Time
	// ObservedSince is the start of the time in which it was well and observed without a long pause.
	ObservedSince time.Time
	// Look is the time of the last fact.
	Look time.Time
	// Read is the time of the newest fact about the cluster, whatever it is about. IsNew reports whether the last tick read it first.
	Read  time.Time
	IsNew bool
}

// NewHistory returns the history of a run that begins.
func NewHistory(p *rollout.Plan) History {
	return History{Streaks: make([]Streak, p.Size()), Failures: map[string]int{}}
}

// Step is a tick: the record that it read, the one that it wrote, and its other inputs. Both have the same sequence if it changed nothing.
type Step struct {
	Before, After *rollout.Run
	In            *rollout.Inputs
	Now           time.Time
	// Denies reports whether the cell of a member shows that an attempt was not withdrawn. It may be nil.
	Denies func(member, attempt int) bool
	// Touched reports whether an attempt of the run has begun on the cluster of a member.
	Touched func(member int) bool
}

// checking is one step of a run.
type checking struct {
	*Checker
	*History
	Step
}

// Check checks a tick. The error begins with the name of the invariant that is broken.
func (c *Checker) Check(h *History, s Step) error {
	ch := &checking{c, h, s}
	checks := []func() error{
		ch.checkMembers, ch.checkDecisions, ch.checkStarts, ch.checkExposure, ch.checkTransitions, ch.checkGood, ch.checkPasses,
		ch.checkReasons, ch.checkFailures, ch.checkRollback, ch.checkProgress,
	}
	switch s.After.Sequence - s.Before.Sequence {
	case 0: // the members and the answers are those of the record before
		checks = []func() error{
			ch.checkAnswered, ch.checkStarts, ch.checkGood, ch.checkPasses, ch.checkReasons, ch.checkFailures, ch.checkRollback,
			ch.checkProgress,
		}
	case 1:
	default:
		return fmt.Errorf("F3: sequence %d follows %d", s.After.Sequence, s.Before.Sequence)
	}
	ch.follow()
	for _, check := range checks {
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
	return i == k || c.Plan.Stages[i].SharedFailures && c.Plan.Stages[i].FromStage == c.Plan.Stages[k].FromStage
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
			*s = Streak{Attempt: m.Attempt, Read: s.Read}
		}
		f, found := c.In.Facts[m.Cluster]
		if s.IsNew = f.Observed.After(s.Read); s.IsNew {
			s.Read = f.Observed
		}
		if !found || !isAbout(c.Before, m, &f) || !seconds(f.Observed).After(s.Look) || f.Attempt.State != rollout.AttemptDone {
			return nil
		}
		seen := seconds(f.Observed)
		if !isWell(&f, &member.To) {
			s.WellSince, s.ObservedSince = time.Time{}, time.Time{}
		} else if s.WellSince.IsZero() {
			s.WellSince, s.ObservedSince = seen, seen
		} else if s.ObservedSince.IsZero() || seen.Sub(s.Look) > maxPause {
			s.ObservedSince = seen
		}
		s.Look = seen
		return nil
	})
}

// checkMembers: the members are those of the plan (F7), and each has one state and a reason that fits it (F20). One evaluation of F7 is a
// member of a record.
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

// checkAnswered: the tick answers every decision that it read (F8). One evaluation is a decision without an answer.
func (c *checking) checkAnswered() error {
	for _, d := range c.In.Decisions {
		if _, old := c.Before.Answers[d.Name]; !old {
			c.Checks["F8"]++
		}
		if _, answered := c.After.Answers[d.Name]; !answered {
			return fmt.Errorf("F8: the decision %s was not answered", d.Name)
		}
	}
	return nil
}

// checkDecisions: a decision applies once, and a forward one only to the plan that it names (F8). One that was answered before the run
// began may name an earlier plan. One evaluation is an answer of the record before, or a decision without one.
func (c *checking) checkDecisions() error {
	for name, answer := range c.Before.Answers {
		c.Checks["F8"]++
		if c.After.Answers[name] != answer {
			return fmt.Errorf("F8: the decision %s was answered twice", name)
		}
	}
	if err := c.checkAnswered(); err != nil {
		return err
	}
	for _, d := range c.In.Decisions {
		if _, old := c.Before.Answers[d.Name]; old {
			continue
		}
		answer := c.After.Answers[d.Name]
		if answer.Version == d.Version && answer.Applied && d.Spec.Plan != c.After.Plan && !d.Spec.Verb.Brakes() {
			return fmt.Errorf("F8: the decision %s of another plan was applied", d.Name)
		}
	}
	for i := range c.After.Stages {
		for _, name := range slices.Concat(c.After.Stages[i].Before, c.After.Stages[i].After) {
			if !c.After.Answers[name].Applied {
				return fmt.Errorf("F8: the approval %s is not a decision that applied", name)
			}
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
	if a.Rollback {
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
