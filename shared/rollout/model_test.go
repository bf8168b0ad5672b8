package rollout_test

// A model of everything around a run: a record in a store, cells that work on clusters, and facts that come late, twice, out of order or
// never. TestModel explores its states: all of them up to a depth, and random ones beyond. Each tick is checked against the
// invariants of fleets by code that shares nothing with Tick.

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/rollout/invariants"
	"github.com/drover-run/drover/shared/upgrade"
)

var (
	modelDepth = flag.Int("depth", 6, "explore all states of the model up to this depth")
	modelRuns  = flag.Int("runs", 100, "random runs of the model")
)

const (
	settle, soak, deadline = 10 * time.Minute, 20 * time.Minute, 3 * time.Hour
	alarmName              = "errors"
)

var epoch = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

// simulatedCluster is the true state of a cluster and of its cell's copy of the assignment.
type simulatedCluster struct {
	Exists, Sick, Paused, Closed bool
	Stack                        int
	AtTarget                     bool
	// Has is the assignment that the cell has taken; State is its progress.
	Has   rollout.Assignment
	State rollout.AttemptState
	// Touched reports whether an attempt of the run has begun.
	Touched bool
}

// section is what is published for a cluster.
type section struct {
	A  rollout.Assignment
	OK bool
}

// world is one state of the model. Exported fields identify it.
type world struct {
	Now       time.Time
	Run       rollout.Run
	Clusters  []simulatedCluster
	Facts     []rollout.Fact
	Old       []rollout.Fact // the fact before, which may be delivered again
	Published []section
	Sequence  int64 // of the published sections
	Decisions []rollout.UploadedDecision
	Frozen    bool
	InAlarm   bool
	invariants.History
	Slow    *slowTick
	SlowRun *rollout.Run // a record that a slow call has yet to publish
}

// slowTick is a tick that has read its inputs and is not complete.
type slowTick struct {
	Run rollout.Run
	In  rollout.Inputs
}

// model is a plan and what goes wrong in the code under test.
type model struct {
	plan  *rollout.Plan
	limit int
	defect
	checks map[string]int
}

// defect is a deliberate mistake. A nil function changes nothing.
type defect struct {
	name  string
	plan  func(*rollout.Plan) *rollout.Plan
	in    func(rollout.Run, *rollout.Inputs)
	out   func(before rollout.Run, after *rollout.Run)
	early bool // publishes before it writes the record
	blind bool // ignores the sequence of sections
	send  func([]rollout.Assignment)
}

func target(name string, letter byte, version string) upgrade.Target {
	return upgrade.Target{Release: name, SHA256: sha(letter), KubernetesVersion: version}
}

var modelFrom, modelTo = target("1.36-1", 'a', "1.36"), target("1.37-1", 'b', "1.37")

// modelPlan returns a plan with stages of the given sizes.
func modelPlan(change func(*rollout.Plan), sizes ...int) *rollout.Plan {
	p := &rollout.Plan{Rollout: "next", Subject: subject(), OnNewer: api.NewerFinish, OnFailure: api.FailureStop}
	n := 0
	for i, size := range sizes {
		s := rollout.Stage{
			Number: i + 1, Name: fmt.Sprintf("s%d", i+1), FromStage: fmt.Sprintf("s%d", i+1), MaxConcurrency: 1, Budget: api.BudgetStrict,
			Settle: rollout.Duration(settle), Soak: rollout.Duration(soak), Deadline: rollout.Duration(deadline),
		}
		for range size {
			name := string(rune('a' + n))
			s.Members = append(s.Members, rollout.Member{Cluster: name, Cell: onlyCell, Stack: "arn:0", From: modelFrom, To: modelTo})
			n++
		}
		p.Stages = append(p.Stages, s)
	}
	change(p)
	return p
}

