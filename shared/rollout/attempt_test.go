package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestProgressOfAnAttempt(t *testing.T) {
	from := upgrade.Target{Release: "r1", SHA256: "sha1", KubernetesVersion: "1.35"}
	to := upgrade.Target{Release: "r2", SHA256: "sha2", KubernetesVersion: "1.36"}
	type world struct {
		a        CellAssignment
		record   *upgrade.Record
		spec     *api.Cluster
		deployed upgrade.Target
	}
	record := func(state upgrade.State) func(*world) {
		return func(w *world) {
			w.a.Begun = true
			w.record = &upgrade.Record{
				Key: w.a.Key(), Origin: upgrade.OriginRollout, State: state, From: from, Target: to, Overridden: "r1",
				Answered: map[upgrade.Origin]string{upgrade.OriginRollout: w.a.Key()},
			}
		}
	}
	names := func(release string) func(*world) { return func(w *world) { w.spec.Spec.Release.Name = release } }
	for name, test := range map[string]struct {
		want  AttemptState
		given []func(*world)
	}{
		"is open at first":                     {AttemptOpen, nil},
		"is open while the spec names it, too": {AttemptOpen, []func(*world){names("r2")}},
		"is open without a valid spec":         {AttemptOpen, []func(*world){func(w *world) { w.spec = nil }}},
		"is withdrawn":                         {AttemptWithdrawn, []func(*world){func(w *world) { w.a.Withdrawn = true }}},
		"has begun before it has a record":     {AttemptBegun, []func(*world){func(w *world) { w.a.Begun = true }}},
		"has begun though it was withdrawn":    {AttemptBegun, []func(*world){func(w *world) { w.a.Begun, w.a.Withdrawn = true, true }}},
		"has begun while it is checked":        {AttemptBegun, []func(*world){record(upgrade.Checking)}},
		"has begun while it runs":              {AttemptBegun, []func(*world){record(upgrade.Running)}},
		"is done":                              {AttemptDone, []func(*world){record(upgrade.Done)}},
		"is blocked":                           {AttemptBlocked, []func(*world){record(upgrade.Blocked)}},
		"is blocked before it has a record":    {AttemptBlocked, []func(*world){func(w *world) { w.a.Check = "UpgradePossible" }}},
		"is stopped":                           {AttemptStopped, []func(*world){record(upgrade.Stopped)}},
		"is stopped by a pause of the cluster": {AttemptStopped, []func(*world){record(upgrade.Stopped), func(w *world) {
			w.spec.Spec.Paused = true
		}}},
		"is overtaken when the spec stops it": {AttemptOvertaken, []func(*world){record(upgrade.Stopped), names("r3")}},
		"is overtaken before it begins":       {AttemptOvertaken, []func(*world){names("r3")}},
		"is overtaken when the cluster opts out": {AttemptOvertaken, []func(*world){func(w *world) {
			w.spec.Spec.Fleet.Release = api.FleetPinned
		}}},
		"is overtaken by another upgrade to the release": {AttemptOvertaken, []func(*world){func(w *world) { w.deployed = to }}},
		"is done when the cluster is back already": {AttemptDone, []func(*world){func(w *world) {
			w.a.Rollback, w.a.To = true, ReleaseRef{"r1", "sha1"}
		}}},
		"stays done while a later one is checked": {AttemptDone, []func(*world){record(upgrade.Done), func(w *world) {
			w.record = &upgrade.Record{State: upgrade.Checking, Key: "spec v9", Last: w.record}
		}}},
		"is overtaken once a later one runs": {AttemptOvertaken, []func(*world){record(upgrade.Done), func(w *world) {
			w.record = &upgrade.Record{State: upgrade.Running, Key: "spec v9", Answered: w.record.Answered}
		}}},
		"ignores the record of another attempt": {AttemptOpen, []func(*world){record(upgrade.Blocked), func(w *world) {
			w.a.Attempt, w.a.Begun = 2, false
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{a: CellAssignment{Assignment: Assignment{
				Cluster: "demo", Rollout: "next", Run: 1, Attempt: 1, Plan: "0123456789abcdef", To: ReleaseRef{"r2", "sha2"},
			}}, spec: &api.Cluster{}, deployed: from}
			w.spec.Spec.Release.Name = "r1"
			for _, given := range test.given {
				given(&w)
			}
			got := w.a.Progress(w.record, w.spec, w.deployed)
			require.Equal(t, test.want, got)
			require.Equal(t, got != AttemptOpen && got != AttemptBegun, got.Ended())
		})
	}
}
