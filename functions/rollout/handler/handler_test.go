package handler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/rollout/handler"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/upgrade"
)

// TestRun moves two clusters, one after the other, from the upload of the file to the end of the run.
func TestRun(t *testing.T) {
	f := newFixture(t, "a", "b")
	require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a", "b , before: [{approval: {}}]")))
	status := f.status("next")
	require.Equal(t, rollout.StatusPlanned, status.State)
	require.Equal(t, 2, status.Plan.Members)
	require.Empty(t, f.desiredState().Sections, "a plan assigns nothing")
	require.NotEmpty(t, f.objects.Body(names.PinnedRelease(f.sha("r2"))))

	f.decide("go", api.VerbStart, "")
	require.Equal(t, rollout.Answer{Version: f.answer("go").Version, Applied: true, Message: "run 1 has started"}, f.answer("go"))
	require.Equal(t, []string{"a Started", "b Waiting Stage"}, f.members("next"))
	section := f.desiredState().Sections["next"]
	require.Equal(t, "a", section.Assignments[0].Cluster)
	require.Equal(t, []string{"a", "b"}, section.Claims)
	require.Equal(t, []string{names.Function("fleet")}, f.started)
	active, _, err := f.state.ActiveRuns(t.Context())
	require.NoError(t, err)
	require.Equal(t, f.record("next").Plan, active.Of("next").Plan)

	f.pass(func() bool { return f.members("next")[1] == "b Waiting Approval" })
	require.Equal(t, "b", f.notices[len(f.notices)-1].Stage)
	require.Equal(t, "drover rollout approve next b", f.notices[len(f.notices)-1].Command)
	require.Contains(t, f.status("next").Message, "b waits for an approval")
	f.decide("fine", api.VerbApprove, "  stage: b\n")
	require.True(t, f.answer("fine").Applied)
	f.pass(f.hasEnded("next"))
	require.Equal(t, rollout.Done, f.record("next").Run.State)
	require.Equal(t, []string{"a Good", "b Good"}, f.members("next"))
	require.Equal(t, "r2", f.clusters["b"].release.Release)

	ended, err := f.state.EndedRun(t.Context(), "next", 1)
	require.NoError(t, err)
	require.Equal(t, f.record("next").Run, ended)
	active, _, err = f.state.ActiveRuns(t.Context())
	require.NoError(t, err)
	require.Empty(t, active.Runs)
	require.Empty(t, f.desiredState().Sections["next"].Claims)
	require.Equal(t, rollout.StatusCurrent, f.status("next").State)
	require.Equal(t, []rollout.Event{
		rollout.EventPlanned, rollout.EventStarted, rollout.EventStageBegan, rollout.EventStagePassed, rollout.EventNeedsApproval,
		rollout.EventStageBegan, rollout.EventStagePassed, rollout.EventEnded,
	}, f.events())
	require.Empty(t, f.objects.Unconditional())
}

