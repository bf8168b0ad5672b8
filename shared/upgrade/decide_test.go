package upgrade

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// kubernetes are the releases that there are: r36-1 is of 1.36.
func kubernetes(release string) (string, error) {
	var minor, n int
	if _, err := fmt.Sscanf(release, "r%d-%d", &minor, &n); err != nil {
		return "", errors.New("there is no release " + release)
	}
	return fmt.Sprintf("1.%d", minor), nil
}

func target(release string) Target {
	version, _ := kubernetes(release)
	return Target{release, "sha-" + release, version}
}

// nightly is open from 22:00 to 02:00 in Berlin.
func nightly(s *api.Cluster) {
	s.Spec.Upgrade.Window = &api.Window{Start: "22:00", Duration: "4h", TimeZone: "Europe/Berlin"}
}

func stable(release string) func(*Situation) {
	return func(in *Situation) {
		in.Spec.Spec.Upgrade.Channel, in.Channels = api.ChannelStable, &api.ChannelsSpec{
			Stable: release, Nodes: map[string]string{"1.36": "r36-9"},
		}
	}
}

func atTime(t time.Time, release string) func(*Situation) {
	return func(in *Situation) {
		in.Spec.Spec.Upgrade.At = &api.UpgradeAt{Time: t.Format(time.RFC3339Nano), Release: release}
	}
}

func names(release string) func(*Situation) {
	return func(in *Situation) { in.Spec.Spec.Release.Name = release }
}

func opens(in *Situation) { nightly(in.Spec) }

func at22(in *Situation) { in.Now = time.Date(2026, 11, 22, 21, 30, 0, 0, time.UTC) } // 22:30 in Berlin

func excluded(in *Situation) {
	in.Spec.Spec.Upgrade.Exclusions = []api.Exclusion{{From: "2026-11-20T00:00:00Z", Until: "2026-11-30T00:00:00Z", Reason: "the sale"}}
}

// excludedFor excludes a time that is told by how much it is from noon.
func excludedFor(from, until time.Duration) func(*Situation) {
	return func(in *Situation) {
		in.Spec.Spec.Upgrade.Exclusions = []api.Exclusion{
			{From: noon.Add(from).Format(time.RFC3339), Until: noon.Add(until).Format(time.RFC3339), Reason: "the ball"},
		}
	}
}

func last(change func(*Record)) func(*Situation) {
	return func(in *Situation) {
		r := &Record{Number: 4, From: target("r36-1"), Target: target("r37-1"), State: Done, Steps: []Step{
			{Kind: StepControlPlane, KubernetesVersion: "1.37"}, {
				Kind: StepAddons, KubernetesVersion: "1.37",
			}, {Kind: StepNodes, KubernetesVersion: "1.37"},
		}}
		r.Step = len(r.Steps)
		change(r)
		if r.Answered == nil {
			r.Answered = map[Origin]string{r.Origin: r.Key}
		}
		in.Record = r
	}
}

func answeredBy(origin Origin, key string, state State) func(*Situation) {
	return last(func(r *Record) { r.Origin, r.Key, r.State, r.Ended = origin, key, state, noon.Add(-time.Hour) })
}

func deployed(release, version string) func(*Situation) {
	return func(in *Situation) { in.Deployed = target(release); in.Deployed.KubernetesVersion = version }
}

