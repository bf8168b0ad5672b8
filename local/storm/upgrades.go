package storm

// Upgrades: by the spec, a channel, at a time and by hand; stopped on their way, and taken back.

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/local/ec2"
	"github.com/drover-run/drover/local/harness"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// releases of each minor: one, and one with newer images.
func (w *world) releases() {
	for minor := firstMinor; minor <= lastMinor; minor++ {
		version := fmt.Sprintf("1.%d", minor)
		w.Upload(names.ReleaseSpec(release(minor, 0)), harness.ReleaseOf(version, release(minor, 0)))
		newer := harness.ReleaseOf(version, release(minor, 1))
		for _, architecture := range []string{"amd64", "arm64"} {
			newer = strings.ReplaceAll(newer, ec2.ImageID(version, architecture), ec2.RebuiltImageID(version, architecture))
		}
		w.Upload(names.ReleaseSpec(release(minor, 1)), newer)
	}
	w.moveChannels()
}

// moveChannels on: stable and rapid to the next release, the images of each minor to the newer ones.
func (w *world) moveChannels() {
	at := min(w.channels, 2*(lastMinor-firstMinor)+1)
	w.channels++
	nodes := ""
	for minor := firstMinor; minor <= lastMinor; minor++ {
		nodes += fmt.Sprintf("    \"1.%d\": %s\n", minor, release(minor, min(at, 1)))
	}
	w.Upload(names.ReleaseSpec(api.ChannelsName), fmt.Sprintf(`apiVersion: drover.run/v1alpha1
kind: Channels
metadata: {name: channels}
spec:
  stable: %s
  rapid: %s
  nodes:
%s`, release(firstMinor+at/2, at%2), release(firstMinor+min(at+1, 2*(lastMinor-firstMinor)+1)/2, 1-at%2), nodes))
	for cluster, wish := range w.wishes {
		if wish != nil && wish.channel != "" {
			w.touched(cluster)[all] = true
		}
	}
}

// cancel stops the execution that upgrades a cluster, as somebody at the console does.
func (w *world) cancel(cluster string) {
	for _, x := range w.States.Executions() {
		if x.MachineName == names.Prefix+"upgrade" && x.Status == "RUNNING" && strings.Contains(x.Input, fmt.Sprintf("%q", cluster)) {
			w.tell("%s is stopped", x.Name)
			w.States.Stop(x.ARN, "Stopped", "by hand")
		}
	}
}

// upgrading says that an upgrade is under way, or soon will be; empty when none is.
func (w *world) upgrading(s *status.Status) string {
	u := s.Upgrade
	if u == nil {
		return ""
	}
	switch u.Phase {
	case status.UpgradeScheduled, status.UpgradeDelayed:
		if u.At == nil || time.Until(*u.At) > time.Hour {
			return ""
		}
	case string(upgrade.Checking), string(upgrade.Running):
	default:
		return ""
	}
	return fmt.Sprintf("the upgrade to %s is %s: %s", u.To, u.Phase, u.Message)
}

// stuck says that the upgrade that the spec asks for was stopped, and waits for a person.
func (w *world) stuck(s *status.Status) bool {
	c := s.Condition(status.Converged)
	return s.Phase == status.Stopped && c != nil && strings.HasPrefix(c.Reason, "Upgrade")
}
