package render

// The two stacks of add-ons: those that nodes need to become Ready, and those that need nodes to run on.

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// addonsParams are the parameters of addons.yaml.tmpl.
type addonsParams struct {
	Description string
	roleParams
	Addons []addon
}

type addon struct {
	// ID is the logical id. After is that of an add-on to create first, or "".
	ID, After     string
	Name, Version string
	// Configuration is nil if there is none.
	Configuration map[string]any
	// Roles are the roles that drover creates for the add-on. Associations are those of its service accounts, and nil if it states none.
	Roles        []addonRole
	Associations []addonAssociation
	// None reports that the add-on states an empty list, which removes the associations that it had.
	None bool
}

// addonRole is a role with AWS managed policies, as ARNs.
type addonRole struct {
	ID       string
	Policies []string
}

// addonAssociation gives a service account a role: one of the add-on's, by its id, or one that exists.
type addonAssociation struct{ ServiceAccount, RoleID, RoleARN string }

// newAddonsParams returns the add-ons of a stack, or nil if there are none.
func newAddonsParams(cell Cell, cluster *api.Cluster, description string, belongs func(name string) bool) (*addonsParams, error) {
	p := &addonsParams{Description: description, roleParams: cell.roles()}
	for _, a := range cluster.Spec.Addons {
		if !belongs(a.Name) {
			continue
		}
		if slices.ContainsFunc(p.Addons, func(other addon) bool { return other.Name == a.Name }) {
			return nil, errors.New("spec.addons: " + a.Name + " is there twice")
		}
		out := addon{ID: addonID(a.Name), Name: a.Name, Version: a.Version}
		if len(a.Configuration) > 0 {
			out.Configuration = a.Configuration
		}
		identities, stated := a.Identities()
		switch {
		case len(identities) == 0:
			out.None = stated
		case cluster.HasAddon(api.PodIdentityAgent):
			if err := out.addIdentities(cell, identities); err != nil {
				return nil, err
			}
			if belongs(api.PodIdentityAgent) {
				out.After = addonID(api.PodIdentityAgent)
			}
		case a.Name != "vpc-cni" || a.PodIdentities != nil: // by default the CNI can use the node's role, in the host's network
			return nil, errors.New("spec.addons: " + a.Name + " has its permission by pod identity: add " + api.PodIdentityAgent)
		}
		p.Addons = append(p.Addons, out)
	}
	if len(p.Addons) == 0 {
		return nil, nil
	}
	// Sorted by name, so that the order in spec and release does not matter.
	slices.SortFunc(p.Addons, func(a, b addon) int { return strings.Compare(a.Name, b.Name) })
	return p, nil
}

// addIdentities adds the associations of an add-on, and the roles for those with policies.
func (a *addon) addIdentities(cell Cell, identities []api.AddonIdentity) error {
	made := 0
	for _, identity := range identities {
		if identity.RoleARN == "" {
			made++
		}
	}
	for _, identity := range identities {
		association := addonAssociation{ServiceAccount: identity.ServiceAccount, RoleARN: identity.RoleARN}
		if identity.RoleARN == "" {
			association.RoleID = a.ID + "Role"
			if made > 1 {
				association.RoleID += digest(identity.ServiceAccount)
			}
			role := addonRole{ID: association.RoleID}
			for _, policy := range identity.Policies {
				if api.AddonPolicies[policy] == "" {
					return fmt.Errorf("spec.addons[%s].podIdentities: drover creates no role for the policy %q: name a role in roleARN", a.Name, policy)
				}
				role.Policies = append(role.Policies, cell.managedPolicy(api.AddonPolicies[policy]))
			}
			slices.Sort(role.Policies)
			a.Roles = append(a.Roles, role)
		}
		a.Associations = append(a.Associations, association)
	}
	slices.SortFunc(a.Roles, func(x, y addonRole) int { return strings.Compare(x.ID, y.ID) })
	slices.SortFunc(a.Associations, func(x, y addonAssociation) int { return strings.Compare(x.ServiceAccount, y.ServiceAccount) })
	return nil
}

// plainName matches names that camel case represents unambiguously.
var plainName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*$`)

// addonID returns VpcCni for vpc-cni, and a digest for names that would be ambiguous.
func addonID(name string) string {
	if !plainName.MatchString(name) {
		return "Addon" + digest(name)
	}
	var id strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		id.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return id.String()
}

// AddonOutput returns the output of an add-on's stack that holds its version.
func AddonOutput(name string) string { return addonID(name) + "Version" }
