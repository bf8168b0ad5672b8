package handler

// What an upgrade has to do with a plan: which release and Kubernetes version count now, and what begins when that is done. The
// decision is shared/upgrade's.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/templates"
)

// Decide says what an upgrade has to do with a cluster now, given the record of its last one. It only reads. It is nil for a cluster for
// which nothing is planned: its spec is gone, paused or no good.
func (h *Handler) Decide(ctx context.Context, cluster string, record *upgrade.Record) (*upgrade.Decision, error) {
	w, err := h.decided(ctx, cluster, record)
	if w == nil {
		return nil, err
	}
	return &w.decision, err
}

// decided reads what a decision depends on, and decides; nil for a cluster for which nothing is planned.
func (h *Handler) decided(ctx context.Context, cluster string, record *upgrade.Record) (*work, error) {
	w := work{cluster: cluster, record: record, releases: map[string]content{}}
	spec, _, err := h.spec(ctx, &w)
	if err == nil {
		w.deployed, err = h.Stacks.Of(ctx, cluster, expected(spec))
	}
	if err == nil {
		err = h.decide(ctx, &w, spec)
	}
	var stopped *stop
	if errors.As(err, &stopped) || errors.Is(err, errAbsent) {
		return nil, nil
	}
	return &w, err
}

// decide says what counts for a cluster now, by the record that was read.
func (h *Handler) decide(ctx context.Context, w *work, spec *api.Cluster) error {
	var err error
	if w.record != nil && w.record.Stack != w.deployed[names.ControlPlane].ID {
		w.record = nil // of a cluster of this name that is gone
	}
	if w.at, err = h.pinned(ctx, w, spec); err != nil {
		return err
	}
	in := upgrade.Situation{Spec: spec, SpecVersion: w.version, Record: w.record, Deployed: w.at, Now: h.Now()}
	if in.Channels, err = h.channels(ctx, spec); err != nil {
		return err
	}
	var failed error // of AWS's: nobody is to be told that there is no such release
	in.KubernetesVersion = func(name string) (string, error) {
		c, err := h.release(ctx, w, name)
		var stopped *stop
		switch {
		case err == nil:
			return c.release.Spec.KubernetesVersion, nil
		case !errors.As(err, &stopped):
			failed = err
		}
		return "", err
	}
	w.decision, err = upgrade.Decide(in)
	return errors.Join(failed, err)
}

// pinned is what a cluster is. A control plane that could not be created is none, unless it is tried again at the same release. Of one that
// stands, and whose tag somebody took away, its last upgrade knows the release, and before the first the status knows the name: it is not
// created at what its spec says by now.
func (h *Handler) pinned(ctx context.Context, w *work, spec *api.Cluster) (upgrade.Target, error) {
	t := upgrade.Target{KubernetesVersion: plan.KubernetesVersion(w.deployed)}
	t.Release, t.SHA256 = plan.Pin(w.deployed)
	switch {
	case stack.MustRecreate(w.deployed[names.ControlPlane].Status) && t.Release != spec.Spec.Release.Name:
		return upgrade.Target{}, nil
	case t.Release != "" || t.KubernetesVersion == "":
		return t, nil
	case w.record != nil:
		pin := w.record.Pin()
		t.Release, t.SHA256 = pin.Release, pin.SHA256
		return t, nil
	}
	before, err := h.State.Status(ctx, w.cluster)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return t, err
	}
	if err == nil {
		t.Release = before.Status.Release
	}
	return t, nil
}

