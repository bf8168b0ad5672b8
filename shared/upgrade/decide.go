package upgrade

// Which release applies to a cluster now, and whether an upgrade may start.

import (
	"fmt"
	"time"

	"github.com/drover-run/drover/shared/api"
)

// Situation holds everything that a decision depends on.
type Situation struct {
	// Spec is the spec as written, SpecVersion its version in the bucket.
	Spec        *api.Cluster
	SpecVersion string
	// Record is that of the cluster's last upgrade; nil if there was none.
	Record *Record
	// Channels are nil if the cluster follows no channel, or there are none.
	Channels *api.ChannelsSpec
	// Deployed is the deployed target: the release that the control plane's stack is pinned to, and its Kubernetes version. It is zero without
	// a control plane, and has no version while the control plane is being created.
	Deployed Target
	Now      time.Time
	// KubernetesVersion returns the Kubernetes version of a release in the specs bucket. If it fails for the release that the spec names,
	// Decide fails with the same error.
	KubernetesVersion func(release string) (string, error)
}

// Decision names the release that applies, and the upgrade that starts or waits.
type Decision struct {
	// Old, Next and Step are arguments of Effective. Keep is what stays as deployed. Next is nil if no upgrade is in flight.
	Old  Target
	Next *Target
	Step Step
	Keep Keep
	// Wants is the target of the spec, if another one applies now. The caller validates it like any spec.
	Wants *Target
	// Start is the upgrade that may start now; nil if there is none.
	Start *Start
	// Wait is the upgrade that is pending or blocked. While an upgrade is in flight, Wait is the one that follows it.
	Wait *Wait
	// OverrideCleared is true if the spec names the deployed release, so the record no longer overrides it. The caller that records the
	// cluster as converged then calls ClearOverride.
	OverrideCleared bool
	// OverrideReason describes what applies instead of the release of the spec; empty if that release applies.
	OverrideReason string
	// RecheckAt is when to decide again if no event comes first; zero if no time is known.
	RecheckAt time.Time
}

// Wait is an upgrade that does not begin yet, as users see it.
type Wait struct {
	Origin Origin
	// Key is that of the future Start.
	Key string
	// To is the release and its Kubernetes version, if that is known.
	To Target
	// At is when it begins, or should have begun. It is zero if it does not begin by itself, or begins as soon as it can.
	At time.Time
	// Message says why it does not begin now.
	Message string
	// Missed is true if its time has passed. Blocked is true if it cannot begin at present, missed or not. Queued is true if it may begin, and
	// waits for the upgrade in flight.
	Missed, Blocked, Queued bool
	// Unread says why its release cannot be read; empty if it can. The upgrade then also waits for the release.
	Unread string
}

const (
	// WaitsForWindow is the Message of a Wait that ends when the window opens.
	WaitsForWindow = "it waits for the window of spec.upgrade"
	// Delayed and Late are how long after its time a pending upgrade counts as delayed, and as missed.
	Delayed, Late = 30 * time.Minute, 2 * time.Hour
	// again is the pause before a blocked upgrade of a channel is retried, if the spec has no window.
	again = 24 * time.Hour
	// recheckInterval is the interval of decisions while an upgrade is in flight and another is pending, or while the release of a due upgrade
	// cannot be read. recheckAhead is the interval while such an upgrade is not due yet.
	recheckInterval, recheckAhead = 30 * time.Minute, 24 * time.Hour
)

// Decide names the release that applies to a cluster, and the upgrade that may start. An upgrade of the spec waits for the time of
// spec.upgrade.at if that names the same release, and for the window otherwise. If several upgrades are requested, the spec comes first,
// then spec.upgrade.at, then the channel. At most one starts, and none while another is in flight.
func Decide(in Situation) (Decision, error) {
	spec := in.Spec
	if in.Deployed.Release == "" || in.Deployed.KubernetesVersion == "" {
		return in.creation(), nil
	}
	if in.Record.inFlight() {
		return in.decideInFlight(), nil
	}
	d := Decision{Old: in.Deployed, Step: Step{KubernetesVersion: in.Deployed.KubernetesVersion}}
	wants := in.Deployed
	if !in.Record.targetApplies(spec) {
		var err error
		if wants, err = in.named(); err != nil {
			return d, err
		}
	}
	if in.Record.targetApplies(spec) {
		d.OverrideReason = in.Record.OverrideReason(in.Deployed)
	}
	last := in.Record.Changed()
	if last.unfinished() && (in.Record.targetApplies(spec) || in.Record.Unfinished(wants)) {
		// Everything stays as deployed: what the stopped upgrade updated, and what it did not reach.
		d.Keep = Keep{Images: true, Addons: true, Stated: last.Origin == OriginSpec}
	}
	d.OverrideCleared = !in.Record.targetApplies(spec) && same(wants, in.Deployed) && in.Record.overrides() && !in.Record.Unfinished(wants)
	switch at, channel := in.at(), in.channel(); {
	case !same(wants, in.Deployed), in.Record.Unfinished(wants) && (last.Origin == OriginSpec || !in.Record.targetApplies(spec)):
		d.Wants, d.Keep = &wants, Keep{Images: true, Addons: true, Stated: true}
		in.bySpec(&d, wants)
	case at != nil:
		in.apply(&d, at)
	case channel != nil:
		in.apply(&d, channel)
	}
	return d, nil
}

