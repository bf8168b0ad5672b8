package eks

// The shapes of clusters in the API. https://docs.aws.amazon.com/eks/latest/APIReference/API_Cluster.html

import (
	"maps"
	"time"

	"k8s.io/client-go/dynamic"
)

// platformVersion of every cluster. The local account simulates no platform releases.
const platformVersion = "eks.1"

// Cluster as the API describes it.
type Cluster struct {
	Name                    string             `json:"name"`
	ARN                     string             `json:"arn"`
	CreatedAt               time.Time          `json:"createdAt"`
	Version                 string             `json:"version"`
	Endpoint                string             `json:"endpoint,omitempty"`
	RoleArn                 string             `json:"roleArn"`
	ResourcesVpcConfig      VPCConfig          `json:"resourcesVpcConfig"`
	KubernetesNetworkConfig NetworkConfig      `json:"kubernetesNetworkConfig"`
	Logging                 Logging            `json:"logging"`
	Identity                *Identity          `json:"identity"`
	Status                  string             `json:"status"`
	CertificateAuthority    Certificate        `json:"certificateAuthority"`
	ClientRequestToken      string             `json:"clientRequestToken,omitempty"`
	PlatformVersion         string             `json:"platformVersion"`
	Tags                    map[string]string  `json:"tags"`
	EncryptionConfig        []EncryptionConfig `json:"encryptionConfig,omitempty"`
	Health                  Health             `json:"health"`
	AccessConfig            AccessConfig       `json:"accessConfig"`
	UpgradePolicy           UpgradePolicy      `json:"upgradePolicy"`
	ZonalShiftConfig        *ZonalShiftConfig  `json:"zonalShiftConfig,omitempty"`
	ControlPlaneScaling     ScalingConfig      `json:"controlPlaneScalingConfig"`
	Components
	DeletionProtection bool `json:"deletionProtection"`
}

// VPCConfig of a cluster.
type VPCConfig struct {
	SubnetIds              []string `json:"subnetIds"`
	SecurityGroupIds       []string `json:"securityGroupIds"`
	ClusterSecurityGroupID string   `json:"clusterSecurityGroupId,omitempty"`
	VPCID                  string   `json:"vpcId,omitempty"`
	EndpointPublicAccess   bool     `json:"endpointPublicAccess"`
	EndpointPrivateAccess  bool     `json:"endpointPrivateAccess"`
	PublicAccessCidrs      []string `json:"publicAccessCidrs"`
}

// NetworkConfig of a cluster.
type NetworkConfig struct {
	ServiceIpv4Cidr string `json:"serviceIpv4Cidr,omitempty"`
	IpFamily        string `json:"ipFamily,omitempty"`
}

// Logging of a control plane.
type Logging struct {
	ClusterLogging []LogSetup `json:"clusterLogging"`
}

// LogSetup enables or disables types of logs.
type LogSetup struct {
	Types   []string `json:"types"`
	Enabled bool     `json:"enabled"`
}

// Identity has the OIDC issuer.
type Identity struct {
	OIDC struct {
		Issuer string `json:"issuer"`
	} `json:"oidc"`
}

// Certificate is the cluster's authority, base64.
type Certificate struct {
	Data string `json:"data,omitempty"`
}

// EncryptionConfig names the key for secrets.
type EncryptionConfig struct {
	Resources []string `json:"resources"`
	Provider  struct {
		KeyArn string `json:"keyArn"`
	} `json:"provider"`
}

// Health of a cluster or an add-on.
type Health struct {
	Issues []Issue `json:"issues"`
}

// Issue of a health.
type Issue struct {
	Code        string   `json:"code"`
	Message     string   `json:"message"`
	ResourceIDs []string `json:"resourceIds"`
}

// AccessConfig has the authentication mode of a cluster.
type AccessConfig struct {
	AuthenticationMode                      string `json:"authenticationMode,omitempty"`
	BootstrapClusterCreatorAdminPermissions *bool  `json:"bootstrapClusterCreatorAdminPermissions,omitempty"`
}

// UpgradePolicy has the support type of a cluster.
type UpgradePolicy struct {
	SupportType string `json:"supportType"`
}

// ZonalShiftConfig is stored without effect.
type ZonalShiftConfig struct {
	Enabled bool `json:"enabled"`
}

// cluster is a Cluster with everything that belongs to it. Service.mu guards it.
type cluster struct {
	Cluster

	plane      ControlPlane
	admin      dynamic.Interface // of plane, once the cluster is ACTIVE
	interfaces []string
	updates    []*Update
	// upgradedFrom is the version before the last update, which ended at upgradedAt. It is empty for a cluster that was created with its
	// version or rolled back to it.
	upgradedFrom string
	upgradedAt   time.Time
	insights     insights
	entries      map[string]*accessEntry // by principal ARN
	addons       map[string]*addon
	identities   map[string]*PodIdentityAssociation // by id
	provider     *OIDCProvider
	capabilities map[string]*Capability
	nodes        map[string]string      // node names by instance id
	gates        map[string]*sourceGate // by source
	// networkReady reports whether nodes have a network plugin.
	networkReady bool
}

// describe returns a copy of the cluster for the API.
func (c *cluster) describe() *Cluster {
	d := c.Cluster
	d.Tags = maps.Clone(c.Tags)
	return &d
}
