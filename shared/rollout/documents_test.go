package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/rollout"
)

func TestSections(t *testing.T) {
	plan := modelPlan(func(*rollout.Plan) {}, 1, 1)
	plan.Stages[1].Members[0].Cell = "other"
	run := rollout.Begin(plan, 7, nil, epoch)
	s := rollout.SectionOf(plan, &run, onlyCell, epoch)
	require.Equal(t, rollout.Section{
		Run: 7, Sequence: 1, Claims: []string{"a"}, Releases: []rollout.ReleaseRef{{Name: "1.37-1", SHA256: sha('b')}},
	}, s)

	run.Members[0].State, run.Members[0].Attempt, run.Sequence = rollout.Settling, 1, 2
	s = rollout.SectionOf(plan, &run, onlyCell, epoch)
	require.Equal(t, "rollout next 7.1 "+plan.Digest()[:16], s.Assignments[0].Key())
	require.Equal(t, []rollout.Watch{{Cell: onlyCell, Until: epoch.Add(15 * time.Minute)}}, s.Watches)
	require.Empty(t, rollout.SectionOf(plan, &run, "other", epoch).Assignments)

	run.State = rollout.Done
	s = rollout.SectionOf(plan, &run, onlyCell, epoch)
	require.Len(t, s.Assignments, 1, "of an ended run, too")
	require.Empty(t, s.Claims)
	require.Empty(t, s.Watches)

	for name, test := range map[string]struct {
		a, b  rollout.Section
		newer bool
	}{
		"a later run":                  {rollout.Section{Run: 2, Sequence: 1}, rollout.Section{Run: 1, Sequence: 9}, true},
		"a later record":               {rollout.Section{Run: 1, Sequence: 2}, rollout.Section{Run: 1, Sequence: 1}, true},
		"the same record":              {rollout.Section{Run: 1, Sequence: 1}, rollout.Section{Run: 1, Sequence: 1}, false},
		"an earlier run":               {rollout.Section{Run: 1, Sequence: 9}, rollout.Section{Run: 2, Sequence: 1}, false},
		"an earlier record of the run": {rollout.Section{Run: 1, Sequence: 1}, rollout.Section{Run: 1, Sequence: 2}, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.newer, test.a.Newer(&test.b)) })
	}
}

func TestAnswersOfARecord(t *testing.T) {
	plan := modelPlan(func(*rollout.Plan) {}, 1)
	record := rollout.Record{Rollout: "next", Answers: map[string]rollout.Answer{"early": {Version: "1"}}}
	require.Nil(t, record.Running())
	run := rollout.Begin(plan, 1, map[string]rollout.Answer{"late": {Version: "2"}}, epoch)
	record.Run = &run
	require.Same(t, &run, record.Running())
	require.Len(t, record.AllAnswers(), 2)
	run.State = rollout.Aborted
	require.Nil(t, record.Running())
}
