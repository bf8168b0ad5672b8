package rollout_test

// The exploration of the model: every state up to a depth, and random runs beyond.

import (
	"encoding/json"
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
	"github.com/drover-run/drover/shared/rollout/invariants"
)

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
		for _, invariant := range invariants.Names {
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
		at(m.Started, m.Look, m.WellSince, m.UnwellSince, m.GoodSince, m.RegressedAt,
			w.Streaks[i].WellSince, w.Streaks[i].ObservedSince, w.Streaks[i].Look)
	}
	for i := range w.Run.Stages {
		flag(w.Run.Stages[i].Passed.IsZero(), w.Run.Stages[i].Began.IsZero())
		number(w.Failures[fmt.Sprintf("s%d", i+1)])
	}
	flag(w.Run.PausedBy != "", w.Run.Halt != nil, w.Sequence == w.Run.Sequence)
	number(len(w.Decisions)%2, len(w.Decisions)-len(w.Run.Answers))
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
	w.Frozen, w.InAlarm, w.Now = false, false, w.Now.Add(time.Second)
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
			soaked := !w.Run.Stages[i].SoakedAt.IsZero() && len(w.Run.Stages[i].After) < len(m.plan.Stages[i].After)
			if len(w.Run.Stages[i].Before) < len(m.plan.Stages[i].Before) && (i == 0 || !w.Run.Stages[i-1].Passed.IsZero()) || soaked {
				m.decide(w, api.VerbApprove, stage)
			}
		}
		if err := m.tick(w, w.Run, m.inputs(w), true); err != nil {
			return trace, err
		}
		blamed := slices.ContainsFunc(w.Run.Members, func(m rollout.MemberRun) bool {
			return m.State == rollout.Failed || m.State == rollout.Blocked || m.State == rollout.RolledBack || m.State == rollout.NotRolledBack
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
