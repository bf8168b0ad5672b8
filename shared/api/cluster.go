// Package api holds the kinds people write, their defaults and their validation. It is pure.
package api

// GroupVersion is the apiVersion of every kind drover reads.
const GroupVersion = "drover.run/v1alpha1"

// Kinds.
const (
	KindCluster = "Cluster"
	KindRelease = "Release"
)

// Metadata identifies an object, Kubernetes style.
type Metadata struct {
	// Name of the object; the file must be called the same.
	Name string `json:"name" rule:"format=name"`
	// Labels select clusters in rollouts.
	Labels map[string]string `json:"labels,omitempty" rule:"keys=label-key;format=label-value"`
	// Annotations are for people and other tools; drover keeps and ignores them.
	Annotations map[string]string `json:"annotations,omitempty" rule:"keys=label-key"`
}

// Cluster is one Kubernetes cluster on AWS.
type Cluster struct {
	// APIVersion is drover.run/v1alpha1.
	APIVersion string `json:"apiVersion" rule:"enum=drover.run/v1alpha1"`
	// Kind is Cluster.
	Kind string `json:"kind" rule:"enum=Cluster"`
	// Metadata names the cluster.
	Metadata Metadata `json:"metadata" rule:"name=cluster-name"`
	// Spec is what the cluster should be.
	Spec ClusterSpec `json:"spec"`
}

// ClusterSpec is what a cluster should be.
type ClusterSpec struct {
	// Release gives the defaults of what is not stated here.
	Release ReleaseRef `json:"release"`
	// KubernetesVersion is the minor version of the control plane, such as "1.36". Default: the release's.
	KubernetesVersion string `json:"kubernetesVersion,omitempty" rule:"format=kubernetes-version"`
	// Network is the VPC that the cluster lives in.
	Network Network `json:"network"`
	// ControlPlane configures the EKS cluster.
	ControlPlane ControlPlane `json:"controlPlane,omitempty"`
	// Pools are the groups of worker nodes.
	Pools []Pool `json:"pools,omitempty" rule:"unique=name"`
	// Addons are the EKS add-ons. What the release lists is added, what is stated here wins.
	Addons []Addon `json:"addons,omitempty" rule:"unique=name"`
	// Tags are set on every stack and resource of the cluster.
	Tags map[string]string `json:"tags,omitempty" rule:"keys=tag-key;format=tag-value;maxItems=40"`
	// TemplateVersion is the set of templates that renders the cluster. Default: the release's.
	TemplateVersion string `json:"templateVersion,omitempty" rule:"format=template-version"`
	// Paused stops new work on the cluster; what is under way ends.
	Paused bool `json:"paused,omitempty"`
	// DeletionProtection keeps the cluster when its spec is deleted. Default: true.
	DeletionProtection *bool `json:"deletionProtection,omitempty" rule:"default=true"`
}

// ReleaseRef names a release.
type ReleaseRef struct {
	// Name of the release: the object releases/<name>.yaml in the specs bucket.
	Name string `json:"name" rule:"format=name"`
}

// Network is the VPC of a cluster: made by drover, or an existing one.
type Network struct {
	// CIDR of the VPC, between /16 and /24. Required unless existing is given.
	CIDR string `json:"cidr,omitempty" rule:"format=cidr"`
	// SecondaryCIDRs are added to the VPC; pods and further nodes may use them.
	SecondaryCIDRs []string `json:"secondaryCIDRs,omitempty" rule:"format=cidr;unique;maxItems=49"`
	// Zones are the availability zones; EKS needs two or more. Required unless existing is given.
	Zones []string `json:"zones,omitempty" rule:"format=zone;unique;minItems=2"`
	// NATGateways says how private nodes reach the internet: PerZone, Single or None. Default: PerZone.
	NATGateways NATGateways `json:"natGateways,omitempty" rule:"default=PerZone;enum=PerZone,Single,None"`
	// Existing uses a VPC that is already there; drover changes nothing in it.
	Existing *ExistingNetwork `json:"existing,omitempty"`
}

