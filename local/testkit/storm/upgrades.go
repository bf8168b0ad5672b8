package storm

// Upgrades: by the spec, a channel, at a time and by operators; aborted, and rolled back.

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

// releases uploads two releases of each minor version, the second with newer images. The version before them has one
// that no cluster can reach.
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
		text = strings.ReplaceAll(text, "v1.13.2-eksbuild.1", otherAddonVersions["coredns"]) // which supports it
	}
	if rev > 0 && minor == lastMinor {
		text += fmt.Sprintf("  upgradeFrom: \"1.%d\"\n", firstMinor) // the only one that can be reached over two minor versions
	}
	w.released[release(minor, rev)] = w.Upload(names.ReleaseSpec(release(minor, rev)), text)
}

// moveChannels moves stable and rapid to the next release, and the images of each minor version to the newer ones.
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
	for cluster, wish := range w.desired {
		if wish != nil && wish.channel != "" {
			w.affectedStacks(cluster)[all] = true
		}
	}
}

// stopUpgrade aborts the execution that upgrades a cluster, as an operator does.
func (w *world) stopUpgrade(cluster string) {
	for _, x := range w.StepFunctions.Executions() {
		if x.MachineName == names.Prefix+"upgrade" && x.Status == "RUNNING" && strings.Contains(x.Input, fmt.Sprintf("%q", cluster)) {
			w.record("%s is stopped", x.Name)
			w.StepFunctions.Stop(x.ARN, "Stopped", "by hand")
		}
	}
}

// upgrading describes an upgrade that is in flight or about to begin, or returns "".
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

// seeEndedUpgrade checks that a status which shows the end of an upgrade does not show the same upgrade in flight again: the cluster would
// stay Upgrading. An upgrade ends in its record first, and in the status later. Until then the status may show it in flight, although its
// record is final. One evaluation is a status, just written, that shows the end of an upgrade.
func (w *world) seeEndedUpgrade(cluster string, s *status.Status) {
	ended := map[string]bool{}
	for _, u := range s.Upgrades {
		if upgrade.State(u.Phase).Final() && u.Execution != "" {
			ended[u.Execution] = true
		}
	}
	if len(ended) == 0 {
		return
	}
	u := s.Upgrade
	again := u != nil && ended[u.Execution] && !upgrade.State(u.Phase).Final() && !status.IsPending(u.Phase)
	w.check(9, !again, "%s is %s, and the upgrade that it shows has ended: %+v", cluster, s.Phase, u)
}

// hasPendingUpgrade reports whether an upgrade of a cluster waits for its time, or is reported next to one that ended, until the next
// plan.
func (w *world) hasPendingUpgrade(cluster string) bool {
	s := w.Status(cluster)
	return s.NextUpgrade != nil || s.Upgrade != nil && status.IsPending(s.Upgrade.Phase)
}

// stuck reports whether the spec's upgrade was stopped and needs an operator.
func (w *world) stuck(s *status.Status) bool {
	c := s.Condition(status.Converged)
	return s.Phase == status.Stopped && c != nil && strings.HasPrefix(c.Reason, "Upgrade")
}

// opensNext checks that an upgrade that waits for its window reports when the window opens next.
func (w *world) opensNext(cluster string) {
	u, want := w.Status(cluster).Upgrade, w.desired[cluster]
	if u == nil || want == nil || u.Phase != status.UpgradeScheduled || u.At == nil || !strings.Contains(u.Message, "waits for the window") {
		return
	}
	begins := u.At.Sub(w.began)
	w.check(2, want.gate.open(w.began, begins), "%s will be upgraded at %s, when no spec allows it: %s", cluster, begins, u.Message)
	for at := time.Since(w.began).Truncate(time.Minute) + time.Minute; at < begins; at += time.Minute {
		if want.gate.open(w.began, at) {
			w.violate(2, "%s will be upgraded at %s, and the window opens at %s: %s", cluster, begins, at, u.Message)
			return
		}
	}
}
