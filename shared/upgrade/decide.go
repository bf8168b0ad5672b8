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
	// Rollout is what a run of a rollout requests; nil if no run does.
	Rollout *RolloutRequest
	// Claimed reports whether a run that has not ended has the cluster as a member. Then its channel does not move it. nil means no.
	Claimed func() bool
	// Frozen returns the freeze that stops a kind of work on the cluster now, and when it ends; zero if it never does. nil means: no
	// freeze.
	Frozen func(what api.Stop) (freeze *api.Freeze, until time.Time)
	// Deployed is the deployed target: the release that the control plane's stack is pinned to, and its Kubernetes version. It is zero without
	// a control plane, and has no version while the control plane is being created.
	Deployed Target
	Now      time.Time
	// KubernetesVersion returns the Kubernetes version of a release in the specs bucket. If it fails for the release that the spec names,
	// Decide fails with the same error.
	KubernetesVersion func(release string) (string, error)
	// PinnedVersion returns the Kubernetes version of a release by its content.
	PinnedVersion func(release, sha256 string) (string, error)
}

// Decision names the release that applies, and the upgrade that starts or waits.
type Decision struct {
	// Old, Next and Step are arguments of Effective. Keep is what stays as deployed. Next is nil if no upgrade is in flight.
	Old  Target
	Next *Target
	Step Step
	Keep Keep
	// SpecTarget is the target of the spec, if another one applies now. The caller validates it like any spec.
	SpecTarget *Target
	// Start is the upgrade that may start now; nil if there is none.
	Start *Start
	// Pending is the upgrade that is pending or blocked. While an upgrade is in flight, Pending is the one that follows it.
	Pending *Pending
	// OverrideCleared reports whether the spec names the deployed release, so the record no longer overrides it. The caller that records the
	// cluster as converged then calls ClearOverride.
	OverrideCleared bool
	// OverrideReason describes what applies instead of the release of the spec; empty if that release applies.
	OverrideReason string
	// RecheckAt is when to decide again if no event comes first; zero if no time is known.
	RecheckAt time.Time
}

// Pending is an upgrade that does not begin yet, as users see it.
type Pending struct {
	Origin Origin
	// Key is that of the future Start.
	Key string
	// To is the release and its Kubernetes version, if that is known.
	To Target
	// At is when it begins, or should have begun. It is zero if it does not begin by itself, or begins as soon as it can.
	At time.Time
	// Message says why it does not begin now.
	Message string
	// Missed reports whether its time has passed. Blocked reports whether it cannot begin at present, missed or not. Queued reports whether it
	// may begin, and waits for the upgrade in flight.
	Missed, Blocked, Queued bool
	// Unreadable says why its release cannot be read; empty if it can. The upgrade then also waits for the release.
	Unreadable string
}

const (
	// WaitsForWindow is the Message of a Pending upgrade that waits until the window opens.
	WaitsForWindow = "it waits for the window of spec.upgrade"
	// DelayedAfter and MissedAfter are how long after its time a pending upgrade counts as delayed, and as missed.
	DelayedAfter, MissedAfter = 30 * time.Minute, 2 * time.Hour
	// retryPause is the pause before a blocked upgrade of a channel is retried, if the spec has no window.
	retryPause = 24 * time.Hour
	// recheckInterval is the interval of decisions while an upgrade is in flight and another is pending, or while the release of a due upgrade
	// cannot be read. recheckAhead is the interval while such an upgrade is not due yet.
	recheckInterval, recheckAhead = 30 * time.Minute, 24 * time.Hour
)

