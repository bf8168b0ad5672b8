package rollout

// Ticks. A tick is one evaluation of a run: it computes the next record. The order of its parts matters. Decisions and observations come
// before starts, so a start never ignores what the same inputs forbid.

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
)

const (
	// staleAfter is the age after which a fact allows no start. While a run is active, fleet renews facts every half hour: see ADR 45.
	staleAfter = time.Hour
	// maxGap is the longest pause between two looks that counts as observed. A look is one observation of a cluster by the sweep. Looks are
	// four to six minutes apart: see lookEvery of the sweep.
	maxGap = 15 * time.Minute
	// minUnwellRegressed is the shortest time after which a regressed member fails. settle may be longer.
	minUnwellRegressed = 10 * time.Minute
	// minUnwellSettling applies to a member that is not well after its upgrade: it is the shortest time until the member fails. Four times
	// settle may be longer. Without this limit, the member would fail only at its deadline. The deadline leaves days for the
	// replacement of nodes.
	minUnwellSettling = time.Hour
	// alarmLimit is how long an alarm of a stage may be in ALARM until the stage is halted.
	alarmLimit = 10 * time.Minute
	// longWait is how long a member may wait for something outside the run without a notice.
	longWait = 24 * time.Hour
)

// ticking is the state of one call of Tick.
type ticking struct {
	p    *Plan
	r    *Run
	in   *Inputs
	now  time.Time
	next time.Time
	// stages has the members of each stage, as a part of r.Members.
	stages [][]MemberRun
	// releases of the plan, by content. freezes are those that the run does not ignore.
	releases map[string]Release
	freezes  []api.Freeze
}

// Tick decides the next step of a run. It returns the new record, what follows from it, and when to tick again if no event comes first.
// That time is zero if none is known. The record has a higher sequence if anything changed. The caller stores it before it acts.
func Tick(p *Plan, before Run, in Inputs, now time.Time) (Run, []Action, time.Time) {
	if before.State.Final() {
		return before, nil, time.Time{}
	}
	r := before.clone()
	t := &ticking{p: p, r: &r, in: &in, now: wholeSecond(now), releases: map[string]Release{}}
	for _, release := range p.Subject.Releases {
		t.releases[release.SHA256] = release
	}
	rest := r.Members
	for i := range p.Stages {
		size := len(p.Stages[i].Members)
		t.stages = append(t.stages, rest[:size:size])
		rest = rest[size:]
	}
	t.decide()
	for _, f := range in.Freezes {
		if !slices.Contains(r.Overrides, f.Metadata.Name) {
			t.freezes = append(t.freezes, f)
		}
	}
	t.endForNewer()
	t.observe()
	t.expire()
	t.watchAlarms()
	t.haltFailed()
	t.pass()
	t.rollBack()
	t.withdraw()
	t.start()
	t.conclude()
	if !equal(&before, &r) {
		r.Sequence++
	}
	return r, actions(p, &before, &r, t.now), t.next
}

// equal compares two records of a run.
func equal(a, b *Run) bool {
	sameHalt := a.Halt == nil && b.Halt == nil || a.Halt != nil && b.Halt != nil && *a.Halt == *b.Halt
	return sameHalt && a.State == b.State && a.Ended.Equal(b.Ended) && a.PausedBy == b.PausedBy && a.Ending == b.Ending &&
		slices.Equal(a.Overrides, b.Overrides) && slices.Equal(a.Members, b.Members) && maps.Equal(a.Answers, b.Answers) &&
		slices.EqualFunc(a.Stages, b.Stages, func(a, b StageRun) bool {
			return a.Began.Equal(b.Began) && a.Passed.Equal(b.Passed) && a.SoakedAt.Equal(b.SoakedAt) && a.AlarmSince.Equal(b.AlarmSince) &&
				a.QuietSince.Equal(b.QuietSince) && slices.Equal(a.Before, b.Before) && slices.Equal(a.After, b.After) && a.Rollback == b.Rollback
		})
}

// tickBy makes the next tick happen no later than at a time. Times that have passed do not count.
func (t *ticking) tickBy(at time.Time) {
	if at.After(t.now) && (t.next.IsZero() || at.Before(t.next)) {
		t.next = at
	}
}

