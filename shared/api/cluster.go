// Package api defines the kinds of files that users write: Cluster, Release and Channels, and for fleets Rollout, Decision and Freeze. It
// decodes and validates them and fills in defaults. It is pure: the same bytes and options give the same result.
package api

// GroupVersion is the apiVersion of every kind drover reads.
const GroupVersion = "drover.run/v1alpha1"

// Kinds.
const (
	KindCluster  = "Cluster"
	KindRelease  = "Release"
	KindChannels = "Channels"
	KindRollout  = "Rollout"
	KindDecision = "Decision"
	KindFreeze   = "Freeze"
)

// Metadata identifies an object, Kubernetes style.
type Metadata struct {
	// Name of the object; the file must be called the same. A cluster's is a DNS label of at most 50 characters that neither
	// ends in -node or -pool nor contains -pool-, as its stacks would then be named like another cluster's.
	Name string `json:"name" rule:"format=name"`
	// Labels are for users and other tools. Rollouts and freezes select clusters by their labels; drover uses them for nothing else.
	Labels map[string]string `json:"labels,omitempty" rule:"keys=label-key;format=label-value"`
	// Annotations are for users and other tools. drover keeps and ignores them.
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
	// Spec is the desired state of the cluster.
	Spec ClusterSpec `json:"spec"`
}

// ClusterSpec is the desired state of a cluster.
type ClusterSpec struct {
	// Release sets the defaults for fields that the spec leaves out.
	Release ReleaseRef `json:"release"`
	// KubernetesVersion is the minor version of the control plane, such as "1.36". Default: the release's.
	KubernetesVersion string `json:"kubernetesVersion,omitempty" rule:"format=kubernetes-version"`
	// Network is the VPC of the cluster.
	Network Network `json:"network"`
	// ControlPlane configures the EKS cluster.
	ControlPlane ControlPlane `json:"controlPlane,omitempty"`
	// PoolDefaults are fields of pools. A pool takes each field that it does not state: objects field by field, lists and maps whole.
	// An empty list or map, 0 and false are stated.
	PoolDefaults *Pool `json:"poolDefaults,omitempty" rule:"partial;without=name"`
	// Pools are the groups of worker nodes.
	Pools []Pool `json:"pools,omitempty" rule:"unique=name"`
	// Addons are the EKS add-ons. They are added to the release's. What is stated here takes precedence.
	Addons []Addon `json:"addons,omitempty" rule:"unique=name"`
	// PodIdentities give the pods of service accounts permissions in AWS. They need the add-on eks-pod-identity-agent. Each namespace and
	// service account occurs once, and not in an add-on's podIdentities either: EKS refuses a second role. The upload finds that for add-ons
	// in kube-system, and for amazon-cloudwatch-observability and external-dns. For another add-on, the stack of the identities fails with
	// the message of EKS. Pods get a new role when they start.
	PodIdentities []PodIdentity `json:"podIdentities,omitempty" rule:"maxItems=200"`
	// Capabilities are controllers that EKS runs for the cluster, outside its nodes. EKS allows one of each type. EKS keeps the Kubernetes
	// objects of a capability that is removed. So drover refuses changes that would replace one: remove it, and add it in a second edit.
	Capabilities []Capability `json:"capabilities,omitempty" rule:"unique=name"`
	// Tags are set on every stack and resource of the cluster, in addition to drover's own. Name and tags that start with aws:, drover:,
	// kubernetes.io/cluster/, kubernetes.io/role/ and k8s.io/cluster-autoscaler/ are reserved.
	Tags map[string]string `json:"tags,omitempty" rule:"keys=tag-key;format=tag-value;maxItems=40"`
	// Upgrade is what starts upgrades in addition to a new spec, and when they may start.
	Upgrade Upgrade `json:"upgrade,omitempty"`
	// Fleet is the part of the cluster in rollouts.
	Fleet Fleet `json:"fleet,omitzero"`
	// TemplateVersion is the set of templates that renders the cluster. Default: the release's.
	TemplateVersion string `json:"templateVersion,omitempty" rule:"format=template-version"`
	// Paused stops new work on the cluster. Operations in flight continue to their end.
	Paused bool `json:"paused,omitempty"`
	// DeletionProtection keeps the cluster when its spec is deleted.
	DeletionProtection *bool `json:"deletionProtection,omitempty" rule:"default=true"`
}

// ReleaseRef names a release.
type ReleaseRef struct {
	// Name of the release: the object releases/<name>.yaml in the specs bucket.
	Name string `json:"name" rule:"format=release-name"`
}

