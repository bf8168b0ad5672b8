package handler

// Where an upgrade leads, and what is answered before it is started.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/upgrade"
)

// stopped is the record of an upgrade from r1 to r2 that began and stopped.
func stopped(l *led) *upgrade.Record {
	l.record = leading().record
	l.record.State, l.record.Step, l.record.Execution = upgrade.Stopped, 0, "earlier"
	return l.record
}

// finished is a cluster at r2 after its upgrade from r1, whose control plane was updated that long ago.
func finished(l *led, ago time.Duration) *upgrade.Record {
	*l = *leading()
	l.record.State, l.record.Step, l.record.Steps[0].Ended = upgrade.Done, 2, noon.Add(-ago)
	return l.record
}

func TestRouteOfAnUpgrade(t *testing.T) {
	const day = 24 * time.Hour
	back := func(in *events.UpgradeRequest) { in.Rollback, in.Release = true, "" }
	unnamed := func(in *events.UpgradeRequest) { in.Release = "" }
	to := func(release string) func(*events.UpgradeRequest) {
		return func(in *events.UpgradeRequest) { in.Release = release }
	}
	paused := ledSpec + "  paused: true\n"
	for name, test := range map[string]struct {
		given  func(*led)
		change func(*events.UpgradeRequest)
		want   string
		err    string
	}{
		"leads to the release that is named": {func(*led) {}, to("r2"), "r2 1.36", ""},
		"leads to the release of the spec":   {func(*led) {}, unnamed, "r2 1.36", ""},
		"leads to the one that stopped": {
			func(l *led) { stopped(l); l.spec = fmt.Sprintf(ledSpec, "r1") }, unnamed, "r2 1.36", "",
		},
		"leads elsewhere when that is named": {func(l *led) { stopped(l) }, to("r1"), "r1 1.35", ""},
		"leads to no rollback that stopped": {
			func(l *led) { stopped(l).Origin = upgrade.OriginRollback; l.spec = fmt.Sprintf(ledSpec, "r1") }, unnamed, "r1 1.35", "",
		},
		"has the version of the spec for its release": {func(l *led) { l.spec += "  kubernetesVersion: \"1.35\"\n" }, to("r2"), "r2 1.35", ""},
		"has its own version for another release": {
			func(l *led) { l.spec = fmt.Sprintf(ledSpec, "r1") + "  kubernetesVersion: \"1.35\"\n" }, to("r2"), "r2 1.36", "",
		},
		"leads nowhere while the spec is paused": {
			func(l *led) { l.spec = fmt.Sprintf(paused, "r2") }, to("r2"), "", "spec.paused is true",
		},
		"leads nowhere without a spec":          {func(l *led) { l.spec = "" }, to("r2"), "", "there is no spec"},
		"leads nowhere without a control plane": {func(l *led) { l.stack.Outputs = nil }, to("r2"), "", "has no control plane yet"},
		"leads nowhere without the tag":         {func(l *led) { l.stack.Tags = nil }, to("r2"), "", names.TagRelease},
		"leads back":                            {func(l *led) { finished(l, day) }, back, "r1 1.35", ""},
		"leads back within seven days":          {func(l *led) { finished(l, 8*day) }, back, "", "within 7 days"},
		"leads back when that time is unknown":  {func(l *led) { finished(l, 0).Steps[0].Ended = time.Time{} }, back, "r1 1.35", ""},
		"leads back later when the version stays": {
			func(l *led) { finished(l, 8*day).From.KubernetesVersion = "1.36" }, back, "r1 1.36", "",
		},
		"leads back to what the record names": {
			func(l *led) {
				r := finished(l, day)
				r.Back, r.From = &upgrade.Target{Release: "r1", SHA256: "sha1", KubernetesVersion: "1.35"}, r.Target
			}, back, "r1 1.35", "",
		},
		"leads back from no first release": {func(l *led) { l.record = nil }, back, "", "there was no upgrade of this cluster"},
		"leads back from no earlier cluster": {
			func(l *led) { finished(l, day).Stack = "stack-0" }, back, "", "there was no upgrade of this cluster",
		},
		"leads back once": {
			func(l *led) { finished(l, day).Origin = upgrade.OriginRollback }, back, "", "rolled back already",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := waiting()
			test.given(l)
			var in events.UpgradeRequest
			in.Cluster = "demo"
			test.change(&in)
			j, err := l.handler().travel(t.Context(), in, l.record)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, j.to.Release+" "+j.to.KubernetesVersion)
		})
	}
	t.Run("ignores a pause when it is previewed so", func(t *testing.T) {
		l := waiting()
		l.spec = fmt.Sprintf(paused, "r2")
		h := l.handler()
		h.IgnorePaused = true
		_, err := h.spec(t.Context(), "demo")
		require.NoError(t, err)
	})
}

func TestAnswerBeforeAnUpgrade(t *testing.T) {
	running := func(l *led) *upgrade.Record {
		r := stopped(l)
		r.State, r.Execution, l.running = upgrade.Running, "theirs", true
		return r
	}
	for name, test := range map[string]struct {
		given   func(*led)
		release string
		outcome events.UpgradeOutcome
		message string
	}{
		"none when it begins": {func(*led) {}, "r2", "", ""},
		"that an execution makes it": {
			func(l *led) { running(l) }, "r2", events.UpgradeNothing, "theirs makes this upgrade already",
		},
		"none when it waits for another":            {func(l *led) { running(l) }, "r3", "", ""},
		"none when it waits for an earlier cluster": {func(l *led) { running(l).Stack = "stack-0" }, "r2", "", ""},
		"none when that execution is over":          {func(l *led) { running(l); l.running = false }, "r2", "", ""},
		"none when that upgrade is over":            {func(l *led) { running(l).State = upgrade.Stopped }, "r2", "", ""},
		"none while the control plane changes":      {func(l *led) { finished(l, 0); l.stack.Status = "UPDATE_IN_PROGRESS" }, "r2", "", ""},
		"that the cluster is there": {
			func(l *led) { finished(l, 0) }, "r2", events.UpgradeNothing, "the cluster is at release r2",
		},
		"that it is refused": {func(l *led) { l.spec = "" }, "r2", events.UpgradeRefused, "there is no spec"},
	} {
		t.Run(name, func(t *testing.T) {
			l := waiting()
			test.given(l)
			result, err := l.handler().Answer(t.Context(), events.Upgrade{Cluster: "demo", Release: test.release})
			require.NoError(t, err)
			require.Equal(t, test.outcome, result.Outcome, result.Message)
			require.True(t, strings.HasPrefix(result.Message, test.message), result.Message)
			require.Empty(t, l.done, "it only reads")
		})
	}
}

func TestEndedRecord(t *testing.T) {
	require.Nil(t, ended(nil))
	for state, want := range map[upgrade.State]upgrade.State{
		upgrade.Done: upgrade.Done, upgrade.Stopped: upgrade.Stopped, upgrade.Blocked: upgrade.Blocked,
		upgrade.Running: upgrade.Stopped, upgrade.Checking: upgrade.Blocked,
	} {
		r := &upgrade.Record{State: state, Execution: "earlier"}
		require.Equal(t, want, ended(r).State)
		require.Equal(t, state, r.State, "the record itself stays")
	}
}