func TestDecisions(t *testing.T) {
	start := func(t *testing.T) *fixture {
		f := newFixture(t, "a", "b")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a", "b")))
		return f
	}
	t.Run("apply once, however often they come", func(t *testing.T) {
		f := start(t)
		key, body := f.decision("go", api.VerbStart, "")
		require.NoError(t, f.upload(key, body))
		require.NoError(t, f.deliver(key))
		f.decide("stop", api.VerbAbort, "")
		f.pass(f.hasEnded("next"))
		require.NoError(t, f.upload(key, body), "another version")
		require.EqualValues(t, 1, f.record("next").Number)
		require.Nil(t, f.record("next").Running())
		require.Equal(t, "run 1 has started", f.answer("go").Message)
	})
	t.Run("of an older plan are refused", func(t *testing.T) {
		f := start(t)
		key, body := f.decision("go", api.VerbStart, "")
		f.clusters["c"] = &cluster{labels: map[string]string{"stage": "c"}, release: f.clusters["a"].release, outcome: rollout.AttemptDone}
		f.report()
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a", "b", "c")))
		require.NoError(t, f.upload(key, body))
		require.False(t, f.answer("go").Applied)
		require.Contains(t, f.answer("go").Message, "1 cluster joined c")
		require.Nil(t, f.record("next").Run)
		require.Equal(t, rollout.EventProblem, f.events()[len(f.events())-1])
	})
	t.Run("of a plan that is older than a day are refused", func(t *testing.T) {
		f := start(t)
		key, body := f.decision("go", api.VerbStart, "")
		f.clusters["b"].labels = map[string]string{"stage": "a"}
		f.clusters["c"] = &cluster{labels: map[string]string{"stage": "b"}, release: f.clusters["a"].release}
		f.report()
		require.NoError(t, f.handle(handler.Input{Rollout: events.Rollout{Rollout: "next"}}))
		f.now = f.now.Add(25 * time.Hour)
		require.NoError(t, f.upload(key, body))
		require.Contains(t, f.answer("go").Message, "older than a day")
	})
	t.Run("start the plan that they name, if only clusters changed since", func(t *testing.T) {
		f := start(t)
		key, body := f.decision("go", api.VerbStart, "")
		f.clusters["b"].labels = map[string]string{"stage": "a"}
		f.clusters["c"] = &cluster{labels: map[string]string{"stage": "b"}, release: f.clusters["a"].release}
		f.report()
		require.NoError(t, f.upload(key, body))
		require.True(t, f.answer("go").Applied)
		require.Equal(t, []string{"a Started", "b Waiting Stage"}, f.members("next"))
	})
	t.Run("of the run's older plan are refused", func(t *testing.T) {
		f := start(t)
		f.decide("go", api.VerbStart, "")
		key, body := f.decision("fine", api.VerbRetry, "  clusters: [a]\n")
		body = replace(body, f.record("next").Plan, names.SHA256([]byte("another plan")))
		require.NoError(t, f.upload(key, body))
		require.False(t, f.answer("fine").Applied)
		require.Contains(t, f.answer("fine").Message, "the run has the plan")
	})
	t.Run("that are invalid are problems, and apply once corrected", func(t *testing.T) {
		f := start(t)
		require.NoError(t, f.upload(names.Decision("next", "go"), "kind: Decision\n"))
		require.Equal(t, names.Decision("next", "go"), f.status("next").Problems[0].File)
		f.decide("go", api.VerbStart, "")
		require.True(t, f.answer("go").Applied)
		require.Empty(t, f.status("next").Problems)
	})
	t.Run("for another rollout are problems", func(t *testing.T) {
		f := start(t)
		_, body := f.decision("go", api.VerbStart, "")
		require.NoError(t, f.upload(names.Decision("next", "go"), replace(body, "rollout: next", "rollout: other")))
		require.Contains(t, f.status("next").Problems[0].Message, "upload it as decisions/other/go.yaml")
	})
	t.Run("without a run", func(t *testing.T) {
		f := start(t)
		f.decide("pause", api.VerbPause, "")
		require.Equal(t, rollout.StatusPaused, f.status("next").State)
		f.decide("go", api.VerbStart, "")
		require.Contains(t, f.answer("go").Message, "resume it first")
		f.decide("resume", api.VerbResume, "")
		f.decide("again", api.VerbResume, "")
		require.False(t, f.answer("again").Applied)
		f.decide("abort", api.VerbAbort, "")
		require.Equal(t, "no run is active", f.answer("abort").Message)
		f.decide("go-2", api.VerbStart, "")
		require.True(t, f.answer("go-2").Applied)
		require.Len(t, f.record("next").AllAnswers(), 6)
	})
	t.Run("resume only the plan that they name", func(t *testing.T) {
		f := start(t)
		f.decide("pause", api.VerbPause, "")
		_, body := f.decision("late", api.VerbResume, "")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "  start: Auto\n", "a")))
		require.NoError(t, f.upload(names.Decision("next", "late"), body))
		require.False(t, f.answer("late").Applied)
		require.Contains(t, f.answer("late").Message, "it names the plan")
		require.Nil(t, f.record("next").Running())
		f.decide("resume", api.VerbResume, "")
		require.True(t, f.answer("resume").Applied)
		require.NotNil(t, f.record("next").Running())
	})
	t.Run("of one second: the brake prevails", func(t *testing.T) {
		f := start(t)
		key, body := f.decision("b-go", api.VerbStart, "")
		f.specs.Upload(key, body)
		f.decide("a-pause", api.VerbPause, "")
		require.Equal(t, []string{"a Waiting Paused", "b Waiting Paused"}, f.members("next"))
		require.Empty(t, f.desiredState().Sections["next"].Assignments)
	})
	t.Run("to start nothing", func(t *testing.T) {
		f := start(t)
		for _, c := range f.clusters {
			c.release.Release, c.release.SHA256, c.release.KubernetesVersion = "r2", f.sha("r2"), "1.36"
		}
		f.report()
		f.decide("go", api.VerbStart, "")
		require.Equal(t, "the plan changes no cluster", f.answer("go").Message)
	})
}

