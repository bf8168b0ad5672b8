package storm

// The invariants of fleets, checked at every tick of a run and whenever a document of a rollout or of a cell was written. A tick counts
// also if it wrote no record: it decided that nothing changes. shared/rollout/invariants has the checks of ticks.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/rollout/invariants"
	"github.com/drover-run/drover/shared/upgrade"
)

// fleetInvariants is what the numbers of the invariants of fleets exceed those of clusters by: F1 is 101.
const fleetInvariants = 100

// f is the number of an invariant of fleets.
func f(number int) int { return fleetInvariants + number }

// invariantName is the name of an invariant in the documentation.
func invariantName(number int) string {
	if number > fleetInvariants {
		return fmt.Sprintf("F%d", number-fleetInvariants)
	}
	return strconv.Itoa(number)
}

// fleetChecks is the state of the checks.
type fleetChecks struct {
	// written are the keys that were written in this turn.
	written []string
	// attempts are the writes of records that the function rollout attempted, by content, with what it read.
	attempts map[string]*fleetReads
	// unchanged are the ticks of this turn after which the function rollout wrote no record.
	unchanged []*fleetReads
	// records are the newest ones, by rollout. plans are those that were read, by digest.
	records map[string]*rollout.Record
	plans   map[string]*rollout.Plan
	// checkers and histories are of the newest run of each rollout.
	checkers  map[string]*invariants.Checker
	histories map[string]*invariants.History
	// derived are the assignments that follow from each record. sections are the published ones.
	derived  map[recordID][]rollout.Assignment
	sections map[string]rollout.Section
	// published are all assignments that were published, by key and cluster. copies are the newest ones of the cells, by cluster.
	published map[string]rollout.Assignment
	copies    map[string]*rollout.CellAssignment
	// report is the newest one of the cell. upgrades are the newest records of upgrades, by cluster.
	report   *rollout.Report
	upgrades map[string]*upgrade.Record
	// requested are the targets that were requested for each control plane, by its stack: that of its creation, and those of upgrades.
	requested map[string]map[rollout.ReleaseRef]bool
	// seen are the stacks of control planes that a fact was reported about.
	seen map[string]bool
	// touched are the clusters of runs on which an attempt of the run has begun: see touch.
	touched map[string]bool
}

// recordID identifies a record of a run.
type recordID struct {
	rollout       string
	run, sequence int64
}

func newFleetChecks() *fleetChecks {
	return &fleetChecks{
		attempts: map[string]*fleetReads{}, records: map[string]*rollout.Record{}, plans: map[string]*rollout.Plan{},
		checkers: map[string]*invariants.Checker{}, histories: map[string]*invariants.History{}, derived: map[recordID][]rollout.Assignment{},
		sections: map[string]rollout.Section{}, published: map[string]rollout.Assignment{}, copies: map[string]*rollout.CellAssignment{},
		report: &rollout.Report{}, upgrades: map[string]*upgrade.Record{}, requested: map[string]map[rollout.ReleaseRef]bool{},
		seen:    map[string]bool{},
		touched: map[string]bool{},
	}
}

func atRisk(s rollout.State) bool { return invariants.AtRisk(s) }

// uploaded records that a user uploads a file.
func (f *fleet) uploaded(key string, turn int) {
	f.uploads = append(f.uploads, fleetUpload{key: key, turn: turn})
}

// removed records that a user deletes a file.
func (f *fleet) removed(key string, turn int) {
	for i := range f.uploads {
		if f.uploads[i].key == key && f.uploads[i].deleted == 0 {
			f.uploads[i].deleted = turn
		}
	}
}

// plan reads a plan.
func (f *fleetChecks) plan(w *world, digest string) *rollout.Plan {
	if f.plans[digest] == nil {
		p, err := w.State().RolloutPlan(context.Background(), digest)
		must(err)
		f.plans[digest] = p
	}
	return f.plans[digest]
}

// seeWrite records a write of the state bucket.
func (f *fleet) seeWrite(w *world, call endpoint.Call) {
	bucket, key, _ := strings.Cut(call.Resource[strings.LastIndex(call.Resource, ":")+1:], "/")
	if bucket != harness.StateBucket {
		return
	}
	w.observed.Lock()
	defer w.observed.Unlock()
	for _, prefix := range []string{names.RolloutRecords, names.DesiredStates, names.CellReports, names.Assignments, names.Upgrades} {
		if strings.HasPrefix(key, prefix) {
			f.written = append(f.written, key)
		}
	}
}

