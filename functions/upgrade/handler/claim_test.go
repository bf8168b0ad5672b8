package handler

// How a check claims an upgrade, and what its checks decide.

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

func (l *fixture) PutOnce(_ context.Context, key string, _ []byte) error {
	return l.did("keep %s", key)
}

func (e fixtureEKS) Compat(context.Context, []string) (upgrade.Compat, error) {
	both := func(version string) []upgrade.AddonVersion {
		return []upgrade.AddonVersion{{Version: version, Kubernetes: []string{"1.35", "1.36"}}}
	}
	return upgrade.Compat{"vpc-cni": both("v1.21.1-eksbuild.1"), "coredns": both("v1.13.2-eksbuild.1")}, e.failing["compat"]
}

func (e fixtureEKS) RefreshInsights(context.Context, string) error { return e.did("refresh") }

func (e fixtureEKS) Refreshing(context.Context, string) (bool, error) {
	return false, e.failing["refreshing"]
}

func (f factsOf) Before(context.Context, *preflight.Plan) (*preflight.Facts, error) {
	return f.facts, f.err
}

// checkWhenIdle runs the check of an upgrade of a cluster that is idle.
func (l *fixture) checkWhenIdle(t *testing.T, blocks bool) (events.UpgradeResult, error) {
	t.Helper()
	l.holder = ""
	h := l.handler()
	facts := &preflight.Facts{ControlPlane: preflight.ControlPlane{Version: "1.35", Status: "ACTIVE"}, Forbidden: true}
	if !blocks {
		compat, _ := fixtureEKS{fixture: l}.Compat(t.Context(), nil)
		facts.Compat, facts.Catalog = compat, []preflight.Version{{Version: "1.36", Status: "STANDARD_SUPPORT"}}
		facts.Images = map[string]preflight.Image{
			"ami-0123456789abcdef0": {ID: "ami-0123456789abcdef0", Architecture: "x86_64", State: "available"},
		}
	}
	h.Facts = factsOf{facts: facts, err: l.failing["facts"]}
	in := events.UpgradeRequest{Action: events.UpgradeCheck, Execution: "mine", Started: noon}
	in.Cluster, in.Release = "demo", "r2"
	return h.Handle(t.Context(), in)
}

func TestCheckClaimsAnUpgrade(t *testing.T) {
	const baseline, claim, blocked = "keep baselines/demo/1.json", "write Checking 0 0", "write Blocked 0 0"
	before := []string{"refresh", "keep release", claim, "status"}
	for name, test := range map[string]struct {
		failing string
		blocks  bool
		outcome events.UpgradeOutcome
		want    []string
	}{
		"begins it": {"", false, events.UpgradeGo, append(before[:4:4], baseline, "status")},
		"ends one that its checks block": {
			"", true, events.UpgradeBlocked, append(before[:4:4], baseline, "sound", blocked, "status"),
		},
		"not when EKS cannot check it":             {"refresh", false, "", before[:1]},
		"not when its release cannot be kept":      {"keep", false, "", before[:2]},
		"not when that cannot be recorded":         {"write", false, "", before[:3]},
		"not when EKS does not answer":             {"refreshing", false, "", before[:3]},
		"not when the status cannot be written":    {"status", false, "", before},
		"not when its facts are unknown":           {"facts", false, "", before},
		"not when its steps are unknown":           {"compat", false, "", nil},
		"ends none before its alarms are on":       {"sound", true, "", append(before[:4:4], baseline, "sound")},
		"not while the control plane is not known": {"eks", false, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := waiting()
			l.record = nil
			if test.failing != "" {
				l.failing[test.failing] = errThrottled
			}
			result, err := l.checkWhenIdle(t, test.blocks)
			require.Equal(t, test.failing != "", err != nil)
			require.Equal(t, test.outcome, result.Outcome, result.Message)
			for i, call := range l.done {
				if strings.HasPrefix(call, "keep releases/") {
					l.done[i] = "keep release"
				}
			}
			require.Equal(t, test.want, l.done)
		})
	}
}

func TestClaimedRecord(t *testing.T) {
	claim := func(t *testing.T, given func(*fixture)) *upgrade.Record {
		t.Helper()
		l := waiting()
		given(l)
		_, err := l.checkWhenIdle(t, false)
		require.NoError(t, err)
		return l.written
	}
	mine := func(l *fixture) {
		r := leading().record
		r.State, r.Step, r.Number, r.Started, r.Insights = upgrade.Checking, 0, 7, noon.Add(-time.Hour), noon.Add(-time.Minute)
		r.Steps[0].Started, r.Steps[0].Ended, r.Overridden, r.Origin = time.Time{}, time.Time{}, "r2", upgrade.OriginCommand
		l.record, l.running = r, true
	}
	t.Run("keeps its number, start and insights when it is checked again", func(t *testing.T) {
		r := claim(t, mine)
		require.EqualValues(t, 7, r.Number)
		require.Equal(t, []time.Time{noon.Add(-time.Hour), noon.Add(-time.Minute)}, []time.Time{r.Started, r.Insights})
	})
	t.Run("is the next one after another", func(t *testing.T) {
		r := claim(t, func(l *fixture) { mine(l); l.record.Execution, l.running = "theirs", false })
		require.EqualValues(t, 8, r.Number)
		require.Equal(t, []time.Time{noon, noon}, []time.Time{r.Started, r.Insights})
	})
	t.Run("keeps the alarms that are off, also those of an earlier cluster", func(t *testing.T) {
		for _, stack := range []string{"stack-1", "stack-0"} {
			r := claim(t, func(l *fixture) {
				l.record.Stack, l.record.Alarms, l.record.Number = stack, []string{"errors"}, 4
			})
			require.Equal(t, []string{"errors"}, r.Alarms)
			require.Equal(t, "stack-1", r.Stack)
			require.Equal(t, stack == "stack-1", r.Number == 5, "the record of an earlier cluster does not count")
		}
	})
	t.Run("has the images of before when it begins, and keeps them when it continues", func(t *testing.T) {
		images := map[string]string{"a": "ami-before"}
		deployed := func(l *fixture) { l.stack.Outputs["ImageId"] = "ami-now" }
		r := claim(t, deployed)
		require.Equal(t, map[string]string{"a": "ami-now"}, r.Images)
		r = claim(t, func(l *fixture) {
			deployed(l)
			mine(l)
			l.record.State, l.record.Images, l.record.Execution = upgrade.Stopped, images, "theirs"
			l.record.Steps[0].Started = noon.Add(-time.Hour)
		})
		require.Equal(t, images, r.Images)
	})
}

func TestLostBaselineIsReported(t *testing.T) {
	l := leading()
	h := l.handler()
	h.Facts = factsOf{facts: &preflight.Facts{ControlPlane: l.eks}}
	checks, err := h.callOf(l.record).runFinalChecks(t.Context())
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(checks, func(c status.Check) bool { return c.Name == preflight.WorkloadsReady && !c.Blocks }))
	l.failing["state"] = errThrottled
	_, err = h.callOf(l.record).runFinalChecks(t.Context())
	require.ErrorIs(t, err, errThrottled)
}

func TestStepThatWasNotStarted(t *testing.T) {
	l := leading()
	for started, want := range map[time.Time]string{{}: "", noon: "which was started"} {
		l.record.Steps[1].Started = started
		under, err := l.handler().callOf(l.record).interruptedStep(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, under)
	}
}