// Fleet is the part of a cluster in rollouts.
type Fleet struct {
	// Release is Follows if rollouts of releases include the cluster, and Pinned if they leave it out.
	Release FleetRelease `json:"release,omitempty" rule:"default=Follows;enum=Follows,Pinned"`
}

// FleetRelease is the part of a cluster in rollouts of releases.
type FleetRelease string

// The values of FleetRelease.
const (
	FleetFollows FleetRelease = "Follows"
	FleetPinned  FleetRelease = "Pinned"
)

// Network is the VPC of a cluster: one that drover creates, or an existing one.
type Network struct {
	// CIDR of the VPC, between /16 and /24. Required unless existing is given. A VPC of /24 has room for zones a to d.
	CIDR string `json:"cidr,omitempty" rule:"format=cidr"`
	// SecondaryCIDRs are added to the VPC, between /16 and /25; pods may use them. AWS does not mix the private ranges of
	// RFC 1918 in one VPC (https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html#add-cidr-block-restrictions).
	// A change replaces the nodes of pools with a proxy, and no others.
	SecondaryCIDRs []string `json:"secondaryCIDRs,omitempty" rule:"format=cidr;unique;maxItems=49"`
	// Zones are the availability zones, all of one region; EKS needs two or more. Required unless existing is given.
	Zones []string `json:"zones,omitempty" rule:"format=zone;unique;minItems=2"`
	// NATGateways says how private nodes reach the internet: a gateway in each zone, a single one that all zones share, or
	// none, with endpoints of the AWS services that nodes need in the VPC. Not with existing.
	NATGateways NATGateways `json:"natGateways,omitempty" rule:"default=PerZone;enum=PerZone,Single,None"`
	// NATAddresses are Elastic IP addresses of yours for the NAT gateways, by zone: one for each gateway, by allocation id. With Single, the
	// gateway is in the first zone. drover does not release them. The address of a gateway cannot change while it exists.
	NATAddresses map[string]string `json:"natAddresses,omitempty" rule:"keys=zone;format=allocation-id"`
	// Endpoints are AWS services that the VPC reaches without NAT, by the end of their name, such as ssm: an interface endpoint in each zone,
	// at a price for each hour. With natGateways: None, they are in addition to those that nodes need.
	Endpoints []string `json:"endpoints,omitempty" rule:"format=endpoint-service;unique;maxItems=40"`
	// FlowLogs writes the traffic of the VPC to a bucket. Default: none.
	FlowLogs *FlowLogs `json:"flowLogs,omitempty"`
	// Existing uses an existing VPC that no other cluster's stacks created. drover does not change it.
	Existing *ExistingNetwork `json:"existing,omitempty"`
}

// FlowLogs writes the traffic of a VPC to a bucket. If the policy of the bucket does not allow the delivery, AWS refuses it.
// https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-s3-permissions.html
type FlowLogs struct {
	// To is the ARN of a bucket, or of a folder in it, such as arn:aws:s3:::flow-logs/prod.
	To string `json:"to" rule:"format=bucket-arn"`
	// Traffic to write: what security groups and network ACLs accept, reject, or both.
	Traffic Traffic `json:"traffic,omitempty" rule:"default=ALL;enum=ALL,ACCEPT,REJECT"`
}

// Traffic is which traffic flow logs have.
type Traffic string

// The values of Traffic.
const (
	TrafficAll    Traffic = "ALL"
	TrafficAccept Traffic = "ACCEPT"
	TrafficReject Traffic = "REJECT"
)

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
	// Subnets are private subnets in two or more zones. They need a route to the EKS endpoint and the registries.
	Subnets []string `json:"subnets" rule:"format=subnet-id;unique;minItems=2"`
}