// Decide names the release that applies to a cluster, and the upgrade that may start. An upgrade of the spec waits for the time of
// spec.upgrade.at if that names the same release, and for the window otherwise. If several upgrades are requested, the spec comes first,
// then spec.upgrade.at, then a run of a rollout, then the channel. At most one starts, and none while another is in flight or a freeze
// holds it.
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
	// The target of the record applies instead of the spec's.
	recordApplies := in.Record.targetApplies(spec)
	if recordApplies {
		d.OverrideReason = in.Record.OverrideReason(in.Deployed)
	} else {
		var err error
		if wants, err = in.specTarget(); err != nil {
			return d, err
		}
	}
	last := in.Record.LastChange()
	if last.unfinished() && (recordApplies || in.Record.StoppedBefore(wants)) {
		// Everything stays as deployed: what the stopped upgrade updated, and what it did not reach.
		d.Keep = Keep{Images: true, Addons: true, OverridesSpec: last.Origin == OriginSpec}
	}
	d.OverrideCleared = !recordApplies && sameTarget(wants, in.Deployed) && in.Record.overrides() &&
		!in.Record.StoppedBefore(wants)
	switch at, rollout, channel := in.requestedAt(), in.requestedByRollout(), in.requestedByChannel(); {
	case !sameTarget(wants, in.Deployed), in.Record.StoppedBefore(wants) && (last.Origin == OriginSpec || !recordApplies):
		d.SpecTarget, d.Keep = &wants, Keep{Images: true, Addons: true, OverridesSpec: true}
		in.requestSpec(&d, wants)
	case at != nil:
		in.applyRequest(&d, at)
	case rollout != nil:
		in.applyRequest(&d, rollout)
	case channel != nil:
		in.applyRequest(&d, channel)
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
	last := r.LastChange() // a stopped one, while this one is checked
	d.Keep = Keep{Images: true, Addons: true, OverridesSpec: r.Origin == OriginSpec || last.unfinished() && last.Origin == OriginSpec}
	if r.State == Running {
		d.Old, d.Next, d.Step = r.From, &r.Target, r.openStep()
		d.Keep = d.Step.keep()
	}
	if r.SupersededReason(in.Spec) != "" || r.State == Checking && r.Overridden != "" && r.Overridden != ReleaseText(in.Spec) {
		// This upgrade stops soon or may be blocked. Then no event starts the upgrade of the spec.
		d.RecheckAt = in.nextRecheck()
	}
	if other := in.following(); other != nil {
		d.Pending, d.RecheckAt = other.pending(), in.nextRecheck()
		if other.at.After(in.Now) && other.at.Before(d.RecheckAt) {
			d.RecheckAt = other.at
		}
		if other.at.IsZero() && !other.blocked && other.unreadable == "" {
			d.Pending.Queued, d.Pending.At, d.Pending.Message = true, other.start.Due, fmt.Sprintf("the upgrade to %s is in flight", r.Target)
		}
	}
	return d
}

// following returns the upgrade that is requested and would begin after the one in flight; nil if there is none. A release of the spec that
// cannot be read is reported when the spec applies.
func (in Situation) following() *request {
	r := in.Record
	if r.SupersededReason(in.Spec) != "" {
		wants, err := in.specTarget()
		if err == nil && !sameTarget(wants, in.Deployed) && !sameTarget(wants, r.Target) &&
			Minor(wants.KubernetesVersion) >= Minor(in.Deployed.KubernetesVersion) {
			return in.waitForTimeOrWindow(&request{start: in.specStart(wants), to: wants})
		}
	}
	for _, other := range []*request{in.requestedAt(), in.requestedByRollout(), in.requestedByChannel()} {
		if other != nil && other.start.Release != r.Target.Release {
			return other
		}
	}
	return nil
}

// nextRecheck returns the next multiple of recheckInterval. All calls until then return the same time, so that one execution is started for
// it.
func (in Situation) nextRecheck() time.Time {
	return in.Now.Truncate(recheckInterval).Add(recheckInterval)
}

// specTarget returns the target of the spec.
func (in Situation) specTarget() (Target, error) {
	wants := Target{Release: in.Spec.Spec.Release.Name, KubernetesVersion: in.Spec.Spec.KubernetesVersion}
	if wants.KubernetesVersion == "" {
		var err error
		if wants.KubernetesVersion, err = in.KubernetesVersion(wants.Release); err != nil {
			return wants, err
		}
	}
	return wants, nil
}

// sameTarget reports whether two targets have the same release name and version. A cluster keeps the content while the name stays.
func sameTarget(a, b Target) bool {
	return a.Release == b.Release && a.KubernetesVersion == b.KubernetesVersion
}

