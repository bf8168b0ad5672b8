package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
)

// validatePermissions refuses add-ons that the spec adds, or whose version it changes, if they need permissions in AWS and have none. Their
// pods would fail. The check of a release does the same for the release's add-ons. It asks EKS only about such add-ons.
func (p *Planner) validatePermissions(ctx context.Context, w *work, spec *api.Cluster) error {
	deployed := plan.AddonVersions(w.deployed, w.resolved.Spec.Addons)
	var added []api.Addon
	var names []string
	for _, addon := range w.resolved.Spec.Addons {
		isOwn := slices.ContainsFunc(spec.Spec.Addons, func(own api.Addon) bool { return own.Name == addon.Name })
		if _, stated := addon.Identities(); isOwn && !stated && deployed[addon.Name] != addon.Version {
			added, names = append(added, addon), append(names, addon.Name)
		}
	}
	if len(added) == 0 {
		return nil
	}
	facts := &preflight.Facts{}
	var err error
	if facts.Compat, err = p.EKS.Compat(ctx, names); err != nil {
		return err
	}
	var lines []string
	for _, lacking := range facts.WithoutPermission(added) {
		lines = append(lines, fmt.Sprintf("spec.addons[%s]: %s: add some, or an empty list if its pods have their permissions from elsewhere; "+
			"EKS recommends policies: aws eks describe-addon-configuration --addon-name %s --addon-version %s",
			lacking.Name, lacking, lacking.Name, lacking.Version))
	}
	if len(lines) == 0 {
		return nil
	}
	return &Stop{status.ReasonAddonWithoutPermission, strings.Join(lines, "\n")}
}