// ControlPlane configures the EKS cluster.
type ControlPlane struct {
	// Endpoint is how the Kubernetes API is reached.
	Endpoint Endpoint `json:"endpoint,omitempty"`
	// Logs are the control plane logs sent to CloudWatch. An empty list sends none.
	Logs []string `json:"logs,omitzero" rule:"default=audit,authenticator;enum=api,audit,authenticator,controllerManager,scheduler;unique"`
	// EncryptionKeyARN is the KMS key that encrypts Kubernetes secrets, in the region of the cluster. Its key policy must
	// allow kms:DescribeKey and kms:CreateGrant to the role drover-<region>-cloudformation. Default: drover makes one.
	EncryptionKeyARN string `json:"encryptionKeyARN,omitempty" rule:"format=kms-key-arn"`
	// SupportType says what happens at the end of standard support: EKS upgrades the cluster (Standard), or keeps it, at a
	// price (Extended).
	SupportType SupportType `json:"supportType,omitempty" rule:"default=Standard;enum=Standard,Extended"`
	// ServiceCIDR is the range of Service addresses: between /12 and /24, private, and no part of the VPC. It cannot be
	// changed later.
	ServiceCIDR string `json:"serviceCIDR,omitempty" rule:"default=172.20.0.0/16;format=cidr"`
	// OIDCProvider creates an IAM OIDC provider for the cluster, which roles for service accounts need. Pod identity does not need one. IAM
	// has room for 100 providers in an account. If the provider is removed, roles that trust it can no longer be assumed.
	OIDCProvider bool `json:"oidcProvider,omitempty"`
	// Tier is the capacity of the control plane, at a price for each hour above standard. Default: EKS scales it (standard). EKS keeps a tier
	// that is no longer stated, so drover refuses that: state standard first.
	Tier string `json:"tier,omitempty" rule:"enum=standard,tier-xl,tier-2xl,tier-4xl,tier-8xl,tier-ultra"`
	// Settings of the API server, the controller manager and the scheduler. They need Kubernetes 1.31 or newer.
	Settings ControlPlaneSettings `json:"settings,omitempty"`
	// ZonalShift lets AWS move traffic and new nodes away from an impaired zone, for the control plane and every pool. Nodes in that zone
	// stay. To turn it off, state false.
	ZonalShift *bool `json:"zonalShift,omitempty"`
	// LogRetentionDays is how long CloudWatch keeps the logs of the control plane: 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545,
	// 731, 1096, 1827, 2192, 2557, 2922, 3288 or 3653 days.
	LogRetentionDays int `json:"logRetentionDays,omitempty" rule:"default=90;min=1;max=3653"`
	// LogKeyARN is the KMS key that encrypts the logs of the control plane, in the region of the cluster. Its key policy must allow CloudWatch
	// Logs to use it. A change applies to new logs. Default: a key of AWS.
	LogKeyARN string `json:"logKeyARN,omitempty" rule:"format=kms-key-arn"`
	// Subnets are those of the control plane, in two or more zones, if they are not the nodes': only with network.existing. Each needs five
	// free addresses. Default: those of network.existing.
	Subnets []string `json:"subnets,omitempty" rule:"format=subnet-id;unique;minItems=2;maxItems=16"`
	// SecurityGroups of the control plane, in addition to the one that EKS creates. They are of the cluster's VPC, and belong to no other
	// cluster.
	SecurityGroups []string `json:"securityGroups,omitempty" rule:"format=security-group-id;unique;maxItems=5"`
	// IdentityProvider is an OpenID Connect provider whose tokens the API server accepts, in addition to IAM. EKS allows one. A change of it
	// is refused: remove it, and add the other one in a second edit.
	IdentityProvider *IdentityProvider `json:"identityProvider,omitempty"`
	// Access gives IAM principals access to the cluster.
	Access []AccessEntry `json:"access,omitempty" rule:"unique=principalARN"`
}

// IdentityProvider is an OpenID Connect provider. Its users have the permissions that RBAC objects in the cluster give them.
// https://docs.aws.amazon.com/eks/latest/userguide/authenticate-oidc-identity-provider.html
type IdentityProvider struct {
	// IssuerURL of the provider. It is reachable from the internet, and has the keys that sign tokens.
	IssuerURL string `json:"issuerURL" rule:"format=issuer-url"`
	// ClientID is the audience of the tokens.
	ClientID string `json:"clientID" rule:"format=oidc-text"`
	// UsernameClaim is the claim of a token with the name of the user. Default: sub.
	UsernameClaim string `json:"usernameClaim,omitempty" rule:"format=oidc-text"`
	// UsernamePrefix is added to the names of users. "-" adds none. Default: the issuer, or none if the claim is email.
	UsernamePrefix string `json:"usernamePrefix,omitempty" rule:"format=oidc-prefix"`
	// GroupsClaim is the claim with the groups of the user. Default: no groups.
	GroupsClaim string `json:"groupsClaim,omitempty" rule:"format=oidc-text"`
	// GroupsPrefix is added to the names of groups. groupsClaim needs it: the provider could otherwise give any group, such as drover's.
	GroupsPrefix string `json:"groupsPrefix,omitempty" rule:"format=oidc-prefix"`
	// RequiredClaims of a token, with their values.
	RequiredClaims map[string]string `json:"requiredClaims,omitempty" rule:"keys=oidc-text;format=oidc-text;maxItems=20"`
}

