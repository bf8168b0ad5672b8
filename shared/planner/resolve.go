package planner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/templates"
)

// resolve computes the effective spec and pins the cluster to its release.
func (p *Planner) resolve(ctx context.Context, w *work, spec *api.Cluster) (api.Errors, error) {
	d := w.decision
	old, err := p.pinnedRelease(ctx, w, d.Old)
	if err != nil {
		return nil, err
	}
	effective := old
	var next *api.Release
	if d.Next != nil {
		c, err := p.pinnedRelease(ctx, w, *d.Next)
		if err != nil {
			return nil, err
		}
		if next = c.release; d.Step.AppliesRelease() {
			effective = c
		}
	}
	w.release = effective.body
	w.pin = effective.release.Metadata.Name + "@" + names.SHA256(w.release)
	var errs api.Errors
	if w.resolved, errs = upgrade.Effective(spec, old.release, next, d.Step); errs != nil {
		return errs, p.explainImages(ctx, w, spec, next, errs)
	}
	w.templates = upgrade.Templates(spec, next, d.Step, d.Keep, plan.TemplateVersions(w.deployed))
	d.Keep.Apply(spec, w.resolved, d.Step, plan.KeptImages(w.deployed, w.resolved), plan.AddonVersions(w.deployed, w.resolved.Spec.Addons))
	return p.validate(w, spec, w.resolved)
}

// validate validates a resolved spec. An error in what the release states for an add-on stops planning: it has no line in the spec.
func (p *Planner) validate(w *work, spec, resolved *api.Cluster) (api.Errors, error) {
	errs := api.Validate(resolved, p.validation(w))
	var lines []string
	for _, e := range errs {
		part := addonIdentities.FindStringSubmatch(e.Cause.Field)
		if part == nil {
			continue
		}
		i, _ := strconv.Atoi(part[1]) // digits
		addon := resolved.Spec.Addons[i]
		if !slices.ContainsFunc(spec.Spec.Addons, func(own api.Addon) bool { return own.Name == addon.Name && own.PodIdentities != nil }) {
			lines = append(lines, fmt.Sprintf("the release %s: spec.addons[%s]%s: %s", resolved.Spec.Release.Name, addon.Name, part[2],
				e.Cause.ErrorBody()))
		}
	}
	if len(lines) > 0 {
		return nil, &Stop{status.ReasonReleaseUnusable, strings.Join(lines, "\n")}
	}
	return errs, nil
}

// addonIdentities is the field of an error about the identities of an add-on.
var addonIdentities = regexp.MustCompile(`^spec\.addons\[(\d+)\](\.podIdentities.*)$`)

// validation returns the options with which the spec is validated.
func (p *Planner) validation(w *work) api.Options {
	return api.Options{Name: w.cluster, TemplateVersions: templates.Versions(), Cell: p.Settings}
}

// workloadBoundary returns the permissions boundary to render: the cell's or, where the settings are not known, that of the deployed stack.
func (p *Planner) workloadBoundary(deployed map[string]stack.Deployed) string {
	if p.Settings == nil {
		return deployed[names.Identities].Parameters[render.WorkloadBoundary]
	}
	return p.Settings.WorkloadBoundary
}

// validateWanted validates the spec with the release and version that it names, if another release still applies.
func (p *Planner) validateWanted(ctx context.Context, w *work, spec *api.Cluster) (api.Errors, error) {
	wants := w.decision.SpecTarget
	if wants == nil {
		return nil, nil
	}
	c, err := p.namedRelease(ctx, w, wants.Release)
	if err != nil {
		return nil, err
	}
	resolved, errs := upgrade.Effective(spec, c.release, nil, upgrade.Step{KubernetesVersion: wants.KubernetesVersion})
	if errs == nil {
		errs, err = p.validate(w, spec, resolved)
	}
	if errs != nil || err != nil {
		return errs, err
	}
	return p.validateVersions(ctx, resolved, plan.KubernetesVersion(w.deployed), c.release.Spec.UpgradeFrom)
}

// validateVersions checks that EKS offers the new Kubernetes version. It asks EKS only if the version changes. from is the oldest version
// that may move to the new one directly.
func (p *Planner) validateVersions(ctx context.Context, resolved *api.Cluster, current, from string) (api.Errors, error) {
	if current == resolved.Spec.KubernetesVersion {
		return nil, nil
	}
	offered, err := p.EKS.Offered(ctx)
	if err != nil {
		return nil, err
	}
	return api.ValidateVersions(resolved, offered, current, from), nil
}

// content is a release and its bytes.
type content struct {
	release *api.Release
	body    []byte
}

// namedRelease reads a release by its name. If the cluster is pinned to a release of this name, it keeps that content: editing or deleting
// a release changes no cluster.
func (p *Planner) namedRelease(ctx context.Context, w *work, name string) (content, error) {
	if c, read := w.releases[name]; read {
		return c, nil
	}
	if w.current.Release == name && w.current.SHA256 != "" {
		return p.pinnedRelease(ctx, w, w.current)
	}
	release, body, err := specs.Release(ctx, p.Specs, name)
	var unusable *specs.Unusable
	switch {
	case errors.Is(err, specs.ErrAbsent):
		return content{}, &Stop{
			status.ReasonReleaseUnusable, fmt.Sprintf("there is no release %s: upload it, or name another", names.ReleaseSpec(name)),
		}
	case errors.As(err, &unusable):
		return content{}, &Stop{status.ReasonReleaseUnusable, unusable.Message}
	case err != nil:
		return content{}, err
	}
	w.releases[name] = content{release.In(p.Cell.Region), body}
	return w.releases[name], nil
}

// pinnedRelease reads a release by the content that a cluster or an upgrade is pinned to.
func (p *Planner) pinnedRelease(ctx context.Context, w *work, t upgrade.Target) (content, error) {
	if t.SHA256 == "" {
		return p.namedRelease(ctx, w, t.Release)
	}
	if c, read := w.releases[t.SHA256]; read {
		return c, nil
	}
	release, body, err := specs.PinnedRelease(ctx, p.State, t.Release, t.SHA256)
	var unusable *specs.Unusable
	switch {
	case errors.As(err, &unusable):
		return content{}, &Stop{status.ReasonReleaseUnusable, unusable.Message}
	case err != nil:
		return content{}, fmt.Errorf("reading the release %s that %s is pinned to: %w", t.Release, w.cluster, err)
	}
	c := content{release.In(p.Cell.Region), body}
	w.releases[t.Release], w.releases[t.SHA256] = c, c
	return c, nil
}

// channels reads the releases of the channels if the cluster follows one. Channels that cannot be used are ignored.
func (p *Planner) channels(ctx context.Context, spec *api.Cluster) (*api.ChannelsSpec, error) {
	if c := spec.Spec.Upgrade.Channel; c == "" || c == api.ChannelNone {
		return nil, nil
	}
	channels, err := specs.Channels(ctx, p.Specs)
	if specs.Missing(err) {
		logging.From(ctx).Warn("channels unusable", "error", err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &channels.Spec, nil
}