// NATGateways says how private nodes reach the internet.
type NATGateways string

// The values of NATGateways.
const (
	NATPerZone NATGateways = "PerZone"
	NATSingle  NATGateways = "Single"
	NATNone    NATGateways = "None"
)

// ExistingNetwork is a VPC that drover uses and does not change.
type ExistingNetwork struct {
	// VPCID of the VPC.
	VPCID string `json:"vpcID" rule:"format=vpc-id"`
	// Subnets in two zones or more, private, with a way to the EKS endpoint and the registries.
	Subnets []string `json:"subnets" rule:"format=subnet-id;unique;minItems=2"`
}

// ControlPlane configures the EKS cluster.
type ControlPlane struct {
	// Endpoint is where the Kubernetes API is reached.
	Endpoint Endpoint `json:"endpoint,omitempty"`
	// Logs are the control plane logs sent to CloudWatch: api, audit, authenticator, controllerManager, scheduler.
	// Default: audit, authenticator.
	Logs []string `json:"logs,omitzero" rule:"default=audit,authenticator;enum=api,audit,authenticator,controllerManager,scheduler;unique"`
	// EncryptionKeyARN is the KMS key that encrypts Kubernetes secrets. Default: drover makes one.
	EncryptionKeyARN string `json:"encryptionKeyARN,omitempty" rule:"format=kms-key-arn"`
	// SupportType is Standard (upgraded by EKS at the end of support) or Extended. Default: Standard.
	SupportType SupportType `json:"supportType,omitempty" rule:"default=Standard;enum=Standard,Extended"`
	// ServiceCIDR is the range of Service addresses. Default: 172.20.0.0/16.
	ServiceCIDR string `json:"serviceCIDR,omitempty" rule:"default=172.20.0.0/16;format=cidr"`
	// Access lists who may use the cluster.
	Access []AccessEntry `json:"access,omitempty" rule:"unique=principalARN"`
}

// SupportType is EKS's support policy.
type SupportType string

// The values of SupportType.
const (
	SupportStandard SupportType = "Standard"
	SupportExtended SupportType = "Extended"
)

// Endpoint is where the Kubernetes API is reached.
type Endpoint struct {
	// Public makes the endpoint reachable from the internet, for PublicCIDRs. Default: true.
	Public *bool `json:"public,omitempty" rule:"default=true"`
	// PublicCIDRs that may reach the public endpoint. Default: 0.0.0.0/0.
	PublicCIDRs []string `json:"publicCIDRs,omitzero" rule:"default=0.0.0.0/0;format=cidr;unique;minItems=1;maxItems=40"`
	// Private makes the endpoint reachable from the VPC. Default: true.
	Private *bool `json:"private,omitempty" rule:"default=true"`
}

// AccessEntry gives an IAM principal access to the cluster.
type AccessEntry struct {
	// PrincipalARN of the IAM role or user.
	PrincipalARN string `json:"principalARN" rule:"format=principal-arn"`
	// Groups are Kubernetes groups that the principal is in.
	Groups []string `json:"groups,omitempty" rule:"format=group;unique"`
	// Policies are EKS access policies by name, such as AmazonEKSClusterAdminPolicy.
	Policies []AccessPolicy `json:"policies,omitempty" rule:"unique=name"`
}

// AccessPolicy is an EKS access policy and where it holds.
type AccessPolicy struct {
	// Name of the policy, such as AmazonEKSViewPolicy.
	Name string `json:"name" rule:"format=access-policy"`
	// Namespaces that it holds in. Default: the whole cluster.
	Namespaces []string `json:"namespaces,omitempty" rule:"format=namespace;unique"`
}