// checkFleet checks the documents that were written in this turn, and the ticks that wrote none. One evaluation of a check is such a write,
// if its comment does not say otherwise.
func (w *world) checkFleet() {
	w.observed.Lock()
	written := w.fleet.written
	w.fleet.written = nil
	w.observed.Unlock()
	for _, key := range written {
		name, isRecord := recordOfKey(key)
		switch {
		case isRecord:
			w.checkRecord(name)
		case key == names.DesiredState(cell):
			w.checkAssigned()
		case key == names.CellReport(cell):
			w.checkReport()
		case strings.HasPrefix(key, names.Assignments):
			w.checkCopy(strings.TrimSuffix(strings.TrimPrefix(key, names.Assignments), ".json"))
		case strings.HasPrefix(key, names.Upgrades):
			w.checkUpgrade(strings.TrimSuffix(strings.TrimPrefix(key, names.Upgrades), ".json"))
		}
	}
	for _, reads := range w.fleet.unchanged {
		w.checkUnchanged(reads)
	}
	w.fleet.unchanged = nil
}

// result records the result of checks of shared/rollout/invariants, whose error begins with the name of the invariant.
func (w *world) result(where string, err error) {
	if err == nil {
		return
	}
	name, text, _ := strings.Cut(err.Error(), ": ")
	number, _ := strconv.Atoi(strings.TrimPrefix(name, "F"))
	w.check(f(number), false, "%s: %s", where, text)
}

// countChecks adds the counts of a checker to those of the world.
func (w *world) countChecks(checks map[string]int) {
	w.observed.Lock()
	defer w.observed.Unlock()
	for name, n := range checks {
		number, _ := strconv.Atoi(strings.TrimPrefix(name, "F"))
		w.out.Checks[f(number)] += n
	}
	clear(checks)
}

// checkRecord checks a record of a rollout against the one before it and what its call read.
func (w *world) checkRecord(name string) {
	fl := w.fleet
	object, err := w.State().Get(context.Background(), names.RolloutRecord(name), 64<<20)
	must(err)
	record := decoded[rollout.Record](w, object.Body)
	before := fl.records[name]
	reads := fl.attempts[name+string(object.Body)]
	if before == nil {
		before = &rollout.Record{Rollout: name}
	}
	w.check(f(3), record.Revision == before.Revision+1 && reads != nil, "%s: revision %d follows %d", name, record.Revision, before.Revision)
	fl.records[name] = record
	if reads == nil || record.Run == nil {
		return
	}
	w.checkClaims()
	run, p := record.Run, fl.plan(w, record.Run.Plan)
	was := before.Run
	if was == nil || was.Number != run.Number {
		w.check(f(13), before.Running() == nil, "%s: run %d begins, and run %d has not ended", name, run.Number, max(0, run.Number-1))
		began := beginOf(p, record, slices.Clone(reads.decisions))
		was = &began
		history := invariants.NewHistory(p)
		fl.checkers[name], fl.histories[name] = &invariants.Checker{Plan: p, Checks: map[string]int{}}, &history
		fl.derive(p, was)
	}
	fl.derive(p, run)
	if run.Sequence == was.Sequence {
		w.check(f(3), sameJSON(run, was), "%s, run %d, record %d: it was changed: %+v, %+v", name, run.Number, run.Sequence, was, run)
	}
	if !reads.ticked { // otherwise the call removed the notices that it sent
		w.checkTick(name, was, run, reads)
	}
}

// checkUnchanged checks a tick that wrote no record. It ignores a run that has ended, and a tick after whose read another call wrote a
// record.
func (w *world) checkUnchanged(reads *fleetReads) {
	if reads.record.Running() == nil {
		return
	}
	name := reads.record.Rollout
	if newest := w.fleet.records[name]; newest.Revision == reads.record.Revision {
		w.checkTick(name, newest.Run, newest.Run, reads)
	}
}

// checkTick checks a tick of a run: the record that it read, the one that it wrote, and what else it read. Both records are the same if it
// changed nothing.
func (w *world) checkTick(name string, was, run *rollout.Run, reads *fleetReads) {
	if was.State.Final() {
		return
	}
	p, checker := w.fleet.plan(w, run.Plan), w.fleet.checkers[name]
	in := reads.inputs(p)
	where := fmt.Sprintf("%s, run %d, record %d", name, run.Number, run.Sequence)
	w.checkReads(name, was, reads)
	step := invariants.Step{Before: was, After: run, In: &in, Now: reads.at, Denies: w.denies(p, run), Touched: w.touched(run)}
	w.result(where, checker.Check(w.fleet.histories[name], step))
	w.countChecks(checker.Checks)
	w.checkGood(where, was, run)
}

