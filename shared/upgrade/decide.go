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
	// Wait tells of the one that will begin, or cannot. While one is under way it is the one that comes after it.
	Wait *Wait
	// Served says that the record's Over has served: the spec names what the cluster is by now. Whoever tells that the cluster is converged
	// writes so: see ClearOverride.
	OverrideCleared bool
	// Instead says what counts instead of the release that the spec names, for people; "" when that is the spec's own.
	OverrideReason string
	// Look is when to decide again though nothing happened until then; the zero time is never.
	RecheckAt time.Time
}

// Wait is an upgrade that does not begin yet, for people.
type Wait struct {
	Origin Origin
	// Key as of the Start that it will be.
	Key string
	// To is the release and, as far as known, its Kubernetes version.
	To Target
	// At is when it begins, or was to begin; the zero time if it does not by itself, or begins as soon as it can.
	At time.Time
	// Message says why not now.
	Message string
	// Missed says that its time is over. Never says that it does not begin as things are, Missed or not. Behind says that it may begin, and
	// waits for the one that is under way.
	Missed, Blocked, Queued bool
	// Unread says why its release cannot be read, if so: it waits for that, beside all else.
	Unread string
}

const (
	// WaitsForWindow is the Message of a Wait that ends when the window opens.
	WaitsForWindow = "it waits for the window of spec.upgrade"
	// Delayed and Late are how long after its time an upgrade that has not begun is told to be delayed, and is given up.
	Delayed, Late = 30 * time.Minute, 2 * time.Hour
	// again is how long a channel's upgrade that was blocked waits where no window says when it is tried once more.
	again = 24 * time.Hour
	// lookAgain is within what time to decide again while an upgrade is under way, and another is asked for, or for one whose release
	// cannot be read. Before the time of that one, once a day is enough.
	lookAgain, lookAhead = 30 * time.Minute, 24 * time.Hour
)

// Decide says what counts for a cluster, and whether an upgrade may start. What the spec names waits for the time of spec.upgrade.at when
// that is about the same release, and otherwise for the window. Of those that may be asked for at the same time, the spec's
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
	if in.Record.counts(spec) {
		d.OverrideReason = in.Record.OverrideReason(in.Deployed)
	}
	last := in.Record.Changed()
	if last.unfinished() && (in.Record.counts(spec) || in.Record.Unfinished(wants)) {
		// What an upgrade has moved stays, and what it has not, too.
		d.Keep = Keep{Images: true, Addons: true, Stated: last.Origin == OriginSpec}
	}
	d.OverrideCleared = !in.Record.counts(spec) && same(wants, in.Deployed) && in.Record.overrides() && !in.Record.Unfinished(wants)
	switch at, channel := in.at(), in.channel(); {
	case !same(wants, in.Deployed), in.Record.Unfinished(wants) && (last.Origin == OriginSpec || !in.Record.counts(spec)):
		d.Wants, d.Keep = &wants, Keep{Images: true, Addons: true, Stated: true}
		in.bySpec(&d, wants)
	case at != nil:
		in.apply(&d, at)
	case channel != nil:
		in.apply(&d, channel)
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
	last := r.Changed() // another one that was stopped, while this one is checked
	d.Keep = Keep{Images: true, Addons: true, Stated: r.Origin == OriginSpec || last.unfinished() && last.Origin == OriginSpec}
	if r.State == Running {
		d.Old, d.Next, d.Step = r.From, &r.Target, r.open()
		d.Keep = d.Step.keep()
	}
	if r.Superseded(in.Spec) != "" || r.State == Checking && r.Over != "" && r.Over != Named(in.Spec) {
		d.RecheckAt = in.soon() // it stops soon, or may be blocked, and nobody else would begin what the spec asks for
	}
	if other := in.after(); other != nil {
		d.Wait, d.RecheckAt = other.wait(), in.soon()
		if other.at.After(in.Now) && other.at.Before(d.RecheckAt) {
			d.RecheckAt = other.at
		}
		if other.at.IsZero() && !other.never && other.unread == "" {
			d.Wait.Queued, d.Wait.At, d.Wait.Message = true, other.start.Due, fmt.Sprintf("the upgrade to %s is under way", r.Target)
		}
	}
	return d
}

// after is what is asked for beside the upgrade that is under way, and would begin after it; nil when nothing is. What the spec asks for
// that cannot be read is told when it counts.
func (in Situation) after() *asked {
	r := in.Record
	if r.Superseded(in.Spec) != "" {
		wants, err := in.named()
		if err == nil && !same(wants, in.Deployed) && !same(wants, r.Target) &&
			Minor(wants.KubernetesVersion) >= Minor(in.Deployed.KubernetesVersion) {
			return in.timed(&asked{start: in.specStart(wants), to: wants})
		}
	}
	for _, other := range []*asked{in.at(), in.channel()} {
		if other != nil && other.start.Release != r.Target.Release {
			return other
		}
	}
	return nil
}

// soon is a time within lookAgain, the same for all that ask meanwhile: each time is looked at by a converge of its own, which asks again.
func (in Situation) soon() time.Time { return in.Now.Truncate(lookAgain).Add(lookAgain) }

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
	start := in.specStart(wants)
	if Minor(wants.KubernetesVersion) < Minor(in.Deployed.KubernetesVersion) {
		return // whoever checks the spec says so
	}
	if in.answered(start) {
		return
	}
	in.apply(d, in.timed(&asked{start: start, to: wants}))
}

func (in Situation) specStart(wants Target) *Start {
	return &Start{Origin: OriginSpec, Key: specKey(in.SpecVersion), Release: wants.Release, KubernetesVersion: in.Spec.Spec.KubernetesVersion}
}

