package preflight

// Whether a release is complete before clusters use it.

import (
	"maps"
	"slices"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// published are the checks of a release alone.
var published = []check{
	{VersionOffered, false, versionOffered},
	{AddonsCompatible, false, addonsCompatible},
	{SupportDates, false, supportDates},
	{Images, false, images},
}

// Published checks what a release names: EKS offers its Kubernetes version, its add-ons are compatible, and its images exist. It needs
// only Catalog, Compat and Images of the facts.
func Published(f *Facts, r *api.Release) []status.Check {
	// A cluster that consists only of the release.
	cluster := &api.Cluster{Spec: api.ClusterSpec{Addons: r.Spec.Addons}}
	for _, architecture := range slices.Sorted(maps.Keys(r.Spec.Images)) {
		cluster.Spec.Pools = append(cluster.Spec.Pools, api.Pool{Architecture: architecture, ImageID: r.Spec.Images[architecture]})
	}
	return run(published, f, &Plan{
		To: upgrade.Target{Release: r.Metadata.Name, KubernetesVersion: r.Spec.KubernetesVersion}, After: cluster,
		Steps: []upgrade.Step{{Kind: upgrade.StepNodes, KubernetesVersion: r.Spec.KubernetesVersion}},
	})
}

// created are the checks of a cluster that does not exist yet.
var created = []check{
	{VersionOffered, false, versionOffered},
	{AddonsCompatible, false, addonsCompatible},
	{Images, false, images},
}

// Created checks what a resolved cluster is created from: EKS offers its Kubernetes version, its add-ons are compatible, and its images
// exist. It needs only Catalog, Compat and Images of the facts, and ReadAt to find deprecated images.
func Created(f *Facts, cluster *api.Cluster) []status.Check {
	version := cluster.Spec.KubernetesVersion
	return run(created, f, &Plan{
		To: upgrade.Target{
			KubernetesVersion: version,
		}, After: cluster, Steps: []upgrade.Step{{Kind: upgrade.StepNodes, KubernetesVersion: version}},
	})
}

// PublishedNames returns the names of the checks of releases and channels, in order.
func PublishedNames() []string {
	return append([]string{FileValid, ReleasesThere}, namesOf(published)...)
}