// Pool is a group of worker nodes: one Auto Scaling group, one stack.
type Pool struct {
	// Name of the pool.
	Name string `json:"name" rule:"format=pool-name"`
	// InstanceTypes in order of preference.
	InstanceTypes []string `json:"instanceTypes" rule:"format=instance-type;unique;minItems=1;maxItems=40"`
	// Architecture is amd64 or arm64. Default: amd64.
	Architecture Architecture `json:"architecture,omitempty" rule:"default=amd64;enum=amd64,arm64"`
	// MinSize is the least number of nodes.
	MinSize int `json:"minSize" rule:"min=0"`
	// MaxSize is the greatest number of nodes.
	MaxSize int `json:"maxSize" rule:"min=1"`
	// Spot mixes spot instances in. Default: on-demand only.
	Spot *Spot `json:"spot,omitempty"`
	// ImageID is the AMI. Default: the release's for the architecture.
	ImageID string `json:"imageID,omitempty" rule:"format=ami-id"`
	// RootVolume is the root disk.
	RootVolume RootVolume `json:"rootVolume,omitempty"`
	// Labels of the nodes.
	Labels map[string]string `json:"labels,omitempty" rule:"keys=label-key;format=label-value"`
	// Taints of the nodes.
	Taints []Taint `json:"taints,omitempty" rule:"unique=key,effect"`
	// MaxPods a node may run. Default: what the instance type's network allows.
	MaxPods int `json:"maxPods,omitempty" rule:"min=1;max=1000"`
	// KubeletFlags are further command line flags of the kubelet, such as --v=2.
	KubeletFlags []string `json:"kubeletFlags,omitempty" rule:"format=kubelet-flag;unique"`
	// Files are written before the kubelet starts.
	Files []File `json:"files,omitempty" rule:"unique=path"`
	// Commands are run by bash as root, in order, after the files are written and before the kubelet starts.
	Commands []string `json:"commands,omitempty" rule:"secret;format=command"`
}

// Architecture of a processor.
type Architecture string

// The values of Architecture.
const (
	AMD64 Architecture = "amd64"
	ARM64 Architecture = "arm64"
)

// Spot mixes spot instances into a pool.
type Spot struct {
	// OnDemandBase is the number of nodes that are on-demand before any spot instance is started.
	OnDemandBase int `json:"onDemandBase" rule:"min=0"`
	// OnDemandPercentage of the nodes above the base that are on-demand.
	OnDemandPercentage int `json:"onDemandPercentage" rule:"min=0;max=100"`
}

// RootVolume is a node's root disk.
type RootVolume struct {
	// SizeGiB in GiB. Default: 50.
	SizeGiB int `json:"sizeGiB,omitempty" rule:"default=50;min=20;max=65536"`
	// Type is an EBS volume type: gp3, gp2, io1 or io2. Default: gp3.
	Type string `json:"type,omitempty" rule:"default=gp3;enum=gp3,gp2,io1,io2"`
	// IOPS of gp3, io1 and io2. Default: EBS's own for gp3.
	IOPS int `json:"iops,omitempty" rule:"min=100;max=256000"`
	// Throughput in MiB/s, gp3 only. Default: EBS's own.
	Throughput int `json:"throughput,omitempty" rule:"min=125;max=2000"`
	// Encrypted with the account's EBS key. Default: true.
	Encrypted *bool `json:"encrypted,omitempty" rule:"default=true"`
}

// Taint of a node, Kubernetes style.
type Taint struct {
	// Key of the taint.
	Key string `json:"key" rule:"format=label-key"`
	// Value of the taint.
	Value string `json:"value,omitempty" rule:"format=label-value"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	Effect string `json:"effect" rule:"enum=NoSchedule,PreferNoSchedule,NoExecute"`
}

// File is written to a node.
type File struct {
	// Path is absolute.
	Path string `json:"path" rule:"format=path"`
	// Mode in octal, such as "0644". Default: "0644".
	Mode string `json:"mode,omitempty" rule:"default=0644;format=mode"`
	// Content of the file, as it is.
	Content string `json:"content" rule:"secret;empty"`
}

// Addon is an EKS add-on.
type Addon struct {
	// Name of the add-on, such as vpc-cni.
	Name string `json:"name" rule:"format=addon-name"`
	// Version of the add-on. Default: the release's.
	Version string `json:"version,omitempty" rule:"format=addon-version"`
	// Configuration of the add-on, any value that its schema allows.
	Configuration map[string]any `json:"configuration,omitempty"`
}
