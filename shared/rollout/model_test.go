package rollout_test

// A model of everything around a run: a record in a store, cells that work on clusters, and facts that come late, twice, out of order or
// never. TestModel explores its states: all of them up to a depth, and random ones beyond. Each written record is checked against the
// invariants of fleets by code that shares nothing with Tick.

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
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

// simulated is the true state of a cluster and of its cell's copy of the assignment.
type simulated struct {
	Exists, Sick, Paused, Closed bool
	Stack                        int
	AtTarget                     bool
	// Has is the assignment that the cell has taken; State is its progress.
	Has   rollout.Assignment
	State rollout.AttemptState
	// Touched reports whether an attempt of the run has begun.
	Touched bool
}

// streak is what the facts that a record could use have shown.
type streak struct {
	Attempt int
	// Since is when the cluster became well, Well since when it was observed without a long pause, Look the last look.
	Since, Well, Look time.Time
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
	Clusters  []simulated
	Facts     []rollout.Fact
	Old       []rollout.Fact // the fact before, which may be delivered again
	Published []section
	Sequence  int64 // of the published sections
	Decisions []rollout.Decided
	Frozen    bool
	Ringing   bool
	Streaks   []streak
	Failures  map[string]int
	Slow      *slowTick
	SlowRun   *rollout.Run // a record that a slow call has yet to publish
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

// defect is a deliberate mistake. Nil functions are none.
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
			Number: i + 1, Name: fmt.Sprintf("s%d", i+1), Of: fmt.Sprintf("s%d", i+1), MaxConcurrency: 1, Budget: api.BudgetStrict,
			Settle: rollout.Duration(settle), Soak: rollout.Duration(soak), Deadline: rollout.Duration(deadline),
		}
		for range size {
			name := string(rune('a' + n))
			s.Members = append(s.Members, rollout.Member{Cluster: name, Cell: rollout.LocalCell, Stack: "arn:0", From: modelFrom, To: modelTo})
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
				s.Of, s.SharedFailures, s.MaxFailures, s.MaxConcurrency, s.Alarms = "waves", true, 1, 3, []string{alarmName}
			})
			p.Stages[2].After = []api.Approval{{Count: 1}}
		}, 1, 2, 3)},
	}
}

func (m *model) start() *world {
	w := &world{Now: epoch, Run: rollout.Begin(m.plan, 1, nil, epoch), Failures: map[string]int{}}
	for range m.plan.Size() {
		w.Clusters = append(w.Clusters, simulated{Exists: true})
	}
	w.Streaks, w.Published = make([]streak, m.plan.Size()), make([]section, m.plan.Size())
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

// report makes the newest state of a cluster readable for the hub. A cluster that does not exist has no fact.
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
		Facts: map[string]rollout.Fact{}, FactsAt: map[string]time.Time{rollout.LocalCell: w.Now}, Decisions: slices.Clone(w.Decisions),
		Alarms: map[string]rollout.Alarm{alarmName: {Ringing: w.Ringing, Since: epoch}},
		Cells:  map[string]rollout.Cell{rollout.LocalCell: {Limit: m.limit}},
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
	if after.Sequence != run.Sequence {
		if err := m.check(w, &run, &after, &in); err != nil {
			return err
		}
		w.Run = after
	}
	if !publish {
		return nil
	}
	return m.publish(w, &after)
}

