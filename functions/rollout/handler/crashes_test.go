package handler_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/rollout/handler"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store/storetest"
)

// step is an event of a scenario. Its function changes the world once; the key is of its S3 event, empty for a tick.
type step func(f *fixture) (key string)

// scenario is a run with an approval, a pause and a failed member, from the upload to its end.
func scenario() []step {
	work := func(f *fixture) string {
		f.now = f.now.Add(5 * time.Minute)
		f.work()
		f.report()
		return ""
	}
	decide := func(name string, verb api.Verb, more string) step {
		return func(f *fixture) string {
			f.now = f.now.Add(time.Second)
			key, body := f.decision(name, verb, more)
			f.specs.Upload(key, body)
			return key
		}
	}
	all := []step{
		func(f *fixture) string {
			f.alarms["errors"] = alarm("OK", f.now)
			body := file("next", "", "a , alarms: [errors]", "b , before: [{approval: {}}]")
			f.specs.Upload(names.Rollout("next"), replace(body, "settle: 5m, soak: 10m", "settle: 0s, soak: 5m"))
			return names.Rollout("next")
		},
		decide("go", api.VerbStart, ""), work, decide("wait", api.VerbPause, ""), work, decide("on", api.VerbResume, ""),
	}
	all = append(all, work, work, work, work, func(f *fixture) string { f.clusters["b"].outcome = rollout.AttemptStopped; return "" })
	all = append(all, decide("fine", api.VerbApprove, "  stage: b\n"), work, work, work)
	all = append(all, func(f *fixture) string { f.clusters["b"].outcome = rollout.AttemptDone; return "" })
	all = append(all, decide("retry", api.VerbRetry, "  clusters: [b]\n"), work, work, work, work)
	return all
}

// outcome is what a scenario leaves, without numbers of writes.
func (f *fixture) outcome() string {
	f.t.Helper()
	record := f.record("next")
	record.Revision = 0
	if record.Run != nil {
		record.Run.Sequence = 0
		for name, answer := range record.Run.Answers {
			answer.Version = ""
			record.Run.Answers[name] = answer
		}
	}
	desired := f.desiredState()
	for name, section := range desired.Sections {
		section.Sequence = 0
		desired.Sections[name] = section
	}
	active, _, err := f.state.ActiveRuns(f.t.Context())
	require.NoError(f.t, err)
	status := f.status("next")
	status.Revision, status.Answers = 0, nil
	kinds := f.events()
	slices.Sort(kinds)
	answers, err := f.state.List(f.t.Context(), names.DecisionAnswers)
	require.NoError(f.t, err)
	var decided []string
	for _, entry := range answers {
		decided = append(decided, entry.Key)
	}
	ended, err := f.state.List(f.t.Context(), names.EndedRuns("next"))
	require.NoError(f.t, err)
	body, err := json.MarshalIndent([]any{record, desired, active, status, slices.Compact(kinds), decided, len(ended)}, "", " ")
	require.NoError(f.t, err)
	return string(body)
}

// TestKilledBetweenAnyTwoCalls kills the function before each of its calls, in each step of a scenario. Then the event comes again, or only
// that of the schedule does. Either must leave what an undisturbed step leaves.
func TestKilledBetweenAnyTwoCalls(t *testing.T) {
	f, kills := newFixture(t, "a", "b"), 0
	for i, step := range scenario() {
		key := step(f)
		before := f.clone()
		require.NoError(t, f.deliver(key))
		want := f.outcome()
		for _, again := range []string{key, "plan all"} {
			for kill := 1; ; kill++ {
				f := before.clone()
				f.kill = kill
				err := f.deliver(key)
				if f.kill = 0; !f.killed {
					require.NoError(t, err)
					break
				}
				kills++
				require.ErrorIs(t, err, errKilled)
				require.NoError(t, f.deliver(again))
				require.Equal(t, want, f.outcome(), "step %d, killed before call %d, then %q", i, kill, again)
			}
		}
	}
	require.Equal(t, rollout.Done, f.record("next").Run.State)
	t.Logf("killed %d times", kills)
	require.Greater(t, kills, 300)
}

// interleave lets a second call run completely before the nth call of the first. It reports whether the first made that many calls.
func interleave(t *testing.T, f *fixture, n int, first, second string) (ran bool) {
	t.Helper()
	count := 0
	hook := func(storetest.Call) error {
		if count++; count == n && !ran {
			ran = true
			var in handler.Input
			in.Detail.Object.Key = second
			_, err := f.handler.Handle(t.Context(), in)
			require.NoError(t, err)
		}
		return nil
	}
	f.specs.OnCall, f.objects.OnCall = hook, hook
	defer func() { f.specs.OnCall, f.objects.OnCall = f.onCall, f.onCall }()
	require.NoError(t, f.deliver(first))
	return ran
}

// TestSimultaneousStarts lets two calls start runs at the same time, in every order of their calls.
func TestSimultaneousStarts(t *testing.T) {
	t.Run("two decisions on one rollout", func(t *testing.T) {
		for n := 1; ; n++ {
			f := newFixture(t, "a", "b")
			require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a", "b")))
			one, body := f.decision("one", api.VerbStart, "")
			f.specs.Upload(one, body)
			other, body := f.decision("other", api.VerbStart, "")
			f.specs.Upload(other, body)
			if !interleave(t, f, n, one, other) {
				require.Greater(t, n, 15)
				return
			}
			require.EqualValues(t, 1, f.record("next").Number, n)
			require.Equal(t, []string{"a Started", "b Waiting Stage"}, f.members("next"))
			require.Len(t, f.desiredState().Sections["next"].Assignments, 1)
			require.True(t, f.answer("one").Applied)
			require.Equal(t, rollout.Answer{Version: f.answer("other").Version, Message: "the run has begun"}, f.answer("other"))
		}
	})
	t.Run("two rollouts with the same cluster", func(t *testing.T) {
		started := map[string]int{}
		for n := 1; ; n++ {
			f := newFixture(t, "a", "b")
			f.specs.Upload(names.Rollout("next"), file("next", "  start: Auto\n", "a", "b"))
			f.specs.Upload(names.Rollout("other"), file("other", "  start: Auto\n", "b"))
			if !interleave(t, f, n, names.Rollout("next"), names.Rollout("other")) {
				require.Greater(t, n, 15)
				break
			}
			active, _, err := f.state.ActiveRuns(t.Context())
			require.NoError(t, err)
			require.Len(t, active.Runs, 1, n)
			running := 0
			for _, name := range []string{"next", "other"} {
				if run := f.record(name).Running(); run != nil {
					running++
					started[name]++
					require.NotNil(t, active.Of(name))
				}
			}
			require.Equal(t, 1, running, n)
		}
		require.Len(t, started, 2, "each is first at times")
	})
	t.Run("a start and the tick of the same run", func(t *testing.T) {
		for n := 1; ; n++ {
			f := newFixture(t, "a", "b")
			require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a", "b")))
			f.decide("go", api.VerbStart, "")
			f.now = f.now.Add(5 * time.Minute)
			f.work()
			f.report()
			key, body := f.decision("wait", api.VerbPause, "")
			f.specs.Upload(key, body)
			if !interleave(t, f, n, key, "") {
				return
			}
			require.Equal(t, "wait", f.record("next").Run.PausedBy)
			section := f.desiredState().Sections["next"]
			require.Equal(t, f.record("next").Run.Sequence, section.Sequence, n)
			require.Equal(t, fmt.Sprint(true), fmt.Sprint(section.Assignments[0].Withdrawn))
		}
	})
}
