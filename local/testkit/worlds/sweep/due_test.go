package sweep_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// A channel that 60 clusters follow moves. The sweep starts them in turns.
func TestAllAreDueAtOnce(t *testing.T) {
	a := harness.Start(t)
	at := time.Now().Add(-time.Minute).UTC().Truncate(time.Second)
	var want []string
	for i := range 60 {
		want = append(want, fmt.Sprintf("c%02d", i))
	}
	for _, i := range rand.Perm(len(want)) {
		require.NoError(t, a.State().AddDue(t.Context(), want[i], at))
	}
	require.NoError(t, a.State().AddDue(t.Context(), "z", at.Add(-time.Minute)))
	require.NoError(t, a.State().AddDue(t.Context(), "a", at.Add(time.Hour)))
	want = append([]string{"z"}, want...)
	began := func() (clusters []string) {
		for _, x := range machine(a, "converge") {
			clusters = append(clusters, x.Input)
		}
		return clusters
	}
	for _, turn := range []int{10, 20, 30, 40, 50, 60, 61, 61} {
		require.NoError(t, a.SweepNow())
		a.Settle()
		all := began()
		require.Len(t, all, turn)
		for i, input := range all {
			require.JSONEq(t, fmt.Sprintf(`{"cluster":%q}`, want[i]), input)
		}
	}
}

// Several plans of a cluster schedule one run for the same time. The sweep starts one converge for it, and none for a run that a later
// plan schedules at that time again.
func TestSimultaneousDueWorkIsDoneOnce(t *testing.T) {
	a := harness.Start(t)
	at := time.Now().Add(-time.Minute).UTC().Truncate(time.Second)
	add := func(cluster string) { assert.NoError(t, a.State().AddDue(t.Context(), cluster, at)) }
	list := func() int {
		dues, err := a.State().Dues(t.Context(), time.Now())
		require.NoError(t, err)
		return len(dues)
	}
	var planning sync.WaitGroup
	for i := range 6 {
		planning.Go(func() { add([]string{"one", "other"}[i%2]) })
	}
	planning.Wait()
	require.Equal(t, 2, list())
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Len(t, machine(a, "converge"), 2)
	require.Zero(t, list())
	add("one") // by a plan that began before that time
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Len(t, machine(a, "converge"), 2)
	require.Zero(t, list())
	require.NoError(t, a.State().AddDue(t.Context(), "one", at.Add(time.Second)))
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Len(t, machine(a, "converge"), 3, "another time is another run")
}

// Runs of one cluster at several times, as after two moves of a channel, start one converge. So do they when the first sweep fails before
// it has deleted all of them.
func TestRepeatedDueWorkIsDoneOnce(t *testing.T) {
	a := harness.Start(t)
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	for i := range 3 {
		require.NoError(t, a.State().AddDue(t.Context(), "one", at.Add(time.Duration(i)*time.Minute)))
	}
	deleted := 0
	a.OnCall(func(call endpoint.Call) error {
		if call.Action != "DeleteObject" {
			return nil
		}
		if deleted++; deleted > 1 {
			return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
		}
		return nil
	})
	require.Error(t, a.SweepNow())
	a.OnCall(nil)
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Len(t, machine(a, "converge"), 1)
	dues, err := a.State().Dues(t.Context(), time.Now())
	require.NoError(t, err)
	require.Empty(t, dues)
}

// The audit starts no converge for an upgrade that waits for its turn in the sweep.
func TestAuditLeavesDueWorkToTheSweep(t *testing.T) {
	a := following(t, "")
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
		s.Upgrade = &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", Origin: "Spec", At: &at}
	}))
	require.NoError(t, a.State().AddDue(t.Context(), "demo", at))
	before := len(machine(a, "converge"))
	audit(t, a)
	require.Len(t, machine(a, "converge"), before)
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Len(t, machine(a, "converge"), before+1)
	_, err := a.State().Get(t.Context(), names.Due(at, "demo"), 1<<10)
	require.Error(t, err, "it is done")
}