func sameJSON(a, b any) bool { return string(encoded(a)) == string(encoded(b)) }

// derive records the assignments that follow from a record.
func (f *fleetChecks) derive(p *rollout.Plan, r *rollout.Run) {
	f.derived[recordID{r.Rollout, r.Number, r.Sequence}] = rollout.Assignments(p, r)
}

// beginOf is the record with which a run began. The decisions up to the Start were answered before it.
func beginOf(p *rollout.Plan, record *rollout.Record, decisions []rollout.UploadedDecision) rollout.Run {
	run := record.Run
	answered := map[string]rollout.Answer{}
	maps.Copy(answered, run.Answers)
	slices.SortFunc(decisions, rollout.CompareDecisions)
	started := false
	for _, d := range decisions {
		if started {
			delete(answered, d.Name)
		}
		started = started || d.Spec.Verb == api.VerbStart && run.Answers[d.Name].Applied
	}
	return rollout.Begin(p, run.Number, answered, run.Started)
}

// denies reports whether the cell's copy of an attempt shows that it was not withdrawn.
func (w *world) denies(p *rollout.Plan, r *rollout.Run) func(member, attempt int) bool {
	return func(member, attempt int) bool {
		a := w.fleet.copies[r.Members[member].Cluster]
		return a != nil && a.Rollout == r.Rollout && a.Run == r.Number && a.Attempt == attempt && (a.Begun || !a.Withdrawn) &&
			slices.ContainsFunc(p.Stages, func(s rollout.Stage) bool {
				return slices.ContainsFunc(s.Members, func(m rollout.Member) bool { return m.Cluster == a.Cluster && m.Stack == a.Stack })
			})
	}
}

// touch records that an attempt of a run has begun on a cluster: its assignment says so, or its upgrade has a record.
func (f *fleetChecks) touch(name string, run int64, cluster string) {
	f.touched[fmt.Sprint(name, run, cluster)] = true
}

// touched reports whether an attempt of a run has begun on the cluster of a member.
func (w *world) touched(r *rollout.Run) func(member int) bool {
	return func(member int) bool {
		return w.fleet.touched[fmt.Sprint(r.Rollout, r.Number, r.Members[member].Cluster)]
	}
}

// checkClaims: no cluster is a member of two runs that have not ended (F13). One evaluation is a member of such a run.
func (w *world) checkClaims() {
	owners := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(w.fleet.records)) {
		run := w.fleet.records[name].Running()
		if run == nil {
			continue
		}
		for i := range run.Members {
			cluster := run.Members[i].Cluster
			w.check(f(13), owners[cluster] == "", "%s is a member of runs of %s and %s", cluster, owners[cluster], name)
			owners[cluster] = name
		}
	}
}

// checkReads: a tick reads the decisions and freezes that were readable when it read its record (F9). One evaluation is an upload.
func (w *world) checkReads(name string, was *rollout.Run, reads *fleetReads) {
	for _, u := range w.fleet.uploads {
		of, decision, isDecision := names.DecisionOfKey(u.key)
		_, answered := was.Answers[decision]
		if u.turn >= reads.turn || u.deleted > 0 || isDecision && (of != name || answered) {
			continue
		}
		w.check(f(9), reads.keys[u.key], "%s: the tick did not read %s", name, u.key)
	}
}

// checkGood: a member is Good only when the upgrade of its attempt is done (F6). One evaluation is a member that becomes Good.
func (w *world) checkGood(where string, was, run *rollout.Run) {
	for i := range run.Members {
		m := &run.Members[i]
		if m.State != rollout.Good || was.Members[i].State == rollout.Good {
			continue
		}
		a := rollout.Assignment{Rollout: run.Rollout, Run: run.Number, Attempt: m.Attempt, Plan: run.Plan}
		u := w.fleet.upgrades[m.Cluster].Of(a.Key())
		w.check(f(6), u != nil && u.State == upgrade.Done, "%s: %s is Good, and its upgrade is %+v", where, m.Cluster, u)
	}
}