// ControlPlaneSettings are parameters of the API server, the controller manager and the scheduler. EKS has bounds and defaults for each,
// by Kubernetes version and tier, and drover refuses values outside. EKS keeps a parameter that is no longer stated, so drover refuses its
// removal: state the default first. https://docs.aws.amazon.com/eks/latest/userguide/control-plane-configuration.html
type ControlPlaneSettings struct {
	// EventTTL is how long the API server keeps events, in one unit, such as 30m.
	EventTTL string `json:"eventTTL,omitempty" rule:"format=single-duration"`
	// NodePorts is the range of ports that Services of type NodePort and LoadBalancer get, such as 30000-32767. Services that exist keep their
	// ports.
	NodePorts string `json:"nodePorts,omitempty" rule:"format=port-range"`
	// HPASyncPeriod is how often the Horizontal Pod Autoscaler decides, in one unit, such as 10s. It needs a tier above standard.
	HPASyncPeriod string `json:"hpaSyncPeriod,omitempty" rule:"format=single-duration"`
	// TerminatedPodThreshold is how many terminated pods may exist before the oldest are deleted.
	TerminatedPodThreshold int `json:"terminatedPodThreshold,omitempty" rule:"min=1;max=1000000"`
	// Scoring is how the scheduler ranks the nodes that a pod fits on. A change moves no pod.
	Scoring *Scoring `json:"scoring,omitempty"`
}

// Scoring is how the scheduler ranks nodes.
type Scoring struct {
	// Type prefers nodes with more free resources (LeastAllocated), or with less (MostAllocated).
	Type ScoringType `json:"type" rule:"enum=LeastAllocated,MostAllocated"`
	// Weights of resources, such as cpu and memory. Only those that are stated count. Default: EKS's.
	Weights map[string]int `json:"weights,omitempty" rule:"keys=label-key;min=1;max=100"`
}

// ScoringType is how the scheduler ranks nodes.
type ScoringType string

// The values of ScoringType.
const (
	LeastAllocated ScoringType = "LeastAllocated"
	MostAllocated  ScoringType = "MostAllocated"
)

// SupportType is EKS's support policy.
type SupportType string

// The values of SupportType.
const (
	SupportStandard SupportType = "Standard"
	SupportExtended SupportType = "Extended"
)

// Endpoint is how the Kubernetes API is reached.
type Endpoint struct {
	// Public makes the endpoint reachable from the internet, for publicCIDRs. Without it, drover reaches the API through a relay: a
	// function that it creates in the cluster's network.
	Public *bool `json:"public,omitempty" rule:"default=true"`
	// PublicCIDRs may reach the public endpoint. Unless they contain 0.0.0.0/0, drover reaches the API through a relay.
	PublicCIDRs []string `json:"publicCIDRs,omitzero" rule:"default=0.0.0.0/0;format=cidr;unique;minItems=1;maxItems=40"`
	// Private makes the endpoint reachable from the VPC. A relay needs it.
	Private *bool `json:"private,omitempty" rule:"default=true"`
}

// AccessEntry gives an IAM principal access to the cluster.
type AccessEntry struct {
	// PrincipalARN is the ARN of the IAM role or user. For an STS session, use the role behind it. Roles of drover's account
	// may have to be in accessRoles of cdk.json.
	PrincipalARN string `json:"principalARN" rule:"format=principal-arn"`
	// Groups are the Kubernetes groups of the principal. Groups that start with system:, eks:, aws:, amazon:, iam: or drover: are reserved.
	Groups []string `json:"groups,omitempty" rule:"format=group;unique"`
	// Policies are EKS access policies by name, such as AmazonEKSClusterAdminPolicy.
	Policies []AccessPolicy `json:"policies,omitempty" rule:"unique=name"`
}

// AccessPolicy is an EKS access policy and its scope.
type AccessPolicy struct {
	// Name of the policy, such as AmazonEKSViewPolicy.
	Name string `json:"name" rule:"format=access-policy"`
	// Namespaces limit the policy, also as patterns such as dev-*. Default: the whole cluster.
	Namespaces []string `json:"namespaces,omitempty" rule:"format=namespace;unique"`
}

