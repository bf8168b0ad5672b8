package preflight

// The checks of an uploaded release, and those of a cluster that does not exist yet.

import (
	"maps"
	"slices"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// releaseChecks are the checks of an uploaded release.
var releaseChecks = []check{
	{name: VersionOffered, run: versionOffered},
	{name: AddonsCompatible, run: addonsCompatible},
	{name: AddonPermissions, run: addonPermissions},
	{name: SupportDates, run: supportDates},
	{name: Images, run: images},
}

// CheckRelease checks what a release names: EKS offers its Kubernetes version, its add-ons are compatible, and its images exist. It needs
// only Catalog, Compat, Images and Recommended of the facts.
func CheckRelease(f *Facts, r *api.Release) []status.Check {
	// A cluster that consists only of the release.
	cluster := &api.Cluster{Spec: api.ClusterSpec{Addons: r.Spec.Addons}}
	for _, key := range slices.Sorted(maps.Keys(r.Spec.Images)) {
		kind, _ := api.ImageKindOf(key)
		cluster.Spec.Pools = append(cluster.Spec.Pools, api.Pool{
			Architecture: kind.Architecture, Image: api.Image{Family: kind.Family, Variant: kind.Variant}, ImageID: r.Spec.Images[key],
		})
	}
	return run(releaseChecks, f, &Plan{
		To: upgrade.Target{Release: r.Metadata.Name, KubernetesVersion: r.Spec.KubernetesVersion}, After: cluster,
		Steps: []upgrade.Step{{Kind: upgrade.StepNodes, KubernetesVersion: r.Spec.KubernetesVersion}},
	})
}

// creationChecks are the checks of a cluster that does not exist yet.
var creationChecks = []check{
	{name: VersionOffered, run: versionOffered},
	{name: AddonsCompatible, run: addonsCompatible},
	{name: Images, run: images},
}

// CheckCreation checks what a resolved cluster is created from: EKS offers its Kubernetes version, its add-ons are compatible, and its
// images exist. It needs only Catalog, Compat and Images of the facts, and ReadAt to find deprecated images.
func CheckCreation(f *Facts, cluster *api.Cluster) []status.Check {
	version := cluster.Spec.KubernetesVersion
	return run(creationChecks, f, &Plan{
		To: upgrade.Target{
			KubernetesVersion: version,
		}, After: cluster, Steps: []upgrade.Step{{Kind: upgrade.StepNodes, KubernetesVersion: version}},
	})
}

// ReleaseCheckNames returns the names of the checks of releases and channels, in order.
func ReleaseCheckNames() []string {
	return append([]string{FileValid, ReleasesExist}, namesOf(releaseChecks)...)
}
