package preflight

// Whether a release is whole before anybody uses it.

import (
	"maps"
	"slices"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// published are the checks of a release by itself.
var published = []check{
	{VersionOffered, false, versionOffered},
	{AddonsCompatible, false, addonsCompatible},
	{SupportDates, false, supportDates},
	{Images, false, images},
}

// Published checks what a release names: that EKS offers its Kubernetes version, that its add-ons' versions go with that, and that its
// images are there. Of the facts it needs Catalogue, Compat and Images.
func Published(f *Facts, r *api.Release) []status.Check {
	// What a cluster would be that is made of nothing but the release.
	cluster := &api.Cluster{Spec: api.ClusterSpec{Addons: r.Spec.Addons}}
	for _, architecture := range slices.Sorted(maps.Keys(r.Spec.Images)) {
		cluster.Spec.Pools = append(cluster.Spec.Pools, api.Pool{Architecture: architecture, ImageID: r.Spec.Images[architecture]})
	}
	return run(published, f, &Plan{
		To: upgrade.Target{Release: r.Metadata.Name, KubernetesVersion: r.Spec.KubernetesVersion}, After: cluster,
		Steps: []upgrade.Step{{Kind: upgrade.StepNodes, KubernetesVersion: r.Spec.KubernetesVersion}},
	})
}

// PublishedNames lists the checks of releases and channels, in the order in which they are made.
func PublishedNames() []string {
	return append([]string{FileValid, ReleasesThere}, namesOf(published)...)
}