// Pool is a group of worker nodes: one Auto Scaling group, one stack.
type Pool struct {
	// Name of the pool, a DNS label.
	Name string `json:"name" rule:"format=pool-name"`
	// InstanceTypes in order of preference, of the pool's architecture.
	InstanceTypes []string `json:"instanceTypes" rule:"format=instance-type;unique;minItems=1;maxItems=40"`
	// Architecture of the nodes.
	Architecture Architecture `json:"architecture,omitempty" rule:"default=amd64;enum=amd64,arm64"`
	// MinSize is the minimum number of nodes, at most maxSize. While it is 0 in all pools and no pool has a node, add-ons that need one
	// (CoreDNS, the EBS driver) wait for the first.
	MinSize int `json:"minSize" rule:"min=0"`
	// MaxSize is the maximum number of nodes.
	MaxSize int `json:"maxSize" rule:"min=1"`
	// Zones of the nodes, of network.zones. An added zone replaces no node: Auto Scaling moves some there. A removed one does. Default: all
	// zones of the network. Not with network.existing.
	Zones []string `json:"zones,omitempty" rule:"format=zone;unique;minItems=1"`
	// Subnets of the nodes: of network.existing.subnets, or others of its VPC with a route to the EKS endpoint and the registries. An added
	// subnet replaces no node: Auto Scaling moves some there. A removed one does. Default: network.existing.subnets. Only with
	// network.existing.
	Subnets []string `json:"subnets,omitempty" rule:"format=subnet-id;unique;minItems=1;maxItems=50"`
	// SecurityGroups of the nodes, in addition to that of the cluster: at most 4, of the cluster's VPC. drover does not change them. Pods have
	// them too. A VPC that drover creates cannot be deleted before them.
	SecurityGroups []string `json:"securityGroups,omitempty" rule:"format=security-group-id;unique;maxItems=4"`
	// Spot adds spot instances. Auto Scaling replaces those that EC2 is likely to interrupt, and drover drains their nodes. Default:
	// on-demand only.
	Spot *Spot `json:"spot,omitempty"`
	// Image is the operating system of the nodes. The release has one AMI for each family, variant and architecture.
	Image Image `json:"image,omitempty"`
	// ImageID is the AMI: one of the family and variant of image. Default: the release's.
	ImageID string `json:"imageID,omitempty" rule:"format=ami-id"`
	// RootVolume is the root disk.
	RootVolume RootVolume `json:"rootVolume,omitempty"`
	// Volumes are further disks of each node. They are deleted with it. Nothing formats or mounts them: use commands.
	Volumes []Volume `json:"volumes,omitempty" rule:"unique=device;maxItems=10"`
	// LocalStorage is how nodes use the disks of their instances (instance store): as one array for the kubelet, containerd and the logs of
	// pods (RAID0, or RAID10 with half of the room), or mounted one by one below /mnt/k8s-disks (Mount). Each instance type must have such
	// disks. Their data ends with the node. Default: not at all. Not with Bottlerocket.
	LocalStorage LocalStorage `json:"localStorage,omitempty" rule:"enum=RAID0,RAID10,Mount"`
	// Labels of the nodes. Of kubernetes.io/ and k8s.io/, a kubelet may only set those under node.kubernetes.io/ and
	// kubelet.kubernetes.io/.
	Labels map[string]string `json:"labels,omitempty" rule:"keys=label-key;format=label-value"`
	// Tags are set on the pool's stack, group and instances, and on their volumes and interfaces, in addition to spec.tags and in preference
	// to them. Together they are at most 40. A change replaces no node: nodes that run keep their tags.
	Tags map[string]string `json:"tags,omitempty" rule:"keys=tag-key;format=tag-value;maxItems=40"`
	// Taints of the nodes.
	Taints []Taint `json:"taints,omitempty" rule:"unique=key,effect"`
	// MaxPods is the maximum number of pods on a node. Default: what the instance type's network allows.
	MaxPods int `json:"maxPods,omitempty" rule:"min=1;max=1000"`
	// MetadataHopLimit is how many network hops the tokens of the instance metadata service may travel. With 2, every pod gets the
	// credentials of the node's role. Give workloads roles of their own instead.
	MetadataHopLimit int `json:"metadataHopLimit,omitempty" rule:"default=1;min=1;max=2"`
	// DetailedMonitoring makes EC2 send the metrics of instances each minute instead of every five, at a price for each instance. A change
	// replaces no node: nodes that run keep their setting.
	DetailedMonitoring bool `json:"detailedMonitoring,omitempty"`
	// Kubelet is further configuration of the kubelet: fields of KubeletConfiguration, such as evictionHard. Flags take precedence. Those
	// that drover or the AMI sets cannot be given.
	Kubelet map[string]any `json:"kubelet,omitempty"`
	// KubeletFlags are further command line flags of the kubelet, such as --v=2. Those that drover or the AMI set cannot be
	// given.
	KubeletFlags []string `json:"kubeletFlags,omitempty" rule:"format=kubelet-flag;unique"`
	// Proxy is the HTTP proxy of the nodes: of the kubelet, containerd and other services of the system. Pods do not get it: those of vpc-cni,
	// the EBS driver and the pod identity agent reach EC2, STS and EKS directly, so the network needs VPC endpoints or NAT for them.
	Proxy *Proxy `json:"proxy,omitempty"`
	// CABundle has certificates in PEM that nodes trust in addition to the AMI's, such as that of a registry: at most 8 KiB, none expired.
	// Pods do not get them. Nodes of AL2023 call EC2 before they trust them: a proxy must not replace the certificate of EC2.
	CABundle string `json:"caBundle,omitempty" rule:"format=certificates"`
	// Files are written before the kubelet starts.
	Files []File `json:"files,omitempty" rule:"unique=path;secret"`
	// Commands are run by bash as root, in order, after the files are written and before the kubelet starts. Messages never
	// show them.
	Commands []string `json:"commands,omitempty" rule:"secret;format=command"`
	// Drain is how pods leave a node before it is terminated. Changing it replaces no node.
	Drain Drain `json:"drain,omitempty"`
	// Update is how the pool's nodes are replaced when their configuration changes. Changing it replaces no node. It applies to the next
	// replacement.
	Update Update `json:"update,omitempty"`
	// RollAt replaces every node of the pool once, at that time or within five minutes, even without another change. A later time does so
	// again. An earlier one, or none, does nothing.
	RollAt string `json:"rollAt,omitempty" rule:"format=time"`
	// Readiness is what a new node needs, in addition to Ready, before the next node is replaced.
	Readiness Readiness `json:"readiness,omitempty"`
}