// models are plans that differ in what can go wrong.
func models() []*model {
	each := func(p *rollout.Plan, change func(*rollout.Stage)) {
		for i := range p.Stages {
			change(&p.Stages[i])
		}
	}
	return []*model{
		{plan: modelPlan(func(*rollout.Plan) {}, 1, 1)},
		{plan: modelPlan(func(p *rollout.Plan) {
			each(p, func(s *rollout.Stage) { s.MaxConcurrency, s.MaxFailures = 2, 1 })
			p.Stages[1].Before = []api.Approval{{Count: 1}}
		}, 1, 3)},
		{plan: modelPlan(func(p *rollout.Plan) {
			p.OnFailure = api.FailureRollback
			each(p, func(s *rollout.Stage) { s.MaxConcurrency, s.Budget = 2, api.BudgetSoft })
		}, 2, 2)},
		{plan: modelPlan(func(p *rollout.Plan) {
			p.OnNewer = api.NewerSupersede
			each(p, func(s *rollout.Stage) { s.MaxConcurrency, s.MaxFailures, s.Budget = 3, 1, api.BudgetSoft })
		}, 4, 1), limit: 2},
		{plan: modelPlan(func(p *rollout.Plan) {
			p.OnFailure = api.FailureRollback
			each(p, func(s *rollout.Stage) {
				s.FromStage, s.SharedFailures, s.MaxFailures, s.MaxConcurrency, s.Alarms = "waves", true, 1, 3, []string{alarmName}
			})
			p.Stages[2].After = []api.Approval{{Count: 1}}
		}, 1, 2, 3)},
	}
}

func (m *model) start() *world {
	w := &world{Now: epoch, Run: rollout.Begin(m.plan, 1, nil, epoch), History: invariants.NewHistory(m.plan)}
	for range m.plan.Size() {
		w.Clusters = append(w.Clusters, simulatedCluster{Exists: true})
	}
	w.Published = make([]section, m.plan.Size())
	w.Now = w.Now.Add(time.Minute)
	w.Facts = make([]rollout.Fact, m.plan.Size())
	for i := range w.Clusters {
		w.report(i)
	}
	w.Old = slices.Clone(w.Facts)
	return w
}

// name of the cluster with an index.
func name(i int) string { return string(rune('a' + i)) }

// report makes the newest state of a cluster readable for the function rollout. A cluster that does not exist has no fact.
func (w *world) report(i int) {
	c := &w.Clusters[i]
	if w.Facts[i].Observed.Equal(w.Now) {
		w.Now = w.Now.Add(time.Second) // two looks are never at the same time
	}
	f := rollout.Fact{
		Cluster: name(i), Stack: fmt.Sprintf("arn:%d", c.Stack), Observed: w.Now, Deployed: modelFrom, Paused: c.Paused, Nodes: 10,
		RollbackUntil: epoch.Add(7 * 24 * time.Hour),
	}
	if !c.Exists {
		f.Cluster = "" // absent
	}
	if c.AtTarget {
		f.Deployed = modelTo
	}
	if c.Sick {
		f.NotReady = 5
	}
	if c.Closed {
		f.Opening = &rollout.Opening{Opens: w.Now.Add(time.Hour)}
	}
	if c.State != "" {
		f.Attempt = &rollout.Attempt{Rollout: c.Has.Rollout, Run: c.Has.Run, Number: c.Has.Attempt, State: c.State}
	}
	if w.Old != nil {
		w.Old[i] = w.Facts[i]
	}
	w.Facts[i] = f
}

// inputs are what a tick reads.
func (m *model) inputs(w *world) rollout.Inputs {
	in := rollout.Inputs{
		Facts: map[string]rollout.Fact{}, FactsAt: map[string]time.Time{onlyCell: w.Now}, Decisions: slices.Clone(w.Decisions),
		Alarms: map[string]rollout.Alarm{alarmName: {InAlarm: w.InAlarm, Since: epoch}},
		Cells:  map[string]rollout.Cell{onlyCell: {Limit: m.limit}},
	}
	for _, f := range w.Facts {
		if f.Cluster != "" {
			in.Facts[f.Cluster] = f
		}
	}
	if w.Frozen {
		in.Freezes = []api.Freeze{{Spec: api.FreezeSpec{From: "2026-01-01T00:00:00Z", Until: "2027-01-01T00:00:00Z"}}}
	}
	return in
}

