package upgrade

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestDecide(t *testing.T) {
	window := time.Date(2026, 11, 22, 21, 0, 0, 0, time.UTC) // 22:00 in Berlin
	soon := noon.Add(30 * time.Minute)
	all := Keep{Images: true, Addons: true, OverridesSpec: true}
	tests := map[string]struct {
		given []func(*Situation)
		// counts is the release, the Kubernetes version and the step that apply.
		counts string
		keep   Keep
		start  string
		wait   string
		at     time.Time
		// look is RecheckAt, if it differs from at.
		look time.Time
	}{
		"no upgrade is requested": {counts: "r36-1 1.36 "},
		"a new cluster gets the release of its spec": {
			given: []func(*Situation){withDeployed("", ""), names("r37-1"), stable("r37-2"), opens}, counts: "r37-1  ",
		},
		"a cluster in creation keeps its release": {
			given: []func(*Situation){withDeployed("r36-1", ""), names("r37-1")}, counts: "r36-1  ",
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
		"an older version in the spec starts nothing": {
			given: []func(*Situation){names("r35-1")}, counts: "r36-1 1.36 ", keep: all,
		},
		"a spec waits for the window": {
			given: []func(*Situation){names("r37-1"), opens}, counts: "r36-1 1.36 ", keep: all, wait: "Spec r37-1 1.37: it waits for the window",
			at: window,
		},
		"a spec begins when the window is open": {
			given: []func(*Situation){names("r37-1"), opens, at22}, counts: "r36-1 1.36 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"a spec waits for the end of an exclusion": {
			given: []func(*Situation){names("r37-1"), withExclusion}, counts: "r36-1 1.36 ", keep: all,
			wait: "Spec r37-1 1.37: an exclusion of spec.upgrade delays it: the sale", at: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		},
		"a spec ignores an exclusion that ends before the window opens": {
			given: []func(*Situation){names("r37-1"), opens, excludedFor(-time.Minute, time.Hour)}, counts: "r36-1 1.36 ", keep: all,
			wait: "Spec r37-1 1.37: it waits for the window", at: window,
		},
		"an answered spec is not started again": {
			given: []func(*Situation){names("r37-1"), answeredBy(OriginSpec, "spec v5", Blocked)}, counts: "r36-1 1.36 ", keep: all,
		},
		"the next upload is started": {
			given: []func(*Situation){names("r37-1"), answeredBy(OriginSpec, "spec v4", Blocked)}, counts: "r36-1 1.36 ", keep: all,
			start: "Spec spec v5 r37-1",
		},
		"a newer release in the channel": {
			given: []func(*Situation){stable("r37-1")}, counts: "r36-1 1.36 ", start: "Channel channel Stable r37-1 r37-1",
		},
		"a channel waits for the window": {
			given: []func(*Situation){stable("r37-1"), opens}, counts: "r36-1 1.36 ", wait: "Channel r37-1 1.37: it waits for the window",
			at: window,
		},
		"an older release in the channel": {given: []func(*Situation){stable("r35-1")}, counts: "r36-1 1.36 "},
		"another release of the same version in the channel": {
			given: []func(*Situation){stable("r36-0")}, counts: "r36-1 1.36 ", start: "Channel channel Stable r36-0 r36-0",
		},
		"a missing release in the channel": {
			given: []func(*Situation){stable("lost")}, counts: "r36-1 1.36 ", wait: "Channel lost : unreadable there is no release lost", look: soon,
		},
		"a missing release in the channel, and a window": {
			given: []func(*Situation){stable("lost"), opens}, counts: "r36-1 1.36 ",
			wait: "Channel lost : unreadable it waits for the window of spec.upgrade; there is no release lost", at: window,
		},
		"a time for a missing release": {
			given: []func(*Situation){atTime(noon.Add(time.Hour), "lost")}, counts: "r36-1 1.36 ",
			wait: "At lost : unreadable it waits for the time of spec.upgrade.at; there is no release lost", at: noon.Add(time.Hour),
		},
		"a time for a missing release is rechecked every day": {
			given: []func(*Situation){atTime(noon.Add(72*time.Hour), "lost")}, counts: "r36-1 1.36 ",
			wait: "At lost : unreadable it waits for the time", at: noon.Add(72 * time.Hour), look: noon.Add(12 * time.Hour),
		},
		"a due time for a missing release is rechecked every half hour": {
			given: []func(*Situation){atTime(noon.Add(-time.Minute), "lost")}, counts: "r36-1 1.36 ",
			wait: "At lost : unreadable there is no release lost", at: noon.Add(-time.Minute), look: soon,
		},
		"a missed time for a missing release": {
			given: []func(*Situation){atTime(noon.Add(-2*time.Hour), "lost")}, counts: "r36-1 1.36 ",
			wait: "At lost : missed it did not begin within 2h0m0s of its time: set another time in spec.upgrade.at: there is no release lost",
			at:   noon.Add(-2 * time.Hour),
		},
		"a time for a missing release, during an upgrade": {
			given: []func(*Situation){atTime(noon.Add(-time.Minute), "lost"), last(func(r *Record) {
				r.Origin, r.Overridden, r.State, r.Step = OriginCommand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, OverridesSpec: true},
			wait: "At lost : unreadable there is no release lost",
			at:   noon.Add(-time.Minute),
		},
		"the channel Nodes": {
			given:  []func(*Situation){stable("r37-1"), func(in *Situation) { in.Spec.Spec.Upgrade.Channel = api.ChannelNodes }},
			counts: "r36-1 1.36 ", start: "Channel channel Nodes r36-9 r36-9",
		},
		"a channel does not restart a stopped upgrade": {
			given: []func(*Situation){stable("r37-1"), answeredBy(OriginChannel, "channel Stable r37-1", Stopped)}, counts: "r36-1 1.36 ",
		},
		"a channel retries a blocked upgrade a day later": {
			given:  []func(*Situation){stable("r37-1"), answeredBy(OriginChannel, "channel Stable r37-1", Blocked)},
			counts: "r36-1 1.36 ", wait: "Channel r37-1 1.37: checks blocked", at: noon.Add(23 * time.Hour),
		},
		"a channel retries a blocked upgrade in the next window": {
			given:  []func(*Situation){opens, stable("r37-1"), answeredBy(OriginChannel, "channel Stable r37-1", Blocked)},
			counts: "r36-1 1.36 ", wait: "Channel r37-1 1.37: checks blocked", at: window,
		},
		"a channel retries a blocked upgrade when the window opens": {
			given:  []func(*Situation){opens, stable("r37-1"), answeredBy(OriginChannel, "channel Stable r37-1", Blocked), at22},
			counts: "r36-1 1.36 ", start: "Channel channel Stable r37-1 r37-1",
		},
		"a rollback is not undone by the channel": {
			given: []func(*Situation){stable("r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.Overridden, r.From, r.Target = OriginRollback, "rollback", "r36-1", target("r37-1"), target("r36-1")
				r.Answered = map[Origin]string{OriginChannel: "channel Stable r37-1", OriginRollback: "rollback"}
			})}, counts: "r36-1 1.36 ",
		},
		"a future time": {
			given: []func(*Situation){atTime(noon.Add(time.Hour), "r37-1"), opens}, counts: "r36-1 1.36 ",
			wait: "At r37-1 1.37: it waits for the time", at: noon.Add(time.Hour),
		},
		"a due time ignores the window": {
			given: []func(*Situation){atTime(noon.Add(-5*time.Minute), "r37-1"), opens}, counts: "r36-1 1.36 ",
			start: "At at 2026-11-22T11:55:00Z r37-1 r37-1",
		},
		"a due time in an exclusion that began later": {
			given:  []func(*Situation){atTime(noon.Add(-30*time.Minute), "r37-1"), excludedFor(-time.Minute, time.Hour)},
			counts: "r36-1 1.36 ", wait: "At r37-1 1.37: an exclusion of spec.upgrade delays it: the ball", at: noon.Add(time.Hour),
		},
		"a due time in an exclusion that ends too late": {
			given: []func(*Situation){atTime(noon.Add(-2*time.Hour), "r37-1"), excludedFor(-time.Hour, time.Minute)}, counts: "r36-1 1.36 ",
			wait: "At r37-1 1.37: missed it did not begin", at: noon.Add(-2 * time.Hour),
		},
		"a missed time": {
			given: []func(*Situation){atTime(noon.Add(-2*time.Hour), "r37-1")}, counts: "r36-1 1.36 ",
			wait: "At r37-1 1.37: missed it did not begin", at: noon.Add(-2 * time.Hour),
		},
		"a time shortly before an exclusion": {
			given: []func(*Situation){atTime(noon.Add(-time.Hour), "r37-1"), func(in *Situation) {
				in.Spec.Spec.Upgrade.Exclusions = []api.Exclusion{{From: "2026-11-22T11:30:00Z", Until: "2026-11-22T12:30:00Z", Reason: "the sale"}}
			}}, counts: "r36-1 1.36 ", wait: "At r37-1 1.37: an exclusion of spec.upgrade delays it: the sale", at: noon.Add(30 * time.Minute),
		},
		"a time before an exclusion is missed": {
			given: []func(*Situation){atTime(noon.Add(-time.Hour), "r37-1"), withExclusion}, counts: "r36-1 1.36 ",
			wait: "At r37-1 1.37: an exclusion of spec.upgrade delays it: the sale", at: noon.Add(time.Hour),
		},
		"a time with fractions of a second is rounded up": {
			given: []func(*Situation){atTime(noon.Add(time.Millisecond), "r37-1")}, counts: "r36-1 1.36 ",
			wait: "At r37-1 1.37: it waits for the time", at: noon.Add(time.Second),
		},
		"an answered time": {
			given: []func(*Situation){atTime(noon, "r37-1"), answeredBy(OriginAt, "at 2026-11-22T12:00:00Z r37-1", Blocked)}, counts: "r36-1 1.36 ",
		},
		"a time for an older release": {
			given: []func(*Situation){atTime(noon, "r35-1")}, counts: "r36-1 1.36 ", wait: "At r35-1 1.35: release r35-1 has Kubernetes 1.35",
		},
		"the spec comes first, then the time, then the channel": {
			given:  []func(*Situation){names("r37-1"), atTime(noon, "r37-2"), stable("r37-3")},
			counts: "r36-1 1.36 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"a time for the release of the spec delays it": {
			given:  []func(*Situation){names("r37-1"), atTime(noon.Add(time.Hour), "r37-1")},
			counts: "r36-1 1.36 ", keep: all, wait: "Spec r37-1 1.37: it waits for the time", at: noon.Add(time.Hour),
		},
		"a due time for the release of the spec ignores the window": {
			given:  []func(*Situation){names("r37-1"), atTime(noon.Add(-5*time.Minute), "r37-1"), opens},
			counts: "r36-1 1.36 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"a missed time for the release of the spec does not delay it": {
			given:  []func(*Situation){names("r37-1"), atTime(noon.Add(-2*time.Hour), "r37-1")},
			counts: "r36-1 1.36 ", keep: all, wait: "Spec r37-1 1.37: missed it did not begin", at: noon.Add(-2 * time.Hour),
		},
		"a time delays another Kubernetes version of the spec": {
			given:  []func(*Situation){func(in *Situation) { in.Spec.Spec.KubernetesVersion = "1.37" }, atTime(noon.Add(time.Hour), "r36-1")},
			counts: "r36-1 1.36 ", keep: all, wait: "Spec r36-1 1.37: it waits for the time", at: noon.Add(time.Hour),
		},
		"a later upload does not wait for a time that was used": {
			given: []func(*Situation){names("r37-1"), atTime(noon.Add(-3*time.Hour), "r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.State, r.Started = OriginSpec, "spec v4", Blocked, noon.Add(-3*time.Hour)
			})},
			counts: "r36-1 1.36 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"a later upload waits for a later time": {
			given: []func(*Situation){names("r37-1"), atTime(noon.Add(time.Hour), "r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.State, r.Started = OriginSpec, "spec v4", Blocked, noon.Add(-3*time.Hour)
			})},
			counts: "r36-1 1.36 ", keep: all, wait: "Spec r37-1 1.37: it waits for the time", at: noon.Add(time.Hour),
		},
		"an upgrade by hand overrides the spec": {
			given: []func(*Situation){withDeployed("r37-1", "1.37"), last(func(r *Record) {
				r.Origin, r.Overridden = OriginCommand, "r36-1"
			})}, counts: "r37-1 1.37 ",
		},
		"a spec with another release ends the override": {
			given: []func(*Situation){withDeployed("r37-1", "1.37"), names("r37-2"), last(func(r *Record) {
				r.Origin, r.Overridden = OriginCommand, "r36-1"
			})},
			counts: "r37-1 1.37 ", keep: all, start: "Spec spec v5 r37-2",
		},
		"nothing changes during the checks": {
			given:  []func(*Situation){names("r37-1"), last(func(r *Record) { r.Origin, r.State, r.Step = OriginSpec, Checking, 0 })},
			counts: "r36-1 1.36 ", keep: all,
		},
		"during the checks, the spec names the target": {
			given: []func(*Situation){names("r37-1"), last(func(r *Record) {
				r.Origin, r.Overridden, r.State, r.Step = OriginCommand, "r36-1", Checking, 0
			})},
			counts: "r36-1 1.36 ", keep: Keep{Images: true, Addons: true}, at: soon,
		},
		"the open step applies, and the spec names the target": {
			given: []func(*Situation){names("r37-1"), last(func(r *Record) {
				r.Origin, r.Overridden, r.State, r.Step = OriginCommand, "r36-1", Running, 0
			})},
			counts: "r36-1 1.37 ControlPlane to r37-1", keep: all,
		},
		"the open step applies": {
			given:  []func(*Situation){names("r37-1"), last(func(r *Record) { r.Origin, r.State, r.Step = OriginSpec, Running, 0 })},
			counts: "r36-1 1.37 ControlPlane to r37-1", keep: all,
		},
		"the last step applies, and the spec is decided later": {
			given: []func(*Situation){
				names("r38-1"), withDeployed("r37-1", "1.37"), last(func(r *Record) { r.Origin, r.State = OriginSpec, Running }),
			},
			counts: "r36-1 1.37 Nodes to r37-1", wait: "Spec r38-1 1.38: behind the upgrade to release r37-1 (Kubernetes 1.37) is in flight",
		},
		"the channel is decided after the upgrade in flight": {
			given: []func(*Situation){stable("r37-2"), last(func(r *Record) {
				r.Origin, r.Overridden, r.State, r.Step = OriginCommand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, OverridesSpec: true},
			wait: "Channel r37-2 1.37: behind the upgrade to release r37-1 (Kubernetes 1.37) is in flight",
		},
		"the channel is decided after the upgrade in flight, and waits for the window": {
			given: []func(*Situation){opens, stable("r37-2"), last(func(r *Record) {
				r.Origin, r.Overridden, r.State, r.Step = OriginCommand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, OverridesSpec: true}, wait: "Channel r37-2 1.37: it waits for the window",
			at: window,
		},
		"a future time during an upgrade": {
			given: []func(*Situation){atTime(noon.Add(10*time.Minute), "r37-2"), last(func(r *Record) {
				r.Origin, r.Overridden, r.State, r.Step = OriginCommand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, OverridesSpec: true}, wait: "At r37-2 1.37: it waits for the time",
			at: noon.Add(10 * time.Minute),
		},
		"a due time during an upgrade": {
			given: []func(*Situation){atTime(noon.Add(-10*time.Minute), "r37-2"), last(func(r *Record) {
				r.Origin, r.Overridden, r.State, r.Step = OriginCommand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, OverridesSpec: true}, at: noon.Add(-10 * time.Minute),
			wait: "At r37-2 1.37: behind the upgrade to release r37-1 (Kubernetes 1.37) is in flight",
		},
		"a missed time during an upgrade": {
			given: []func(*Situation){atTime(noon.Add(-2*time.Hour), "r37-2"), last(func(r *Record) {
				r.Origin, r.Overridden, r.State, r.Step = OriginCommand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, OverridesSpec: true}, at: noon.Add(-2 * time.Hour),
			wait: "At r37-2 1.37: missed it did not begin",
		},
		"a request for the target of the upgrade in flight": {
			given: []func(*Situation){atTime(noon, "r37-1"), stable("r37-1"), last(func(r *Record) {
				r.Origin, r.Overridden, r.State, r.Step = OriginCommand, "r36-1", Running, 1
			})},
			counts: "r36-1 1.37 Addons to r37-1", keep: Keep{Images: true, OverridesSpec: true},
		},
		"a stopped upgrade keeps what it changed": {
			given: []func(*Situation){withDeployed("r36-1", "1.37"), names("r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.State, r.Step = OriginSpec, "spec v5", Stopped, 1
			})}, counts: "r36-1 1.37 ", keep: all,
		},
		"an upgrade that stopped during the nodes keeps what it changed": {
			given: []func(*Situation){withDeployed("r37-1", "1.37"), names("r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.State, r.Step = OriginSpec, "spec v5", Stopped, 2
			})}, counts: "r37-1 1.37 ", keep: all,
		},
		"a stopped upgrade continues with the next upload": {
			given: []func(*Situation){withDeployed("r37-1", "1.37"), names("r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.State, r.Step = OriginSpec, "spec v4", Stopped, 2
			})}, counts: "r37-1 1.37 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"a stopped upgrade by hand continues when the spec names it": {
			given: []func(*Situation){withDeployed("r37-1", "1.37"), names("r37-1"), last(func(r *Record) {
				r.Origin, r.Key, r.Overridden, r.State, r.Step = OriginCommand, "hand", "r36-1", Stopped, 2
			})}, counts: "r37-1 1.37 ", keep: all, start: "Spec spec v5 r37-1",
		},
		"a stopped rollback applies its target from the control plane on": {
			given: []func(*Situation){last(func(r *Record) {
				r.Origin, r.Key, r.Overridden, r.State, r.Step, r.From, r.Target = OriginRollback, "rollback", "r36-1", Stopped, 2, target("r37-1"),
					target("r36-1")
				r.Steps = []Step{
					{Kind: StepNodesBack, KubernetesVersion: "1.37", NodesRolledBack: true}, {
						Kind: StepControlPlane, KubernetesVersion: "1.36", NodesRolledBack: true,
					},
					{Kind: StepAddons, KubernetesVersion: "1.36", NodesRolledBack: true},
					{Kind: StepNodes, KubernetesVersion: "1.36", NodesRolledBack: true},
				}
			})}, counts: "r36-1 1.36 ", keep: Keep{Images: true, Addons: true},
		},
		"an override keeps the version that the spec states": {
			given: []func(*Situation){withDeployed("r36-1", "1.37"), last(func(r *Record) {
				r.Origin, r.Overridden, r.State, r.Step = OriginCommand, "r36-1", Stopped, 1
			})},
			counts: "r36-1 1.37 ", keep: Keep{Images: true, Addons: true},
		},
		"a blocked upgrade keeps the earlier override": {
			given: []func(*Situation){withDeployed("r37-1", "1.37"), last(func(r *Record) {
				before := *r
				before.Origin, before.Overridden = OriginCommand, "r36-1"
				r.Origin, r.Overridden, r.State, r.Step, r.Last = OriginCommand, "r36-1", Blocked, 0, &before
				r.From, r.Target = target("r37-1"), target("r37-2")
			})}, counts: "r37-1 1.37 ",
		},
		"a stopped upgrade keeps its changes when the next is blocked": {
			given: []func(*Situation){withDeployed("r36-1", "1.37"), names("r37-1"), last(func(r *Record) {
				before := *r
				before.Origin, before.State, before.Step = OriginSpec, Stopped, 2
				r.Origin, r.Key, r.State, r.Step, r.Last = OriginRollback, "rollback", Blocked, 0, &before
				r.Answered = map[Origin]string{OriginSpec: "spec v5"}
			})}, counts: "r36-1 1.37 ", keep: all,
		},
		"a stopped upgrade keeps its changes during the checks of the next": {
			given: []func(*Situation){withDeployed("r36-1", "1.37"), names("r37-1"), last(func(r *Record) {
				before := *r
				before.Origin, before.State, before.Step = OriginSpec, Stopped, 2
				r.Origin, r.Key, r.Overridden, r.State, r.Step, r.Last = OriginCommand, "hand", "r37-1", Checking, 0, &before
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
				require.Nil(t, d.Pending)
				require.Equal(t, test.at, d.RecheckAt)
				return
			}
			require.NotNil(t, d.Pending)
			how := ""
			switch {
			case d.Pending.Missed:
				how = "missed "
			case d.Pending.Queued:
				how = "behind "
			case d.Pending.Unreadable != "":
				how = "unreadable "
			}
			require.Contains(t, fmt.Sprintf("%s %s %s: %s%s", d.Pending.Origin, d.Pending.To.Release, d.Pending.To.KubernetesVersion,
				how, d.Pending.Message),
				test.wait)
			require.Equal(t, test.at, d.Pending.At)
			switch {
			case !test.look.IsZero():
				require.Equal(t, test.look, d.RecheckAt)
			case in.Record.inFlight() && (!test.at.After(noon) || test.at.After(soon)):
				require.Equal(t, soon, d.RecheckAt, "the one in flight may have ended")
			case !d.Pending.Missed:
				require.Equal(t, test.at, d.RecheckAt)
			default:
				require.Zero(t, d.RecheckAt)
			}
		})
	}
}

func TestDecideNeedsTheReleaseOfTheSpec(t *testing.T) {
	_, err := Decide(Situation{Spec: spec("lost"), Deployed: target("r36-1"), Now: noon, KubernetesVersion: kubernetes})
	require.ErrorContains(t, err, "there is no release lost")
}

// After an override, the same spec requests nothing. Once a spec names the deployed release, every later spec is a request again.
func TestOverrideCleared(t *testing.T) {
	byHand := last(func(r *Record) {
		r.Origin, r.Key, r.Overridden, r.From = OriginCommand, "hand x", "r37-0", target("r37-0")
	})
	blockedSince := func(in *Situation) {
		byHand(in)
		in.Record = &Record{Number: 5, State: Blocked, Last: in.Record}
	}
	stopped := last(func(r *Record) {
		r.Origin, r.Key, r.Overridden, r.State, r.Step = OriginCommand, "hand x", "r37-0", Stopped, 2
	})
	begun := last(func(r *Record) { // and everything is as before
		r.Origin, r.Key, r.Overridden, r.State, r.Step, r.From, r.Target = OriginCommand, "hand x", "r37-0", Stopped, 1, target("r37-1"),
			target("r38-1")
	})
	tests := map[string]struct {
		record func(*Situation)
		named  string
		served bool
		wants  string // for r37-0, after the record is written
	}{
		"it names what an operator requested":             {byHand, "r37-1", true, "r37-0"},
		"although another was blocked since":              {blockedSince, "r37-1", true, "r37-0"},
		"it has not changed":                              {byHand, "r37-0", false, ""},
		"it names something else, which is still to come": {byHand, "r37-2", false, ""},
		"a stopped upgrade":                               {stopped, "r37-1", false, ""},
		"the cluster had the release before":              {begun, "r37-1", true, "r37-0"},
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
				require.Nil(t, d.SpecTarget)
				return
			}
			require.NotNil(t, d.SpecTarget)
			require.Equal(t, test.wants, d.SpecTarget.Release)
			require.Equal(t, "spec v3", d.Start.Key)
		})
	}
}