// creation is the decision before a control plane exists. There is nothing to upgrade: the cluster is created with the release of its spec.
// A cluster that is being created keeps the release that it is created with.
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

// decideInFlight is the decision while an upgrade is in flight: its open step applies, whatever release the spec names now.
func (in Situation) decideInFlight() Decision {
	r := in.Record
	d := Decision{Old: in.Deployed, Step: Step{KubernetesVersion: in.Deployed.KubernetesVersion}}
	last := r.Changed() // a stopped one, while this one is checked
	d.Keep = Keep{Images: true, Addons: true, Stated: r.Origin == OriginSpec || last.unfinished() && last.Origin == OriginSpec}
	if r.State == Running {
		d.Old, d.Next, d.Step = r.From, &r.Target, r.open()
		d.Keep = d.Step.keep()
	}
	if r.Superseded(in.Spec) != "" || r.State == Checking && r.Over != "" && r.Over != Named(in.Spec) {
		d.RecheckAt = in.soon() // it stops soon, or may be blocked; no event starts the upgrade of the spec then
	}
	if other := in.after(); other != nil {
		d.Wait, d.RecheckAt = other.wait(), in.soon()
		if other.at.After(in.Now) && other.at.Before(d.RecheckAt) {
			d.RecheckAt = other.at
		}
		if other.at.IsZero() && !other.never && other.unread == "" {
			d.Wait.Queued, d.Wait.At, d.Wait.Message = true, other.start.Due, fmt.Sprintf("the upgrade to %s is in flight", r.Target)
		}
	}
	return d
}

// after returns the upgrade that is requested and would begin after the one in flight; nil if there is none. A release of the spec that
// cannot be read is reported when the spec applies.
func (in Situation) after() *request {
	r := in.Record
	if r.Superseded(in.Spec) != "" {
		wants, err := in.named()
		if err == nil && !same(wants, in.Deployed) && !same(wants, r.Target) &&
			Minor(wants.KubernetesVersion) >= Minor(in.Deployed.KubernetesVersion) {
			return in.timed(&request{start: in.specStart(wants), to: wants})
		}
	}
	for _, other := range []*request{in.at(), in.channel()} {
		if other != nil && other.start.Release != r.Target.Release {
			return other
		}
	}
	return nil
}

// soon returns the next multiple of recheckInterval. All calls until then return the same time, so that one execution is started for it.
func (in Situation) soon() time.Time { return in.Now.Truncate(recheckInterval).Add(recheckInterval) }

// named returns the target of the spec.
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

// same reports whether two targets have the same release name and version. A cluster keeps the content while the name stays.
func same(a, b Target) bool {
	return a.Release == b.Release && a.KubernetesVersion == b.KubernetesVersion
}

// bySpec starts the upgrade of the spec, once for each upload.
func (in Situation) bySpec(d *Decision, wants Target) {
	start := in.specStart(wants)
	if Minor(wants.KubernetesVersion) < Minor(in.Deployed.KubernetesVersion) {
		return // the validation of the spec reports it
	}
	if in.answered(start) {
		return
	}
	in.apply(d, in.timed(&request{start: start, to: wants}))
}

func (in Situation) specStart(wants Target) *Start {
	return &Start{Origin: OriginSpec, Key: specKey(in.SpecVersion), Release: wants.Release, KubernetesVersion: in.Spec.Spec.KubernetesVersion}
}

func specKey(version string) string { return "spec " + version }

