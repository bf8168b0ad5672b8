package releases

// The permissions of add-ons in a new release: what EKS recommends.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// identities sets the identities of an add-on to what EKS recommends. Roles and an empty list of another release stay. Where drover creates
// no role for a recommended policy, the add-on gets none, and the file says so.
func (d *Drafter) identities(ctx context.Context, addon *api.Addon) error {
	if statesRoles(*addon) {
		return nil
	}
	recommended, err := d.Defaults.Recommended(ctx, addon.Name, addon.Version)
	if err != nil {
		return err
	}
	addon.PodIdentities = nil
	for _, r := range recommended {
		identity, isCovered := r.Identity()
		if !isCovered {
			if d.uncovered == nil {
				d.uncovered = map[string][]api.RecommendedIdentity{}
			}
			addon.PodIdentities, d.uncovered[addon.Name] = nil, recommended
			return nil
		}
		addon.PodIdentities = append(addon.PodIdentities, identity)
	}
	return nil
}

// statesRoles reports whether an add-on names roles, or states that it has its permissions from elsewhere.
func statesRoles(addon api.Addon) bool {
	return addon.PodIdentities != nil && len(addon.PodIdentities) == 0 ||
		slices.ContainsFunc(addon.PodIdentities, func(identity api.AddonIdentity) bool { return identity.RoleARN != "" })
}

// identitiesYAML returns the lines about the identities of an add-on.
func (d *Draft) identitiesYAML(addon api.Addon) string {
	var b strings.Builder
	for _, r := range d.uncovered[addon.Name] {
		if len(r.Policies) == 0 {
			fmt.Fprintf(&b, "      # Service account %s needs permissions, and EKS recommends no policy. Name a role in podIdentities.\n",
				oneLine(r.ServiceAccount))
			continue
		}
		fmt.Fprintf(&b, "      # EKS recommends for service account %s: %s. Name a role in podIdentities.\n", oneLine(r.ServiceAccount),
			oneLine(strings.Join(r.Policies, ", ")))
	}
	if addon.PodIdentities != nil {
		fmt.Fprintf(&b, "      podIdentities: %s\n", quote(addon.PodIdentities))
	}
	return b.String()
}
