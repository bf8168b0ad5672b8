package storm

// Upgrades: by the spec, a channel, at a time and by hand; stopped on their way, and taken back.

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// releases of each minor: one, and one with newer images. Of the minor before them there is one that no cluster may go to.
func (w *world) releases() {
	w.uploadRelease(firstMinor-1, 0)
	for minor := firstMinor; minor <= lastMinor; minor++ {
		w.uploadRelease(minor, 0)
		w.uploadRelease(minor, 1)
	}
	w.moveChannels()
}

func (w *world) uploadRelease(minor, rev int) {
	version := fmt.Sprintf("1.%d", minor)
	text := harness.ReleaseOf(version, release(minor, rev))
	for _, architecture := range []string{"amd64", "arm64"} {
		if rev > 0 {
			text = strings.ReplaceAll(text, ec2.ImageID(version, architecture), ec2.RebuiltImageID(version, architecture))
		}
	}
	if minor < firstMinor {
		text = strings.ReplaceAll(text, "v1.13.2-eksbuild.1", altered["coredns"]) // which fits it
	}
	if rev > 0 && minor == lastMinor {
		text += fmt.Sprintf("  upgradeFrom: \"1.%d\"\n", firstMinor) // the only one that may be reached by two minors
	}
	w.released[release(minor, rev)] = w.Upload(names.ReleaseSpec(release(minor, rev)), text)
}

// moveChannels on: stable and rapid to the next release, the images of each minor to the newer ones.
func (w *world) moveChannels() {
	at := min(w.channels, 2*(lastMinor-firstMinor)+1)
	w.channels++
	w.channelsAt = time.Now()
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
	for _, u := range []*status.Upgrade{s.Upgrade, s.NextUpgrade} {
		if u == nil {
			continue
		}
		switch u.Phase {
		case status.UpgradeScheduled, status.UpgradeDelayed:
			if u.At == nil || time.Until(*u.At) > time.Hour {
				continue
			}
		case string(upgrade.Checking), string(upgrade.Running):
		default:
			continue
		}
		return fmt.Sprintf("the upgrade to %s is %s: %s", u.To, u.Phase, u.Message)
	}
	return ""
}

// toCome says that an upgrade of a cluster waits for its time, or is told of beside one that is over, until the cluster is planned again.
func (w *world) toCome(cluster string) bool {
	s := w.Status(cluster)
	return s.NextUpgrade != nil || s.Upgrade != nil && status.ToCome(s.Upgrade.Phase)
}

// stuck says that the upgrade that the spec asks for was stopped, and waits for a person.
func (w *world) stuck(s *status.Status) bool {
	c := s.Condition(status.Converged)
	return s.Phase == status.Stopped && c != nil && strings.HasPrefix(c.Reason, "Upgrade")
}

// opensNext says of an upgrade that waits for its window that it begins when the window opens next, as people reckon.
func (w *world) opensNext(cluster string) {
	u, want := w.Status(cluster).Upgrade, w.wishes[cluster]
	if u == nil || want == nil || u.Phase != status.UpgradeScheduled || u.At == nil || !strings.Contains(u.Message, "waits for the window") {
		return
	}
	begins := u.At.Sub(w.began)
	w.check(2, want.gate.open(w.began, begins), "%s is to be upgraded at %s, when no spec lets it: %s", cluster, begins, u.Message)
	for at := time.Since(w.began).Truncate(time.Minute) + time.Minute; at < begins; at += time.Minute {
		if want.gate.open(w.began, at) {
			w.violate(2, "%s is to be upgraded at %s, and the window opens at %s: %s", cluster, begins, at, u.Message)
			return
		}
	}
}
