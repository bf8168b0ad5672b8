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
