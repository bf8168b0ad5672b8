package invariants

// What starts a member, and what forbids a start: brakes, freezes, gates, alarms and limits.

import (
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
)

// braked reports whether decisions or the state of the run forbid starts.
func (c *checking) braked() bool {
	paused := c.Before.PausedBy != ""
	fresh := slices.Clone(c.In.Decisions)
	slices.SortStableFunc(fresh, func(a, b rollout.UploadedDecision) int { return a.At.Compare(b.At) })
	done, since := map[string]bool{}, time.Time{}
	for _, d := range fresh {
		if _, applied := c.Before.Answers[d.Name]; applied || done[d.Name] {
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

// starts returns the members that start in the tick, by index.
func (c *checking) starts() map[int]bool {
	started := map[int]bool{}
	for i := range c.After.Members {
		if c.After.Members[i].Attempt > c.Before.Members[i].Attempt && !c.After.Members[i].Rollback {
			started[i] = true
		}
	}
	return started
}

// checkStarts: no start is forbidden by what the tick read (F9). Each is within the limit of its cell (F17), in the open stage (F4), and
// within its budget (F1).
func (c *checking) checkStarts() error {
	started := c.starts()
	if err := c.checkLimits(started); err != nil {
		return err
	}
	isBraked := c.braked()
	err := c.each(func(k, i int, _ *rollout.Member) error { return c.checkBrakes(k, i, started[i], isBraked) })
	at := c.offsets()
	for k := range c.Plan.Stages {
		if err == nil {
			err = c.checkOrder(k, at, started)
		}
		if err == nil {
			err = c.checkBudget(k, at, started)
		}
	}
	return err
}

// checkLimits: a member starts only within the limit of its cell (F17). One evaluation is a cell in which a member starts, or in which
// members wait while it is at its limit: none starts.
func (c *checking) checkLimits(started map[int]bool) error {
	flying, starts, waits := map[string]int{}, map[string]bool{}, map[string]bool{}
	_ = c.each(func(_, i int, member *rollout.Member) error {
		m := &c.After.Members[i]
		if AtRisk(m.State) && m.State != rollout.Settling {
			flying[member.Cell]++
		}
		starts[member.Cell] = starts[member.Cell] || started[i]
		waits[member.Cell] = waits[member.Cell] || m.State == rollout.Waiting
		return nil
	})
	for name, cell := range c.In.Cells {
		n := flying[name] + cell.Others
		if cell.Limit == 0 || !starts[name] && (!waits[name] || n < cell.Limit) {
			continue
		}
		if c.Checks["F17"]++; starts[name] && n > cell.Limit {
			return fmt.Errorf("F17: %d members in flight and %d of other runs, the cell allows %d", flying[name], cell.Others, cell.Limit)
		}
	}
	return nil
}

// checkBrakes: nothing that the tick read forbids the start of a member (F9). One evaluation is a start, or a member that waits and may not
// start because of a brake, a freeze, its cluster or its stage.
func (c *checking) checkBrakes(k, i int, starts, isBraked bool) error {
	member := &c.After.Members[i]
	if !starts && member.State != rollout.Waiting {
		return nil
	}
	s := &c.Plan.Stages[k]
	f, found := c.In.Facts[member.Cluster]
	forbidden := ""
	switch {
	case isBraked:
		forbidden = "against a brake"
	case c.frozen(&f):
		forbidden = "in a freeze"
	case !found || f.Paused || c.closed(&f):
		forbidden = "although its cluster does not allow it"
	case c.shut(s) || c.alarmed(s):
		forbidden = "although its stage does not allow it"
	case !starts:
		return nil
	}
	if c.Checks["F9"]++; starts && forbidden != "" {
		return fmt.Errorf("F9: %s starts %s", member.Cluster, forbidden)
	}
	return nil
}

// candidates returns how many members of a stage wait, and the first that starts.
func (c *checking) candidates(k int, at []int, started map[int]bool) (waiting int, first string) {
	for i := at[k]; i < at[k+1]; i++ {
		switch m := &c.After.Members[i]; {
		case started[i] && first == "":
			first = m.Cluster
		case m.State == rollout.Waiting:
			waiting++
		}
	}
	return waiting, first
}

// unopened returns why a stage is not open; empty if it is.
func (c *checking) unopened(k int, at []int) string {
	for earlier := range k {
		if c.After.Stages[earlier].Passed.IsZero() {
			return fmt.Sprintf("before stage %d has passed", earlier+1)
		}
	}
	for earlier := range k {
		if n := count(c.After.Members[at[earlier]:at[earlier+1]], nil, 0); n.failed+n.blocked > c.Plan.Stages[earlier].MaxFailures {
			return fmt.Sprintf("although stage %d exceeds its failures", earlier+1)
		}
	}
	if len(c.After.Stages[k].Before) < len(c.Plan.Stages[k].Before) {
		return "without an approval"
	}
	return ""
}

// checkOrder: a member starts only in the open stage (F4). One evaluation is a stage in which a member starts, or one that is not open and
// whose members wait: none starts.
func (c *checking) checkOrder(k int, at []int, started map[int]bool) error {
	waiting, first := c.candidates(k, at, started)
	if waiting == 0 && first == "" {
		return nil
	}
	unopened := c.unopened(k, at)
	if first != "" || unopened != "" {
		c.Checks["F4"]++
	}
	if first != "" && unopened != "" {
		return fmt.Errorf("F4: %s starts %s", first, unopened)
	}
	return nil
}

// checkBudget: the members that start are within maxFailures and maxConcurrency (F1). One evaluation is a start, or a tick of an open stage
// that has spent its budget and whose members wait: none starts. started loses the members of the stage: they count for the next one.
func (c *checking) checkBudget(k int, at []int, started map[int]bool) error {
	s := &c.Plan.Stages[k]
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
	room := min(s.MaxConcurrency-own.atRisk, s.MaxFailures+1-failed-atRisk)
	if s.Budget == api.BudgetSoft && failed <= s.MaxFailures {
		room = s.MaxConcurrency - own.atRisk
	}
	starts := 0
	for i := at[k]; i < at[k+1]; i++ {
		if started[i] {
			starts++
			delete(started, i)
		}
	}
	c.Checks["F1"] += starts
	if waiting, _ := c.candidates(k, at, nil); starts == 0 && room <= 0 && waiting > 0 && c.unopened(k, at) == "" {
		c.Checks["F1"]++
	}
	if starts > max(0, room) {
		return fmt.Errorf("F1: %d of %s start with %d failed and %d at risk", starts, s.Name, failed, own.atRisk)
	}
	return nil
}

// checkExposure: the members at risk and the failed ones are as many as the budget lets start (F1), by whatever transition they got their
// state. A member that was Good, or that Resume judged again, does not count: it did not start. One evaluation is a stage of a record with
// members at risk, before any rollback.
func (c *checking) checkExposure() error {
	if c.rollsBack() {
		return nil
	}
	atRisk, failed := make([]int, len(c.Plan.Stages)), make([]int, len(c.Plan.Stages))
	_ = c.each(func(k, i int, _ *rollout.Member) error {
		switch m := &c.After.Members[i]; {
		case !m.RegressedAt.IsZero():
		case AtRisk(m.State):
			atRisk[k]++
		case m.State == rollout.Failed:
			failed[k]++
		}
		return nil
	})
	for k := range c.Plan.Stages {
		if atRisk[k] == 0 {
			continue
		}
		s, spent := &c.Plan.Stages[k], 0
		for other := range c.Plan.Stages {
			if c.shares(k, other) {
				spent += atRisk[other] + failed[other]
			}
		}
		if c.Checks["F1"]++; atRisk[k] > s.MaxConcurrency || s.Budget != api.BudgetSoft && spent > s.MaxFailures+1 {
			return fmt.Errorf("F1: %s has %d members at risk, and %d at risk or failed in its budget", s.Name, atRisk[k], spent)
		}
	}
	return nil
}

// forgiven returns the clusters of decisions that applied in this step and give members another attempt, or take them out.
func (c *checking) forgiven() map[string]bool {
	clusters := map[string]bool{}
	for _, d := range c.In.Decisions {
		_, old := c.Before.Answers[d.Name]
		if !old && c.After.Answers[d.Name].Applied && (d.Spec.Verb == api.VerbRetry || d.Spec.Verb == api.VerbSkip) {
			for _, cluster := range d.Spec.Clusters {
				clusters[cluster] = true
			}
		}
	}
	return clusters
}
