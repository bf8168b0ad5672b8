package plan_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// notUploaded is the specs bucket with a spec of demo that is not uploaded yet.
type notUploaded struct {
	planner.Specs
	spec string
}

func (n notUploaded) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	if key == names.ClusterSpec("demo") {
		return store.Object{Body: []byte(n.spec), Version: "not-uploaded"}, nil
	}
	return n.Specs.Get(ctx, key, limit)
}

// forecast of a spec that is not uploaded.
func forecast(t *testing.T, a *harness.Account, spec string) planner.Forecast {
	t.Helper()
	h := *a.Functions.Planner
	h.Specs, h.IgnorePaused = notUploaded{h.Specs, spec}, true
	mark := a.Calls.Mark()
	f, err := h.Forecast(t.Context(), "demo")
	require.NoError(t, err)
	events := func(call string) bool { return strings.HasPrefix(call, "stackevent ") } // of an upgrade in flight
	require.Empty(t, slices.DeleteFunc(mutatingCalls(a, mark), events), "a forecast only reads")
	return f
}

// Of an upgrade, a forecast says what the upload then does.
func TestForecast(t *testing.T) {
	a := began(t, "")
	now := time.Now()
	r1 := upgrade.Target{Release: "r1", KubernetesVersion: "1.35"}
	r2 := upgrade.Target{Release: "r2", KubernetesVersion: "1.36"}
	// plain is a target without the content that it is pinned to.
	plain := func(u upgrade.Target) upgrade.Target { u.SHA256 = ""; return u }

	t.Run("has no upgrade for the release that is deployed", func(t *testing.T) {
		f := forecast(t, a, of("r1", ""))
		require.Empty(t, f.Reason, f.Message)
		require.Empty(t, f.Plan.Changes)
		require.Nil(t, f.Upgrade)
		require.False(t, f.Creates)
	})
	t.Run("has the upgrade that waits for its window, and it does", func(t *testing.T) {
		f := forecast(t, a, of("r2", closedWindow(now)))
		require.Equal(t, r1, plain(f.Upgrade.From))
		require.Equal(t, r2, plain(f.Upgrade.To))
		require.False(t, f.Upgrade.Now)
		require.Equal(t, upgrade.WaitsForWindow, f.Upgrade.Message)
		require.True(t, f.Upgrade.At.After(now))
		a.Upload("clusters/demo.yaml", of("r2", closedWindow(now)))
		a.Settle()
		require.Equal(t, status.UpgradeScheduled, a.Status("demo").Upgrade.Phase)
		require.Equal(t, f.Upgrade.At, *a.Status("demo").Upgrade.At)
	})
	t.Run("names the exclusion that keeps the upgrade back", func(t *testing.T) {
		until := now.Add(time.Hour).UTC().Truncate(time.Second)
		more := "  upgrade: {exclusions: [{from: \"" + now.Add(-time.Hour).UTC().Format(time.RFC3339) + "\", until: \"" +
			until.Format(time.RFC3339) + "\", reason: a sale}]}\n"
		f := forecast(t, a, of("r2", more))
		require.Equal(t, until, f.Upgrade.At)
		require.Contains(t, f.Upgrade.Message, "a sale")
	})
	t.Run("shows a paused spec as if it were not", func(t *testing.T) {
		f := forecast(t, a, of("r2", "  paused: true\n  tags: {team: b}\n"))
		require.Empty(t, f.Reason, f.Message)
		require.True(t, f.Paused)
		require.True(t, f.Upgrade.Now)
		require.NotEmpty(t, f.Plan.Changes)
	})
	t.Run("says why a spec would be rejected", func(t *testing.T) {
		f := forecast(t, a, of("r9", ""))
		require.NotNil(t, f.Unused)
		require.Equal(t, status.ReasonReleaseUnusable, f.Unused.Reason)
		require.Nil(t, f.Upgrade)
	})
	t.Run("has the Kubernetes version that the spec names instead of the release's", func(t *testing.T) {
		f := forecast(t, a, of("r1", "  kubernetesVersion: \"1.36\"\n"))
		require.Equal(t, upgrade.Target{Release: "r1", KubernetesVersion: "1.36"}, plain(f.Upgrade.To))
		require.Equal(t, "1.36", f.Upgrade.Request.KubernetesVersion)
	})
	t.Run("has the upgrade that begins at once, and it does", func(t *testing.T) {
		f := forecast(t, a, of("r2", ""))
		require.True(t, f.Upgrade.Now)
		require.Equal(t, r2, plain(f.Upgrade.To))
		require.Equal(t, upgrade.OriginSpec, f.Upgrade.Origin)
		a.Upload("clusters/demo.yaml", of("r2", ""))
		a.Settle()
		require.Len(t, upgrades(a), 1)
		require.Equal(t, "r2 1.36 new nodes", clusterLine(a))
		require.Nil(t, forecast(t, a, of("r2", "")).Upgrade, "it was made")
	})
}

func TestForecastOfAnUpgradeInFlight(t *testing.T) {
	a := began(t, "")
	held := false
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" && !held && len(upgrades(a)) > 0 {
			held = true
			return harness.Held
		}
		return harness.Delivered
	})
	a.Upload("clusters/demo.yaml", of("r2", ""))
	a.Until("the control plane moves", func() bool { return len(a.Events.Held()) > 0 })
	f := forecast(t, a, of("r2", ""))
	require.Equal(t, "r2", f.InFlight.Target.Release)
	require.Empty(t, f.Stops)
	require.Nil(t, f.Upgrade)
	require.Contains(t, forecast(t, a, of("r2", "  paused: true\n")).Stops, "spec.paused is true")
	f = forecast(t, a, of("r3", ""))
	require.Contains(t, f.Stops, "the spec now names release r3")
	require.Equal(t, "r3", f.Upgrade.To.Release)
	require.True(t, f.Upgrade.Queued)
	for _, e := range a.Events.Held() {
		a.Events.Deliver(e)
	}
	a.Settle()
}

func TestForecastOfACreation(t *testing.T) {
	a := harness.Start(t)
	releases(a)
	f := forecast(t, a, of("r1", ""))
	require.True(t, f.Creates)
	require.Nil(t, f.Upgrade)
	require.Equal(t, "1.35", f.Spec.Spec.KubernetesVersion)
	require.NotEmpty(t, f.Plan.Changes)
}
