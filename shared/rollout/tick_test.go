package rollout_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
)

// story plays one run over clusters that do what the test says.
type story struct {
	t       *testing.T
	plan    *rollout.Plan
	run     rollout.Run
	in      rollout.Inputs
	now     time.Time
	next    time.Time
	actions []rollout.Action
}

// begin starts a run of the stages in a file over clusters a to d: a has the label stage=canary, and the others stage=prod.
func begin(t *testing.T, spec string) *story {
	t.Helper()
	s := &story{t: t, now: epoch, in: rollout.Inputs{
		Facts: map[string]rollout.Fact{}, FactsAt: map[string]time.Time{}, Alarms: map[string]rollout.Alarm{}, Cells: map[string]rollout.Cell{},
	}}
	var facts []rollout.Fact
	for _, name := range []string{"a", "b", "c", "d"} {
		f := fact(name, "stage="+map[bool]string{true: "canary", false: "prod"}[name == "a"])
		f.Observed, f.RollbackUntil = epoch, epoch.Add(24*time.Hour)
		s.in.Facts[name] = f
		facts = append(facts, f)
	}
	s.plan = compute(t, read(t, spec), facts...)
	s.run = rollout.Begin(s.plan, 1, nil, epoch)
	s.tick()
	return s
}

const (
	canaryThenProd = "  stages:\n  - {name: canary, selector: {matchLabels: {stage: canary}}, soak: 1h}\n" +
		"  - {name: prod, selector: {matchLabels: {stage: prod}}, maxConcurrency: 2, maxFailures: 1}\n"
	all = "  stages: [{name: all, selector: {}, maxConcurrency: 9, maxFailures: 9}]"
)

// tick ticks, checks that the record survives JSON, and keeps the actions.
func (s *story) tick() {
	s.t.Helper()
	s.run, s.actions, s.next = rollout.Tick(s.plan, s.run, s.in, s.now)
	body, err := json.Marshal(s.run)
	require.NoError(s.t, err)
	var again rollout.Run
	require.NoError(s.t, json.Unmarshal(body, &again))
	require.Equal(s.t, s.run, again)
	unchanged, _, _ := rollout.Tick(s.plan, s.run, s.in, s.now)
	require.Equal(s.t, s.run.Sequence, unchanged.Sequence, "a second tick over the same inputs changes nothing")
}

// after lets time pass. Clusters without an attempt are observed again.
func (s *story) after(d time.Duration) *story {
	s.now = s.now.Add(d)
	for name, f := range s.in.Facts {
		if f.Attempt == nil {
			f.Observed = s.now
			s.in.Facts[name] = f
		}
	}
	return s
}

// see changes the fact of a cluster, and observes it now.
func (s *story) see(name string, change func(*rollout.Fact)) *story {
	f := s.in.Facts[name]
	f.Observed = s.now
	change(&f)
	s.in.Facts[name] = f
	return s
}

// report reports the attempt of clusters. A complete one has the pin.
func (s *story) report(state rollout.AttemptState, names ...string) *story {
	for _, name := range names {
		s.see(name, func(f *rollout.Fact) {
			f.Attempt = &rollout.Attempt{Rollout: "next", Run: 1, Number: s.member(name).Attempt, State: state, Check: "NodesReady"}
			if state == rollout.AttemptDone {
				f.Deployed = subject().Releases[0].Target()
			}
		})
	}
	return s
}

// good brings clusters that have started to Good.
func (s *story) good(names ...string) {
	s.after(time.Minute).report(rollout.AttemptDone, names...).tick()
	s.after(15*time.Minute).report(rollout.AttemptDone, names...).tick()
	for _, name := range names {
		require.Equal(s.t, rollout.Good, s.member(name).State, name)
	}
}

// pass observes clusters until their soak of an hour is over.
func (s *story) pass(names ...string) {
	for range 4 {
		s.after(15*time.Minute).report(rollout.AttemptDone, names...).tick()
	}
}

func (s *story) decide(verb api.Verb, change func(*api.DecisionSpec)) *story {
	spec := api.DecisionSpec{Rollout: "next", Plan: s.run.Plan, Verb: verb}
	if change != nil {
		change(&spec)
	}
	name := fmt.Sprintf("d%d", len(s.in.Decisions))
	s.in.Decisions = append(s.in.Decisions, rollout.UploadedDecision{Name: name, Version: "v", At: s.now, Spec: spec})
	return s
}

