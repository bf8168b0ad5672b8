package permissions_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
)

// fleetLives carry out what runs assign to this cell. The test assigns it.
var fleetLives = map[string]func(*life){
	"a run assigns a release": func(l *life) {
		cell := names.Cell(harness.ID, harness.Region)
		l.Functions.Return("rollout", struct{}{}, nil)
		l.Functions.Sweep.Cell = cell
		r2 := harness.ReleaseOf("1.36", "r2")
		to := rollout.ReleaseRef{Name: "r2", SHA256: names.SHA256([]byte(r2))}
		l.CreateOldCluster(lives.Alarmed)
		require.NoError(l.T, l.State().PutOnce(l.T.Context(), names.PinnedRelease(to.SHA256), []byte(r2)))
		active, etag, err := l.State().ActiveRuns(l.T.Context())
		require.NoError(l.T, err)
		active.Runs = []rollout.ActiveRun{{Rollout: "next", Number: 1}}
		require.NoError(l.T, l.State().PutActiveRuns(l.T.Context(), active, etag))
		assign := func(attempt int, withdrawn bool) {
			desired, etag, err := l.State().DesiredState(l.T.Context(), cell)
			require.NoError(l.T, err)
			desired.Sections = map[string]rollout.Section{"next": {
				Run: 1, Sequence: desired.Sections["next"].Sequence + 1, Claims: []string{"demo"}, Releases: []rollout.ReleaseRef{to},
				Watches: []rollout.Watch{{Cell: cell, Until: time.Now().Add(24 * time.Hour)}},
				Assignments: []rollout.Assignment{{
					Cluster: "demo", Cell: cell, Rollout: "next", Run: 1, Attempt: attempt, Plan: "0123456789abcdef", To: to,
					Withdrawn: withdrawn,
				}},
			}}
			require.NoError(l.T, l.State().PutDesiredState(l.T.Context(), cell, desired, etag))
			_, _ = l.Functions.Call("fleet", events.Fleet{}) // its failure is an outcome
		}
		state := func() rollout.AttemptState {
			report, _, err := l.State().CellReport(l.T.Context(), cell)
			if err != nil || report == nil || len(report.Facts) == 0 || report.Facts[0].Attempt == nil {
				return ""
			}
			return report.Facts[0].Attempt.State
		}
		// The cluster is busy.
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  tags: {team: b}\n"+lives.Alarmed))
		time.Sleep(10 * time.Second)
		assign(1, false)
		assign(1, true)
		l.SettleAll()
		assign(2, false)
		for range 4 * 60 * 3 {
			if time.Sleep(20 * time.Second); state() == rollout.AttemptDone {
				break
			}
			_, _ = l.Functions.Call("fleet", events.Fleet{Cluster: "demo"})
		}
		l.SettleAll()
		l.Sweep()
		l.Audit()
		require.Equal(l.T, rollout.AttemptDone, state())
	},
}