// Update is how a pool's nodes are replaced. Each batch waits until the drains of the batch before have ended and its new nodes are
// ready. So no more nodes are out of service than these fields allow.
type Update struct {
	// Strategy is how the nodes are replaced. In CloudFormation's rolling update, each batch must drain and join within an hour. Auto
	// Scaling's instance refresh has 36 hours for all nodes. Choose InstanceRefresh for pools whose drains take longer than half an hour. It
	// waits at most one day for the drains of a batch. Then the next batch begins while they continue.
	Strategy Strategy `json:"strategy,omitempty" rule:"default=RollingUpdate;enum=RollingUpdate,InstanceRefresh"`
	// MaxUnavailable is how many nodes fewer than its desired capacity the pool may have during an update. Percentages are of the desired
	// capacity at the start of the update, rounded down.
	MaxUnavailable Amount `json:"maxUnavailable,omitempty" rule:"default=0"`
	// MaxSurge is how many nodes more than its desired capacity the pool may have during an update, also beyond maxSize. Percentages are
	// rounded up. It cannot be 0 when maxUnavailable is 0, and is 1 when both are rounded to 0.
	MaxSurge Amount `json:"maxSurge,omitempty" rule:"default=1"`
	// PauseTime is the pause between a new node being ready and the next batch: at most 30m, or 6h with InstanceRefresh. Default: none.
	PauseTime string `json:"pauseTime,omitempty" rule:"format=duration"`
	// Order of the pools. Pools with a lower number are changed first, pools with the same number in parallel. If one fails, pools with
	// higher numbers are not changed.
	Order int `json:"order,omitempty" rule:"min=0;max=1000"`
}

// Strategy is how a pool's nodes are replaced.
type Strategy string

// The values of Strategy.
const (
	RollingUpdate   Strategy = "RollingUpdate"
	InstanceRefresh Strategy = "InstanceRefresh"
)

// Readiness is what a new node needs in addition to Ready.
type Readiness struct {
	// Labels that the node must have, with these values. A component on the node sets them when it is done.
	Labels map[string]string `json:"labels,omitempty" rule:"keys=label-key;format=label-value"`
	// Conditions of the node that must be True, such as example.com/NetworkReady.
	Conditions []string `json:"conditions,omitempty" rule:"format=condition;unique"`
}