// answer is that to the last decision.
func (s *story) answer() rollout.Answer {
	return s.run.Answers[fmt.Sprintf("d%d", len(s.in.Decisions)-1)]
}

func (s *story) member(name string) rollout.MemberRun {
	i := slices.IndexFunc(s.run.Members, func(m rollout.MemberRun) bool { return m.Cluster == name })
	return s.run.Members[i]
}

// states are the members with state and reason, such as "a Waiting Slots".
func (s *story) states() string {
	var list []string
	for _, m := range s.run.Members {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s", m.Cluster, m.State, m.Reason)))
	}
	return strings.Join(list, ", ")
}

// events are the notices of the last tick.
func (s *story) events() (list []string) {
	for _, a := range s.actions {
		if n, ok := a.(rollout.Notify); ok {
			list = append(list, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", n.Event, n.Stage, n.Cluster, n.Reason)), " "))
		}
	}
	return list
}

func TestTickRunsStagesInOrder(t *testing.T) {
	s := begin(t, canaryThenProd)
	require.Equal(t, "a Started, b Waiting Stage, c Waiting Stage, d Waiting Stage", s.states())
	require.Equal(t, []string{"StageBegan canary"}, s.events())
	s.good("a")
	require.Equal(t, []rollout.Action{rollout.Watch{Cell: onlyCell, Until: s.now.Add(15 * time.Minute)}}, s.actions)
	require.Equal(t, s.now.Add(time.Hour), s.next, "the end of the soak")
	s.pass("a")
	require.Equal(t, "a Good, b Started, c Started, d Waiting Slots", s.states())
	require.Equal(t, []string{"StagePassed canary", "StageBegan prod"}, s.events())
	s.good("b", "c")
	s.good("b", "c", "d")
	s.pass("b", "c", "d")
	require.Equal(t, rollout.Done, s.run.State)
	require.Equal(t, []string{"StagePassed prod", "Ended Done"}, s.events())
	require.Equal(t, s.now, s.run.Ended)
	require.Len(t, rollout.Assignments(s.plan, &s.run), 4)
}

func TestTickSoakRestarts(t *testing.T) {
	t.Run("for a member that regresses", func(t *testing.T) {
		s := begin(t, canaryThenProd)
		s.good("a")
		s.after(15*time.Minute).report(rollout.AttemptDone, "a").see("a", func(f *rollout.Fact) { f.NotReady = 2 }).tick()
		require.Equal(t, rollout.Settling, s.member("a").State)
		s.see("a", func(f *rollout.Fact) { f.NotReady = 1 })
		s.good("a")
		s.after(15*time.Minute).report(rollout.AttemptDone, "a").tick()
		require.True(t, s.run.Stages[0].Passed.IsZero(), "an hour after the first time it was Good")
		s.pass("a")
		require.False(t, s.run.Stages[0].Passed.IsZero())
	})
	t.Run("after a pause of looks", func(t *testing.T) {
		s := begin(t, canaryThenProd)
		s.good("a")
		s.after(2*time.Hour).report(rollout.AttemptDone, "a").tick()
		require.True(t, s.run.Stages[0].Passed.IsZero())
		s.pass("a")
		require.False(t, s.run.Stages[0].Passed.IsZero())
	})
	t.Run("a member that stays unwell has Regressed", func(t *testing.T) {
		s := begin(t, canaryThenProd)
		s.good("a")
		s.after(time.Minute).see("a", func(f *rollout.Fact) { f.Alarms = []string{"slow"} }).tick()
		s.after(16 * time.Minute).tick()
		require.Equal(t, rollout.ReasonRegressed, s.member("a").Reason)
		require.Equal(t, []string{"MemberFailed canary a Regressed", "Halted canary Failures"}, s.events())
		require.Equal(t, "a Failed Regressed, b Waiting Halted, c Waiting Halted, d Waiting Halted", s.states())
	})
}

func TestTickCountsPassedStages(t *testing.T) {
	s := begin(t, canaryThenProd)
	s.good("a")
	s.pass("a")
	s.after(time.Minute).report(rollout.AttemptBegun, "b", "c").see("a", func(f *rollout.Fact) { f.NotReady = 9 }).tick()
	s.after(16 * time.Minute).tick()
	require.Equal(t, &rollout.Halt{Stage: 1, Cause: rollout.HaltFailures, At: s.now}, s.run.Halt)
	require.Equal(t, "a Failed Regressed, b Changing, c Changing, d Waiting Halted", s.states())
}

func TestTickAlarms(t *testing.T) {
	spec := strings.Replace(canaryThenProd, "soak: 1h", "soak: 1h, alarms: [errors]", 1)
	s := begin(t, "  onFailure: Rollback\n"+spec)
	require.Equal(t, "a Waiting Alarm", s.states()[:15], "a missing alarm counts as one in ALARM")
	s.in.Alarms["errors"] = rollout.Alarm{Since: epoch}
	s.tick()
	s.good("a")
	s.pass() // without looks
	s.in.Alarms["errors"] = rollout.Alarm{Since: s.now.Add(-time.Minute)}
	s.report(rollout.AttemptDone, "a").tick()
	require.True(t, s.run.Stages[0].Passed.IsZero(), "the alarm was in ALARM between two ticks: the soak begins again")
	s.in.Alarms["errors"] = rollout.Alarm{InAlarm: true, Since: s.now}
	s.tick()
	require.Equal(t, s.now.Add(10*time.Minute), s.next)
	s.after(10 * time.Minute).tick()
	require.Equal(t, rollout.HaltAlarm, s.run.Halt.Cause)
	require.Equal(t, rollout.RollingBack, s.run.State)
	require.True(t, s.member("a").Rollback)
	require.Equal(t, "1.36-1", rollout.Assignments(s.plan, &s.run)[0].To.Name)
	s.after(time.Minute).report(rollout.AttemptDone, "a").see("a", func(f *rollout.Fact) { f.Deployed = fact("a").Deployed }).tick()
	require.Equal(t, "a RolledBack, b Waiting Halted, c Waiting Halted, d Waiting Halted", s.states())
	require.Equal(t, rollout.Halted, s.run.State)
}

func TestTickRollsBackLatestFirst(t *testing.T) {
	s := begin(t, "  onFailure: Rollback\n  stages: [{name: all, selector: {}, maxConcurrency: 1, maxFailures: 0, soak: 0s}]")
	s.good("a")
	s.good("b")
	s.see("a", func(f *rollout.Fact) { f.RollbackUntil = time.Time{} })
	s.after(time.Minute).report(rollout.AttemptStopped, "c").tick()
	require.Equal(t, "a NotRolledBack NotPossible, b Good, c Started, d Waiting Halted", s.states())
	require.Equal(t, "RollingBack all Failures", s.events()[len(s.events())-1])
	s.after(time.Minute).report(rollout.AttemptDone, "c").see("c", func(f *rollout.Fact) { f.Deployed = fact("c").Deployed }).tick()
	require.Equal(t, "a NotRolledBack NotPossible, b Started, c RolledBack, d Waiting Halted", s.states())
	s.after(time.Minute).report(rollout.AttemptStopped, "b").tick()
	require.Equal(t, "a NotRolledBack NotPossible, b Failed Rollback, c RolledBack, d Waiting Halted", s.states())
	s.after(time.Second).decide(api.VerbRetry, func(d *api.DecisionSpec) { d.Clusters = []string{"b"} }).tick()
	require.False(t, s.answer().Applied)
}

func TestTickBrakes(t *testing.T) {
	t.Run("a paused run names Paused for every member that waits", func(t *testing.T) {
		s := begin(t, canaryThenProd)
		s.after(time.Minute).report(rollout.AttemptBegun, "a").decide(api.VerbPause, func(d *api.DecisionSpec) { d.Plan = "" }).tick()
		require.Equal(t, "a Changing, b Waiting Paused, c Waiting Paused, d Waiting Paused", s.states())
		require.Equal(t, rollout.Paused, s.run.State)
		s.after(time.Minute).decide(api.VerbResume, nil).tick()
		require.Equal(t, rollout.Running, s.run.State)
	})
	t.Run("a start that has not begun is withdrawn, and its slot is held", func(t *testing.T) {
		s := begin(t, canaryThenProd)
		s.after(time.Minute).decide(api.VerbPause, nil).tick()
		require.Equal(t, rollout.Withdrawing, s.member("a").State)
		require.True(t, rollout.Assignments(s.plan, &s.run)[0].Withdrawn)
		s.after(time.Minute).decide(api.VerbResume, nil).tick()
		require.Equal(t, rollout.Withdrawing, s.member("a").State)
		s.after(time.Minute).report(rollout.AttemptWithdrawn, "a").tick()
		require.Equal(t, rollout.Started, s.member("a").State)
		require.Equal(t, 2, s.member("a").Attempt)
	})
	t.Run("abort takes out what waits, and ends when the rest is not at risk", func(t *testing.T) {
		s := begin(t, canaryThenProd)
		s.after(time.Minute).report(rollout.AttemptBegun, "a").decide(api.VerbAbort, nil).tick()
		require.Equal(t, "a Changing, b Skipped Decision, c Skipped Decision, d Skipped Decision", s.states())
		s.good("a")
		require.Equal(t, rollout.Aborted, s.run.State)
	})
	t.Run("reject halts until resume", func(t *testing.T) {
		s := begin(t, canaryThenProd)
		s.decide(api.VerbReject, nil).tick()
		require.Equal(t, rollout.HaltRejected, s.run.Halt.Cause)
		s.after(time.Second).decide(api.VerbResume, nil).tick()
		require.Nil(t, s.run.Halt)
	})
}

func TestTickDecisions(t *testing.T) {
	gated := strings.Replace(canaryThenProd, "maxFailures: 1", "maxFailures: 1, before: [{approval: {}}], after: [{approval: {}}]", 1)
	approve := func(d *api.DecisionSpec) { d.Stage = "prod" }
	t.Run("an approval counts after the previous stage passed", func(t *testing.T) {
		s := begin(t, gated)
		s.decide(api.VerbApprove, approve).tick()
		require.Equal(t, "it was made before the previous stage passed: approve again", s.answer().Message)
		s.good("a")
		s.pass("a")
		require.Equal(t, "a Good, b Waiting Approval, c Waiting Approval, d Waiting Approval", s.states())
		require.Equal(t, []string{"NeedsApproval prod", "StagePassed canary"}, slices.Sorted(slices.Values(s.events())))
		s.after(time.Second).decide(api.VerbApprove, func(d *api.DecisionSpec) { approve(d); d.Plan = sha('0') }).tick()
		require.Equal(t, fmt.Sprintf("it names the plan 000000000000: the run has the plan %.12s", s.run.Plan), s.answer().Message)
		s.after(time.Second).decide(api.VerbApprove, approve).tick()
		require.Equal(t, rollout.Started, s.member("b").State)
		for _, pair := range [][]string{{"b", "c"}, {"b", "c", "d"}} {
			s.good(pair...)
		}
		s.decide(api.VerbApprove, approve).tick()
		require.False(t, s.answer().Applied, "the soak is not over")
		s.pass("b", "c", "d")
		require.Equal(t, []string{"NeedsApproval prod"}, s.events())
		s.after(time.Second).decide(api.VerbApprove, approve).tick()
		require.Equal(t, rollout.Done, s.run.State)
	})
	t.Run("an early approval may be made before", func(t *testing.T) {
		s := begin(t, strings.Replace(gated, "before: [{approval: {}}]", "before: [{approval: {early: true}}]", 1))
		s.decide(api.VerbApprove, approve).tick()
		require.True(t, s.answer().Applied)
	})
	t.Run("retry gives a blocked member another attempt, and lifts the halt", func(t *testing.T) {
		s := begin(t, canaryThenProd)
		s.after(time.Minute).report(rollout.AttemptBlocked, "a").tick()
		require.Equal(t, "NodesReady", s.member("a").Check)
		require.Equal(t, []string{"MemberBlocked canary a NodesReady", "Halted canary Failures"}, s.events())
		s.after(time.Second).decide(api.VerbRetry, func(d *api.DecisionSpec) { d.Clusters = []string{"a", "b"} }).tick()
		require.Equal(t, rollout.Answer{
			Version: "v", Applied: true, Message: "1 of 2 members with another attempt; not possible for b in their state",
		}, s.answer())
		require.Equal(t, rollout.Started, s.member("a").State)
		require.Equal(t, 2, s.member("a").Attempt)
	})
	t.Run("skip lets a stage without other members pass without its gates", func(t *testing.T) {
		s := begin(t, canaryThenProd)
		s.after(time.Minute).report(rollout.AttemptStopped, "a").tick()
		s.after(time.Second).decide(api.VerbSkip, func(d *api.DecisionSpec) { d.Clusters = []string{"a"} }).tick()
		require.Equal(t, "a Skipped Decision, b Started, c Started, d Waiting Slots", s.states())
	})
	t.Run("a member that does not get well after its upgrade fails before its deadline", func(t *testing.T) {
		s := begin(t, canaryThenProd)
		s.after(time.Minute).report(rollout.AttemptDone, "a").tick()
		s.see("a", func(f *rollout.Fact) { f.NotReady = f.Nodes })
		for range 12 {
			s.after(6*time.Minute).report(rollout.AttemptDone, "a").tick()
		}
		require.Equal(t, rollout.Failed, s.member("a").State)
		require.Equal(t, rollout.ReasonHealth, s.member("a").Reason)
	})
	t.Run("a rollback after a rejection of the run is of the open stage", func(t *testing.T) {
		s := begin(t, canaryThenProd)
		s.after(time.Minute).report(rollout.AttemptDone, "a").tick()
		s.after(time.Second).decide(api.VerbReject, nil).tick()
		require.Equal(t, rollout.Halted, s.run.State)
		s.after(time.Second).decide(api.VerbRollback, nil).tick()
		require.Equal(t, rollout.RollingBack, s.run.State)
		require.True(t, s.member("a").Rollback)
	})
	t.Run("resume judges failed members again", func(t *testing.T) {
		s := begin(t, strings.Replace(canaryThenProd, "soak: 1h", "deadline: 1h", 1))
		s.after(time.Minute).report(rollout.AttemptBegun, "a").tick()
		s.after(2 * time.Hour).tick()
		require.Equal(t, rollout.ReasonDeadline, s.member("a").Reason)
		s.after(time.Minute).report(rollout.AttemptDone, "a").tick()
		require.Equal(t, rollout.Failed, s.member("a").State, "it finished too late")
		s.decide(api.VerbResume, nil).tick()
		require.Equal(t, rollout.Settling, s.member("a").State)
	})
}

func TestTickWaitsForClusters(t *testing.T) {
	later := epoch.Add(3 * time.Hour)
	freeze := api.Freeze{Metadata: api.Metadata{Name: "sale"}, Spec: api.FreezeSpec{
		Clusters: api.Selector{MatchLabels: map[string]string{"stage": "prod"}}, From: "2026-11-02T00:00:00Z", Until: "2026-11-02T03:00:00Z",
	}}
	for reason, test := range map[rollout.Reason]struct {
		change func(*story)
		until  time.Time
	}{
		rollout.ReasonClusterPaused: {change: func(s *story) { s.see("b", func(f *rollout.Fact) { f.Paused = true }) }},
		rollout.ReasonBusy:          {change: func(s *story) { s.see("b", func(f *rollout.Fact) { f.Busy = true }) }},
		rollout.ReasonNotReady:      {change: func(s *story) { s.see("b", func(f *rollout.Fact) { f.Unready = true }) }},
		rollout.ReasonIncompatibleVersion: {change: func(s *story) {
			s.see("b", func(f *rollout.Fact) { f.Deployed.KubernetesVersion = "1.38" })
		}},
		rollout.ReasonUnreported: {change: func(s *story) { delete(s.in.Facts, "b") }},
		rollout.ReasonReleaseUnusable: {change: func(s *story) {
			s.in.Cells[onlyCell] = rollout.Cell{Unusable: []string{sha('b')}}
		}},
		rollout.ReasonCellLimit: {change: func(s *story) { s.in.Cells[onlyCell] = rollout.Cell{Limit: 3, Others: 3} }},
		rollout.ReasonFreeze:    {func(s *story) { s.in.Freezes = []api.Freeze{freeze} }, later},
		rollout.ReasonClusterWindow: {func(s *story) {
			s.see("b", func(f *rollout.Fact) { f.Opening = &rollout.Opening{Opens: later} })
		}, later},
	} {
		t.Run(string(reason), func(t *testing.T) {
			s := begin(t, "  stages: [{name: canary, selector: {matchLabels: {stage: canary}}, soak: 0s, settle: 0s}, "+
				"{name: prod, selector: {matchLabels: {stage: prod}}, maxConcurrency: 9, maxFailures: 9}]")
			test.change(s)
			s.after(time.Minute).report(rollout.AttemptDone, "a").tick()
			require.Equal(t, reason, s.member("b").Reason, s.states())
			require.Equal(t, test.until, s.member("b").Until)
			if !test.until.IsZero() {
				require.Equal(t, test.until, s.next)
			}
		})
	}
	t.Run("Waits gives the reason of the tick", func(t *testing.T) {
		for bits := range 32 {
			s := begin(t, "  stages: [{name: canary, selector: {matchLabels: {stage: canary}}, soak: 0s, settle: 0s}, "+
				"{name: prod, selector: {matchLabels: {stage: prod}}, maxConcurrency: 9, maxFailures: 9}]")
			s.see("b", func(f *rollout.Fact) {
				f.Busy, f.Unready, f.Paused = bits&1 != 0, bits&2 != 0, bits&4 != 0
				if bits&8 != 0 {
					f.Opening = &rollout.Opening{Opens: later}
				}
			})
			if bits&16 != 0 {
				s.in.Freezes = []api.Freeze{freeze}
			}
			s.after(time.Minute).report(rollout.AttemptDone, "a").tick()
			var want []rollout.Wait
			if m := s.member("b"); bits != 0 {
				require.Equal(t, rollout.Waiting, m.State)
				want = []rollout.Wait{{Cluster: "b", Reason: m.Reason, Until: m.Until}}
			} else {
				require.Equal(t, rollout.Started, m.State)
			}
			require.Equal(t, want, rollout.Waits(s.plan, []rollout.Fact{s.in.Facts["b"]}, s.in.Freezes, s.now), "%05b", bits)
		}
	})
	t.Run("an override ignores a freeze", func(t *testing.T) {
		s := begin(t, "  stages: [{name: prod, selector: {matchLabels: {stage: prod}}}]")
		s.in.Freezes = []api.Freeze{freeze}
		s.after(time.Minute).tick()
		require.Equal(t, rollout.Withdrawing, s.member("b").State, "the freeze came before it began")
		s.report(rollout.AttemptWithdrawn, "b").tick()
		require.Equal(t, rollout.ReasonFreeze, s.member("b").Reason)
		s.decide(api.VerbOverride, func(d *api.DecisionSpec) { d.Freeze = "sale" }).tick()
		require.Equal(t, rollout.Started, s.member("b").State)
		require.Contains(t, s.events(), "FreezeOverridden sale")
	})
	t.Run("a long wait is noticed once", func(t *testing.T) {
		s := begin(t, "  stages: [{name: prod, selector: {matchLabels: {stage: prod}}, maxConcurrency: 9, maxFailures: 9}]")
		s = begin(t, canaryThenProd)
		s.see("a", func(f *rollout.Fact) { f.Paused = true }).tick()
		s.after(time.Minute).report(rollout.AttemptWithdrawn, "a").tick()
		require.Equal(t, rollout.ReasonClusterPaused, s.member("a").Reason)
		s.after(24*time.Hour).see("a", func(*rollout.Fact) {}).tick()
		require.Equal(t, []string{"LongWait canary a ClusterPaused"}, s.events())
		s.after(time.Hour).see("a", func(*rollout.Fact) {}).tick()
		require.Empty(t, s.events())
	})
}

// The window of a stage is local time: on both days on which clocks change it opens at nine.
func TestTickStageWindow(t *testing.T) {
	spec := "  stages: [{name: all, selector: {}, maxConcurrency: 9, maxFailures: 9, " +
		"window: {days: [Mon, Sun], start: \"09:00\", duration: 2h, timeZone: Europe/Berlin}}]"
	s := begin(t, spec) // a Monday at midnight UTC
	require.Equal(t, rollout.ReasonWindow, s.member("a").Reason)
	require.Equal(t, time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC), s.member("a").Until)
	for _, opens := range []time.Time{time.Date(2027, 3, 28, 7, 0, 0, 0, time.UTC), time.Date(2027, 10, 31, 8, 0, 0, 0, time.UTC)} {
		s := begin(t, spec)
		s.now = opens.Add(-time.Hour)
		s.tick()
		require.Equal(t, opens, s.member("a").Until)
		s.now = opens
		for _, name := range []string{"a", "b", "c", "d"} {
			s.see(name, func(*rollout.Fact) {})
		}
		s.tick()
		require.Equal(t, rollout.Started, s.member("a").State)
		require.Equal(t, opens.Add(2*time.Hour), s.next, "the window closes")
		s.after(2 * time.Hour).tick()
		require.Equal(t, rollout.Withdrawing, s.member("a").State)
	}
}