// publish writes the assignments of a record, unless those of a later one are published.
func (m *model) publish(w *world, r *rollout.Run) error {
	if r.Sequence < w.Sequence && !m.blind {
		return nil
	}
	if err := m.checkPublished(w, r); err != nil {
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
		if err := m.checkAssignment(w, i, a); err != nil {
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
			c.AtTarget = !c.Has.Back
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
	w.Decisions = append(slices.Clip(w.Decisions), rollout.Decided{Name: fmt.Sprintf("d%d", n), Version: "v", At: w.Now, Spec: spec})
}

// event is one step of the model.
type event struct {
	name string
	do   func(*model, *world) error
}

// events returns the steps of the model: few for an exhaustive search, all for random ones.
func (m *model) events(all bool) (list []event) {
	add := func(name string, do func(*model, *world)) {
		list = append(list, event{name, func(m *model, w *world) error { do(m, w); return nil }})
	}
	list = append(list,
		event{"tick", func(m *model, w *world) error { return m.tick(w, w.Run, m.inputs(w), true) }},
		event{"tick and crash", func(m *model, w *world) error { return m.tick(w, w.Run, m.inputs(w), false) }})
	add("ten minutes", func(_ *model, w *world) { w.Now = w.Now.Add(10 * time.Minute) })
	if !all { // a cell reports what it does; the pause alternates
		for i := range m.plan.Size() {
			add("work on and report "+name(i), func(_ *model, w *world) { w.step(i, rollout.AttemptDone); w.report(i) })
			add("stop and report "+name(i), func(_ *model, w *world) { w.step(i, rollout.AttemptStopped); w.report(i) })
			add("sicken or heal "+name(i), func(_ *model, w *world) { w.Clusters[i].Sick = !w.Clusters[i].Sick })
		}
		add("pause or resume", func(m *model, w *world) {
			m.decide(w, []api.Verb{api.VerbPause, api.VerbResume}[len(w.Decisions)%2], nil)
		})
		return list
	}
	for i := range m.plan.Size() {
		add("work on "+name(i), func(_ *model, w *world) { w.step(i, rollout.AttemptDone) })
		add("stop "+name(i), func(_ *model, w *world) { w.step(i, rollout.AttemptStopped) })
		add("report "+name(i), func(_ *model, w *world) { w.report(i) })
		add("sicken or heal "+name(i), func(_ *model, w *world) { w.Clusters[i].Sick = !w.Clusters[i].Sick })
	}
	add("pause", func(m *model, w *world) { m.decide(w, api.VerbPause, nil) })
	add("resume", func(m *model, w *world) { m.decide(w, api.VerbResume, nil) })
	list = append(list,
		event{"finish a slow tick", func(m *model, w *world) error {
			if w.Slow == nil {
				return nil
			}
			slow := w.Slow
			w.Slow = nil
			return m.tick(w, slow.Run, slow.In, true)
		}},
		event{"publish late", func(m *model, w *world) error {
			if w.SlowRun == nil {
				return nil
			}
			return m.publish(w, w.SlowRun)
		}})
	add("begin a slow tick", func(m *model, w *world) { w.Slow = &slowTick{w.Run, m.inputs(w)} })
	add("hold a publisher back", func(_ *model, w *world) { run := w.Run; w.SlowRun = &run })
	add("five minutes", func(_ *model, w *world) { w.Now = w.Now.Add(5 * time.Minute) })
	add("two hours", func(_ *model, w *world) { w.Now = w.Now.Add(2 * time.Hour) })
	add("freeze or thaw", func(_ *model, w *world) { w.Frozen = !w.Frozen })
	add("ring or silence", func(_ *model, w *world) { w.Ringing = !w.Ringing })
	for i := range m.plan.Size() {
		add("block "+name(i), func(_ *model, w *world) { w.step(i, rollout.AttemptBlocked) })
		add("deliver an old fact of "+name(i), func(_ *model, w *world) { w.Facts[i], w.Old[i] = w.Old[i], w.Facts[i] })
		add("pause or unpause "+name(i), func(_ *model, w *world) { w.Clusters[i].Paused = !w.Clusters[i].Paused })
		add("close or open "+name(i), func(_ *model, w *world) { w.Clusters[i].Closed = !w.Clusters[i].Closed })
		cluster := func(s *api.DecisionSpec) { s.Clusters = []string{name(i)} }
		add("retry "+name(i), func(m *model, w *world) { m.decide(w, api.VerbRetry, cluster) })
		add("skip "+name(i), func(m *model, w *world) {
			if len(w.Decisions)%4 == 0 {
				m.decide(w, api.VerbSkip, cluster)
			}
		})
	}
	for i := range m.plan.Stages {
		stage := func(s *api.DecisionSpec) { s.Stage = m.plan.Stages[i].Name }
		add("approve "+m.plan.Stages[i].Name, func(m *model, w *world) { m.decide(w, api.VerbApprove, stage) })
		add("approve another plan", func(m *model, w *world) {
			m.decide(w, api.VerbApprove, func(s *api.DecisionSpec) { stage(s); s.Plan = sha('e') })
		})
	}
	add("retry of another plan", func(m *model, w *world) {
		m.decide(w, api.VerbRetry, func(s *api.DecisionSpec) { s.Plan, s.Clusters = sha('e'), []string{"a", "b"} })
	})
	add("upload a decision again", func(_ *model, w *world) {
		if n := len(w.Decisions); n > 0 {
			again := w.Decisions[n/2]
			again.Version, again.At = "again", w.Now
			w.Decisions = append(slices.Clip(w.Decisions), again)
		}
	})
	return list
}

// rare are steps that end a run or harm a cluster permanently. Random runs take them seldom.
func (m *model) rare() []event {
	var list []event
	add := func(name string, do func(*model, *world)) {
		list = append(list, event{name, func(m *model, w *world) error { do(m, w); return nil }})
	}
	add("abort", func(m *model, w *world) { m.decide(w, api.VerbAbort, nil) })
	add("reject", func(m *model, w *world) { m.decide(w, api.VerbReject, nil) })
	add("roll back", func(m *model, w *world) { m.decide(w, api.VerbRollback, nil) })
	for i := range m.plan.Size() {
		add("delete "+name(i), func(_ *model, w *world) { w.Clusters[i].Exists = false })
		add("recreate "+name(i), func(_ *model, w *world) {
			w.Clusters[i] = simulated{Exists: true, Stack: w.Clusters[i].Stack + 1, Has: w.Clusters[i].Has}
		})
	}
	return list
}

// copyTo makes out a copy of a world that shares nothing which a step changes. It reuses the memory of out.
func (w *world) copyTo(out *world) {
	old := *out
	*out = *w
	out.Clusters, out.Facts = append(old.Clusters[:0], w.Clusters...), append(old.Facts[:0], w.Facts...)
	out.Old = append(old.Old[:0], w.Old...)
	out.Published, out.Streaks = append(old.Published[:0], w.Published...), append(old.Streaks[:0], w.Streaks...)
	if out.Failures = old.Failures; out.Failures == nil {
		out.Failures = map[string]int{}
	}
	clear(out.Failures)
	maps.Copy(out.Failures, w.Failures)
}

// TestModel explores every state of a small model, then random runs of larger ones, and requires each run to end once nothing disturbs it.
func TestModel(t *testing.T) {
	checks := map[string]int{}
	t.Run("exhaustive", func(t *testing.T) {
		m := models()[0]
		m.checks = checks
		states := explore(t, m, *modelDepth)
		t.Logf("%d states to depth %d", states, *modelDepth)
	})
	t.Run("random", func(t *testing.T) {
		for seed := range *modelRuns {
			for _, m := range models() {
				m.checks = checks
				if trace, err := m.random(uint64(seed), 300); err != nil {
					t.Fatalf("seed %d, %d members: %v\n%s", seed, m.plan.Size(), err, strings.Join(trace, "\n"))
				}
			}
		}
		for _, invariant := range invariants {
			require.Greater(t, checks[invariant], 200, "%s was hardly checked", invariant)
		}
		t.Log(checks)
	})
}

// hash identifies what can matter later. Times count from now, and those beyond every limit are equal; attempts count from that of the
// record; answers to decisions do not matter.
func (w *world) hash(seed maphash.Seed) uint64 {
	var space [512]byte
	h := space[:0]
	number := func(values ...int) {
		for _, v := range values {
			h = append(h, byte(v))
		}
	}
	flag := func(values ...bool) {
		for _, v := range values {
			if v {
				h = append(h, 1)
			} else {
				h = append(h, 0)
			}
		}
	}
	text := func(values ...string) {
		for _, v := range values {
			h = append(append(h, v...), 0)
		}
	}
	at := func(times ...time.Time) {
		for _, t := range times {
			switch age := w.Now.Sub(t); {
			case t.IsZero():
				number(255)
			case age > deadline:
				number(254)
			default:
				number(int(age/(10*time.Minute)), int(age%(10*time.Minute)/time.Second)%251)
			}
		}
	}
	for i := range w.Clusters {
		c, m, f, p := &w.Clusters[i], &w.Run.Members[i], &w.Facts[i], &w.Published[i]
		flag(c.Sick, c.AtTarget, c.Touched, p.OK, p.A.Withdrawn, m.Attempt > 0, m.Begun, m.Changed, f.NotReady > 0, f.Deployed == modelTo)
		number(m.Attempt-c.Has.Attempt, m.Attempt-p.A.Attempt, m.Attempt-w.Streaks[i].Attempt)
		text(string(c.State), string(m.State), string(m.Reason))
		if at(f.Observed); f.Attempt != nil {
			number(m.Attempt - f.Attempt.Number)
			text(string(f.Attempt.State))
		}
		at(m.Started, m.Look, m.Well, m.Unwell, m.Good, m.Regressed, w.Streaks[i].Since, w.Streaks[i].Well, w.Streaks[i].Look)
	}
	for i := range w.Run.Stages {
		flag(w.Run.Stages[i].Passed.IsZero(), w.Run.Stages[i].Began.IsZero())
		number(w.Failures[fmt.Sprintf("s%d", i+1)])
	}
	flag(w.Run.PausedBy != "", w.Run.Halt != nil, w.Sequence == w.Run.Sequence)
	number(len(w.Decisions)%2, len(w.Decisions)-len(w.Run.Decided))
	text(string(w.Run.State))
	return maphash.Bytes(seed, h)
}

// explore visits all states up to a depth, breadth first, and returns their number.
func explore(t *testing.T, m *model, depth int) int {
	seed, seen := maphash.MakeSeed(), map[uint64]bool{}
	type node struct {
		*world
		from *node
		by   string
	}
	frontier, events := []*node{{world: m.start()}}, m.events(false)
	w := &world{}
	for level := range depth {
		var next []*node
		for _, n := range frontier {
			for _, e := range events {
				n.copyTo(w)
				if err := e.do(m, w); err != nil {
					trace := []string{e.name}
					for at := n; at.from != nil; at = at.from {
						trace = append(trace, at.by)
					}
					slices.Reverse(trace)
					t.Fatalf("%v\n%s", err, strings.Join(trace, "\n"))
				}
				if hash := w.hash(seed); !seen[hash] {
					if seen[hash] = true; level+1 < depth {
						next = append(next, &node{w, n, e.name})
						w = &world{}
					}
				}
			}
			n.world = nil // only the steps to it matter from now on
		}
		frontier = next
	}
	return len(seen)
}

// random takes random steps, and then lets the run end without disturbance.
func (m *model) random(seed uint64, steps int) (trace []string, err error) {
	random := rand.New(rand.NewPCG(seed, 7))
	w, events, rare := m.start(), m.events(true), m.rare()
	ticks := events[0]
	take := func(e event) error {
		trace = append(trace, e.name)
		return e.do(m, w)
	}
	// Half of the runs have few brakes, so that they reach their later stages.
	calm := seed%2 == 0
	for range steps {
		e := events[random.IntN(len(events))]
		switch {
		case random.IntN(200) == 0:
			e = rare[random.IntN(len(rare))]
		case random.IntN(3) == 0:
			e = ticks
		case calm && random.IntN(2) == 0:
			i := random.IntN(len(w.Clusters))
			w.step(i, rollout.AttemptDone)
			w.report(i)
			trace = append(trace, "work and report "+name(i))
			continue
		}
		if err := take(e); err != nil {
			return trace, err
		}
	}
	return m.settle(w, trace)
}

// settle lets every cluster get well and every decision come in time. The run must end: Done, ended by a decision, or Halted with a member
// that is to blame.
func (m *model) settle(w *world, trace []string) ([]string, error) {
	w.Frozen, w.Ringing, w.Now = false, false, w.Now.Add(time.Second)
	m.decide(w, api.VerbResume, nil)
	for range 500 {
		for i := range w.Clusters {
			c := &w.Clusters[i]
			c.Sick, c.Paused, c.Closed = false, false, false
			w.step(i, rollout.AttemptDone)
			w.report(i)
		}
		for i := range m.plan.Stages {
			stage := func(s *api.DecisionSpec) { s.Stage = m.plan.Stages[i].Name }
			soaked := !w.Run.Stages[i].Soaked.IsZero() && len(w.Run.Stages[i].After) < len(m.plan.Stages[i].After)
			if len(w.Run.Stages[i].Before) < len(m.plan.Stages[i].Before) && (i == 0 || !w.Run.Stages[i-1].Passed.IsZero()) || soaked {
				m.decide(w, api.VerbApprove, stage)
			}
		}
		if err := m.tick(w, w.Run, m.inputs(w), true); err != nil {
			return trace, err
		}
		blamed := slices.ContainsFunc(w.Run.Members, func(m rollout.MemberRun) bool {
			return m.State == rollout.Failed || m.State == rollout.Blocked || m.State == rollout.Returned || m.State == rollout.Kept
		})
		// A stage that was rolled back ends the run, too.
		blamed = blamed || slices.ContainsFunc(w.Run.Stages, func(s rollout.StageRun) bool { return s.Rollback == rollout.RollbackDone })
		resting := !slices.ContainsFunc(w.Run.Members, func(m rollout.MemberRun) bool {
			return slices.Contains([]rollout.State{rollout.Started, rollout.Withdrawing, rollout.Changing, rollout.Settling}, m.State)
		})
		m.checks["F22"]++
		if w.Run.State.Final() || w.Run.State == rollout.Halted && blamed && resting {
			return trace, nil
		}
		w.Now = w.Now.Add(5 * time.Minute)
	}
	body, _ := json.MarshalIndent(w.Run, "", " ")
	return trace, fmt.Errorf("F22: the run does not end: %s", body)
}