func TestPlanning(t *testing.T) {
	t.Run("reports what is wrong with the file", func(t *testing.T) {
		f := newFixture(t, "a")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a", "absent")))
		status := f.status("next")
		require.Equal(t, rollout.StatusInvalid, status.State)
		require.Contains(t, status.Message, "it matches no cluster")
		require.Equal(t, []rollout.Event{rollout.EventProblem}, f.events())
		require.NoError(t, f.deliver(names.Rollout("next")))
		require.Len(t, f.notices, 1, "once")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a")))
		require.Equal(t, rollout.StatusPlanned, f.status("next").State)
	})
	t.Run("follows a release", func(t *testing.T) {
		f := newFixture(t, "a")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a")))
		before := f.record("next").Plan
		require.NoError(t, f.upload(names.ReleaseSpec("r2"), release("r2", "1.36")+"# edited\n"))
		require.NotEqual(t, before, f.record("next").Plan)
		require.Contains(t, f.record("next").Older, before)
		f.specs.Delete(names.ReleaseSpec("r2"))
		require.NoError(t, f.deliver(names.ReleaseSpec("r2")))
		require.Contains(t, f.status("next").Message, "there is no such release")
	})
	t.Run("waits for the first report", func(t *testing.T) {
		f := newFixture(t, "a")
		f.objects.Delete(names.CellReport(cell))
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a")))
		require.Contains(t, f.status("next").Message, "not known yet")
		f.report()
		require.NoError(t, f.handle(handler.Input{Rollout: events.Rollout{PlanAll: true}}))
		require.Equal(t, rollout.StatusPlanned, f.status("next").State)
	})
	t.Run("uses the stages of another rollout", func(t *testing.T) {
		f := newFixture(t, "a")
		f.specs.Upload(names.Rollout("other"), file("other", "", "a"))
		require.NoError(t, f.upload(names.Rollout("next"),
			"apiVersion: drover.run/v1alpha1\nkind: Rollout\nmetadata: {name: next}\nspec: {subject: {release: r2}, like: other}\n"))
		require.Equal(t, 1, f.status("next").Plan.Members)
	})
	t.Run("of a deleted file", func(t *testing.T) {
		f := newFixture(t, "a")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a")))
		f.specs.Delete(names.Rollout("next"))
		require.NoError(t, f.handle(handler.Input{Rollout: events.Rollout{PlanAll: true}}), "the event was lost")
		require.Equal(t, rollout.StatusDeleted, f.status("next").State)
	})
	t.Run("of a file that never existed", func(t *testing.T) {
		f := newFixture(t, "a")
		require.NoError(t, f.deliver(names.Rollout("next")))
		require.Nil(t, f.objects.Body(names.RolloutRecord("next")))
	})
	t.Run("lists what is no file of drover's", func(t *testing.T) {
		f := newFixture(t, "a")
		require.NoError(t, f.upload("rollouts/next.yml", "x"))
		require.NotNil(t, f.objects.Body(names.IgnoredUploads))
	})
}

func TestAutomaticStart(t *testing.T) {
	auto := "  start: Auto\n"
	begin := func(t *testing.T) *fixture {
		f := newFixture(t, "a", "b")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", auto, "a", "b")))
		require.Equal(t, []string{"a Started", "b Waiting Stage"}, f.members("next"))
		return f
	}
	planAll := func(f *fixture) { require.NoError(t, f.handle(handler.Input{Rollout: events.Rollout{PlanAll: true}})) }
	t.Run("does not repeat an aborted run", func(t *testing.T) {
		f := begin(t)
		f.decide("stop", api.VerbAbort, "")
		f.pass(f.hasEnded("next"))
		planAll(f)
		require.EqualValues(t, 1, f.record("next").Number)
		require.NoError(t, f.upload(names.Rollout("next"), file("next", auto, "a", "b , maxFailures: 1")))
		require.EqualValues(t, 2, f.record("next").Number, "the file is another")
	})
	t.Run("follows for clusters that joined", func(t *testing.T) {
		f := begin(t)
		f.pass(f.hasEnded("next"))
		planAll(f)
		require.EqualValues(t, 1, f.record("next").Number)
		f.clusters["c"] = &cluster{
			labels: map[string]string{"stage": "a"}, outcome: rollout.AttemptDone,
			release: upgrade.Target{Release: "r1", SHA256: f.sha("r1"), KubernetesVersion: "1.35"},
		}
		f.report()
		planAll(f)
		require.EqualValues(t, 2, f.record("next").Number)
		require.Equal(t, []string{"c Started"}, f.members("next"))
	})
	t.Run("is held by a pause", func(t *testing.T) {
		f := newFixture(t, "a")
		key, body := f.decision("hold", api.VerbPause, "")
		f.specs.Upload(key, replace(body, "  plan: \n", ""))
		require.NoError(t, f.upload(names.Rollout("next"), file("next", auto, "a")))
		require.Nil(t, f.record("next").Run)
	})
	t.Run("is refused while another run has a cluster", func(t *testing.T) {
		f := begin(t)
		require.NoError(t, f.upload(names.Rollout("other"), file("other", auto, "b")))
		require.Nil(t, f.record("other").Run)
		require.Contains(t, f.status("other").Message, "b is in the active run 1 of next")
		f.pass(f.hasEnded("next"))
	})
}