func TestTickMembersLeave(t *testing.T) {
	s := begin(t, all)
	s.after(time.Minute).report(rollout.AttemptBegun, "a").report(rollout.AttemptOvertaken, "b").
		see("c", func(f *rollout.Fact) { f.Stack = "arn:another" })
	delete(s.in.Facts, "d")
	s.in.FactsAt[onlyCell] = s.now
	s.tick()
	require.Equal(t, "a Changing, b Skipped Overtaken, c Skipped Deleted, d Skipped Deleted", s.states())
	s = begin(t, canaryThenProd)
	s.after(time.Minute).see("b", func(f *rollout.Fact) { f.Pinned = true }).
		see("c", func(f *rollout.Fact) { f.Deployed = subject().Releases[0].Target() }).
		see("d", func(f *rollout.Fact) { f.Labels = nil }).tick()
	require.Equal(t, "a Started, b Skipped Pinned, c Skipped UpToDate, d Waiting Stage", s.states(), "a relabeled cluster stays a member")
}

func TestTickNewerPlans(t *testing.T) {
	s := begin(t, "  onNewer: Supersede\n"+canaryThenProd)
	s.in.Newer = sha('9')
	s.after(time.Minute).report(rollout.AttemptBegun, "a").tick()
	require.Equal(t, "a Changing, b Skipped Superseded, c Skipped Superseded, d Skipped Superseded", s.states())
	s.good("a")
	require.Equal(t, rollout.Superseded, s.run.State)

	s = begin(t, canaryThenProd)
	s.in.Newer = sha('9')
	s.after(time.Minute).report(rollout.AttemptStopped, "a").tick()
	require.Equal(t, rollout.Superseded, s.run.State, "a halted run yields")
	require.Equal(t, rollout.Failed, s.member("a").State)

	s = begin(t, canaryThenProd)
	s.in.Deleted = true
	s.after(time.Minute).report(rollout.AttemptWithdrawn, "a").tick()
	require.Equal(t, rollout.Aborted, s.run.State, "the file of the rollout was deleted")
	after, actions, next := rollout.Tick(s.plan, s.run, s.in, s.now)
	require.Equal(t, s.run, after)
	require.Empty(t, actions)
	require.Zero(t, next)
}

