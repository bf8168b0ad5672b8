package upgrade

// What counts for a cluster now, and whether an upgrade of it may start.

import (
	"fmt"
	"time"

	"github.com/drover-run/drover/shared/api"
)

// Situation is all that a decision depends on.
type Situation struct {
	// Spec as it was written, and SpecVersion, its version in the bucket.
	Spec        *api.Cluster
	SpecVersion string
	// Record of the cluster's last upgrade; nil when there was none.
	Record *Record
	// Channels; nil when the cluster follows none, or there are none.
	Channels *api.ChannelsSpec
	// Deployed is what the cluster is: the pin of its control plane's stack, and the Kubernetes version that this has. Zero when there is
	// no control plane yet; without a version while it is being made.
	Deployed Target
	Now      time.Time
	// KubernetesVersion of a release of the specs bucket, by its name. What it fails with, for the release that the spec names, is what
	// Decide fails with.
	KubernetesVersion func(release string) (string, error)
}

// Decision is what planning does.
type Decision struct {
	// Old, Next and Step are what Effective resolves with, Keep what stays as deployed. Next is nil when nothing is under way.
	Old  Target
	Next *Target
	Step Step
	Keep Keep
	// Wants is what the spec asks for, when that is another than what counts now; it is to be checked like any spec.
	Wants *Target
	// Start is the upgrade that is to begin.
	Start *Start
	// Wait tells of the one that will begin, or cannot.
	Wait *Wait
	// Look is when to decide again though nothing happened until then; the zero time is never.
	Look time.Time
}

// Wait is an upgrade that does not begin yet, for people.
type Wait struct {
	Origin Origin
	// Key as of the Start that it will be.
	Key string
	// To is the release and, as far as known, its Kubernetes version.
	To Target
	// At is when it begins; the zero time if it does not by itself.
	At time.Time
	// Message says why not now.
	Message string
	// Missed says that its time is over.
	Missed bool
}

const (
	// Delayed and Late are how long after its time an upgrade that has not begun is told to be delayed, and is given up.
	Delayed, Late = 30 * time.Minute, 2 * time.Hour
	// again is how long a channel's upgrade that was blocked waits where no window says when it is tried once more.
	again = 24 * time.Hour
	// lookAgain is when to decide again while an upgrade is under way, and another is asked for.
	lookAgain = 30 * time.Minute
)

// Decide says what counts for a cluster, and whether an upgrade may start. Of those that may be asked for at the same time, the spec's
// comes first, then that of a time, then the channel's: one starts at most, and none while one is under way.
func Decide(in Situation) (Decision, error) {
	spec := in.Spec
	if in.Deployed.Release == "" || in.Deployed.KubernetesVersion == "" {
		return in.creation(), nil
	}
	if in.Record.underWay() {
		return in.goesOn(), nil
	}
	d := Decision{Old: in.Deployed, Step: Step{KubernetesVersion: in.Deployed.KubernetesVersion}}
	wants := in.Deployed
	if !in.Record.counts(spec) {
		var err error
		if wants, err = in.named(); err != nil {
			return d, err
		}
	}
	if in.Record.unfinished() && (in.Record.counts(spec) || same(wants, in.Record.Target)) {
		// What an upgrade has moved stays, and what it has not, too.
		d.Keep = Keep{Images: true, Addons: true, Stated: in.Record.Origin == OriginSpec}
	}
	switch at, channel := in.at(), in.channel(); {
	case !same(wants, in.Deployed), in.Record.unfinished() && in.Record.Origin == OriginSpec && same(wants, in.Record.Target):
		d.Wants, d.Keep = &wants, Keep{Images: true, Addons: true, Stated: true}
		in.bySpec(&d, wants)
	case at != nil:
		d.apply(at)
	case channel != nil:
		d.apply(channel)
	}
	return d, nil
}

// creation is what counts before there is a control plane. There is nothing to upgrade: the cluster comes to be at what its spec says.
// One that is just being made stays at the release that it is made of.
func (in Situation) creation() Decision {
	d := Decision{Old: Target{Release: in.Spec.Spec.Release.Name}, Step: Step{KubernetesVersion: in.Spec.Spec.KubernetesVersion}}
	switch in.Deployed.Release {
	case "":
	case in.Spec.Spec.Release.Name:
		d.Old = in.Deployed
	default:
		d.Old, d.Step.KubernetesVersion = in.Deployed, ""
	}
	return d
}

// goesOn is what counts while an upgrade is under way: its open step, whatever the spec says of releases by now.
func (in Situation) goesOn() Decision {
	r := in.Record
	d := Decision{Old: in.Deployed, Step: Step{KubernetesVersion: in.Deployed.KubernetesVersion}}
	d.Keep = Keep{Images: true, Addons: true, Stated: r.Origin == OriginSpec}
	if r.State == Running {
		d.Old, d.Next, d.Step = r.From, &r.Target, r.open()
		d.Keep = d.Step.keep()
	}
	for _, other := range []*asked{in.at(), in.channel()} {
		if other != nil && other.start.Release != r.Target.Release {
			d.Look = in.Now.Add(lookAgain)
		}
	}
	return d
}

// named is what the spec asks for.
func (in Situation) named() (Target, error) {
	wants := Target{Release: in.Spec.Spec.Release.Name, KubernetesVersion: in.Spec.Spec.KubernetesVersion}
	if wants.KubernetesVersion == "" {
		var err error
		if wants.KubernetesVersion, err = in.KubernetesVersion(wants.Release); err != nil {
			return wants, err
		}
	}
	return wants, nil
}