// channels reads which release each channel is at, if the cluster follows one. Those that cannot be used move no cluster.
func (h *Handler) channels(ctx context.Context, spec *api.Cluster) (*api.ChannelsSpec, error) {
	if c := spec.Spec.Upgrade.Channel; c == "" || c == api.ChannelNone {
		return nil, nil
	}
	key := names.ReleaseSpec(api.ChannelsName)
	object, err := h.Specs.Get(ctx, key, api.MaxFile)
	var large *store.TooLarge
	if errors.Is(err, store.ErrNotFound) || errors.As(err, &large) {
		logging.From(ctx).Warn("no channels", "error", err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	channels, errs := api.ReadChannels(key, object.Body, api.Options{})
	if errs != nil {
		logging.From(ctx).Warn("the channels cannot be used", "error", errs.Error())
		return nil, nil
	}
	return &channels.Spec, nil
}

// content is a release and its bytes.
type content struct {
	release *api.Release
	body    []byte
}

// release reads one by its name. A cluster that was converged to a release by this name keeps the content that it had then: editing or
// deleting a release changes no cluster.
func (h *Handler) release(ctx context.Context, w *work, name string) (content, error) {
	if c, read := w.releases[name]; read {
		return c, nil
	}
	if w.at.Release == name && w.at.SHA256 != "" {
		return h.content(ctx, w, w.at)
	}
	key := names.ReleaseSpec(name)
	object, err := h.Specs.Get(ctx, key, api.MaxFile)
	var large *store.TooLarge
	switch {
	case errors.Is(err, store.ErrNotFound):
		return content{}, &stop{status.ReasonReleaseUnusable, fmt.Sprintf("there is no release %s: upload it, or name another", key)}
	case errors.As(err, &large):
		return content{}, &stop{status.ReasonReleaseUnusable, err.Error()}
	case err != nil:
		return content{}, err
	}
	return w.keepRelease(name, object.Body)
}

// content reads a release as a cluster or an upgrade is pinned to it.
func (h *Handler) content(ctx context.Context, w *work, t upgrade.Target) (content, error) {
	if t.SHA256 == "" {
		return h.release(ctx, w, t.Release)
	}
	if c, read := w.releases[t.SHA256]; read {
		return c, nil
	}
	object, err := h.State.Get(ctx, names.PinnedRelease(t.SHA256), api.MaxFile)
	if err != nil {
		return content{}, fmt.Errorf("reading the release %s that %s is pinned to: %w", t.Release, w.cluster, err)
	}
	c, err := w.keepRelease(t.Release, object.Body)
	if err == nil {
		w.releases[t.SHA256] = c
	}
	return c, err
}

func (w *work) keepRelease(name string, body []byte) (content, error) {
	release, errs := api.ReadRelease(names.ReleaseSpec(name), body, api.Options{Name: name})
	if errs != nil {
		return content{}, &stop{status.ReasonReleaseUnusable, errs.Error()}
	}
	w.releases[name] = content{release, body}
	return w.releases[name], nil
}

// resolve says what the cluster should be now, and pins it to the release of that.
func (h *Handler) resolve(ctx context.Context, w *work, spec *api.Cluster) (api.Errors, error) {
	d := w.decision
	old, err := h.content(ctx, w, d.Old)
	if err != nil {
		return nil, err
	}
	counts := old
	var next *api.Release
	if d.Next != nil {
		c, err := h.content(ctx, w, *d.Next)
		if err != nil {
			return nil, err
		}
		if next = c.release; d.Step.Moved() {
			counts = c
		}
	}
	w.release = counts.body
	w.pin = counts.release.Metadata.Name + "@" + names.SHA256(w.release)
	var errs api.Errors
	if w.resolved, errs = upgrade.Effective(spec, old.release, next, d.Step); errs != nil {
		return errs, nil
	}
	w.templates = upgrade.Templates(spec, next, d.Step, d.Keep, plan.TemplateVersions(w.deployed))
	d.Keep.Apply(spec, w.resolved, d.Step, plan.Images(w.deployed), plan.AddonVersions(w.deployed, w.resolved.Spec.Addons))
	return api.Validate(w.resolved, api.Options{Name: w.cluster, TemplateVersions: templates.Versions()}), nil
}

// wants checks what the spec asks for and what does not count yet, as if it did.
func (h *Handler) wants(ctx context.Context, w *work, spec *api.Cluster) (api.Errors, error) {
	wants := w.decision.Wants
	if wants == nil {
		return nil, nil
	}
	c, err := h.release(ctx, w, wants.Release)
	if err != nil {
		return nil, err
	}
	resolved, errs := upgrade.Effective(spec, c.release, nil, upgrade.Step{KubernetesVersion: wants.KubernetesVersion})
	if errs == nil {
		errs = api.Validate(resolved, api.Options{Name: w.cluster, TemplateVersions: templates.Versions()})
	}
	if errs != nil {
		return errs, nil
	}
	return h.versions(ctx, resolved, plan.KubernetesVersion(w.deployed), c.release.Spec.UpgradeFrom)
}

// versions asks what EKS offers when the control plane would move, and only then. from is the oldest version that may go there directly.
func (h *Handler) versions(ctx context.Context, resolved *api.Cluster, current, from string) (api.Errors, error) {
	if current == resolved.Spec.KubernetesVersion {
		return nil, nil
	}
	offered, err := h.Versions.Offered(ctx)
	if err != nil {
		return nil, err
	}
	return api.ValidateVersions(resolved, offered, current, from), nil
}

// planned says what an upgrade has to do with a plan, for the machine and the report; nil when nothing.
func (h *Handler) planned(w work) *events.PlannedUpgrade {
	d, r := w.decision, w.record
	switch {
	case r != nil && !r.State.Over() && d.Old.Release != "" && len(w.deployed) > 0:
		return &events.PlannedUpgrade{
			State: string(r.State), Spec: r.Origin == upgrade.OriginSpec, Message: fmt.Sprintf("the upgrade to %s is under way", r.Target),
		}
	case d.Start != nil:
		after := int64(0)
		if r != nil {
			after = r.Number
		}
		return &events.PlannedUpgrade{
			State: status.UpgradeScheduled, Spec: d.Start.Origin == upgrade.OriginSpec,
			Name:    names.UpgradeStart(w.cluster, d.Start.Key, after, h.Now()),
			Message: fmt.Sprintf("the upgrade to release %s begins", d.Start.Release),
			Start: &events.Upgrade{
				Cluster: w.cluster, Release: d.Start.Release, KubernetesVersion: d.Start.KubernetesVersion, Origin: string(d.Start.Origin),
				Key: d.Start.Key,
				Due: d.Start.Due,
			},
		}
	case d.Wants != nil && d.Wait != nil:
		state := status.UpgradeScheduled
		if d.Wait.Never && !d.Wait.Missed {
			state = string(upgrade.Blocked)
		}
		return &events.PlannedUpgrade{State: state, Spec: true, Message: fmt.Sprintf("the upgrade to %s %s", *d.Wants, waits(d.Wait, h.Now()))}
	case d.Wants != nil:
		p := &events.PlannedUpgrade{State: string(upgrade.Stopped), Spec: true, Release: d.Wants.Release, Message: fmt.Sprintf(
			"the upgrade to %s did not come to its end: mend what was in its way; then `drover upgrade %s`, or upload the spec again",
			*d.Wants, w.cluster)}
		if r != nil && r.State == upgrade.Blocked && !r.Unfinished(*d.Wants) {
			p.State = string(upgrade.Blocked)
		}
		return p
	case d.Instead != "":
		return &events.PlannedUpgrade{State: string(upgrade.Done), Message: d.Instead}
	}
	return nil
}

// waits says until when, and what for.
func waits(w *upgrade.Wait, now time.Time) string {
	switch {
	case w.Behind:
		return "begins when that is over: " + w.Message
	case w.Unread != "" && !w.At.After(now):
		return "does not begin yet: " + w.Message
	case w.Never:
		return "does not begin: " + w.Message
	}
	return "begins within five minutes of " + w.At.Format(time.RFC3339) + ": " + w.Message // the sweep keeps times
}

// tellUpgrade writes the upgrade that is to come into the status, and takes out one that was taken back. What is under way or over is
// told by who leads it; what an execution waits to begin is told by that.
func (h *Handler) tellUpgrade(s *status.Status, w work) {
	if w.record != nil && !w.record.State.Over() {
		h.tellNext(s, w)
		return
	}
	next := h.comes(s, w)
	switch {
	case next != nil:
		s.Upgrade = next
		s.Judged(h.Now())
	case s.Upgrade != nil && status.ToCome(s.Upgrade.Phase) && s.Upgrade.Execution == "", s.Upgrade.Refused():
		// It was taken back, or nothing is left to do.
		s.TakeBack()
		s.Judged(h.Now())
	}
	if !waiting(s.NextUpgrade) {
		s.NextUpgrade = nil
	}
}

// After says what there is to tell when the record of an upgrade says that it is over. It only reads.
func (h *Handler) After(ctx context.Context, cluster string) (status.Afterwards, error) {
	a := status.Afterwards{Next: func(*status.Status) {}}
	w, err := h.read(ctx, cluster, events.PlanRequest{})
	if errors.Is(err, errAbsent) {
		return a, nil
	}
	var p plan.Plan
	result := events.PlanResult{Outcome: events.OutcomeUnchanged}
	if err == nil {
		a.Next = func(s *status.Status) { h.tellNext(s, w) }
		w.judged(&result)
		p, err = h.compute(ctx, w)
	}
	var stopped *stop
	switch {
	case errors.As(err, &stopped):
		stopped.tell(&result)
	case err != nil || len(p.Changes) > 0:
		return a, err
	}
	if stopped == nil {
		a.Observe = func(s *status.Status) { w.observe(s, h.Now()) }
		if result.Upgrade = h.planned(w); result.Upgrade != nil {
			result.Upgrade.Start = nil // nobody starts it here
		}
	}
	v := status.Judge(&result)
	a.Verdict = &v
	return a, nil
}

// tellNext tells what is to come beside the upgrade that the status shows.
func (h *Handler) tellNext(s *status.Status, w work) {
	if next := h.comes(s, w); !waiting(s.NextUpgrade) {
		s.NextUpgrade = next
	}
}

// waiting says whether an execution waits to begin an upgrade.
func waiting(u *status.Upgrade) bool {
	return u != nil && u.Execution != "" && u.Phase != status.UpgradeMissed
}

// comes is the upgrade that is to come. One that was missed is remembered.
func (h *Handler) comes(s *status.Status, w work) *status.Upgrade {
	next := h.toCome(s, w)
	if next != nil && next.Phase == status.UpgradeMissed {
		s.Remember(*next)
	}
	return next
}

// toCome is the upgrade that is to come, with what was told of it before; nil when none is.
func (h *Handler) toCome(s *status.Status, w work) *status.Upgrade {
	d, now := w.decision, h.Now().UTC().Truncate(time.Second)
	next := &status.Upgrade{Phase: status.UpgradeScheduled, From: d.Old.Release, FromVersion: plan.KubernetesVersion(w.deployed)}
	if w.record != nil && !w.record.State.Over() {
		next.From, next.FromVersion = w.record.Target.Release, w.record.Target.KubernetesVersion
	}
	switch {
	case d.Start != nil:
		next.To, next.Origin, next.At, next.Message = d.Start.Release, string(d.Start.Origin), &now,
			"it begins as soon as the cluster is converged"
	case d.Wait != nil:
		next.To, next.ToVersion, next.Origin, next.Message = d.Wait.To.Release, d.Wait.To.KubernetesVersion, string(d.Wait.Origin),
			waits(d.Wait, now)
		if !d.Wait.At.IsZero() {
			next.At = &d.Wait.At
		} else if d.Wait.Behind || d.Wait.Unread != "" { // its time comes now, as far as anybody looked
			next.At = &now
		}
		switch {
		case d.Wait.Missed:
			next.Phase = status.UpgradeMissed
		case d.Wait.Never:
			next.Phase = string(upgrade.Blocked)
		}
	default:
		return nil
	}
	if r, u := w.record, s.Upgrade; d.Wait != nil && r != nil && r.State == upgrade.Blocked && r.Key == d.Wait.Key && u != nil &&
		u.Execution == r.Execution {
		next.Checks, next.Checked = u.Checks, cmp.Or(u.Checked, u.Ended) // it is tried again: what blocked it is known
	}
	told := s.ToldOf(next)
	if told == nil {
		return unread(next, d.Wait)
	}
	if told.Checked != nil && status.ToCome(next.Phase) { // what was found in advance
		next.Checks, next.Checked = told.Checks, told.Checked
	}
	switch {
	case d.Start != nil && told.At != nil:
		next.At, next.ToVersion = told.At, told.ToVersion // its time had come before
	case d.Wait != nil:
		if (d.Wait.Behind || d.Wait.Unread != "") && d.Wait.At.IsZero() && told.At != nil && told.At.Before(now) {
			next.At = told.At
		}
		h.missed(told, next)
		next.AsLate(told, now)
	}
	return unread(next, d.Wait)
}

// unread says of an upgrade whose release cannot be read that this is in its way. The checks cannot run before it is there: Checked stays
// empty, and what is said here is not said any more once planning can read it.
func unread(next *status.Upgrade, w *upgrade.Wait) *status.Upgrade {
	if w != nil && w.Unread != "" {
		next.Checked = nil
		next.Checks = []status.Check{
			{Name: preflight.UpgradePossible, Blocks: true, Message: w.Unread, Next: "The upgrade begins when it can be used."},
		}
	}
	return next
}

// missed says that an upgrade was to begin at a time that passed, and waits for the next.
func (h *Handler) missed(before, next *status.Upgrade) {
	if before.At == nil || next.At == nil || !next.At.After(*before.At) || before.At.After(h.Now()) {
		return
	}
	next.Message = fmt.Sprintf("the window of %s was missed; it %s", before.At.Format(time.RFC3339), next.Message)
}

// behind tells of an upgrade that is asked for while the execution that converges the cluster makes another: that one may have planned
// before, and goes on for days.
func (h *Handler) behind(ctx context.Context, cluster string) error {
	record, _, err := h.State.Upgrade(ctx, cluster)
	if err != nil || record == nil || record.State.Over() {
		return err
	}
	w, err := h.decided(ctx, cluster, record)
	if err != nil || w == nil || w.record == nil {
		return err
	}
	if !w.decision.Look.IsZero() {
		if err := h.State.AddDue(ctx, cluster, w.decision.Look); err != nil {
			return err
		}
	}
	return h.State.UpdateStatus(ctx, cluster, func(s *status.Status) { h.tellUpgrade(s, *w) })
}
