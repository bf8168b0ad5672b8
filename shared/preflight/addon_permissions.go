package preflight

import (
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// WithoutPermission returns the add-ons that need permissions in AWS and state none. EKS creates such an add-on, but its pods fail.
func (f *Facts) WithoutPermission(addons []api.Addon) (lacking []api.AddonWithoutPermission) {
	for _, addon := range addons {
		if _, stated := addon.Identities(); !stated && f.Compat.NeedsPermissions(addon.Name, addon.Version) {
			lacking = append(lacking, api.AddonWithoutPermission{
				Name: addon.Name, Version: addon.Version, Recommended: f.Recommended[addon.Name],
			})
		}
	}
	return lacking
}

// addonPermissions checks that the add-ons of a release that need permissions have some.
func addonPermissions(r *report, f *Facts, p *Plan) {
	var lines []string
	for _, lacking := range f.WithoutPermission(p.After.Spec.Addons) {
		lines = append(lines, lacking.String())
	}
	if len(lines) > 0 {
		r.block("Add podIdentities to the add-on in the release, with these policies or with a role in roleARN. State an empty list if its pods "+
			"have their permissions from elsewhere.", "%s", strings.Join(lines, "\n"))
	}
}
