package harness

// Lives with calls about upgrades and channels.

import (
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// upgradeLives run upgrades.
var upgradeLives = map[string]func(*life){
	"a release that comes late": func(l *life) {
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		l.settle()
		l.audited()
		l.Upload(names.ReleaseSpec("r1"), Release())
		time.Sleep(time.Hour)
		l.audited()
		l.phase(status.Ready)
	},
	"an upgrade, once more, and of a cluster that is not there": func(l *life) {
		l.old(alarmed)
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
	},
	"an upgrade that is stopped in the middle, and two others": func(l *life) {
		l.old(alarmed)
		l.unheard("  tags: {team: b}\n" + alarmed)
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		time.Sleep(time.Minute)
		l.States.Stop(arn, "Stopped", "by a person")
		l.settle()
		l.upgrade(events.Upgrade{Release: "r2"})
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
	},
	"an upgrade that the spec asks for, stopped, and found by the audit": func(l *life) {
		l.old(alarmed)
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", alarmed), "name: r1", "name: r2", 1))
		l.step(upgrade.StepControlPlane)
		l.States.Stop(l.record().Execution, "Stopped", "by a person")
		l.settle()
		for range 2 {
			time.Sleep(15 * time.Minute)
			l.audited()
		}
	},
	"a channel that moves": func(l *life) {
		channels := func(stable string) string {
			return "apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec: {stable: " + stable + "}\n"
		}
		l.Upload("releases/channels.yaml", channels("r1"))
		l.old("  upgrade: {channel: Stable, window: {start: \"22:00\", duration: 4h}}\n")
		l.audited()
		l.Upload("releases/channels.yaml", channels("r2"))
		l.audited()
		l.sweep()
	},
	"an upgrade by hand that the spec names afterwards": func(l *life) {
		l.old(alarmed)
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		l.names("r2")
		l.settle()
	},
	"an upgrade while another execution converges": func(l *life) {
		l.old(alarmed)
		l.unheard("  kubernetesVersion: \"1.36\"\n  tags: {team: b}\n" + alarmed)
		puts := 0
		l.OnCall(func(call endpoint.Call) error {
			if CalledBy(call) == "upgrade" && call.Action == "PutObject" && strings.Contains(call.Resource, names.Upgrade("demo")) {
				if puts++; puts == 3 { // it begins: the second write records that EKS refreshes its insights
					l.Converge("demo")
					time.Sleep(time.Second)
				}
			}
			return nil
		})
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
	},
}
