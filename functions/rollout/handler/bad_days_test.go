package handler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/rollout/handler"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
)

// TestBadDays plays what goes wrong around a run.
func TestBadDays(t *testing.T) {
	begin := func(t *testing.T, spec string, stages ...string) *fixture {
		f := newFixture(t, "a", "b")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", spec, stages...)))
		f.decide("go", api.VerbStart, "")
		require.True(t, f.answer("go").Applied, f.answer("go").Message)
		return f
	}
	t.Run("a run is paused with five members that have begun", func(t *testing.T) {
		f := newFixture(t, "a", "b", "c", "d", "e", "f", "g")
		for _, c := range f.clusters {
			c.labels = map[string]string{"stage": "all"}
		}
		f.report()
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "all , maxConcurrency: 5, budget: Soft")))
		f.decide("go", api.VerbStart, "")
		for range 2 {
			f.now = f.now.Add(time.Minute)
			f.work()
		}
		f.report()
		f.tick()
		f.decide("pause", api.VerbPause, "")
		for range 10 {
			f.now = f.now.Add(5 * time.Minute)
			f.work()
			f.report()
			f.tick()
		}
		require.Equal(t, []string{"a Good", "b Good", "c Good", "d Good", "e Good", "f Waiting Paused", "g Waiting Paused"}, f.members("next"))
		status := f.status("next")
		require.Equal(t, "Paused", status.State)
		require.Equal(t, rollout.ReasonPaused, status.Run.Stages[0].Members[5].Reason)
	})
	t.Run("a canary fails after it passed", func(t *testing.T) {
		f := begin(t, "", "a", "b")
		f.pass(func() bool { return f.members("next")[1] == "b Started" })
		f.clusters["a"].unwell = true
		f.pass(func() bool { return f.record("next").Run.State == rollout.Halted })
		require.Equal(t, "a Failed Regressed", f.members("next")[0])
		require.Contains(t, f.events(), rollout.EventHalted)
		require.Contains(t, f.status("next").Message, "halted in a (Failures)")
	})
	t.Run("a cluster is deleted before its turn", func(t *testing.T) {
		f := begin(t, "", "a", "b")
		delete(f.clusters, "b")
		f.pass(f.hasEnded("next"))
		require.Equal(t, []string{"a Good", "b Skipped Deleted"}, f.members("next"))
		require.Equal(t, rollout.Done, f.record("next").Run.State)
	})
	t.Run("a cluster joins during the run", func(t *testing.T) {
		f := begin(t, "", "a", "b")
		f.clusters["c"] = &cluster{labels: map[string]string{"stage": "a"}, release: f.clusters["b"].release, outcome: rollout.AttemptDone}
		f.pass(f.hasEnded("next"))
		require.Equal(t, []string{"a Good", "b Good"}, f.members("next"))
		require.Equal(t, 1, f.status("next").Plan.Members, "the next plan has it")
	})
	t.Run("the cell stops reporting", func(t *testing.T) {
		f := begin(t, "", "a", "b")
		f.pass(func() bool { return f.members("next")[0] == "a Good" })
		f.now = f.now.Add(2 * time.Hour)
		f.tick()
		require.Equal(t, "b Waiting Stage", f.members("next")[1], "no soak passes on old facts")
		f.report()
		f.now = f.now.Add(2 * time.Hour)
		require.NoError(t, f.handle(handler.Input{Rollout: events.Rollout{Rollout: "next"}}))
		require.NotContains(t, f.members("next"), "b Started")
	})
	t.Run("a window never opens", func(t *testing.T) {
		f := begin(t, "", `a , window: {days: [Sun], start: "03:00", duration: 1h, timeZone: Europe/Berlin}`)
		for range 5 {
			f.now = f.now.Add(5 * time.Minute)
			f.report()
			f.tick()
		}
		require.Equal(t, []string{"a Waiting Window"}, f.members("next"))
		require.Equal(t, "2026-11-29T02:00:00Z", f.record("next").Run.Members[0].Until.UTC().Format(time.RFC3339))
	})
	t.Run("a release is edited, and deleted, after planning", func(t *testing.T) {
		f := begin(t, "", "a", "b")
		planned := f.desiredState().Sections["next"].Assignments[0].To.SHA256
		content := f.objects.Body(names.PinnedRelease(planned))
		f.specs.Delete(names.ReleaseSpec("r2"))
		require.NoError(t, f.deliver(names.ReleaseSpec("r2")))
		require.Contains(t, fmt.Sprint(f.status("next").Problems), "there is no such release")
		require.Equal(t, content, f.objects.Body(names.PinnedRelease(planned)))
		require.NotNil(t, f.record("next").Running())
	})
	t.Run("a member fails, and is retried with the content of the plan", func(t *testing.T) {
		f := begin(t, "", "a", "b")
		f.clusters["a"].outcome = rollout.AttemptStopped
		f.pass(func() bool { return f.record("next").Run.State == rollout.Halted })
		f.clusters["a"].outcome = rollout.AttemptDone
		f.decide("retry", api.VerbRetry, "  clusters: [a]\n")
		f.pass(f.hasEnded("next"))
		require.Equal(t, rollout.Done, f.record("next").Run.State)
		require.Equal(t, 2, f.record("next").Run.Members[0].Attempt)
	})
	t.Run("the plan was removed by hand, and is stored again", func(t *testing.T) {
		f := newFixture(t, "a")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a")))
		f.objects.Delete(names.RolloutPlan(f.record("next").Plan))
		f.decide("go", api.VerbStart, "")
		f.pass(f.hasEnded("next"))
		require.Equal(t, rollout.Done, f.record("next").Run.State)
	})
}