// checkAssigned checks what runs want from the cell.
func (w *world) checkAssigned() {
	fl := w.fleet
	desired, _, err := w.State().DesiredState(context.Background(), cell)
	must(err)
	for _, name := range slices.Sorted(maps.Keys(desired.Sections)) {
		section, was := desired.Sections[name], fl.sections[name]
		if reflect.DeepEqual(section, was) {
			continue
		}
		fl.sections[name] = section
		record := fl.records[name]
		checker := fl.checkers[name]
		if record == nil || record.Run == nil || section.Run > record.Run.Number || section.Run < was.Run {
			w.check(f(3), false, "%s: the section of run %d follows that of %d", name, section.Run, was.Run)
			continue
		}
		stored, published := section.Sequence, int64(0)
		if section.Run == record.Run.Number {
			stored = record.Run.Sequence
		}
		if section.Run == was.Run {
			published = was.Sequence
		}
		where := fmt.Sprintf("%s, run %d, section %d", name, section.Run, section.Sequence)
		w.result(where, checker.Published(section.Sequence, stored, published))
		want := fl.derived[recordID{name, section.Run, section.Sequence}]
		p := checker.Plan
		if section.Run != record.Run.Number {
			p = nil
		}
		for _, a := range section.Assignments {
			fl.published[a.Key()+" "+a.Cluster] = a
			if p != nil {
				w.result(where, checker.Assignment(a, memberOf(p, a.Cluster), fl.touched[fmt.Sprint(a.Rollout, a.Run, a.Cluster)]))
			}
		}
		w.check(f(3), slices.Equal(section.Assignments, want), "%s: the assignments are not those of the record: %+v, %+v", where,
			section.Assignments, want)
		w.countChecks(checker.Checks)
	}
}

func memberOf(p *rollout.Plan, cluster string) *rollout.Member {
	for i := range p.Stages {
		for j := range p.Stages[i].Members {
			if m := &p.Stages[i].Members[j]; m.Cluster == cluster {
				return m
			}
		}
	}
	return &rollout.Member{}
}

// checkReport: the cell works on at most as many clusters as it allows (F17). One evaluation is a report with open clusters.
func (w *world) checkReport() {
	fl := w.fleet
	report, _, err := w.State().CellReport(context.Background(), cell)
	must(err)
	was := fl.report
	fl.report = report
	limit := w.cellLimit()
	if len(report.Open) > 0 {
		w.check(f(17), len(report.Open) <= max(limit, len(was.Open)), "the cell works on %v, and its limit is %d", report.Open, limit)
	}
	for i := range report.Facts {
		fact := &report.Facts[i]
		isOld := func(o rollout.Fact) bool { return o.Cluster == fact.Cluster && !o.Observed.Before(fact.Observed) }
		if !slices.ContainsFunc(was.Facts, isOld) && fact.Deployed.Release != "" {
			w.checkDeployed(fact)
		}
	}
}

// cellLimit is how many clusters the cell allows runs to work on at once.
func (w *world) cellLimit() int {
	return cmp.Or(w.Functions.Fleet.Limit, max(3, len(w.fleet.report.Facts)/10))
}

// checkDeployed: a cluster has a release that was requested, with the same content (F12). One evaluation is a new fact about it. The first
// fact about a control plane shows the content with which it was created. A spec has to name that release.
func (w *world) checkDeployed(fact *rollout.Fact) {
	has := rollout.ReleaseRef{Name: fact.Deployed.Release, SHA256: fact.Deployed.SHA256}
	requested := w.fleet.requestedFor(fact.Stack)
	if !w.fleet.seen[fact.Stack] { // an upgrade may have begun before
		w.fleet.seen[fact.Stack] = true
		requested[has] = requested[has] || slices.ContainsFunc(w.uploads[fact.Cluster], func(u upload) bool {
			return u.wish != nil && u.wish.release() == has.Name
		})
	}
	w.check(f(12), requested[has], "%s has the release %+v, and neither a run nor a user requested it", fact.Cluster, has)
}

// requestedFor returns the targets that were requested for a control plane.
func (f *fleetChecks) requestedFor(stack string) map[rollout.ReleaseRef]bool {
	if f.requested[stack] == nil {
		f.requested[stack] = map[rollout.ReleaseRef]bool{}
	}
	return f.requested[stack]
}

