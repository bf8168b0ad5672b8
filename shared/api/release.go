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
	// Images are the node AMIs by kind: amd64 and arm64 are AL2023 in the variant Standard. Others are named by family, architecture and
	// variant, such as amd64-nvidia, amd64-neuron, bottlerocket-arm64 and bottlerocket-amd64-nvidia-fips. Clusters can use only pools whose
	// kind is here.
	Images map[string]string `json:"images" rule:"keys=image-key;format=ami-id;minItems=1"`
	// Regions have AMIs of their own, because AMI ids differ from region to region. In a region that is here, its images take precedence over
	// images, key by key.
	Regions map[string]ReleaseRegion `json:"regions,omitempty" rule:"keys=region"`
	// Addons with their versions; every cluster of the release has them.
	Addons []Addon `json:"addons,omitempty" rule:"unique=name"`
	// TemplateVersion is the set of templates, such as v1.
	TemplateVersion string `json:"templateVersion" rule:"format=template-version"`
}

// ReleaseRegion is what a release has for one region.
type ReleaseRegion struct {
	// Images are the node AMIs of the region by kind, as in spec.images.
	Images map[string]string `json:"images" rule:"keys=image-key;format=ami-id;minItems=1"`
}