// timed makes an upgrade of the spec wait for the time of spec.upgrade.at if that names the same release, and for the window otherwise. If
// an upgrade to that release began after that time, later uploads wait for the window only.
func (in Situation) timed(a *request) *request {
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

// request is a requested upgrade: it begins, waits until a time, or has a reason why it does neither.
type request struct {
	start *Start
	to    Target
	// at is when it may begin; zero if now.
	at time.Time
	// message says why it does not begin now or, with never, at all.
	message       string
	never, missed bool
	// unread says why its release cannot be read; empty if it can.
	unread string
}

func (in Situation) apply(d *Decision, a *request) {
	switch {
	case a.never:
	case a.unread != "" && a.at.IsZero():
		d.RecheckAt = in.soon() // no time is known at which the release will exist
	case a.unread != "":
		if d.RecheckAt = in.Now.Truncate(recheckAhead).Add(recheckAhead); d.RecheckAt.After(a.at) {
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

func (a *request) wait() *Wait {
	w := &Wait{
		Origin: a.start.Origin, Key: a.start.Key, To: a.to, At: a.at, Message: a.message,
		Missed: a.missed, Blocked: a.never, Unread: a.unread,
	}
	if a.unread != "" && a.at.IsZero() {
		w.At = a.start.Due
	}
	return w
}

func (in Situation) answered(s *Start) bool {
	return in.Record != nil && in.Record.Answered[s.Origin] == s.Key
}

// gate makes an upgrade wait for the window.
func (in Situation) gate(a *request) *request {
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

// endsAt returns the exclusion whose end is the start of the upgrade; nil if the window is also closed then. Otherwise the message would
// change when the exclusion ends, although the start stays the same.
func (in Situation) endsAt(next time.Time) *exclusion {
	for _, e := range in.Spec.Spec.Upgrade.Exclusions {
		if until, err := time.Parse(time.RFC3339, e.Until); err == nil && until.Equal(next) {
			return (*exclusion)(&e)
		}
	}
	return nil
}

// excluded returns the exclusion that is active now; nil if there is none. Of several it returns the one that ends last.
func (in Situation) excluded() (active *exclusion) {
	var last time.Time
	for _, e := range in.Spec.Spec.Upgrade.Exclusions {
		from, _ := time.Parse(time.RFC3339, e.From)
		until, _ := time.Parse(time.RFC3339, e.Until)
		if !in.Now.Before(from) && in.Now.Before(until) && until.After(last) {
			last, active = until, (*exclusion)(&e)
		}
	}
	return active
}

func (e *exclusion) message() string {
	if e.Reason == "" {
		return "an exclusion of spec.upgrade delays it"
	}
	return "an exclusion of spec.upgrade delays it: " + e.Reason
}

// at returns the upgrade of spec.upgrade.at; nil if there is none or it was answered.
func (in Situation) at() *request {
	at := in.Spec.Spec.Upgrade.At
	if at == nil || at.Release == in.Deployed.Release {
		return nil
	}
	t, err := api.Time(at.Time)
	a := &request{
		start: &Start{Origin: OriginAt, Key: "at " + at.Time + " " + at.Release, Release: at.Release}, to: Target{Release: at.Release},
	}
	if err != nil || in.answered(a.start) {
		return nil
	}
	in.until(a, t.UTC())
	return in.resolveVersion(a)
}

// until makes an upgrade wait for the time of spec.upgrade.at. The upgrade is missed if it has not begun Late after that time.
func (in Situation) until(a *request, t time.Time) {
	a.start.Due = t
	switch late := in.Now.Sub(t); {
	case late < 0:
		a.at, a.message = t, "it waits for the time of spec.upgrade.at"
	case late >= Late:
		a.at, a.never, a.missed = t, true, true
		a.message = fmt.Sprintf("it did not begin within %s of its time: set another time in spec.upgrade.at", Late)
	default: // the cluster was busy, and an exclusion may have begun since
		if e := in.excluded(); e != nil {
			until, _ := time.Parse(time.RFC3339, e.Until)
			if missed := t.Add(Late); missed.Before(until) {
				until = missed
			}
			a.at, a.message = until.UTC(), e.message()
		}
	}
}

// channel returns the upgrade to the release of the cluster's channel; nil if that is deployed or was answered. A blocked upgrade is
// retried.
func (in Situation) channel() *request {
	follows := in.Spec.Spec.Upgrade.Channel
	if in.Channels == nil {
		return nil
	}
	release := in.Channels.Release(follows, in.Deployed.KubernetesVersion)
	if release == "" || release == in.Deployed.Release {
		return nil
	}
	a := &request{
		start: &Start{Origin: OriginChannel, Key: fmt.Sprintf("channel %s %s", follows, release), Release: release},
		to:    Target{Release: release},
	}
	if !in.answered(a.start) {
		return in.resolveVersion(in.gate(a))
	}
	r := in.Record
	if r.Key != a.start.Key || r.State != Blocked {
		return nil
	}
	// With a window, the retry is when that opens next.
	retry := r.Ended.Add(again).Truncate(time.Second)
	if in.Spec.Spec.Upgrade.Window != nil {
		if _, retry = in.Spec.Spec.Upgrade.Open(r.Ended); retry.IsZero() {
			return nil
		}
	}
	if in.Now.Before(retry) {
		a.at, a.message = retry.UTC(), "checks blocked the last attempt: fix what they found before then; see status.upgrades"
		return in.resolveVersion(a)
	}
	return in.resolveVersion(in.gate(a))
}

// resolveVersion completes the target with the Kubernetes version of its release, and blocks an upgrade to an older
// version. If the release cannot be read, the upgrade waits and says why. That does not hold up the cluster.
func (in Situation) resolveVersion(a *request) *request {
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
			return nil // the cluster is ahead of its channel
		}
		a.at, a.never, a.missed = time.Time{}, true, false
		a.message = fmt.Sprintf("release %s has Kubernetes %s, and the cluster runs %s: Kubernetes is not downgraded",
			a.start.Release, version, in.Deployed.KubernetesVersion)
	}
	return a
}