// each calls visit for every member.
func (t *ticking) each(visit func(i int, m *MemberRun, member *Member)) {
	for i := range t.stages {
		for j := range t.stages[i] {
			visit(i, &t.stages[i][j], &t.p.Stages[i].Members[j])
		}
	}
}

// anyMember reports whether a member of the run satisfies a condition.
func (t *ticking) anyMember(matches func(m *MemberRun) bool) bool {
	for i := range t.r.Members {
		if matches(&t.r.Members[i]) {
			return true
		}
	}
	return false
}

// set changes the state of a member.
func (t *ticking) set(m *MemberRun, state State, reason Reason) {
	if m.State != state || m.Reason != reason {
		m.State, m.Reason, m.Since, m.Until, m.Noticed = state, reason, t.now, time.Time{}, false
	}
}

// wait returns a member to Waiting, or takes it out of a run that ends.
func (t *ticking) wait(m *MemberRun) {
	m.Begun, m.Check = false, ""
	m.Look, m.WellSince, m.UnwellSince, m.GoodSince, m.RegressedAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	switch t.r.Ending {
	case Superseded:
		t.set(m, Skipped, ReasonSuperseded)
	case "":
		t.set(m, Waiting, ReasonStage) // start finds the reason
	default:
		t.set(m, Skipped, ReasonDecision)
	}
}

// end makes the run approach a final state. Members that wait leave it at once; those in flight finish.
func (t *ticking) end(state RunState) {
	t.r.Ending = state
	for i := range t.r.Members {
		if m := &t.r.Members[i]; m.State == Waiting {
			t.wait(m)
		}
	}
}

// endForNewer ends a run whose file was deleted, or that a newer plan supersedes.
func (t *ticking) endForNewer() {
	newer := t.in.Newer != "" && t.in.Newer != t.r.Plan
	switch {
	case t.r.Ending != "":
	case t.in.Deleted:
		t.end(Aborted)
	case newer && t.p.OnNewer == api.NewerSupersede:
		t.end(Superseded)
	}
}

// openStage returns the index of the first stage that has not passed. It is the number of stages if all have.
func (t *ticking) openStage() int {
	for i := range t.r.Stages {
		if t.r.Stages[i].Passed.IsZero() {
			return i
		}
	}
	return len(t.r.Stages)
}

// tally counts members by state.
type tally struct{ members, waiting, atRisk, good, failed, blocked, skipped int }

func (t *ticking) tally(i int) (n tally) {
	for j := range t.stages[i] {
		n.members++
		switch m := &t.stages[i][j]; {
		case m.State == Waiting:
			n.waiting++
		case m.State.atRisk():
			n.atRisk++
		case m.State == Good:
			n.good++
		case m.State == Failed, m.State == RolledBack, m.State == NotRolledBack: // a rollback does not forgive a failure
			n.failed++
		case m.State == Blocked:
			n.blocked++
		case m.State == Skipped:
			n.skipped++
		}
	}
	return n
}

// sharedTally counts the members that share the failure budget of a stage. Only passed stages count if passed is true.
func (t *ticking) sharedTally(i int, passed bool) (n tally) {
	for k := range t.p.Stages {
		shares := k == i || t.p.Stages[i].SharedFailures && t.p.Stages[k].FromStage == t.p.Stages[i].FromStage
		if !shares || passed && t.r.Stages[k].Passed.IsZero() {
			continue
		}
		s := t.tally(k)
		n.atRisk, n.failed, n.blocked = n.atRisk+s.atRisk, n.failed+s.failed, n.blocked+s.blocked
	}
	return n
}

// haltFailed halts the run if a stage exceeds its budget: one that passed, or the open one, which may also have ended without passing.
func (t *ticking) haltFailed() {
	if t.r.Halt != nil || t.r.Ending != "" {
		return
	}
	open := t.openStage()
	for i := range t.p.Stages {
		most, own := t.p.Stages[i].MaxFailures, t.tally(i)
		if own.failed+own.blocked == 0 {
			continue
		}
		passed := t.sharedTally(i, true)
		exceeded := t.sharedTally(i, false).failed > most || passed.failed+passed.blocked > most
		if i == open && own.waiting+own.atRisk == 0 {
			all := t.sharedTally(i, false)
			exceeded = exceeded || all.failed+all.blocked > most || own.good <= own.failed+own.blocked
		}
		if exceeded {
			t.r.Halt = &Halt{Stage: i + 1, Cause: HaltFailures, At: t.now}
		}
	}
}