func TestConflicts(t *testing.T) {
	r := read(t, all)
	p, other := compute(t, r, fact("a"), fact("b")), compute(t, r, fact("b"), fact("c"))
	require.Empty(t, p.Conflicts([]*rollout.Plan{other}), "an older run of the same rollout is no conflict")
	other.Rollout = "nodes"
	require.Equal(t, []rollout.Conflict{{Cluster: "b", Rollout: "nodes"}}, p.Conflicts([]*rollout.Plan{other}))
}

// docs/fleet.md has every state and reason, in the order of precedence.
func TestReasonsAreThoseOfThePage(t *testing.T) {
	body, err := os.ReadFile("../../docs/fleet.md")
	require.NoError(t, err)
	documented := map[string][]rollout.Reason{}
	state := ""
	for line := range strings.Lines(string(body)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		word := strings.Trim(strings.TrimSpace(cells[1]), "`")
		if len(cells) == 5 { // state, reason, meaning
			state = word
			word = strings.Trim(strings.TrimSpace(cells[2]), "`")
		} else {
			state = "left out"
		}
		if word != "" {
			documented[state] = append(documented[state], rollout.Reason(word))
		} else {
			documented[state] = nil
		}
	}
	require.Equal(t, rollout.LeftOutReasons(), documented["left out"])
	for _, state := range rollout.States() {
		require.Contains(t, documented, string(state))
		require.Equal(t, rollout.Reasons(state), documented[string(state)], state)
	}
}
