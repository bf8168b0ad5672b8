package api

// Release is a tested set of defaults.
type Release struct {
	// APIVersion is drover.run/v1alpha1.
	APIVersion string `json:"apiVersion" rule:"enum=drover.run/v1alpha1"`
	// Kind is Release.
	Kind string `json:"kind" rule:"enum=Release"`
	// Metadata names the release.
	Metadata Metadata `json:"metadata" rule:"name=release-name"`
	// Spec holds the defaults.
	Spec ReleaseSpec `json:"spec"`
}

// ReleaseSpec holds the defaults for clusters that do not state otherwise.
type ReleaseSpec struct {
	// KubernetesVersion is the minor version of the control plane, such as "1.36".
	KubernetesVersion string `json:"kubernetesVersion" rule:"format=kubernetes-version"`
	// UpgradeFrom is the oldest Kubernetes version from which a cluster may be upgraded to this release: its own, or up to three minor
	// versions older. The control plane is upgraded one version at a time; nodes skip those between. Default: one older than its own.
	UpgradeFrom string `json:"upgradeFrom,omitempty" rule:"format=kubernetes-version"`
	// Images are the node AMIs by architecture.
	Images map[Architecture]string `json:"images" rule:"keys=architecture;format=ami-id;minItems=1"`
	// Addons with their versions; every cluster of the release has them.
	Addons []Addon `json:"addons,omitempty" rule:"unique=name"`
	// TemplateVersion is the set of templates, such as v1.
	TemplateVersion string `json:"templateVersion" rule:"format=template-version"`
}