func TestEdits(t *testing.T) {
	begin := func(t *testing.T, spec string) *fixture {
		f := newFixture(t, "a", "b")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", spec, "a", "b")))
		f.decide("go", api.VerbStart, "")
		return f
	}
	t.Run("of the file wait for the run", func(t *testing.T) {
		f := begin(t, "")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a", "b , maxFailures: 1")))
		require.NotEqual(t, f.record("next").Plan, f.record("next").Run.Plan)
		require.NotNil(t, f.record("next").Running())
		f.pass(f.hasEnded("next"))
		require.Equal(t, rollout.Done, f.record("next").Run.State)
	})
	t.Run("of the file supersede the run if it says so", func(t *testing.T) {
		f := begin(t, "  onNewer: Supersede\n")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a", "b , maxFailures: 1")))
		f.pass(f.hasEnded("next"))
		require.Equal(t, rollout.Superseded, f.record("next").Run.State)
	})
	t.Run("of labels change no run", func(t *testing.T) {
		f := begin(t, "")
		f.clusters["b"].labels = map[string]string{"stage": "a"}
		f.report()
		f.tick()
		require.NotNil(t, f.record("next").Running())
		require.Equal(t, f.record("next").Plan, f.record("next").Run.Plan)
		f.pass(f.hasEnded("next"))
		require.Equal(t, []string{"a Good", "b Good"}, f.members("next"))
	})
	t.Run("a deleted file aborts the run", func(t *testing.T) {
		f := begin(t, "")
		f.specs.Delete(names.Rollout("next"))
		require.NoError(t, f.deliver(names.Rollout("next")))
		f.pass(f.hasEnded("next"))
		require.Equal(t, rollout.Aborted, f.record("next").Run.State)
		require.Equal(t, rollout.StatusDeleted, f.status("next").State)
	})
	t.Run("an invalid file changes no run", func(t *testing.T) {
		f := begin(t, "")
		require.NoError(t, f.upload(names.Rollout("next"), "kind: Rollout\n"))
		require.NotEmpty(t, f.status("next").Problems)
		f.pass(f.hasEnded("next"))
		require.Equal(t, rollout.Done, f.record("next").Run.State)
	})
	t.Run("of drover's own documents are refused", func(t *testing.T) {
		f := begin(t, "")
		record := f.record("next")
		record.Run.Members = record.Run.Members[:1]
		_, etag, err := f.state.RolloutRecord(t.Context(), "next")
		require.NoError(t, err)
		_, err = f.state.PutRolloutRecord(t.Context(), record, etag)
		require.NoError(t, err)
		require.ErrorContains(t, f.handle(handler.Input{}), "rollouts/runs/next.json was edited")
		f.objects.Upload(names.RolloutPlan(record.Plan), "{}")
		require.ErrorContains(t, f.handle(handler.Input{}), "the object was edited")
	})
}

