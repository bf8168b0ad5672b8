package permissions_test

// Lives with calls about upgrades and channels.

import (
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// upgradeLives run upgrades.
var upgradeLives = map[string]func(*life){
	"a release that comes late": func(l *life) {
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", ""))
		l.SettleAll()
		l.Audit()
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		time.Sleep(time.Hour)
		l.Audit()
		l.RequirePhase(status.Ready)
	},
	"a repeated upgrade, and an upgrade of an absent cluster": func(l *life) {
		l.CreateOldCluster(lives.Alarmed)
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
	},
	"an upgrade that is rolled back": func(l *life) {
		l.CreateOldCluster("")
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		l.StartUpgrade(events.Upgrade{Rollback: true})
		l.SettleAll()
		l.RequirePhase(status.Ready)
	},
	"an upgrade that is stopped in the middle, and two others": func(l *life) {
		l.CreateOldCluster(lives.Alarmed)
		l.uploadWithoutEvent("  tags: {team: b}\n" + lives.Alarmed)
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		time.Sleep(time.Minute)
		l.StepFunctions.Stop(arn, "Stopped", "by an operator")
		l.SettleAll()
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
	},
	"an upgrade that the spec requests, stopped, and found by the audit": func(l *life) {
		l.CreateOldCluster(lives.Alarmed)
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Alarmed), "name: r1", "name: r2", 1))
		l.WaitForStep(upgrade.StepControlPlane)
		l.StepFunctions.Stop(l.UpgradeRecord().Execution, "Stopped", "by an operator")
		l.SettleAll()
		for range 2 {
			time.Sleep(15 * time.Minute)
			l.Audit()
		}
	},
	"a channel that moves": func(l *life) {
		channels := func(stable string) string {
			return "apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec: {stable: " + stable + "}\n"
		}
		l.Upload("releases/channels.yaml", channels("r1"))
		l.CreateOldCluster("  upgrade: {channel: Stable, window: {start: \"22:00\", duration: 4h}}\n")
		l.Audit()
		l.Upload("releases/channels.yaml", channels("r2"))
		l.Audit()
		l.SweepForAnHour()
	},
	"an upgrade by hand that the spec names afterwards": func(l *life) {
		l.CreateOldCluster(lives.Alarmed)
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		l.ChangeRelease("r2")
		l.SettleAll()
	},
	"an upgrade while another execution converges": func(l *life) {
		l.CreateOldCluster(lives.Alarmed)
		l.uploadWithoutEvent("  kubernetesVersion: \"1.36\"\n  tags: {team: b}\n" + lives.Alarmed)
		puts := 0
		l.OnCall(func(call endpoint.Call) error {
			if harness.CalledBy(call) == "upgrade" && call.Action == "PutObject" && strings.Contains(call.Resource, names.Upgrade("demo")) {
				if puts++; puts == 3 { // it begins: the second write records that EKS refreshes its insights
					l.Converge("demo")
					time.Sleep(time.Second)
				}
			}
			return nil
		})
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
	},
}