// Drain is how pods leave a node before it is terminated. They are evicted as their disruption budgets allow.
type Drain struct {
	// Timeout is how long pods may take to leave, from the first cordon of the node: between 1m and 47h, such as 90m. After it, onTimeout
	// applies. If the cluster or drover was unreachable, evictions are first tried for another half minute. A rolling update has one hour
	// for each batch. That hour includes the timeout, the grace periods of the remaining pods, the detaching of their volumes and
	// update.pauseTime. If timeout and pause together exceed 45m, onTimeout may come too late for it.
	Timeout string `json:"timeout,omitempty" rule:"default=30m;format=duration"`
	// OnTimeout is what happens to the pods that are left after the timeout. Wait continues; Auto Scaling terminates the node after 48 hours
	// in any case. Force deletes them against their budgets, each with its grace period. Continue terminates the node with them. While the
	// whole cluster is deleted, Wait counts as Continue, and the timeout is at most 5m. With Force the timeout stays. The drain also ends
	// when only system pods without volumes run in the cluster.
	OnTimeout OnTimeout `json:"onTimeout,omitempty" rule:"default=Wait;enum=Wait,Force,Continue"`
	// PodGracePeriod caps the grace period of each pod: at least 1s. Default: no cap.
	PodGracePeriod string `json:"podGracePeriod,omitempty" rule:"format=duration"`
	// DeleteEmptyDirData allows the eviction of pods with data in an emptyDir, which is deleted with them. Otherwise they block the drain
	// until the timeout.
	DeleteEmptyDirData *bool `json:"deleteEmptyDirData,omitempty" rule:"default=true"`
	// UnmanagedPods are pods without a controller, which nothing recreates. They are evicted too (Evict), or block the drain until they end
	// or the timeout passes (Wait).
	UnmanagedPods UnmanagedPods `json:"unmanagedPods,omitempty" rule:"default=Evict;enum=Evict,Wait"`
	// LoadBalancerWait is the time between the node's exclusion from load balancers and the first eviction, at most 1h. Use the
	// deregistration delay of your load balancers. Default: none.
	LoadBalancerWait string `json:"loadBalancerWait,omitempty" rule:"format=duration"`
}

// OnTimeout is what happens to pods when a drain reaches its timeout.
type OnTimeout string

// The values of OnTimeout.
const (
	OnTimeoutWait     OnTimeout = "Wait"
	OnTimeoutForce    OnTimeout = "Force"
	OnTimeoutContinue OnTimeout = "Continue"
)

// UnmanagedPods is how pods without a controller are treated.
type UnmanagedPods string

// The values of UnmanagedPods.
const (
	UnmanagedEvict UnmanagedPods = "Evict"
	UnmanagedWait  UnmanagedPods = "Wait"
)

// LocalStorage is how nodes use the disks of their instances.
type LocalStorage string

// The values of LocalStorage.
const (
	LocalRAID0  LocalStorage = "RAID0"
	LocalRAID10 LocalStorage = "RAID10"
	LocalMount  LocalStorage = "Mount"
)

// Architecture of a processor.
type Architecture string

// The values of Architecture.
const (
	AMD64 Architecture = "amd64"
	ARM64 Architecture = "arm64"
)

// Spot adds spot instances to a pool. Auto Scaling then replaces a spot instance that is likely to be interrupted (Capacity Rebalancing):
// it starts another instance, and drover drains the node of the old one. No setting turns that off.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-capacity-rebalancing.html
type Spot struct {
	// OnDemandBase is the number of on-demand nodes that are started before any spot instance, at most maxSize.
	OnDemandBase int `json:"onDemandBase" rule:"min=0"`
	// OnDemandPercentage is the percentage of on-demand nodes above the base.
	OnDemandPercentage int `json:"onDemandPercentage" rule:"min=0;max=100"`
}

// RootVolume is a node's root disk.
type RootVolume struct {
	// SizeGiB is the size in GiB. EKS's AMIs need 20. At most 16384 for gp2 and io1.
	SizeGiB int `json:"sizeGiB,omitempty" rule:"default=50;min=20;max=65536"`
	// Type of EBS volume.
	Type string `json:"type,omitempty" rule:"default=gp3;enum=gp3,gp2,io1,io2"`
	// IOPS of gp3 (3000 to 80000, at most 500 per GiB), io1 (100 to 64000, at most 50 per GiB) and io2 (100 to 256000, at
	// most 1000 per GiB). Required for io1 and io2. Default for gp3: 3000.
	IOPS int `json:"iops,omitempty" rule:"min=100;max=256000"`
	// Throughput in MiB/s, of gp3 only: at most a quarter of the IOPS. Default: 125.
	Throughput int `json:"throughput,omitempty" rule:"min=125;max=2000"`
	// Encrypted encrypts the disk with the account's EBS key, or with that of kmsKeyARN.
	Encrypted *bool `json:"encrypted,omitempty" rule:"default=true"`
	// KMSKeyARN is the KMS key that encrypts the disk, in the region of the cluster. Its key policy must allow the service-linked role of
	// Auto Scaling to use it: no node starts otherwise. Default: the account's EBS key.
	KMSKeyARN string `json:"kmsKeyARN,omitempty" rule:"format=kms-key-arn"`
}