func specKey(version string) string { return "spec " + version }

// timed has what the spec asks for wait until the time of spec.upgrade.at when that names the same release, and for
// the window otherwise. An upgrade to that release which began since has kept the time: the next upload goes on at
// once.
func (in Situation) timed(a *asked) *asked {
	at := in.Spec.Spec.Upgrade.At
	if at == nil || at.Release != a.to.Release {
		return in.gate(a)
	}
	t, err := api.Time(at.Time)
	if r := in.Record; err != nil || r != nil && r.Target.Release == at.Release && !r.Started.Before(t) {
		return in.gate(a)
	}
	in.until(a, t.UTC())
	return a
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
	// unread says why its release cannot be read; "" when it can.
	unread string
}

func (in Situation) apply(d *Decision, a *asked) {
	switch {
	case a.never:
	case a.unread != "" && a.at.IsZero():
		d.RecheckAt = in.soon() // nobody says when a release comes
	case a.unread != "":
		if d.RecheckAt = in.Now.Truncate(lookAhead).Add(lookAhead); d.RecheckAt.After(a.at) {
			d.RecheckAt = a.at
		}
	case a.at.IsZero():
		d.Start = a.start
		return
	default:
		d.RecheckAt = a.at
	}
	d.Wait = a.wait()
}

func (a *asked) wait() *Wait {
	w := &Wait{Origin: a.start.Origin, Key: a.start.Key, To: a.to, At: a.at, Message: a.message, Missed: a.missed, Blocked: a.never, Unread: a.unread}
	if a.unread != "" && a.at.IsZero() {
		w.At = a.start.Due
	}
	return w
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
		a.never, a.message = true, in.Spec.Spec.Upgrade.NoMore(in.Now)+": change it"
	default:
		a.at, a.message = next.UTC(), WaitsForWindow
		if e := in.endsAt(next); e != nil {
			a.message = e.message()
		}
	}
	return a
}

type exclusion api.Exclusion

// endsAt is an exclusion for whose end alone an upgrade waits. One that counts now and ends while the window is shut
// keeps back nothing, and who told of it would have to tell something else then, though the upgrade begins when it
// was to begin all along. nil is none.
func (in Situation) endsAt(next time.Time) *exclusion {
	for _, e := range in.Spec.Spec.Upgrade.Exclusions {
		if until, err := time.Parse(time.RFC3339, e.Until); err == nil && until.Equal(next) {
			return (*exclusion)(&e)
		}
	}
	return nil
}

// excluded is the exclusion that counts now: of several the one that ends last. nil is none.
func (in Situation) excluded() (counts *exclusion) {
	var last time.Time
	for _, e := range in.Spec.Spec.Upgrade.Exclusions {
		from, _ := time.Parse(time.RFC3339, e.From)
		until, _ := time.Parse(time.RFC3339, e.Until)
		if !in.Now.Before(from) && in.Now.Before(until) && until.After(last) {
			last, counts = until, (*exclusion)(&e)
		}
	}
	return counts
}

func (e *exclusion) message() string {
	if e.Reason == "" {
		return "an exclusion of spec.upgrade keeps it back"
	}
	return "an exclusion of spec.upgrade keeps it back: " + e.Reason
}

// at is the upgrade of spec.upgrade.at, if it was not answered.
func (in Situation) at() *asked {
	at := in.Spec.Spec.Upgrade.At
	if at == nil || at.Release == in.Deployed.Release {
		return nil
	}
	t, err := api.Time(at.Time)
	a := &asked{start: &Start{Origin: OriginAt, Key: "at " + at.Time + " " + at.Release, Release: at.Release}, to: Target{Release: at.Release}}
	if err != nil || in.answered(a.start) {
		return nil
	}
	in.until(a, t.UTC())
	return in.newer(a)
}

// until has an upgrade wait for the time of spec.upgrade.at, which is missed after a while.
func (in Situation) until(a *asked, t time.Time) {
	a.start.Due = t
	switch late := in.Now.Sub(t); {
	case late < 0:
		a.at, a.message = t, "it waits for the time of spec.upgrade.at"
	case late >= Late:
		a.at, a.never, a.missed = t, true, true
		a.message = fmt.Sprintf("it did not begin within %s of its time: set another in spec.upgrade.at", Late)
	default: // the cluster was busy, and by now an exclusion may have begun
		if e := in.excluded(); e != nil {
			until, _ := time.Parse(time.RFC3339, e.Until)
			if missed := t.Add(Late); missed.Before(until) {
				until = missed
			}
			a.at, a.message = until.UTC(), e.message()
		}
	}
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
	retry := r.Ended.Add(again).Truncate(time.Second)
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
// cannot be read is told of, waited for, and does not hold up the cluster.
func (in Situation) newer(a *asked) *asked {
	version, err := in.KubernetesVersion(a.start.Release)
	switch {
	case err != nil && a.never:
		a.message += ": " + err.Error()
		return a
	case err != nil:
		if a.unread = err.Error(); a.message != "" {
			a.message += "; "
		}
		a.message += a.unread
		return a
	}
	a.to.KubernetesVersion = version
	if Minor(version) < Minor(in.Deployed.KubernetesVersion) {
		if a.start.Origin == OriginChannel {
			return nil // a channel that the cluster is ahead of
		}
		a.at, a.never, a.missed = time.Time{}, true, false
		a.message = fmt.Sprintf("release %s has Kubernetes %s, and the cluster %s: Kubernetes is not downgraded", a.start.Release, version, in.Deployed.KubernetesVersion)
	}
	return a
}
