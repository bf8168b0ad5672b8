package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
)

// validatePermissions refuses add-ons that the spec adds, whose version it changes, or whose identities it removes, if they need
// permissions in AWS and have none. Their pods would fail. The check of a release does the same for the release's add-ons. It asks EKS only
// about such add-ons.
func (p *Planner) validatePermissions(ctx context.Context, w *work, spec *api.Cluster) error {
	deployed := plan.AddonVersions(w.deployed, w.resolved.Spec.Addons)
	var without, same []api.Addon
	for _, addon := range w.resolved.Spec.Addons {
		isOwn := slices.ContainsFunc(spec.Spec.Addons, func(own api.Addon) bool { return own.Name == addon.Name })
		if _, stated := addon.Identities(); !isOwn || stated {
			continue
		}
		if deployed[addon.Name] == addon.Version {
			same = append(same, addon)
		} else {
			without = append(without, addon)
		}
	}
	removed, err := p.withoutTheirRoles(ctx, w, same)
	if err != nil {
		return err
	}
	without = append(without, removed...)
	if len(without) == 0 {
		return nil
	}
	var asked []string
	for _, addon := range without {
		asked = append(asked, addon.Name)
	}
	facts := &preflight.Facts{}
	if facts.Compat, err = p.EKS.Compat(ctx, asked); err != nil {
		return err
	}
	var lines []string
	for _, lacking := range facts.WithoutPermission(without) {
		loses := ""
		if slices.ContainsFunc(removed, func(a api.Addon) bool { return a.Name == lacking.Name }) {
			loses = ", so its pods would lose their role"
		}
		lines = append(lines, fmt.Sprintf("spec.addons[%s]: %s%s: state podIdentities, or an empty list if its pods have their permissions from "+
			"elsewhere; for the policies that EKS recommends, run aws eks describe-addon-configuration --addon-name %s --addon-version %s",
			lacking.Name, lacking, loses, lacking.Name, lacking.Version))
	}
	if len(lines) == 0 {
		return nil
	}
	return &Stop{status.ReasonAddonWithoutPermission, strings.Join(lines, "\n")}
}

// withoutTheirRoles returns which of some deployed add-ons have identities that the spec no longer states. It reads the deployed specs only
// if the stack of such an add-on changes.
func (p *Planner) withoutTheirRoles(ctx context.Context, w *work, addons []api.Addon) (removed []api.Addon, err error) {
	changing := map[string]bool{}
	for _, stack := range w.rendered.Stacks {
		changing[stack.Name] = plan.Checksum(stack, stack.Tags) != w.deployed[stack.Name].Tags[names.TagChecksum]
	}
	stackOf := func(addon api.Addon) string {
		if api.NodesNeed(addon.Name) {
			return names.Addons
		}
		return names.NodeAddons
	}
	if !slices.ContainsFunc(addons, func(a api.Addon) bool { return changing[stackOf(a)] }) {
		return nil, nil
	}
	old, err := p.deployedSpecs(ctx, *w)
	if err != nil {
		return nil, err
	}
	for _, addon := range addons {
		before := old[stackOf(addon)]
		if before == nil {
			continue
		}
		for _, deployed := range before.Spec.Addons {
			if identities, _ := deployed.Identities(); deployed.Name == addon.Name && len(identities) > 0 {
				removed = append(removed, addon)
			}
		}
	}
	return removed, nil
}
