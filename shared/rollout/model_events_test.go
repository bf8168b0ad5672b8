package rollout_test

// The steps of the model: what cells, users, clocks and faults do next.

import (
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
)

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
	add("enter or leave ALARM", func(_ *model, w *world) { w.InAlarm = !w.InAlarm })
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
			w.Clusters[i] = simulatedCluster{Exists: true, Stack: w.Clusters[i].Stack + 1, Has: w.Clusters[i].Has}
		})
	}
	return list
}
