package handler

// What an upgrade has to do with a plan: which release and Kubernetes version count now, and what begins when that is done. The
// decision is shared/upgrade's.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/templates"
)

// decide says what counts for a cluster now.
func (h *Handler) decide(ctx context.Context, w *work, spec *api.Cluster) error {
	var err error
	if w.record, _, err = h.State.Upgrade(ctx, w.cluster); err != nil {
		return err
	}
	in := upgrade.Situation{Spec: spec, SpecVersion: w.version, Record: w.record, Deployed: pinned(w, spec), Now: h.Now()}
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

// pinned is what a cluster is. A control plane that could not be created is none, unless it is tried again at the same release.
func pinned(w *work, spec *api.Cluster) upgrade.Target {
	t := upgrade.Target{KubernetesVersion: plan.KubernetesVersion(w.deployed)}
	t.Release, t.SHA256 = plan.Pin(w.deployed)
	if plan.Broken(w.deployed[names.ControlPlane].Status) && t.Release != spec.Spec.Release.Name {
		return upgrade.Target{}
	}
	return t
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
		boundary.Log(ctx).Warn("no channels", "error", err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	channels, errs := api.ReadChannels(key, object.Body, api.Options{})
	if errs != nil {
		boundary.Log(ctx).Warn("the channels cannot be used", "error", errs.Error())
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
	if pin, sha := plan.Pin(w.deployed); pin == name {
		return h.content(ctx, w, upgrade.Target{Release: name, SHA256: sha})
	}
	key := names.ReleaseSpec(name)
	object, err := h.Specs.Get(ctx, key, api.MaxFile)
	var large *store.TooLarge
	switch {
	case errors.Is(err, store.ErrNotFound):
		return content{}, &stop{status.ReasonReleaseUnusable, fmt.Sprintf("there is no release %s: upload it and then the spec again, or name another in spec.release.name", key)}
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
	object, err := h.State.Get(ctx, names.PinnedRelease(t.SHA256), api.MaxFile)
	if err != nil {
		return content{}, fmt.Errorf("reading the release %s that %s is pinned to: %w", t.Release, w.cluster, err)
	}
	return w.keepRelease(t.Release, object.Body)
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
		if next = c.release; d.Step.Kind == upgrade.StepNodes {
			counts = c
		}
	}
	w.release = counts.body
	w.pin = counts.release.Metadata.Name + "@" + names.SHA256(w.release)
	var errs api.Errors
	if w.resolved, errs = upgrade.Effective(spec, old.release, next, d.Step); errs != nil {
		return errs, nil
	}
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
	return h.versions(ctx, resolved, plan.KubernetesVersion(w.deployed))
}

// versions asks what EKS offers when the control plane would move, and only then.
func (h *Handler) versions(ctx context.Context, resolved *api.Cluster, current string) (api.Errors, error) {
	if current == resolved.Spec.KubernetesVersion {
		return nil, nil
	}
	offered, err := h.Versions.Offered(ctx)
	if err != nil {
		return nil, err
	}
	return api.ValidateVersions(resolved, offered, current), nil
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
			State: status.UpgradeScheduled, Spec: d.Start.Origin == upgrade.OriginSpec, Name: names.UpgradeStart(w.cluster, d.Start.Key, after, h.Now()),
			Message: fmt.Sprintf("the upgrade to release %s begins", d.Start.Release),
			Start: &events.Upgrade{
				Cluster: w.cluster, Release: d.Start.Release, KubernetesVersion: d.Start.KubernetesVersion, Origin: string(d.Start.Origin), Key: d.Start.Key,
			},
		}
	case d.Wants != nil && d.Wait != nil:
		return &events.PlannedUpgrade{State: status.UpgradeScheduled, Spec: true, Message: fmt.Sprintf("the upgrade to %s %s", *d.Wants, waits(d.Wait))}
	case d.Wants != nil:
		p := &events.PlannedUpgrade{State: string(upgrade.Stopped), Spec: true, Message: fmt.Sprintf(
			"the upgrade to %s did not come to its end: mend what was in its way, and upload the spec again or use drover upgrade", *d.Wants)}
		if r != nil && r.State == upgrade.Blocked {
			p.State = string(upgrade.Blocked)
		}
		return p
	}
	return nil
}

// waits says until when, and what for.
func waits(w *upgrade.Wait) string {
	if w.At.IsZero() || w.Missed {
		return "does not begin: " + w.Message
	}
	return "begins at " + w.At.Format(time.RFC3339) + ": " + w.Message
}

// tellUpgrade writes the upgrade that is to come into the status, and takes out one that was taken back. What is under way or over is
// told by who leads it.
func (h *Handler) tellUpgrade(s *status.Status, w work) {
	d := w.decision
	if w.record != nil && !w.record.State.Over() {
		return
	}
	var next *status.Upgrade
	switch {
	case d.Start != nil:
		now := h.Now().UTC().Truncate(time.Second)
		next = &status.Upgrade{Phase: status.UpgradeScheduled, To: d.Start.Release, Origin: string(d.Start.Origin), At: &now, Message: "it begins as soon as the cluster is converged"}
		if same(s.Upgrade, next) && s.Upgrade.At != nil {
			next.At = s.Upgrade.At // its time had come before
		}
	case d.Wait != nil:
		next = &status.Upgrade{Phase: status.UpgradeScheduled, To: d.Wait.To.Release, ToVersion: d.Wait.To.KubernetesVersion, Origin: string(d.Wait.Origin), Message: waits(d.Wait)}
		if !d.Wait.At.IsZero() {
			next.At = &d.Wait.At
		}
		if d.Wait.Missed {
			next.Phase = status.UpgradeMissed
		}
		h.missed(s, next)
	}
	switch {
	case next != nil:
		next.From, next.FromVersion = d.Old.Release, plan.KubernetesVersion(w.deployed)
		s.Upgrade = next
	case s.Upgrade != nil && status.ToCome(s.Upgrade.Phase):
		// It was taken back, or nothing is left to do.
		s.Upgrade = nil
		if len(s.Upgrades) > 0 {
			last := s.Upgrades[0]
			s.Upgrade = &last
		}
	}
}

// same says whether two are the same upgrade to come.
func same(a, b *status.Upgrade) bool {
	return a != nil && status.ToCome(a.Phase) && a.To == b.To && a.Origin == b.Origin
}

// missed says that an upgrade was to begin at a time that passed, and waits for the next.
func (h *Handler) missed(s *status.Status, next *status.Upgrade) {
	before := s.Upgrade
	if !same(before, next) || before.At == nil || next.At == nil || !next.At.After(*before.At) || before.At.After(h.Now()) {
		return
	}
	next.Message = fmt.Sprintf("the window of %s was missed; it %s", before.At.Format(time.RFC3339), next.Message)
}