// watchAlarms records since when an alarm of the open stage is in ALARM, or none is. It halts the run if one is for too long.
func (t *ticking) watchAlarms() {
	i := t.openStage()
	if i == len(t.stages) || t.r.Stages[i].Began.IsZero() || len(t.p.Stages[i].Alarms) == 0 {
		return
	}
	s := &t.r.Stages[i]
	if t.hasAlarm(i) {
		if s.AlarmSince.IsZero() {
			s.AlarmSince = t.now
		}
		if limit := s.AlarmSince.Add(alarmLimit); t.now.Before(limit) {
			t.tickBy(limit)
		} else if t.r.Halt == nil && t.r.Ending == "" {
			t.r.Halt = &Halt{Stage: i + 1, Cause: HaltAlarm, At: t.now}
		}
		return
	}
	quiet := s.QuietSince
	if !s.AlarmSince.IsZero() {
		quiet, s.AlarmSince = t.now, time.Time{}
	}
	for _, name := range t.p.Stages[i].Alarms {
		if since := wholeSecond(t.in.Alarms[name].Since); since.After(s.Began) && since.After(quiet) {
			quiet = since // an alarm that was in ALARM between two ticks
		}
	}
	s.QuietSince = quiet
}

// hasAlarm reports whether an alarm of a stage is in ALARM or absent.
func (t *ticking) hasAlarm(i int) bool {
	return slices.ContainsFunc(t.p.Stages[i].Alarms, func(name string) bool {
		a, ok := t.in.Alarms[name]
		return !ok || a.InAlarm
	})
}

// pass marks each stage that passes, in order.
func (t *ticking) pass() {
	if t.r.Halt != nil || t.r.Ending != "" {
		return
	}
	for i := t.openStage(); i < len(t.stages); i++ {
		if !t.r.Stages[i].Passed.IsZero() {
			continue
		}
		if !t.passes(i) {
			return
		}
		t.r.Stages[i].Passed = t.now
	}
}

// passes reports whether a stage passes:
//   - No member waits or is at risk.
//   - Failed and blocked members together are within the budget, and fewer than the Good members.
//   - No alarm of the stage is in ALARM or absent.
//   - The soak and the approvals are complete.
//
// A stage whose members are all skipped passes at once.
func (t *ticking) passes(i int) bool {
	s, run, own, all := &t.p.Stages[i], &t.r.Stages[i], t.tally(i), t.sharedTally(i, false)
	if own.skipped == own.members {
		return true
	}
	if own.waiting+own.atRisk > 0 || all.failed+all.blocked > s.MaxFailures || own.good <= own.failed+own.blocked ||
		t.hasAlarm(i) || !t.isSoaked(i) {
		run.SoakedAt = time.Time{}
		return false
	}
	if run.SoakedAt.IsZero() {
		run.SoakedAt = t.now
	}
	return len(run.After) >= approvals(s.After)
}