func TestGates(t *testing.T) {
	t.Run("alarms are read while a stage has them", func(t *testing.T) {
		f := newFixture(t, "a")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a , alarms: [errors]")))
		f.decide("go", api.VerbStart, "")
		require.Equal(t, []string{"a Waiting Alarm"}, f.members("next"), "an absent alarm counts as one in ALARM")
		f.alarms["errors"] = alarm("ALARM", f.now)
		f.tick()
		require.Equal(t, []string{"a Waiting Alarm"}, f.members("next"))
		f.alarms["errors"] = alarm("OK", f.now)
		f.tick()
		require.Equal(t, []string{"a Started"}, f.members("next"))
	})
	t.Run("an alarm halts the run, and members return", func(t *testing.T) {
		f := newFixture(t, "a", "b")
		f.alarms["errors"] = alarm("OK", f.now)
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "  onFailure: Rollback\n", "a", "b , alarms: [errors]")))
		f.decide("go", api.VerbStart, "")
		f.pass(func() bool { return f.members("next")[1] == "b Good" })
		f.alarms["errors"] = alarm("ALARM", f.now)
		f.pass(func() bool { return f.members("next")[1] == "b RolledBack" })
		require.Equal(t, "r1", f.clusters["b"].release.Release)
		require.Equal(t, "r2", f.clusters["a"].release.Release, "of the passed stage")
		require.Equal(t, "Halted", f.status("next").State)
		require.Contains(t, f.events(), rollout.EventRollingBack)
		require.Contains(t, f.states, "Halted")
	})
	t.Run("freezes are published without a run, and hold starts", func(t *testing.T) {
		f := newFixture(t, "a")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a")))
		freeze := "apiVersion: drover.run/v1alpha1\nkind: Freeze\nmetadata: {name: sale}\n" +
			"spec: {clusters: {}, from: \"2026-11-27T00:00:00Z\", until: \"2026-11-28T00:00:00Z\"}\n"
		require.NoError(t, f.upload(names.Freeze("sale"), freeze))
		require.Len(t, f.desiredState().Freezes, 1)
		require.Equal(t, []string{names.Function("fleet")}, f.started)
		f.decide("go", api.VerbStart, "")
		require.Equal(t, []string{"a Waiting Freeze"}, f.members("next"))
		f.specs.Delete(names.Freeze("sale"))
		require.NoError(t, f.deliver(names.Freeze("sale")))
		require.Equal(t, []string{"a Started"}, f.members("next"))
		require.Empty(t, f.desiredState().Freezes)
	})
	t.Run("a freeze that cannot be read holds every cluster", func(t *testing.T) {
		f := newFixture(t, "a")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a")))
		require.NoError(t, f.upload(names.Freeze("sale"), "kind: Freeze\n"))
		f.decide("go", api.VerbStart, "")
		require.Equal(t, []string{"a Waiting Freeze"}, f.members("next"))
		require.Equal(t, names.Freeze("sale"), f.status("next").Problems[0].File)
	})
	t.Run("a release that the cell cannot use starts nothing", func(t *testing.T) {
		f := newFixture(t, "a")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a")))
		report, etag, err := f.state.CellReport(t.Context(), cell)
		require.NoError(t, err)
		report.Usable = nil
		require.NoError(t, f.state.PutCellReport(t.Context(), cell, report, etag))
		f.decide("go", api.VerbStart, "")
		require.Equal(t, []string{"a Waiting ReleaseUnusable"}, f.members("next"))
		require.Len(t, f.desiredState().Sections["next"].Releases, 1, "so that the cell checks it")
	})
	t.Run("a cell at its limit starts nothing", func(t *testing.T) {
		f := newFixture(t, "a")
		require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a")))
		report, etag, err := f.state.CellReport(t.Context(), cell)
		require.NoError(t, err)
		report.Limit, report.Open = 2, map[string]int64{"x": 1, "y": 2}
		require.NoError(t, f.state.PutCellReport(t.Context(), cell, report, etag))
		f.decide("go", api.VerbStart, "")
		require.Equal(t, []string{"a Waiting CellLimit"}, f.members("next"))
	})
}

// TestSequences requires that a slow call never replaces a section of a later record.
func TestSequences(t *testing.T) {
	f := newFixture(t, "a", "b")
	require.NoError(t, f.upload(names.Rollout("next"), file("next", "", "a", "b")))
	f.decide("go", api.VerbStart, "")
	first := f.desiredState().Sections["next"]
	f.decide("pause", api.VerbPause, "")
	later := f.desiredState().Sections["next"]
	require.True(t, later.Newer(&first))
	require.True(t, later.Assignments[0].Withdrawn)
	// The tick finds a section of a record that it does not have yet.
	desired, etag, err := f.state.DesiredState(t.Context(), cell)
	require.NoError(t, err)
	later.Sequence += 5
	desired.Sections["next"] = later
	require.NoError(t, f.state.PutDesiredState(t.Context(), cell, desired, etag))
	f.tick()
	require.Equal(t, later, f.desiredState().Sections["next"])
	require.True(t, slices.Contains(f.events(), rollout.EventPaused))
}
