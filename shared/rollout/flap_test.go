package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
)

// TestFlappingFleet runs a stage of 9,999 clusters. At each look, a third of them is not well. The stage does not pass, no member fails,
// and the next stage waits. When all stay well, it passes after settle and soak.
func TestFlappingFleet(t *testing.T) {
	const size = 9_999
	stage := func(number, from, to int) rollout.Stage {
		s := rollout.Stage{
			Number: number, Name: fmt.Sprintf("s%d", number), FromStage: fmt.Sprintf("s%d", number), MaxConcurrency: size, MaxFailures: 0,
			Budget: api.BudgetSoft, Settle: rollout.Duration(settle), Soak: rollout.Duration(soak), Deadline: rollout.Duration(24 * time.Hour),
		}
		for i := from; i < to; i++ {
			s.Members = append(s.Members, rollout.Member{
				Cluster: fmt.Sprintf("c%05d", i), Cell: onlyCell, Stack: "arn", From: modelFrom, To: modelTo,
			})
		}
		return s
	}
	p := &rollout.Plan{
		Rollout: "next", Subject: subject(), OnNewer: api.NewerFinish, OnFailure: api.FailureStop,
		Stages: []rollout.Stage{stage(1, 0, size), stage(2, size, size+1)},
	}
	now := epoch
	run := rollout.Begin(p, 1, nil, now)
	// look ticks five minutes later. isWell reports whether a cluster is well then.
	look := func(isWell func(i int) bool) {
		now = now.Add(5 * time.Minute)
		in := rollout.Inputs{Facts: map[string]rollout.Fact{}, FactsAt: map[string]time.Time{onlyCell: now}}
		for i := range run.Members {
			m := &run.Members[i]
			f := rollout.Fact{Cluster: m.Cluster, Stack: "arn", Observed: now, Deployed: modelFrom, Nodes: 10}
			if m.Attempt > 0 {
				f.Deployed = modelTo
				f.Attempt = &rollout.Attempt{Rollout: "next", Run: 1, Number: m.Attempt, State: rollout.AttemptDone}
			}
			if !isWell(i) {
				f.NotReady = 5
			}
			in.Facts[m.Cluster] = f
		}
		run, _, _ = rollout.Tick(p, run, in, now)
	}
	well := func(int) bool { return true }
	for run.Members[0].State != rollout.Good {
		look(well)
	}
	for round := range 12 {
		look(func(i int) bool { return i == size || (i+round)%3 > 0 })
		require.Zero(t, run.Stages[0].Passed)
		require.Nil(t, run.Halt)
		require.Equal(t, rollout.ReasonStage, run.Members[size].Reason)
	}
	flapped := now
	for run.Stages[0].Passed.IsZero() {
		look(well)
		require.Less(t, now.Sub(flapped), settle+soak+15*time.Minute)
	}
	require.GreaterOrEqual(t, run.Stages[0].Passed.Sub(flapped), settle+soak-5*time.Minute)
	look(well)
	require.Equal(t, 1, run.Members[size].Attempt)
}
