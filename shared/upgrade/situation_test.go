package upgrade

// Situations of the tests of Decide.

import (
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/shared/api"
)

// kubernetes returns the version of an existing release: 1.36 for r36-1.
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

func withExclusion(in *Situation) {
	in.Spec.Spec.Upgrade.Exclusions = []api.Exclusion{{From: "2026-11-20T00:00:00Z", Until: "2026-11-30T00:00:00Z", Reason: "the sale"}}
}

// excludedFor excludes a time relative to noon.
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

func withDeployed(release, version string) func(*Situation) {
	return func(in *Situation) { in.Deployed = target(release); in.Deployed.KubernetesVersion = version }
}
