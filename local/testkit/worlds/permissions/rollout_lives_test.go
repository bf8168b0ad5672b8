package permissions_test

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/upgrade"
)

// rolloutLives plan rollouts and evaluate their runs. The clusters are facts only: no function carries out what runs assign.
var rolloutLives = map[string]func(*life){
	"a rollout is planned, started and ends, and files of it are wrong": func(l *life) {
		cell := names.Cell(harness.ID, harness.Region)
		l.Functions.Return("fleet", struct{}{}, nil)
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		fact := rollout.Fact{
			Cluster: "demo", Region: harness.Region, Account: harness.ID, Nodes: 1, Observed: time.Now().UTC(),
			Deployed: upgrade.Target{Release: "r0", SHA256: "0", KubernetesVersion: "1.36"},
		}
		to := names.SHA256([]byte(harness.Release()))
		report := func() {
			_, etag, err := l.State().CellReport(l.T.Context(), cell)
			require.NoError(l.T, err)
			require.NoError(l.T, l.State().PutCellReport(l.T.Context(), cell, &rollout.Report{
				At: time.Now().UTC(), Facts: []rollout.Fact{fact}, Usable: []string{to},
			}, etag))
		}
		tick := func() { _, _ = l.Functions.Call("rollout", events.Rollout{}) } // its failure is an outcome
		report()
		l.Upload(names.Freeze("past"), "apiVersion: drover.run/v1alpha1\nkind: Freeze\nmetadata: {name: past}\n"+
			"spec: {clusters: {}, from: \"2020-01-01T00:00:00Z\", until: \"2020-01-02T00:00:00Z\"}\n")
		l.Upload(names.Rollout("next"), "apiVersion: drover.run/v1alpha1\nkind: Rollout\nmetadata: {name: next}\n"+
			"spec:\n  subject: {release: r1}\n"+
			"  stages: [{name: all, selector: {}, settle: 0s, soak: 0s, alarms: [absent]}]\n")
		l.SettleAll() // also the audit of the new release, which would list the next key before rollout does
		l.Upload(names.Rollouts+"next.yml", "a key that drover does not read")
		l.SettleAll()
		record, _, err := l.State().RolloutRecord(l.T.Context(), "next")
		require.NoError(l.T, err)
		decide := func(name, verb, more string) {
			l.Upload(names.Decision("next", name), fmt.Sprintf("apiVersion: drover.run/v1alpha1\nkind: Decision\nmetadata: {name: %s}\n"+
				"spec: {rollout: next, plan: \"%s\", verb: %s%s}\n", name, record.Plan, verb, more))
			l.SettleAll()
		}
		decide("go", "Start", "")
		tick()
		decide("skip", "Skip", ", clusters: [demo]")
		record, _, err = l.State().RolloutRecord(l.T.Context(), "next")
		require.NoError(l.T, err)
		require.NotNil(l.T, record.Run)
		require.Equal(l.T, rollout.Done, record.Run.State)
		tick()
	},
}
