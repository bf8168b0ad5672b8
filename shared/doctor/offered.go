package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

// good says, for each check of versions, that it found nothing.
var good = map[string]string{
	VersionOffered:   "EKS offers the Kubernetes versions",
	AddonsCompatible: "EKS offers the add-ons in their versions",
	Images:           "the images of the pools exist and fit",
}

// checkOffered finds versions and images of clusters that AWS does not offer.
func (r *report) checkOffered(clusters []Cluster) {
	for _, c := range clusters {
		for _, s := range preflight.CheckCreation(&r.facts.Offered, c.Resolved) {
			switch {
			case s.Name != r.name:
			case s.Blocks:
				r.block(r.listing(c.Resolved), "%s: %s", c.name(), s.Message)
			default:
				r.warn(r.listing(c.Resolved), "%s: %s", c.name(), s.Message)
			}
		}
	}
	if len(r.found) == 0 && len(clusters) > 0 {
		r.ok("%s", good[r.name])
	}
}

// listing returns the step that fixes the release or the spec, with the commands that list what AWS offers.
func (r *report) listing(c *api.Cluster) string {
	region, version := r.facts.Region, c.Spec.KubernetesVersion
	var commands []string
	what := ""
	switch r.name {
	case VersionOffered:
		what = "a Kubernetes version"
		commands = append(commands, fmt.Sprintf("aws eks describe-cluster-versions --region %s --query 'clusterVersions[].clusterVersion'",
			region))
	case AddonsCompatible:
		what = "add-on versions"
		for _, a := range c.Spec.Addons {
			if !r.offers(a, version) {
				commands = append(commands, fmt.Sprintf("aws eks describe-addon-versions --region %s --kubernetes-version %s --addon-name %s "+
					"--query 'addons[].addonVersions[].addonVersion'", region, version, a.Name))
			}
		}
	case Images:
		what = "an image"
		for _, p := range c.Spec.Pools {
			kind, _ := api.ImageKindOf(p.ImageKey())
			commands = append(commands, fmt.Sprintf("aws ssm get-parameter --region %s --query Parameter.Value --output text --name %s", region,
				preflight.ImageParameter(version, kind)))
		}
	}
	slices.Sort(commands)
	return fmt.Sprintf("name %s of this list in the release or the spec: %s", what, strings.Join(slices.Compact(commands), "; "))
}

// offers reports whether EKS offers an add-on in its version for a Kubernetes version. EKS chooses a version that is not stated.
func (r *report) offers(addon api.Addon, kubernetes string) bool {
	return slices.ContainsFunc(r.facts.Offered.Compat[addon.Name], func(v upgrade.AddonVersion) bool {
		return (addon.Version == "" || addon.Version == v.Version) && slices.Contains(v.Kubernetes, kubernetes)
	})
}