// isSoaked reports whether each Good member was seen well until the end of its soak. A soak begins when the member becomes Good, and again
// when an alarm of the stage is quiet again.
func (t *ticking) isSoaked(i int) bool {
	done := true
	for j := range t.stages[i] {
		m := &t.stages[i][j]
		if m.State != Good {
			continue
		}
		end := later(m.GoodSince, t.r.Stages[i].QuietSince).Add(time.Duration(t.p.Stages[i].Soak))
		if t.tickBy(end); t.now.Before(end) || m.Look.Before(end) {
			done = false
		}
	}
	return done
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// approvals is the number of decisions that gates need.
func approvals(gates []api.Approval) (n int) {
	for _, g := range gates {
		n = max(n, g.Count, 1)
	}
	return n
}

// early reports whether gates count approvals that were made before their time.
func early(gates []api.Approval) bool {
	return !slices.ContainsFunc(gates, func(a api.Approval) bool { return !a.Early })
}

// stageReason returns why no member of a stage starts; empty if one may.
func (t *ticking) stageReason(i int) (reason Reason, until time.Time) {
	s := &t.p.Stages[i]
	switch {
	case t.r.PausedBy != "":
		return ReasonPaused, time.Time{}
	case t.r.Halt != nil:
		return ReasonHalted, time.Time{}
	case i != t.openStage():
		return ReasonStage, time.Time{}
	case len(t.r.Stages[i].Before) < approvals(s.Before):
		return ReasonApproval, time.Time{}
	case t.hasAlarm(i):
		return ReasonAlarm, time.Time{}
	}
	if s.Window != nil {
		open, until := s.Window.Opening(t.now)
		if t.tickBy(until); !open {
			return ReasonWindow, until
		}
	}
	return "", time.Time{}
}

// obstacle returns why a member cannot start now, according to its fact, its release and its cell; empty if it can.
func (t *ticking) obstacle(member *Member) (reason Reason, until time.Time) {
	f, found := t.in.Facts[member.Cluster]
	if !found || t.now.Sub(f.Observed) > staleAfter {
		return ReasonUnreported, time.Time{}
	}
	var release Reason
	switch {
	case misfit(f.Deployed.KubernetesVersion, t.releases[member.To.SHA256]) != "":
		release = ReasonIncompatibleVersion
	case slices.Contains(t.in.Cells[member.Cell].Unusable, member.To.SHA256):
		release = ReasonReleaseUnusable
	}
	return f.obstacle(t.freezes, t.now, release)
}

// withdraw withdraws starts that have not begun, if a brake, a gate or the cluster forbids a start now. The slot is held until the cell
// confirms it.
func (t *ticking) withdraw() {
	t.each(func(i int, m *MemberRun, member *Member) {
		if m.State != Started {
			return
		}
		reason, _ := t.stageReason(i)
		if m.Rollback { // a rollback ignores everything except a pause and the end of the run
			if t.r.PausedBy == "" {
				reason = ""
			}
		} else if f, found := t.in.Facts[m.Cluster]; reason == "" && found {
			var until time.Time
			if reason, until = f.hold(t.freezes, t.now); reason == "" && f.Opening != nil {
				until = f.Opening.Closes
			}
			t.tickBy(until)
		}
		if reason != "" || t.r.Ending != "" {
			t.set(m, Withdrawing, "")
		}
	})
}

// start starts members of the open stage while its budget allows, and gives every other waiting member its reason.
func (t *ticking) start() {
	working := map[string]int{}
	t.each(func(_ int, m *MemberRun, member *Member) {
		if m.State.inFlight() {
			working[member.Cell]++
		}
	})
	for i := range t.stages {
		s, own := &t.p.Stages[i], t.tally(i)
		if own.waiting == 0 {
			continue
		}
		all := t.sharedTally(i, false)
		held, heldUntil := t.stageReason(i)
		for j := range t.stages[i] {
			m, member := &t.stages[i][j], &s.Members[j]
			if m.State != Waiting {
				continue
			}
			reason, until := held, heldUntil
			if reason == "" {
				reason, until = t.obstacle(member)
			}
			if reason == "" {
				reason = s.full(own, all)
			}
			if cell := t.in.Cells[member.Cell]; reason == "" && cell.Limit > 0 && working[member.Cell]+cell.Others >= cell.Limit {
				reason = ReasonCellLimit
			}
			if reason != "" {
				t.set(m, Waiting, reason)
				m.Until = until
				t.tickBy(until)
				continue
			}
			t.begin(i, m)
			own.atRisk++
			all.atRisk++
			working[member.Cell]++
		}
	}
}

// full returns why the slots or the budget of a stage allow no further start; empty if they do.
func (s *Stage) full(own, shared tally) Reason {
	spent := shared.failed
	if s.Budget == api.BudgetStrict {
		spent += shared.atRisk
	}
	switch {
	case own.atRisk >= s.MaxConcurrency:
		return ReasonSlots
	case spent > s.MaxFailures:
		return ReasonBudget
	}
	return ""
}

// begin records the start of a member.
func (t *ticking) begin(i int, m *MemberRun) {
	m.Attempt++
	m.Started, m.Begun, m.Rollback, m.Check = t.now, false, false, ""
	m.Look, m.WellSince, m.UnwellSince, m.GoodSince, m.RegressedAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	t.set(m, Started, "")
	t.tickBy(t.now.Add(time.Duration(t.p.Stages[i].Deadline)))
	if s := &t.r.Stages[i]; s.Began.IsZero() {
		s.Began = t.now
	}
}

// rollBack returns the members that the run changed in the halted stage to their previous release, the latest first.
func (t *ticking) rollBack() {
	if t.r.Halt == nil || t.r.Halt.Stage == 0 || t.r.Ending != "" {
		return
	}
	i := t.r.Halt.Stage - 1
	run := &t.r.Stages[i]
	automatic := t.p.OnFailure == api.FailureRollback && (t.r.Halt.Cause == HaltFailures || t.r.Halt.Cause == HaltAlarm)
	var due []int
	busy := 0
	for j := range t.stages[i] {
		switch m := &t.stages[i][j]; {
		case m.Rollback && m.State.inFlight():
			busy++
		case m.Changed && !m.Rollback && (m.State == Good || m.State == Failed || m.State == Settling):
			due = append(due, j)
		}
	}
	if run.Rollback == "" && len(due) > 0 && (automatic || t.r.Halt.Cause == HaltRollback) &&
		!t.anyMember(func(m *MemberRun) bool { return m.State.inFlight() }) {
		run.Rollback = RollbackActive
	}
	if run.Rollback != RollbackActive || t.r.PausedBy != "" {
		return
	}
	slices.SortFunc(due, func(a, b int) int {
		one, other := &t.stages[i][a], &t.stages[i][b]
		return cmp.Or(other.Started.Compare(one.Started), strings.Compare(one.Cluster, other.Cluster))
	})
	waits := false
	for _, j := range due {
		m, member := &t.stages[i][j], &t.p.Stages[i].Members[j]
		f, found := t.in.Facts[m.Cluster]
		switch {
		case t.isDeleted(m, member), found && !t.now.Before(f.RollbackUntil):
			t.set(m, NotRolledBack, ReasonNotPossible)
		case !found || busy >= t.p.Stages[i].MaxConcurrency:
			waits = true
		default:
			state, reason := m.State, m.Reason
			t.begin(i, m)
			m.Rollback, m.PriorState, m.PriorReason = true, state, reason
			busy++
		}
	}
	if busy == 0 && !waits {
		run.Rollback = RollbackDone
	}
}

// conclude sets the state of the run.
func (t *ticking) conclude() {
	r := t.r
	atRisk := t.anyMember(func(m *MemberRun) bool { return m.State.atRisk() })
	rolling := r.Halt != nil && r.Halt.Stage > 0 && r.Stages[r.Halt.Stage-1].Rollback == RollbackActive
	if r.Halt != nil && r.Ending == "" && !atRisk && !rolling && t.in.Newer != "" && t.in.Newer != r.Plan {
		t.end(Superseded) // a halted run yields to a newer plan
	}
	switch {
	case r.Ending != "" && !atRisk:
		r.State, r.Ended = r.Ending, t.now
	case r.PausedBy != "":
		r.State = Paused
	case rolling:
		r.State = RollingBack
	case r.Halt != nil:
		r.State = Halted
	case r.Ending == "" && !atRisk && t.openStage() == len(t.stages):
		r.State, r.Ended = Done, t.now
	default:
		r.State = Running
	}
	if r.State.Final() {
		t.next = time.Time{}
		return
	}
	t.each(func(_ int, m *MemberRun, _ *Member) {
		external := m.Reason == ReasonClusterPaused || m.Reason == ReasonClusterWindow || m.Reason == ReasonUnreported
		if m.State != Waiting || !external || m.Noticed {
			return
		}
		if limit := m.Since.Add(longWait); t.now.Before(limit) {
			t.tickBy(limit)
		} else {
			m.Noticed = true
		}
	})
}
