package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
)

// stagesWith returns a copy of a plan with changed stages, under the same digest as far as the record knows.
func stagesWith(change func(*rollout.Stage)) func(*rollout.Plan) *rollout.Plan {
	return func(p *rollout.Plan) *rollout.Plan {
		out := *p
		out.Stages = slices.Clone(p.Stages)
		for i := range out.Stages {
			change(&out.Stages[i])
		}
		return &out
	}
}

// eachFact changes the facts that a tick reads.
func eachFact(change func(rollout.Run, *rollout.Fact)) func(rollout.Run, *rollout.Inputs) {
	return func(r rollout.Run, in *rollout.Inputs) {
		for name, f := range in.Facts {
			if f.Attempt != nil {
				attempt := *f.Attempt
				f.Attempt = &attempt
			}
			change(r, &f)
			in.Facts[name] = f
		}
	}
}

// eachMember changes the members of the record that a tick returns.
func eachMember(change func(before, after *rollout.MemberRun)) func(rollout.Run, *rollout.Run) {
	return func(before rollout.Run, after *rollout.Run) {
		for i := range after.Members {
			change(&before.Members[i], &after.Members[i])
		}
		after.Sequence = before.Sequence + 1
	}
}

// defects are deliberate mistakes, each with the invariants that must notice it.
var defects = map[string]struct {
	defect
	notice string
}{
	"a failure too many": {
		defect{plan: stagesWith(func(s *rollout.Stage) { s.MaxFailures++ })}, "F1 F2 F4 F22",
	},
	"a member too many at once": {
		defect{plan: stagesWith(func(s *rollout.Stage) { s.MaxConcurrency, s.Budget = 9, api.BudgetSoft })}, "F1",
	},
	"settle is skipped":                  {defect{plan: stagesWith(func(s *rollout.Stage) { s.Settle = 0 })}, "F5"},
	"soak is skipped":                    {defect{plan: stagesWith(func(s *rollout.Stage) { s.Soak = 0 })}, "F5"},
	"approvals are skipped":              {defect{plan: stagesWith(func(s *rollout.Stage) { s.Before, s.After = nil, nil })}, "F4 F20"},
	"facts of other attempts count":      {defect{in: eachFact(anyAttempt)}, "F5 F6 F10"},
	"facts from before the start count":  {defect{in: eachFact(anyTime)}, "F5 F6 F10"},
	"health does not count":              {defect{in: eachFact(func(_ rollout.Run, f *rollout.Fact) { f.NotReady = 0 })}, "F5 F6"},
	"a withdrawal needs no confirmation": {defect{out: eachMember(forgetWithdrawal)}, "F10 F20"},
	"a failed member is forgotten":       {defect{out: eachMember(forgetFailure)}, "F10 F20 F1"},
	"decisions come late": {
		defect{in: func(_ rollout.Run, in *rollout.Inputs) { in.Decisions = in.Decisions[:len(in.Decisions)/2] }}, "F8 F9",
	},
	"decisions apply to any plan": {defect{in: anyPlan}, "F8"},
	"decisions apply twice": {
		defect{out: func(_ rollout.Run, after *rollout.Run) { clear(after.Answers) }}, "F8",
	},
	"freezes do not hold": {defect{in: func(_ rollout.Run, in *rollout.Inputs) { in.Freezes = nil }}, "F9"},
	"windows of clusters do not hold": {
		defect{in: eachFact(func(_ rollout.Run, f *rollout.Fact) { f.Opening, f.Paused = nil, false })}, "F9",
	},
	"cells have no limit":                {defect{in: func(_ rollout.Run, in *rollout.Inputs) { in.Cells = nil }}, "F17"},
	"a later stage begins early":         {defect{out: beginEarly}, "F4 F9 F20"},
	"reasons are stale":                  {defect{out: eachMember(keepReason)}, "F20"},
	"a member joins":                     {defect{out: func(_ rollout.Run, after *rollout.Run) { after.Members[0].Cluster = "z" }}, "F7"},
	"publishing comes before the record": {defect{early: true}, "F3"},
	"late publishers win":                {defect{blind: true}, "F3"},
	"a retry takes the newest release":   {defect{send: newestRelease}, "F18"},
	"a rollback reaches other clusters":  {defect{send: func(all []rollout.Assignment) { rollBackAll(all) }}, "F18 F21"},
}

func anyAttempt(r rollout.Run, f *rollout.Fact) {
	for i := range r.Members {
		if r.Members[i].Cluster == f.Cluster && f.Attempt != nil {
			f.Attempt.Number = r.Members[i].Attempt
		}
	}
}

func anyTime(r rollout.Run, f *rollout.Fact) {
	anyAttempt(r, f)
	f.Observed = f.Observed.Add(4 * time.Hour)
}

func forgetWithdrawal(_, after *rollout.MemberRun) {
	if after.State == rollout.Withdrawing {
		after.State, after.Reason = rollout.Waiting, rollout.ReasonSlots
	}
}

func forgetFailure(before, after *rollout.MemberRun) {
	if before.State == rollout.Failed && after.State == rollout.Failed {
		after.State, after.Reason = rollout.Waiting, rollout.ReasonStage
	}
}

func keepReason(before, after *rollout.MemberRun) {
	if before.State == rollout.Waiting && after.State == rollout.Waiting {
		after.Reason = before.Reason
	}
}

func anyPlan(r rollout.Run, in *rollout.Inputs) {
	for i := range in.Decisions {
		in.Decisions[i].Spec.Plan = r.Plan
	}
}

func beginEarly(before rollout.Run, after *rollout.Run) {
	last := len(after.Members) - 1
	if after.Members[last].State == rollout.Waiting && after.Members[last].Reason == rollout.ReasonStage && before.Sequence%5 == 0 {
		after.Members[last].State, after.Members[last].Reason, after.Members[last].Attempt = rollout.Started, "", after.Members[last].Attempt+1
		after.Sequence = before.Sequence + 1
	}
}

func newestRelease(all []rollout.Assignment) {
	for i := range all {
		if all[i].Attempt > 1 && !all[i].Rollback {
			all[i].To = rollout.ReleaseRef{Name: "1.37-2", SHA256: sha('d')}
		}
	}
}

func rollBackAll(all []rollout.Assignment) {
	if !slices.ContainsFunc(all, func(a rollout.Assignment) bool { return a.Rollback }) {
		return
	}
	for i := range all {
		all[i].Rollback, all[i].To = true, rollout.ReleaseRef{Name: modelFrom.Release, SHA256: modelFrom.SHA256}
	}
}

// TestModelCatchesDefects shows that the checks of the model can fail: each deliberate defect is noticed, by a check that is meant for it.
func TestModelCatchesDefects(t *testing.T) {
	require.GreaterOrEqual(t, len(defects), 15)
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(300) {
				for _, m := range models() {
					m.defect, m.checks = d.defect, map[string]int{}
					_, err := m.random(seed, 300)
					if err == nil {
						continue
					}
					invariant, _, _ := strings.Cut(err.Error(), ":")
					require.Contains(t, strings.Fields(d.notice), invariant, "seed %d: %v", seed, err)
					return
				}
			}
			t.Fatal("no check noticed it")
		})
	}
}