func TestDecide(t *testing.T) {
	window := time.Date(2026, 11, 22, 21, 0, 0, 0, time.UTC) // 22:00 in Berlin
	soon := noon.Add(30 * time.Minute)
	all := Keep{Images: true, Addons: true, Stated: true}
	tests := map[string]struct {
		given []func(*Situation)
		// counts is the release, the Kubernetes version and the step that count.
		counts string
		keep   Keep
		start  string
		wait   string
		at     time.Time
		// look is when to decide again, where that is not at.
		look time.Time
	}{
		"nothing is asked for": {counts: "r36-1 1.36 "},
		"a new cluster is created at what its spec says": {
			given: []func(*Situation){deployed("", ""), names("r37-1"), stable("r37-2"), opens}, counts: "r37-1  ",
		},
		"one that is being made stays at its release": {
			given: []func(*Situation){deployed("r36-1", ""), names("r37-1")}, counts: "r36-1  ",
		},
		"another release in the spec": {
			given: []func(*Situation){names("r37-1")}, counts: "r36-1 1.36 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"another release of the same version": {
			given: []func(*Situation){names("r36-2")}, counts: "r36-1 1.36 ", keep: all, start: "Spec spec v5 r36-2",
		},
		"another version in the spec": {
			given: []func(*Situation){func(in *Situation) { in.Spec.Spec.KubernetesVersion = "1.37" }}, counts: "r36-1 1.36 ", keep: all,
			start: "Spec spec v5 r36-1 1.37",
		},
		"an older one starts nothing": {
			given: []func(*Situation){names("r35-1")}, counts: "r36-1 1.36 ", keep: all,
		},
		"a spec waits for the window": {
			given: []func(*Situation){names("r37-1"), opens}, counts: "r36-1 1.36 ", keep: all, wait: "Spec r37-1 1.37: it waits for the window",
			at: window,
		},
		"until it is open": {
			given: []func(*Situation){names("r37-1"), opens, at22}, counts: "r36-1 1.36 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"for an exclusion, too": {
			given: []func(*Situation){names("r37-1"), excluded}, counts: "r36-1 1.36 ", keep: all,
			wait: "Spec r37-1 1.37: an exclusion of spec.upgrade keeps it back: the sale", at: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		},
		"but not for one that ends while the window is shut": {
			given: []func(*Situation){names("r37-1"), opens, excludedFor(-time.Minute, time.Hour)}, counts: "r36-1 1.36 ", keep: all,
			wait: "Spec r37-1 1.37: it waits for the window", at: window,
		},
		"what was answered is not started again": {
			given: []func(*Situation){names("r37-1"), answeredBy(OriginSpec, "spec v5", Blocked)}, counts: "r36-1 1.36 ", keep: all,
		},
		"the next upload is": {
			given: []func(*Situation){names("r37-1"), answeredBy(OriginSpec, "spec v4", Blocked)}, counts: "r36-1 1.36 ", keep: all,
			start: "Spec spec v5 r37-1",
		},
		"a channel that moved": {given: []func(*Situation){stable("r37-1")}, counts: "r36-1 1.36 ", start: "Channel channel Stable r37-1 r37-1"},
		"a channel waits for the window": {
			given: []func(*Situation){stable("r37-1"), opens}, counts: "r36-1 1.36 ", wait: "Channel r37-1 1.37: it waits for the window",
			at: window,
		},
		"a channel that is behind": {given: []func(*Situation){stable("r35-1")}, counts: "r36-1 1.36 "},
		"a channel at another release of the same version": {
			given: []func(*Situation){stable("r36-0")}, counts: "r36-1 1.36 ", start: "Channel channel Stable r36-0 r36-0",
		},
		"a channel at a release that there is not": {
			given: []func(*Situation){stable("lost")}, counts: "r36-1 1.36 ", wait: "Channel lost : unread there is no release lost", look: soon,
		},
		"and waits for the window, too": {
			given: []func(*Situation){stable("lost"), opens}, counts: "r36-1 1.36 ",
			wait: "Channel lost : unread it waits for the window of spec.upgrade; there is no release lost", at: window,
		},
		"a time, of a release that there is not": {
			given: []func(*Situation){atTime(noon.Add(time.Hour), "lost")}, counts: "r36-1 1.36 ",
			wait: "At lost : unread it waits for the time of spec.upgrade.at; there is no release lost", at: noon.Add(time.Hour),
		},
		"which is looked for every day": {
			given: []func(*Situation){atTime(noon.Add(72*time.Hour), "lost")}, counts: "r36-1 1.36 ",
			wait: "At lost : unread it waits for the time", at: noon.Add(72 * time.Hour), look: noon.Add(12 * time.Hour),
		},
		"and within the half hour when its time has come": {
			given: []func(*Situation){atTime(noon.Add(-time.Minute), "lost")}, counts: "r36-1 1.36 ",
			wait: "At lost : unread there is no release lost", at: noon.Add(-time.Minute), look: soon,
		},
		"until it is over": {
			given: []func(*Situation){atTime(noon.Add(-2*time.Hour), "lost")}, counts: "r36-1 1.36 ",
			wait: "At lost : missed it did not begin within 2h0m0s of its time: set another in spec.upgrade.at: there is no release lost",
			at:   noon.Add(-2 * time.Hour),
		},
		"and behind another that is under way": {
			given: []func(*Situation){atTime(noon.Add(-time.Minute), "lost"), last(func(r *Record) {
				r.Origin, r.Over, r.State, r.Step = OriginHand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, Stated: true}, wait: "At lost : unread there is no release lost",
			at: noon.Add(-time.Minute),
		},
		"the channel Nodes": {
			given:  []func(*Situation){stable("r37-1"), func(in *Situation) { in.Spec.Spec.Upgrade.Channel = api.ChannelNodes }},
			counts: "r36-1 1.36 ", start: "Channel channel Nodes r36-9 r36-9",
		},
		"what stopped is not started again by a channel": {
			given: []func(*Situation){stable("r37-1"), answeredBy(OriginChannel, "channel Stable r37-1", Stopped)}, counts: "r36-1 1.36 ",
		},
		"what was blocked is, a day later": {
			given:  []func(*Situation){stable("r37-1"), answeredBy(OriginChannel, "channel Stable r37-1", Blocked)},
			counts: "r36-1 1.36 ", wait: "Channel r37-1 1.37: checks found", at: noon.Add(23 * time.Hour),
		},
		"or in the next window": {
			given:  []func(*Situation){opens, stable("r37-1"), answeredBy(OriginChannel, "channel Stable r37-1", Blocked)},
			counts: "r36-1 1.36 ", wait: "Channel r37-1 1.37: checks found", at: window,
		},
		"when that has come": {
			given:  []func(*Situation){opens, stable("r37-1"), answeredBy(OriginChannel, "channel Stable r37-1", Blocked), at22},
			counts: "r36-1 1.36 ", start: "Channel channel Stable r37-1 r37-1",
		},
		"a rollback is not undone by the channel": {
			given: []func(*Situation){stable("r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.Over, r.From, r.Target = OriginRollback, "rollback", "r36-1", target("r37-1"), target("r36-1")
				r.Answered = map[Origin]string{OriginChannel: "channel Stable r37-1", OriginRollback: "rollback"}
			})}, counts: "r36-1 1.36 ",
		},
		"a time that is to come": {
			given: []func(*Situation){atTime(noon.Add(time.Hour), "r37-1"), opens}, counts: "r36-1 1.36 ",
			wait: "At r37-1 1.37: it waits for the time", at: noon.Add(time.Hour),
		},
		"a time that came, whatever the window": {
			given: []func(*Situation){atTime(noon.Add(-5*time.Minute), "r37-1"), opens}, counts: "r36-1 1.36 ",
			start: "At at 2026-11-22T11:55:00Z r37-1 r37-1",
		},
		"a time that came while the cluster was busy, until an exclusion began": {
			given:  []func(*Situation){atTime(noon.Add(-30*time.Minute), "r37-1"), excludedFor(-time.Minute, time.Hour)},
			counts: "r36-1 1.36 ", wait: "At r37-1 1.37: an exclusion of spec.upgrade keeps it back: the ball", at: noon.Add(time.Hour),
		},
		"and one that is over when the exclusion is": {
			given: []func(*Situation){atTime(noon.Add(-2*time.Hour), "r37-1"), excludedFor(-time.Hour, time.Minute)}, counts: "r36-1 1.36 ",
			wait: "At r37-1 1.37: missed it did not begin", at: noon.Add(-2 * time.Hour),
		},
		"a time that is over": {
			given: []func(*Situation){atTime(noon.Add(-2*time.Hour), "r37-1")}, counts: "r36-1 1.36 ",
			wait: "At r37-1 1.37: missed it did not begin", at: noon.Add(-2 * time.Hour),
		},
		"a time that came before an exclusion did, and whose cluster was busy": {
			given: []func(*Situation){atTime(noon.Add(-time.Hour), "r37-1"), func(in *Situation) {
				in.Spec.Spec.Upgrade.Exclusions = []api.Exclusion{{From: "2026-11-22T11:30:00Z", Until: "2026-11-22T12:30:00Z", Reason: "the sale"}}
			}}, counts: "r36-1 1.36 ", wait: "At r37-1 1.37: an exclusion of spec.upgrade keeps it back: the sale", at: noon.Add(30 * time.Minute),
		},
		"until it is missed": {
			given: []func(*Situation){atTime(noon.Add(-time.Hour), "r37-1"), excluded}, counts: "r36-1 1.36 ",
			wait: "At r37-1 1.37: an exclusion of spec.upgrade keeps it back: the sale", at: noon.Add(time.Hour),
		},
		"a time of a part of a second waits for the whole one": {
			given: []func(*Situation){atTime(noon.Add(time.Millisecond), "r37-1")}, counts: "r36-1 1.36 ",
			wait: "At r37-1 1.37: it waits for the time", at: noon.Add(time.Second),
		},
		"a time that was answered": {
			given: []func(*Situation){atTime(noon, "r37-1"), answeredBy(OriginAt, "at 2026-11-22T12:00:00Z r37-1", Blocked)}, counts: "r36-1 1.36 ",
		},
		"a time for an older release": {
			given: []func(*Situation){atTime(noon, "r35-1")}, counts: "r36-1 1.36 ", wait: "At r35-1 1.35: release r35-1 has Kubernetes 1.35",
		},
		"the spec comes before the time, and that before the channel": {
			given:  []func(*Situation){names("r37-1"), atTime(noon, "r37-2"), stable("r37-3")},
			counts: "r36-1 1.36 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"a time for the spec's own release holds it": {
			given:  []func(*Situation){names("r37-1"), atTime(noon.Add(time.Hour), "r37-1")},
			counts: "r36-1 1.36 ", keep: all, wait: "Spec r37-1 1.37: it waits for the time", at: noon.Add(time.Hour),
		},
		"until it comes, whatever the window": {
			given:  []func(*Situation){names("r37-1"), atTime(noon.Add(-5*time.Minute), "r37-1"), opens},
			counts: "r36-1 1.36 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"and not when it is over": {
			given:  []func(*Situation){names("r37-1"), atTime(noon.Add(-2*time.Hour), "r37-1")},
			counts: "r36-1 1.36 ", keep: all, wait: "Spec r37-1 1.37: missed it did not begin", at: noon.Add(-2 * time.Hour),
		},
		"a time holds another Kubernetes version, too": {
			given:  []func(*Situation){func(in *Situation) { in.Spec.Spec.KubernetesVersion = "1.37" }, atTime(noon.Add(time.Hour), "r36-1")},
			counts: "r36-1 1.36 ", keep: all, wait: "Spec r36-1 1.37: it waits for the time", at: noon.Add(time.Hour),
		},
		"the upload after one that began then does not wait again": {
			given: []func(*Situation){names("r37-1"), atTime(noon.Add(-3*time.Hour), "r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.State, r.Started = OriginSpec, "spec v4", Blocked, noon.Add(-3*time.Hour)
			})},
			counts: "r36-1 1.36 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"unless it names a later time": {
			given: []func(*Situation){names("r37-1"), atTime(noon.Add(time.Hour), "r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.State, r.Started = OriginSpec, "spec v4", Blocked, noon.Add(-3*time.Hour)
			})},
			counts: "r36-1 1.36 ", keep: all, wait: "Spec r37-1 1.37: it waits for the time", at: noon.Add(time.Hour),
		},
		"what was asked for by hand counts": {
			given: []func(*Situation){deployed("r37-1", "1.37"), last(func(r *Record) {
				r.Origin, r.Over = OriginHand, "r36-1"
			})}, counts: "r37-1 1.37 ",
		},
		"until the spec names another": {
			given:  []func(*Situation){deployed("r37-1", "1.37"), names("r37-2"), last(func(r *Record) { r.Origin, r.Over = OriginHand, "r36-1" })},
			counts: "r37-1 1.37 ", keep: all, start: "Spec spec v5 r37-2",
		},
		"while it is checked nothing changes": {
			given:  []func(*Situation){names("r37-1"), last(func(r *Record) { r.Origin, r.State, r.Step = OriginSpec, Checking, 0 })},
			counts: "r36-1 1.36 ", keep: all,
		},
		"which the spec names by now, and which may be blocked": {
			given: []func(*Situation){names("r37-1"), last(func(r *Record) {
				r.Origin, r.Over, r.State, r.Step = OriginHand, "r36-1", Checking, 0
			})},
			counts: "r36-1 1.36 ", keep: Keep{Images: true, Addons: true}, at: soon,
		},
		"the open step counts, and no more when the spec names where it leads": {
			given: []func(*Situation){names("r37-1"), last(func(r *Record) {
				r.Origin, r.Over, r.State, r.Step = OriginHand, "r36-1", Running, 0
			})},
			counts: "r36-1 1.37 ControlPlane to r37-1", keep: all,
		},
		"the open step counts": {
			given:  []func(*Situation){names("r37-1"), last(func(r *Record) { r.Origin, r.State, r.Step = OriginSpec, Running, 0 })},
			counts: "r36-1 1.37 ControlPlane to r37-1", keep: all,
		},
		"whatever the spec says by now, which is looked at later; and the last one at the end": {
			given:  []func(*Situation){names("r38-1"), deployed("r37-1", "1.37"), last(func(r *Record) { r.Origin, r.State = OriginSpec, Running })},
			counts: "r36-1 1.37 Nodes to r37-1", wait: "Spec r38-1 1.38: behind the upgrade to release r37-1 (Kubernetes 1.37) is under way",
		},
		"another channel's release is looked at when that is over": {
			given: []func(*Situation){stable("r37-2"), last(func(r *Record) {
				r.Origin, r.Over, r.State, r.Step = OriginHand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, Stated: true},
			wait: "Channel r37-2 1.37: behind the upgrade to release r37-1 (Kubernetes 1.37) is under way",
		},
		"which waits for the window, too": {
			given: []func(*Situation){opens, stable("r37-2"), last(func(r *Record) {
				r.Origin, r.Over, r.State, r.Step = OriginHand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, Stated: true}, wait: "Channel r37-2 1.37: it waits for the window",
			at: window,
		},
		"a time that comes while another is under way": {
			given: []func(*Situation){atTime(noon.Add(10*time.Minute), "r37-2"), last(func(r *Record) {
				r.Origin, r.Over, r.State, r.Step = OriginHand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, Stated: true}, wait: "At r37-2 1.37: it waits for the time",
			at: noon.Add(10 * time.Minute),
		},
		"and has come": {
			given: []func(*Situation){atTime(noon.Add(-10*time.Minute), "r37-2"), last(func(r *Record) {
				r.Origin, r.Over, r.State, r.Step = OriginHand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, Stated: true}, at: noon.Add(-10 * time.Minute),
			wait: "At r37-2 1.37: behind the upgrade to release r37-1 (Kubernetes 1.37) is under way",
		},
		"and is over": {
			given: []func(*Situation){atTime(noon.Add(-2*time.Hour), "r37-2"), last(func(r *Record) {
				r.Origin, r.Over, r.State, r.Step = OriginHand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, Stated: true}, at: noon.Add(-2 * time.Hour),
			wait: "At r37-2 1.37: missed it did not begin",
		},
		"one to the same release is the one that is under way": {
			given: []func(*Situation){atTime(noon, "r37-1"), stable("r37-1"), last(func(r *Record) {
				r.Origin, r.Over, r.State, r.Step = OriginHand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, Stated: true},
		},
		"what stopped stays where it is": {
			given: []func(*Situation){deployed("r36-1", "1.37"), names("r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.State, r.Step = OriginSpec, "spec v5", Stopped, 1
			})}, counts: "r36-1 1.37 ", keep: all,
		},
		"also among the nodes": {
			given: []func(*Situation){deployed("r37-1", "1.37"), names("r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.State, r.Step = OriginSpec, "spec v5", Stopped, 2
			})}, counts: "r37-1 1.37 ", keep: all,
		},
		"and goes on with the next upload": {
			given: []func(*Situation){deployed("r37-1", "1.37"), names("r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.State, r.Step = OriginSpec, "spec v4", Stopped, 2
			})}, counts: "r37-1 1.37 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"and so does one by hand that the spec names by now": {
			given: []func(*Situation){deployed("r37-1", "1.37"), names("r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.Over, r.State, r.Step = OriginHand, "hand", "r36-1", Stopped, 2
			})}, counts: "r37-1 1.37 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"a rollback that stopped is the release that it leads to from the control plane on": {
			given: []func(*Situation){last(func(r *Record) {
				r.Origin, r.Key, r.Over, r.State, r.Step, r.From, r.Target = OriginRollback, "rollback", "r36-1", Stopped, 2, target("r37-1"),
					target("r36-1")
				r.Steps = []Step{
					{Kind: StepNodesBack, KubernetesVersion: "1.37", NodesBack: true}, {
						Kind: StepControlPlane, KubernetesVersion: "1.36", NodesBack: true,
					},
					{Kind: StepAddons, KubernetesVersion: "1.36", NodesBack: true}, {Kind: StepNodes, KubernetesVersion: "1.36", NodesBack: true},
				}
			})}, counts: "r36-1 1.36 ", keep: Keep{Images: true, Addons: true},
		},
		"one that the spec did not ask for leaves to the spec what it states": {
			given: []func(*Situation){deployed("r36-1", "1.37"), last(func(r *Record) {
				r.Origin, r.Over, r.State, r.Step = OriginHand, "r36-1", Stopped, 1
			})},
			counts: "r36-1 1.37 ", keep: Keep{Images: true, Addons: true},
		},
		"one that was blocked leaves what counted before": {
			given: []func(*Situation){deployed("r37-1", "1.37"), last(func(r *Record) {
				before := *r
				before.Origin, before.Over = OriginHand, "r36-1"
				r.Origin, r.Over, r.State, r.Step, r.Last = OriginHand, "r36-1", Blocked, 0, &before
				r.From, r.Target = target("r37-1"), target("r37-2")
			})}, counts: "r37-1 1.37 ",
		},
		"what stopped stays where it is when the next is blocked": {
			given: []func(*Situation){deployed("r36-1", "1.37"), names("r37-1"), last(func(r *Record) {
				before := *r
				before.Origin, before.State, before.Step = OriginSpec, Stopped, 2
				r.Origin, r.Key, r.State, r.Step, r.Last = OriginRollback, "rollback", Blocked, 0, &before
				r.Answered = map[Origin]string{OriginSpec: "spec v5"}
			})}, counts: "r36-1 1.37 ", keep: all,
		},
		"or is checked": {
			given: []func(*Situation){deployed("r36-1", "1.37"), names("r37-1"), last(func(r *Record) {
				before := *r
				before.Origin, before.State, before.Step = OriginSpec, Stopped, 2
				r.Origin, r.Key, r.Over, r.State, r.Step, r.Last = OriginHand, "hand", "r37-1", Checking, 0, &before
			})}, counts: "r36-1 1.37 ", keep: all,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := Situation{Spec: spec("r36-1"), SpecVersion: "v5", Deployed: target("r36-1"), Now: noon, KubernetesVersion: kubernetes}
			for _, given := range test.given {
				given(&in)
			}
			d, err := Decide(in)
			require.NoError(t, err)
			counts := fmt.Sprintf("%s %s %s", d.Old.Release, d.Step.KubernetesVersion, d.Step.Kind)
			if d.Next != nil {
				counts += " to " + d.Next.Release
			}
			require.Equal(t, test.counts, counts)
			require.Equal(t, test.keep, d.Keep)
			start := ""
			if d.Start != nil {
				start = fmt.Sprintf("%s %s %s", d.Start.Origin, d.Start.Key, d.Start.Release)
				if d.Start.KubernetesVersion != "" {
					start += " " + d.Start.KubernetesVersion
				}
			}
			require.Equal(t, test.start, start)
			if test.wait == "" {
				require.Nil(t, d.Wait)
				require.Equal(t, test.at, d.RecheckAt)
				return
			}
			require.NotNil(t, d.Wait)
			how := ""
			switch {
			case d.Wait.Missed:
				how = "missed "
			case d.Wait.Queued:
				how = "behind "
			case d.Wait.Unread != "":
				how = "unread "
			}
			require.Contains(t, fmt.Sprintf("%s %s %s: %s%s", d.Wait.Origin, d.Wait.To.Release, d.Wait.To.KubernetesVersion, how, d.Wait.Message),
				test.wait)
			require.Equal(t, test.at, d.Wait.At)
			switch {
			case !test.look.IsZero():
				require.Equal(t, test.look, d.RecheckAt)
			case in.Record.underWay() && (!test.at.After(noon) || test.at.After(soon)):
				require.Equal(t, soon, d.RecheckAt, "for the one that is under way may be over")
			case !d.Wait.Missed:
				require.Equal(t, test.at, d.RecheckAt)
			default:
				require.Zero(t, d.RecheckAt)
			}
		})
	}
}

// While an upgrade is under way and another waits behind it, whoever decides within the same half hour looks again at the same time: the
// sweep then has one converge of a cluster to start, however often it was planned.
func TestWhoDecidesWithinHalfAnHourLooksAgainAtOneTime(t *testing.T) {
	in := Situation{Spec: spec("r36-1"), SpecVersion: "v5", Deployed: target("r36-1"), KubernetesVersion: kubernetes}
	names("r37-2")(&in)
	last(func(r *Record) { r.Origin, r.Key, r.State, r.Step, r.Over = OriginHand, "hand", Running, 1, "r36-1" })(&in)
	for _, test := range []struct{ after, until, looks time.Duration }{
		{0, 30 * time.Minute, 30 * time.Minute},
		{30 * time.Minute, time.Hour, time.Hour},
		{time.Hour, 90 * time.Minute, 90 * time.Minute},
	} {
		for after := test.after; after < test.until; after += 37 * time.Second {
			in.Now = noon.Add(after)
			d, err := Decide(in)
			require.NoError(t, err)
			require.True(t, d.Wait != nil && d.Wait.Queued, "%+v", d.Wait)
			require.Equal(t, noon.Add(test.looks), d.RecheckAt)
		}
	}
	in.Now = noon.Add(time.Minute)
	atTime(noon.Add(7*time.Minute), "r38-1")(&in)
	names("r36-1")(&in)
	d, err := Decide(in)
	require.NoError(t, err)
	require.Equal(t, noon.Add(7*time.Minute), d.RecheckAt, "what has a time of its own is looked at then")
}

func TestAReleaseThatTheSpecNamesMustBeThere(t *testing.T) {
	_, err := Decide(Situation{Spec: spec("lost"), Deployed: target("r36-1"), Now: noon, KubernetesVersion: kubernetes})
	require.ErrorContains(t, err, "there is no release lost")
}

// On the days that clocks change, the window opens at the hour that clocks show.
func TestWindowsOnTheDaysThatClocksChange(t *testing.T) {
	for day, want := range map[string]string{
		"2027-03-27": "2027-03-27T21:00:00Z", // winter
		"2027-03-28": "2027-03-28T20:00:00Z", // clocks were put forward that morning
		"2026-10-24": "2026-10-24T20:00:00Z", // summer
		"2026-10-25": "2026-10-25T21:00:00Z", // clocks were put back that morning
	} {
		now, err := time.Parse(time.DateOnly, day)
		require.NoError(t, err)
		in := Situation{Spec: spec("r36-1"), Deployed: target("r36-1"), Now: now.Add(12 * time.Hour), KubernetesVersion: kubernetes}
		opens(&in)
		stable("r37-1")(&in)
		d, err := Decide(in)
		require.NoError(t, err)
		require.Nil(t, d.Start)
		require.Equal(t, want, d.RecheckAt.Format(time.RFC3339))
		in.Now = d.RecheckAt.Add(-time.Second)
		d, _ = Decide(in)
		require.Nil(t, d.Start, "not a second earlier")
		for _, open := range []time.Duration{time.Second, 4*time.Hour - time.Second} {
			in.Now = in.Now.Add(open)
			d, _ = Decide(in)
			require.NotNil(t, d.Start, "open for four hours that pass")
		}
		in.Now = in.Now.Add(time.Second)
		d, _ = Decide(in)
		require.Nil(t, d.Start)
	}
}

// Until a spec names what the cluster came to by another way, the spec that it had then asks for nothing. Afterwards it does, as any other.
func TestASpecThatHasTheWordAgain(t *testing.T) {
	byHand := last(func(r *Record) { r.Origin, r.Key, r.Over, r.From = OriginHand, "hand x", "r37-0", target("r37-0") })
	blockedSince := func(in *Situation) {
		byHand(in)
		in.Record = &Record{Number: 5, State: Blocked, Last: in.Record}
	}
	stopped := last(func(r *Record) { r.Origin, r.Key, r.Over, r.State, r.Step = OriginHand, "hand x", "r37-0", Stopped, 2 })
	begun := last(func(r *Record) { // and all that it moved is back
		r.Origin, r.Key, r.Over, r.State, r.Step, r.From, r.Target = OriginHand, "hand x", "r37-0", Stopped, 1, target("r37-1"), target("r38-1")
	})
	tests := map[string]struct {
		record func(*Situation)
		named  string
		served bool
		wants  string // of r37-0, once that is written
	}{
		"it names what was asked for by hand":               {byHand, "r37-1", true, "r37-0"},
		"though another was blocked since":                  {blockedSince, "r37-1", true, "r37-0"},
		"it says what it said":                              {byHand, "r37-0", false, ""},
		"it names something else, which is still to come":   {byHand, "r37-2", false, ""},
		"what was stopped on its way is not served by that": {stopped, "r37-1", false, ""},
		"but by what the cluster was before":                {begun, "r37-1", true, "r37-0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := Situation{Spec: spec(test.named), SpecVersion: "v2", Deployed: target("r37-1"), Now: noon, KubernetesVersion: kubernetes}
			test.record(&in)
			d, err := Decide(in)
			require.NoError(t, err)
			require.Equal(t, test.served, d.OverrideCleared)
			if d.OverrideCleared {
				in.Record.ClearOverride()
			}
			in.Spec, in.SpecVersion = spec("r37-0"), "v3"
			d, err = Decide(in)
			require.NoError(t, err)
			require.False(t, d.OverrideCleared)
			if test.wants == "" {
				require.Nil(t, d.Wants)
				return
			}
			require.NotNil(t, d.Wants)
			require.Equal(t, test.wants, d.Wants.Release)
			require.Equal(t, "spec v3", d.Start.Key)
		})
	}
}