// tick evaluates a record that was read before, and writes the result if the record is still the same.
func (m *model) tick(w *world, run rollout.Run, in rollout.Inputs, publish bool) error {
	p, given := m.plan, in
	if m.defect.plan != nil {
		p = m.defect.plan(p)
	}
	if m.defect.in != nil {
		given.Facts, given.Decisions = maps.Clone(in.Facts), slices.Clone(in.Decisions)
		m.defect.in(run, &given)
	}
	after, _, _ := rollout.Tick(p, run, given, w.Now)
	if m.defect.out != nil {
		m.defect.out(run, &after)
	}
	if m.early {
		if err := m.publish(w, &after); err != nil {
			return err
		}
	}
	if run.Sequence != w.Run.Sequence {
		return nil // a conflict: the call starts over
	}
	if !run.State.Final() {
		step := invariants.Step{Before: &run, After: &after, In: &in, Now: w.Now, Denies: w.denies, Touched: w.touched}
		if err := m.checker().Check(&w.History, step); err != nil {
			return err
		}
	}
	w.Run = after
	if !publish {
		return nil
	}
	return m.publish(w, &after)
}

func (m *model) checker() *invariants.Checker {
	return &invariants.Checker{Plan: m.plan, Checks: m.checks}
}

// denies reports whether the cell of a member has an attempt, and has not withdrawn it.
func (w *world) denies(member, attempt int) bool {
	c := &w.Clusters[member]
	return c.Has.Attempt == attempt && c.State != rollout.AttemptWithdrawn && c.Stack == 0
}

// touched reports whether an attempt has begun on the cluster of a member. Of a cluster that was deleted it is not known.
func (w *world) touched(member int) bool {
	c := &w.Clusters[member]
	return c.Touched || !c.Exists || c.Stack > 0
}

// publish writes the assignments of a record, unless those of a later one are published.
func (m *model) publish(w *world, r *rollout.Run) error {
	if r.Sequence < w.Sequence && !m.blind {
		return nil
	}
	checker := m.checker()
	if err := checker.Published(r.Sequence, w.Run.Sequence, w.Sequence); err != nil {
		return err
	}
	w.Sequence = r.Sequence
	assignments := rollout.Assignments(m.plan, r)
	if m.send != nil {
		m.send(assignments)
	}
	for i := range w.Published {
		w.Published[i] = section{}
	}
	for _, a := range assignments {
		i := int(a.Cluster[0] - 'a')
		w.Published[i] = section{a, true}
		member := &rollout.Member{From: modelFrom, To: modelTo}
		if err := checker.Assignment(a, member, w.touched(i)); err != nil {
			return err
		}
	}
	return nil
}

// step lets the cell of a cluster do its next thing: take an assignment, withdraw it, begin it or complete it.
func (w *world) step(i int, outcome rollout.AttemptState) {
	c, s := &w.Clusters[i], w.Published[i]
	working := c.State == rollout.AttemptBegun
	switch {
	case !c.Exists:
	case working:
		if c.State = outcome; outcome == rollout.AttemptDone {
			c.AtTarget = !c.Has.Rollback
		}
	case s.OK && s.A.Attempt > c.Has.Attempt:
		c.Has, c.State = s.A, rollout.AttemptOpen
	case c.State == rollout.AttemptOpen && (s.OK && s.A.Withdrawn && s.A.Attempt == c.Has.Attempt):
		c.State = rollout.AttemptWithdrawn
	case c.State == rollout.AttemptOpen && !c.Paused && !c.Closed && outcome == rollout.AttemptBlocked:
		c.State = rollout.AttemptBlocked
	case c.State == rollout.AttemptOpen && !c.Paused && !c.Closed:
		c.State, c.Touched = rollout.AttemptBegun, true
	}
}

// decide uploads a decision.
func (m *model) decide(w *world, verb api.Verb, change func(*api.DecisionSpec)) {
	spec := api.DecisionSpec{Rollout: "next", Plan: w.Run.Plan, Verb: verb}
	if change != nil {
		change(&spec)
	}
	n := len(w.Decisions)
	w.Decisions = append(slices.Clip(w.Decisions), rollout.UploadedDecision{Name: fmt.Sprintf("d%d", n), Version: "v", At: w.Now, Spec: spec})
}