// same says whether two are the same but for the content, which a cluster keeps as long as the name is the same.
func same(a, b Target) bool {
	return a.Release == b.Release && a.KubernetesVersion == b.KubernetesVersion
}

// bySpec starts what the spec asks for, once for each upload.
func (in Situation) bySpec(d *Decision, wants Target) {
	start := &Start{Origin: OriginSpec, Key: "spec " + in.SpecVersion, Release: wants.Release, KubernetesVersion: in.Spec.Spec.KubernetesVersion}
	if Minor(wants.KubernetesVersion) < Minor(in.Deployed.KubernetesVersion) {
		return // whoever checks the spec says so
	}
	if in.answered(start) {
		return
	}
	d.apply(in.gate(&asked{start: start, to: wants}))
}

// asked is an upgrade that is asked for: it begins, or waits until a time, or says why it does neither.
type asked struct {
	start *Start
	to    Target
	// at is when it may begin; the zero time is now.
	at time.Time
	// message says why not now; with never, why not at all.
	message       string
	never, missed bool
}

func (d *Decision) apply(a *asked) {
	if a.at.IsZero() && !a.never {
		d.Start = a.start
		return
	}
	if !a.never {
		d.Look = a.at
	}
	d.Wait = &Wait{Origin: a.start.Origin, Key: a.start.Key, To: a.to, At: a.at, Message: a.message, Missed: a.missed}
}

func (in Situation) answered(s *Start) bool {
	return in.Record != nil && in.Record.Answered[s.Origin] == s.Key
}

// gate has an upgrade wait for the window.
func (in Situation) gate(a *asked) *asked {
	open, next := in.Spec.Spec.Upgrade.Open(in.Now)
	switch {
	case open:
	case next.IsZero():
		a.never, a.message = true, "the window of spec.upgrade does not open any more: change it"
	default:
		a.at, a.message = next.UTC(), "it waits for the window of spec.upgrade"
		if reason := in.excluded(); reason != "" {
			a.message = "an exclusion of spec.upgrade keeps it back: " + reason
		}
	}
	return a
}

// excluded is the reason of the exclusion that counts now.
func (in Situation) excluded() string {
	for _, e := range in.Spec.Spec.Upgrade.Exclusions {
		from, _ := time.Parse(time.RFC3339, e.From)
		until, _ := time.Parse(time.RFC3339, e.Until)
		if !in.Now.Before(from) && in.Now.Before(until) && e.Reason != "" {
			return e.Reason
		}
	}
	return ""
}

// at is the upgrade of spec.upgrade.at, if it was not answered.
func (in Situation) at() *asked {
	at := in.Spec.Spec.Upgrade.At
	if at == nil || at.Release == in.Deployed.Release {
		return nil
	}
	t, err := time.Parse(time.RFC3339, at.Time)
	a := &asked{start: &Start{Origin: OriginAt, Key: "at " + at.Time + " " + at.Release, Release: at.Release}, to: Target{Release: at.Release}}
	if err != nil || in.answered(a.start) {
		return nil
	}
	t = t.UTC()
	switch late := in.Now.Sub(t); {
	case late < 0:
		a.at, a.message = t, "it waits for the time of spec.upgrade.at"
	case late >= Late:
		a.at, a.never, a.missed = t, true, true
		a.message = fmt.Sprintf("it did not begin within %s of its time: set another in spec.upgrade.at", Late)
	}
	return in.newer(a)
}

// channel is the upgrade to the release that the cluster's channel is at, if it is not there and that was not answered.
func (in Situation) channel() *asked {
	follows := in.Spec.Spec.Upgrade.Channel
	if in.Channels == nil {
		return nil
	}
	release := in.Channels.Release(follows, in.Deployed.KubernetesVersion)
	if release == "" || release == in.Deployed.Release {
		return nil
	}
	a := &asked{start: &Start{Origin: OriginChannel, Key: fmt.Sprintf("channel %s %s", follows, release), Release: release}, to: Target{Release: release}}
	if !in.answered(a.start) {
		return in.newer(in.gate(a))
	}
	r := in.Record
	if r.Key != a.start.Key || r.State != Blocked {
		return nil
	}
	// The next window that opens after it was blocked.
	retry := r.Ended.Add(again)
	if in.Spec.Spec.Upgrade.Window != nil {
		if _, retry = in.Spec.Spec.Upgrade.Open(r.Ended); retry.IsZero() {
			return nil
		}
	}
	if in.Now.Before(retry) {
		a.at, a.message = retry.UTC(), "checks found what must be mended first: see status.upgrades"
		return in.newer(a)
	}
	return in.newer(in.gate(a))
}

// newer refuses a release of an older Kubernetes version. For what it knows the version of it asks for the release itself: one that
// cannot be read is told of, and does not hold up the cluster.
func (in Situation) newer(a *asked) *asked {
	version, err := in.KubernetesVersion(a.start.Release)
	if err != nil {
		a.at, a.never, a.message = time.Time{}, true, err.Error()
		return a
	}
	a.to.KubernetesVersion = version
	if Minor(version) < Minor(in.Deployed.KubernetesVersion) {
		if a.start.Origin == OriginChannel {
			return nil // a channel that the cluster is ahead of
		}
		a.at, a.never = time.Time{}, true
		a.message = fmt.Sprintf("release %s has Kubernetes %s, and the cluster %s: Kubernetes is not downgraded", a.start.Release, version, in.Deployed.KubernetesVersion)
	}
	return a
}