// requestSpec starts the upgrade of the spec, once for each upload.
func (in Situation) requestSpec(d *Decision, wants Target) {
	start := in.specStart(wants)
	if Minor(wants.KubernetesVersion) < Minor(in.Deployed.KubernetesVersion) {
		return // the validation of the spec reports it
	}
	if in.answered(start) {
		return
	}
	in.applyRequest(d, in.waitForTimeOrWindow(&request{start: start, to: wants}))
}

func (in Situation) specStart(wants Target) *Start {
	return &Start{Origin: OriginSpec, Key: specKey(in.SpecVersion), Release: wants.Release, KubernetesVersion: in.Spec.Spec.KubernetesVersion}
}

func specKey(version string) string { return "spec " + version }

// waitForTimeOrWindow makes an upgrade of the spec wait for the time of spec.upgrade.at if that names the same release, and for the window
// otherwise. If an upgrade to that release began after that time, later uploads wait for the window only.
func (in Situation) waitForTimeOrWindow(req *request) *request {
	at := in.Spec.Spec.Upgrade.At
	if at == nil || at.Release != req.to.Release {
		return in.waitForWindow(req)
	}
	t, err := api.Time(at.Time)
	if r := in.Record; err != nil || r != nil && r.Target.Release == at.Release && !r.Started.Before(t) {
		return in.waitForWindow(req)
	}
	in.waitUntil(req, t.UTC())
	return req
}

// request is a requested upgrade: it begins, waits until a time, or has a reason why it does neither.
type request struct {
	start *Start
	to    Target
	// at is when it may begin; zero if now.
	at time.Time
	// message says why it does not begin now or, with blocked, at all.
	message         string
	blocked, missed bool
	// unreadable says why its release cannot be read; empty if it can.
	unreadable string
}

func (in Situation) applyRequest(d *Decision, req *request) {
	in.freeze(req)
	switch {
	case req.blocked:
	case req.unreadable != "" && req.at.IsZero():
		d.RecheckAt = in.nextRecheck() // no time is known at which the release will exist
	case req.unreadable != "":
		if d.RecheckAt = in.Now.Truncate(recheckAhead).Add(recheckAhead); d.RecheckAt.After(req.at) {
			d.RecheckAt = req.at
		}
	case req.at.IsZero():
		d.Start = req.start
		return
	default:
		d.RecheckAt = req.at
	}
	d.Pending = req.pending()
}

func (req *request) pending() *Pending {
	w := &Pending{
		Origin: req.start.Origin, Key: req.start.Key, To: req.to, At: req.at, Message: req.message,
		Missed: req.missed, Blocked: req.blocked, Unreadable: req.unreadable,
	}
	if req.unreadable != "" && req.at.IsZero() {
		w.At = req.start.Due
	}
	return w
}

func (in Situation) answered(s *Start) bool {
	return in.Record != nil && in.Record.Answered[s.Origin] == s.Key
}

// waitForWindow makes an upgrade wait for the window.
func (in Situation) waitForWindow(req *request) *request {
	open, next := in.Spec.Spec.Upgrade.Open(in.Now)
	switch {
	case open:
	case next.IsZero():
		req.blocked, req.message = true, in.Spec.Spec.Upgrade.NoMore(in.Now)+": change it"
	default:
		req.at, req.message = next.UTC(), WaitsForWindow
		if e := in.exclusionEndingAt(next); e != nil {
			req.message = e.explain()
		}
	}
	return req
}

type exclusion api.Exclusion

// exclusionEndingAt returns the exclusion whose end is the start of the upgrade; nil if the window is also closed then. Otherwise the
// message would change when the exclusion ends, although the start stays the same.
func (in Situation) exclusionEndingAt(next time.Time) *exclusion {
	for _, e := range in.Spec.Spec.Upgrade.Exclusions {
		if until, err := time.Parse(time.RFC3339, e.Until); err == nil && until.Equal(next) {
			return (*exclusion)(&e)
		}
	}
	return nil
}

