package upgrade_test

// Changes that users make to the spec while an upgrade is in flight.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestChangesOfTheSpecDuringAnUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(l *life)
		says string
	}{
		"the spec names another release": {func(l *life) {
			l.Upload(names.ReleaseSpec("r3"), harness.ReleaseOf("1.36", "r3"))
			l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Alarmed), "name: r1", "name: r3", 1))
		}, "the spec now names release r3"},
		"the spec is paused": {func(l *life) {
			l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Alarmed+"  paused: true\n"))
		}, "spec.paused is true"},
		"the spec is deleted": {func(l *life) { l.Remove(names.ClusterSpec("demo"), "") }, "the spec was deleted"},
		"the spec is invalid": {func(l *life) { l.Upload(names.ClusterSpec("demo"), "no: spec\n") }, "the newest spec cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed)
				arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.WaitForStep(upgrade.StepControlPlane)
				time.Sleep(time.Minute)
				c.do(l)
				l.over(arn)
				require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: "+c.says)
				require.True(t, l.AlarmEnabled())
				require.Equal(t, upgrade.Stopped, l.UpgradeRecord().State)
				require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"], "the update in flight was finished")
				for _, n := range l.API("drover-demo").Nodes() {
					require.True(t, strings.HasPrefix(n.KubeletVersion, "v1.35."), "and nothing more was begun")
				}
				if name == "the spec names another release" {
					return
				}
				if name == "the spec is paused" { // which prevents the verification
					require.Contains(t, l.verdict(arn), "spec.paused is true. Next: control plane to 1.36, which is complete but not verified yet. To "+
						"continue: `drover upgrade demo`")
					for _, c := range l.Status("demo").Plan {
						require.NotEqual(t, names.ControlPlane, c.Stack, "that is made")
					}
				}
				l.ChangeSpec(lives.Alarmed) // the original spec
				l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.SettleAll()
				l.RequireUpgraded()
			})
		})
	}
	t.Run("other changes are made during it", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.WaitForStep(upgrade.StepControlPlane)
			l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Alarmed+"  tags: {team: b}\n"))
			l.SettleAll()
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			l.RequireUpgraded()
			require.Equal(t, "b", l.Stack("demo", names.Network).Tags["team"])
		})
	})
}