// checkCopy checks the cell's copy of an assignment.
func (w *world) checkCopy(cluster string) {
	fl := w.fleet
	a, _, err := w.State().Assignment(context.Background(), cluster)
	must(err)
	was := fl.copies[cluster]
	fl.copies[cluster] = a
	if a == nil {
		return
	}
	from, found := fl.published[a.Key()+" "+cluster]
	if a.Begun {
		fl.touch(a.Rollout, a.Run, cluster)
	}
	w.check(f(3), found && from.Cluster == cluster && from.Rollback == a.Rollback, "%s has the assignment %s, which was not published",
		cluster, a.Key())
	w.check(f(18), !found || from.To == a.To, "%s has the release %+v, and the assignment has %+v", cluster, a.To, from.To)
	if was == nil || was.Key() != a.Key() || was.Stack != a.Stack {
		// A copy that begins as a withdrawn one answers a run that withdrew before the cell had read it. Nothing begins there.
		_, isOpen := fl.report.Open[cluster]
		w.check(f(17), a.Withdrawn || isOpen,
			"%s takes an assignment, and is not on the list of open clusters", cluster)
		w.check(f(10), !a.Begun, "%s takes an assignment that has begun", cluster)
		return
	}
	w.check(f(10), a.Begun || !was.Begun, "%s: the assignment %s had begun", cluster, a.Key())
	w.check(f(10), !a.Begun || was.Begun || !was.Withdrawn, "%s: the assignment %s begins after it was withdrawn", cluster, a.Key())
}

// checkUpgrade checks a record of an upgrade. One that begins follows from an assignment, or from a request of an operator. Its target is
// always that of the assignment (F18).
func (w *world) checkUpgrade(cluster string) {
	fl := w.fleet
	body, err := w.State().Get(context.Background(), names.Upgrade(cluster), 4<<20)
	if err != nil {
		delete(fl.upgrades, cluster) // deleted
		return
	}
	record, was := &upgrade.Record{}, fl.upgrades[cluster]
	must(json.Unmarshal(body.Body, record))
	fl.upgrades[cluster] = record
	begins := was == nil || was.Number != record.Number || was.Stack != record.Stack
	from, found := fl.published[record.Key+" "+cluster]
	if found {
		w.check(f(18), from.To.SHA256 == record.Target.SHA256, "%s is upgraded to %s, and the assignment has %+v", cluster, record.Target,
			from.To)
	}
	if found && !record.State.Final() {
		w.checkInFlight()
	}
	if begins || record.State == upgrade.Checking { // an upgrade by a spec has the content of its last check
		fl.requestedFor(record.Stack)[rollout.ReleaseRef{Name: record.Target.Release, SHA256: record.Target.SHA256}] = true
	}
	if !begins {
		return
	}
	if !strings.HasPrefix(record.Key, "rollout ") {
		requested := fl.byHand[cluster] || w.names(cluster, record)
		w.check(f(12), requested, "%s is upgraded to %s (%s, %s), and neither a run nor a user requested it", cluster, record.Target.Release,
			record.Origin, record.Key)
		return
	}
	a := fl.copies[cluster]
	w.check(f(10), a != nil && a.Key() == record.Key && a.Begun, "%s: the upgrade %s begins, and the cell has %+v", cluster, record.Key, a)
	if found {
		fl.touch(from.Rollout, from.Run, cluster)
	}
}

// checkInFlight: runs upgrade at most as many clusters at once as the cell allows (F17). A deleted cluster holds no slot. Neither does one
// whose upgrade an operator continues. One evaluation is a record of an upgrade in flight.
func (w *world) checkInFlight() {
	var upgraded []string
	for cluster, record := range w.fleet.upgrades {
		_, isOfRun := w.fleet.published[record.Key+" "+cluster]
		if isOfRun && !record.State.Final() && !w.deleted[cluster] && !w.fleet.byHand[cluster] {
			upgraded = append(upgraded, cluster)
		}
	}
	slices.Sort(upgraded)
	w.check(f(17), len(upgraded) <= w.cellLimit(), "runs upgrade %v, and the limit of the cell is %d", upgraded, w.cellLimit())
}

// names reports whether a spec of a cluster names the release of an upgrade.
func (w *world) names(cluster string, record *upgrade.Record) bool {
	return record.Origin == upgrade.OriginSpec && slices.ContainsFunc(w.uploads[cluster], func(u upload) bool {
		return u.wish != nil && u.wish.release() == record.Target.Release
	})
}

// must ends the process unless a call of the checks succeeds.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