// Volume is a further disk of a node.
type Volume struct {
	// Device is the name under which EC2 attaches the disk, such as /dev/xvdb. On instances with NVMe, which most are, the kernel names it
	// otherwise. EKS's AMIs link the two names.
	Device string `json:"device" rule:"format=device"`
	// SnapshotID is a snapshot with which the disk begins. If it is encrypted with a key of yours, that key must be usable by the
	// service-linked role of Auto Scaling.
	SnapshotID string `json:"snapshotID,omitempty" rule:"format=snapshot-id"`
	// SizeGiB is the size in GiB: at most 16384 for gp2 and io1, at least 4 for io1 and io2. Required without a snapshot. Default with one:
	// its size.
	SizeGiB int `json:"sizeGiB,omitempty" rule:"min=1;max=65536"`
	// Type of EBS volume.
	Type string `json:"type,omitempty" rule:"default=gp3;enum=gp3,gp2,io1,io2"`
	// IOPS of gp3, io1 and io2, as for the root disk.
	IOPS int `json:"iops,omitempty" rule:"min=100;max=256000"`
	// Throughput in MiB/s, of gp3 only, as for the root disk.
	Throughput int `json:"throughput,omitempty" rule:"min=125;max=2000"`
	// Encrypted encrypts the disk with the account's EBS key, or with that of kmsKeyARN. A disk from an encrypted snapshot is encrypted in any
	// case, with its key.
	Encrypted *bool `json:"encrypted,omitempty" rule:"default=true"`
	// KMSKeyARN is the KMS key that encrypts the disk, as for the root disk. A disk from a snapshot gets it too.
	KMSKeyARN string `json:"kmsKeyARN,omitempty" rule:"format=kms-key-arn"`
}

// Proxy is an HTTP proxy.
type Proxy struct {
	// URL of the proxy, without a password: every process on the node can read it.
	URL string `json:"url" rule:"format=proxy-url"`
	// NoProxy are hosts, domains such as .example.com, and IPv4 ranges that nodes reach directly. drover adds those of the network, the
	// cluster and the VPC endpoints that it makes. With network.existing, list the ranges of the VPC.
	NoProxy []string `json:"noProxy,omitempty" rule:"format=no-proxy;unique;maxItems=50"`
}

// Taint of a node, Kubernetes style.
type Taint struct {
	// Key of the taint.
	Key string `json:"key" rule:"format=label-key"`
	// Value of the taint.
	Value string `json:"value,omitempty" rule:"format=label-value"`
	// Effect of the taint.
	Effect string `json:"effect" rule:"enum=NoSchedule,PreferNoSchedule,NoExecute"`
}

// File is written to a node.
type File struct {
	// Path is absolute, without '.', '..' and double or trailing slashes.
	Path string `json:"path" rule:"format=path"`
	// Mode in octal, in quotes.
	Mode string `json:"mode,omitempty" rule:"default=0644;format=mode"`
	// Content of the file, unchanged. Messages never show it.
	Content string `json:"content" rule:"secret;empty"`
}

// Addon is an EKS add-on.
type Addon struct {
	// Name of the add-on, such as vpc-cni.
	Name string `json:"name" rule:"format=addon-name"`
	// Version of the add-on. Default: the release's.
	Version string `json:"version,omitempty" rule:"format=addon-version"`
	// Configuration of the add-on: any object that its schema allows. Default: the release's; the two are not merged. Messages never show
	// its values.
	Configuration map[string]any `json:"configuration,omitempty" rule:"secret"`
	// PodIdentities give the pods of the add-on permissions in AWS. They need the add-on eks-pod-identity-agent. An empty list means that
	// the pods have their permissions from elsewhere. Default: the release's. Without those, drover creates the roles of vpc-cni and
	// aws-ebs-csi-driver.
	PodIdentities []AddonIdentity `json:"podIdentities,omitzero" rule:"unique=serviceAccount;maxItems=10"`
}