// activeExclusion returns the exclusion that is active now; nil if there is none. Of several it returns the one that ends last.
func (in Situation) activeExclusion() (active *exclusion) {
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

func (e *exclusion) explain() string {
	if e.Reason == "" {
		return "an exclusion of spec.upgrade delays it"
	}
	return "an exclusion of spec.upgrade delays it: " + e.Reason
}

// requestedAt returns the upgrade of spec.upgrade.at; nil if there is none or it was answered.
func (in Situation) requestedAt() *request {
	at := in.Spec.Spec.Upgrade.At
	if at == nil || at.Release == in.Deployed.Release {
		return nil
	}
	t, err := api.Time(at.Time)
	req := &request{
		start: &Start{Origin: OriginAt, Key: "at " + at.Time + " " + at.Release, Release: at.Release}, to: Target{Release: at.Release},
	}
	if err != nil || in.answered(req.start) {
		return nil
	}
	in.waitUntil(req, t.UTC())
	return in.resolveVersion(req)
}

// waitUntil makes an upgrade wait for the time of spec.upgrade.at. The upgrade is missed if it has not begun MissedAfter after that time.
func (in Situation) waitUntil(req *request, t time.Time) {
	req.start.Due = t
	switch late := in.Now.Sub(t); {
	case late < 0:
		req.at, req.message = t, "it waits for the time of spec.upgrade.at"
	case late >= MissedAfter:
		req.at, req.blocked, req.missed = t, true, true
		req.message = fmt.Sprintf("it did not begin within %s of its time: set another time in spec.upgrade.at", MissedAfter)
	default: // the cluster was busy, and an exclusion may have begun since
		if e := in.activeExclusion(); e != nil {
			until, _ := time.Parse(time.RFC3339, e.Until)
			if missed := t.Add(MissedAfter); missed.Before(until) {
				until = missed
			}
			req.at, req.message = until.UTC(), e.explain()
		}
	}
}

// requestedByChannel returns the upgrade to the release of the cluster's channel; nil if that is deployed or was answered. A blocked
// upgrade is retried.
func (in Situation) requestedByChannel() *request {
	follows := in.Spec.Spec.Upgrade.Channel
	if in.Channels == nil {
		return nil
	}
	release := in.Channels.Release(follows, in.Deployed.KubernetesVersion)
	if release == "" || release == in.Deployed.Release || in.Claimed != nil && in.Claimed() {
		return nil
	}
	req := &request{
		start: &Start{Origin: OriginChannel, Key: fmt.Sprintf("channel %s %s", follows, release), Release: release},
		to:    Target{Release: release},
	}
	if !in.answered(req.start) {
		return in.resolveVersion(in.waitForWindow(req))
	}
	r := in.Record
	if r.Key != req.start.Key || r.State != Blocked {
		return nil
	}
	// With a window, the retry is when that opens next.
	retry := r.Ended.Add(retryPause).Truncate(time.Second)
	if in.Spec.Spec.Upgrade.Window != nil {
		if _, retry = in.Spec.Spec.Upgrade.Open(r.Ended); retry.IsZero() {
			return nil
		}
	}
	if in.Now.Before(retry) {
		req.at, req.message = retry.UTC(), "checks blocked the last attempt: fix what they found before then; see status.upgrades"
		return in.resolveVersion(req)
	}
	return in.resolveVersion(in.waitForWindow(req))
}

// resolveVersion completes the target with the Kubernetes version of its release, and blocks an upgrade to an older
// version. If the release cannot be read, the upgrade waits and says why. That does not hold up the cluster.
func (in Situation) resolveVersion(req *request) *request {
	version, err := in.releaseVersion(req.start)
	switch {
	case err != nil && req.blocked:
		req.message += ": " + err.Error()
		return req
	case err != nil:
		if req.unreadable = err.Error(); req.message != "" {
			req.message += "; "
		}
		req.message += req.unreadable
		return req
	}
	req.to.KubernetesVersion = version
	if Minor(version) < Minor(in.Deployed.KubernetesVersion) && !req.start.Rollback {
		if req.start.Origin == OriginChannel {
			return nil // the cluster is ahead of its channel
		}
		req.at, req.blocked, req.missed = time.Time{}, true, false
		req.message = fmt.Sprintf("release %s has Kubernetes %s, and the cluster runs %s: Kubernetes is not downgraded",
			req.start.Release, version, in.Deployed.KubernetesVersion)
	}
	return req
}
