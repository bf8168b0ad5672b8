package eks

// Clusters: creation and deletion.
// https://docs.aws.amazon.com/eks/latest/userguide/clusters.html

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/kubernetes"
)

// Statuses of a cluster.
const (
	creating = "CREATING"
	active   = "ACTIVE"
	updating = "UPDATING"
	deleting = "DELETING"
	failed   = "FAILED"
)

// CreateClusterInput of the API.
type CreateClusterInput struct {
	Name, Version, RoleArn, ClientRequestToken string
	ResourcesVpcConfig                         VPCRequest
	KubernetesNetworkConfig                    NetworkConfig
	Logging                                    Logging
	EncryptionConfig                           []EncryptionConfig
	AccessConfig                               AccessConfig
	UpgradePolicy                              UpgradePolicy
	ZonalShiftConfig                           *ZonalShiftConfig
	ControlPlaneScalingConfig                  *ScalingConfig
	Components
	BootstrapSelfManagedAddons *bool
	DeletionProtection         bool
	Tags                       map[string]string
}

// VPCRequest is the VPCConfig of a request.
type VPCRequest struct {
	SubnetIds, SecurityGroupIds                 []string
	EndpointPublicAccess, EndpointPrivateAccess *bool
	PublicAccessCidrs                           []string
}

// ClusterOutput of the operations that return a cluster.
type ClusterOutput struct {
	Cluster *Cluster `json:"cluster"`
}

var clusterName = regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`)

// CreateCluster starts creating a cluster. It is CREATING until it is ACTIVE or FAILED.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html
func (s *Service) CreateCluster(_ context.Context, caller iam.Caller, in CreateClusterInput) (*ClusterOutput, error) {
	// The service authorization reference lists no resource for CreateCluster, but AWS checks the future ARN of the cluster, as its
	// AccessDenied errors show.
	if err := caller.Authorize("eks:CreateCluster", s.clusterARN(in.Name), nil); err != nil {
		return nil, err
	}
	if err := s.authorizeParts(caller, in); err != nil {
		return nil, err
	}
	c, subnets, err := s.newCluster(caller, in)
	if err != nil {
		return nil, err
	}
	if err := s.authorizeKeys(caller, in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.clusters[in.Name]; ok {
		if in.ClientRequestToken != "" && found.ClientRequestToken == in.ClientRequestToken {
			return &ClusterOutput{found.describe()}, nil
		}
		return nil, inUse("Cluster already exists with name: %s", in.Name)
	}
	if s.config.MaxClusters != nil && len(s.clusters) >= s.config.MaxClusters() {
		return nil, &wire.Error{
			Code: "ResourceLimitExceededException", Message: "You have exceeded the limit for this account: max number of clusters", Status: 400,
		}
	}
	if err := s.makeNetwork(c, subnets, in.ResourcesVpcConfig.SecurityGroupIds); err != nil {
		return nil, err
	}
	s.clusters[c.Name] = c
	s.changes.Announce()
	selfManaged := in.BootstrapSelfManagedAddons == nil || *in.BootstrapSelfManagedAddons
	s.background(func(ctx context.Context) { s.create(ctx, c, selfManaged) })
	return &ClusterOutput{c.describe()}, nil
}

// authorizeParts checks the further permissions that creation needs.
func (s *Service) authorizeParts(caller iam.Caller, in CreateClusterInput) error {
	if err := caller.PassRole(in.RoleArn, "eks.amazonaws.com"); err != nil {
		return err
	}
	if err := caller.Authorize("ec2:DescribeSubnets", "*", nil); err != nil {
		return err
	}
	if len(in.Tags) > 0 {
		if err := caller.Authorize("eks:TagResource", s.clusterARN(in.Name), nil); err != nil {
			return err
		}
	}
	return s.serviceLinkedRole(caller)
}

// serviceLinkedRole creates the role with the first cluster, if the caller may create it.
// https://docs.aws.amazon.com/eks/latest/userguide/using-service-linked-roles-eks.html
func (s *Service) serviceLinkedRole(caller iam.Caller) error {
	return s.config.Identities.LinkRole("AWSServiceRoleForAmazonEKS", "eks.amazonaws.com",
		"Allows Amazon EKS to call other AWS services on your behalf", caller.Authorize)
}

// authorizeKeys checks the permissions for the keys of a request.
func (s *Service) authorizeKeys(caller iam.Caller, in CreateClusterInput) error {
	for _, e := range in.EncryptionConfig {
		if s.config.Keys == nil {
			return unsupportedError("an encryptionConfig in an account without KMS")
		}
		if err := s.config.Keys.AuthorizeCluster(caller, e.Provider.KeyArn); err != nil {
			return err
		}
	}
	return nil
}

// newCluster checks a request and applies defaults.
func (s *Service) newCluster(caller iam.Caller, in CreateClusterInput) (*cluster, []ec2.Subnet, error) {
	if !clusterName.MatchString(in.Name) {
		return nil, nil, invalid("The cluster name %q must begin with a letter or digit, "+
			"have at most 100 characters and match ^[0-9A-Za-z][A-Za-z0-9-_]*", in.Name)
	}
	if in.Version == "" {
		in.Version = defaultMinor
	}
	if err := s.checkVersion(in.Version); err != nil {
		return nil, nil, err
	}
	if _, _, err := s.config.Identities.AssumeRoleAs(in.RoleArn, "eks", "eks.amazonaws.com"); err != nil {
		return nil, nil, invalid("Role with arn: %s, could not be assumed because it does not exist or the trusted entity is not correct",
			in.RoleArn)
	}
	if mode := in.AccessConfig.AuthenticationMode; mode != "API" {
		if mode == "" {
			mode = "CONFIG_MAP (the default)"
		}
		return nil, nil, unsupportedError("the authenticationMode %s: only API", mode)
	}
	subnets, vpc, err := s.placeCluster(in.ResourcesVpcConfig)
	if err != nil {
		return nil, nil, err
	}
	if err := s.checkZones(in.Name, subnets); err != nil {
		return nil, nil, err
	}
	network, err := checkNetwork(in.KubernetesNetworkConfig, subnets)
	if err != nil {
		return nil, nil, err
	}
	if err := checkSettings(in); err != nil {
		return nil, nil, err
	}
	if in.ControlPlaneScalingConfig == nil {
		in.ControlPlaneScalingConfig = &ScalingConfig{Tier: standardTier}
	}
	components := defaultComponents()
	components.merge(in.Components)
	if err := checkComponents(in.Version, in.ControlPlaneScalingConfig.Tier, in.Components, components); err != nil {
		return nil, nil, err
	}
	if in.UpgradePolicy.SupportType == "" {
		in.UpgradePolicy.SupportType = "EXTENDED"
	}
	creatorIsAdmin := in.AccessConfig.BootstrapClusterCreatorAdminPermissions == nil ||
		*in.AccessConfig.BootstrapClusterCreatorAdminPermissions
	in.AccessConfig.BootstrapClusterCreatorAdminPermissions = &creatorIsAdmin
	c := &cluster{
		Cluster: Cluster{
			Name: in.Name, ARN: s.clusterARN(in.Name), CreatedAt: s.config.Clock.Now(), Version: in.Version, RoleArn: in.RoleArn,
			ResourcesVpcConfig: vpc, KubernetesNetworkConfig: network, Logging: allLogs(in.Logging), Status: creating,
			ClientRequestToken: in.ClientRequestToken, PlatformVersion: platformVersion, Tags: cloneTags(in.Tags),
			EncryptionConfig: in.EncryptionConfig, Health: Health{Issues: []Issue{}}, AccessConfig: in.AccessConfig,
			UpgradePolicy: in.UpgradePolicy, ZonalShiftConfig: in.ZonalShiftConfig, DeletionProtection: in.DeletionProtection,
			ControlPlaneScaling: *in.ControlPlaneScalingConfig, Components: components,
		},
		entries: map[string]*accessEntry{}, addons: map[string]*addon{}, identities: map[string]*PodIdentityAssociation{},
		nodes: map[string]string{}, gates: map[string]*sourceGate{},
	}
	if creatorIsAdmin {
		s.admitCreator(c, caller)
	}
	return c, subnets, nil
}

// placeCluster finds the subnets and checks the API's requirements.
// https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
func (s *Service) placeCluster(in VPCRequest) ([]ec2.Subnet, VPCConfig, error) {
	subnets, err := s.config.Network.Subnets(in.SubnetIds...)
	if err != nil {
		return nil, VPCConfig{}, invalid("%v", err)
	}
	zones := map[string]bool{}
	for _, n := range subnets {
		zones[n.Zone] = true
		if n.VPCID != subnets[0].VPCID {
			return nil, VPCConfig{}, invalid("Subnets specified must belong to the same VPC")
		}
	}
	if len(zones) < 2 {
		return nil, VPCConfig{}, invalid("Subnets specified must be in at least two different AZs")
	}
	vpc := VPCConfig{
		SubnetIds: in.SubnetIds, SecurityGroupIds: append([]string{}, in.SecurityGroupIds...), VPCID: subnets[0].VPCID,
		EndpointPublicAccess:  in.EndpointPublicAccess == nil || *in.EndpointPublicAccess,
		EndpointPrivateAccess: in.EndpointPrivateAccess != nil && *in.EndpointPrivateAccess,
	}
	vpc.PublicAccessCidrs, err = checkEndpoint(vpc.EndpointPublicAccess, vpc.EndpointPrivateAccess, in.PublicAccessCidrs)
	return subnets, vpc, err
}

// checkZones refuses subnets in zones without EKS. The message has the zones that are left.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html (UnsupportedAvailabilityZoneException)
func (s *Service) checkZones(name string, subnets []ec2.Subnet) error {
	ids := s.config.Network.Zones()
	for _, n := range subnets {
		if !slices.Contains(ec2.WithoutEKS, ids[n.Zone]) {
			continue
		}
		var valid []string
		for _, zone := range slices.Sorted(maps.Keys(ids)) {
			if !slices.Contains(ec2.WithoutEKS, ids[zone]) {
				valid = append(valid, zone)
			}
		}
		return &wire.Error{
			Code: "UnsupportedAvailabilityZoneException", Status: 400, Message: fmt.Sprintf("Cannot create cluster '%s' because %s, the targeted "+
				"availability zone, does not currently have sufficient capacity to support the cluster. Retry and choose from these availability "+
				"zones: %s", name, n.Zone, strings.Join(valid, ", ")),
		}
	}
	return nil
}

func checkEndpoint(public, private bool, cidrs []string) ([]string, error) {
	if !public && !private {
		return nil, invalid("Private and public endpoint access cannot be false")
	}
	for _, cidr := range cidrs {
		if p, err := netip.ParsePrefix(cidr); err != nil || p != p.Masked() {
			return nil, invalid("The following CIDRs are invalid in publicAccessCidrs: %s", cidr)
		}
	}
	switch {
	case !public && len(cidrs) > 0:
		return nil, invalid("publicAccessCidrs cannot be specified when endpointPublicAccess is false")
	case public && len(cidrs) == 0:
		return []string{"0.0.0.0/0"}, nil
	}
	return append([]string{}, cidrs...), nil
}

// checkNetwork requires a service CIDR in a private range, from /24 to /12, outside the subnets.
func checkNetwork(in NetworkConfig, subnets []ec2.Subnet) (NetworkConfig, error) {
	if in.IpFamily != "" && in.IpFamily != "ipv4" {
		return in, unsupportedError("the ipFamily %s", in.IpFamily)
	}
	in.IpFamily = "ipv4"
	if in.ServiceIpv4Cidr == "" {
		// EKS chooses the range that does not overlap the VPC.
		in.ServiceIpv4Cidr = "10.100.0.0/16"
		if slices.ContainsFunc(subnets, func(n ec2.Subnet) bool { return n.CIDR.Addr().As4()[0] == 10 }) {
			in.ServiceIpv4Cidr = "172.20.0.0/16"
		}
	}
	services, err := netip.ParsePrefix(in.ServiceIpv4Cidr)
	if err != nil || services != services.Masked() || !services.Addr().IsPrivate() || services.Bits() < 12 || services.Bits() > 24 {
		return in, invalid("The service IPv4 CIDR %s must be a block between /12 and /24 of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16",
			in.ServiceIpv4Cidr)
	}
	for _, n := range subnets {
		if n.CIDR.Overlaps(services) {
			return in, invalid("The service IPv4 CIDR %s overlaps with the VPC's CIDR block (subnet %s has %s)", in.ServiceIpv4Cidr, n.ID, n.CIDR)
		}
	}
	return in, nil
}

var (
	logTypes = []string{"api", "audit", "authenticator", "controllerManager", "scheduler"}
	keyARN   = regexp.MustCompile(`^arn:aws[\w-]*:kms:[a-z0-9-]+:\d{12}:key/.+$`)
)

func checkSettings(in CreateClusterInput) error {
	for _, setup := range in.Logging.ClusterLogging {
		for _, t := range setup.Types {
			if !slices.Contains(logTypes, t) {
				return invalid("Invalid log type %q: must be one of %s", t, strings.Join(logTypes, ", "))
			}
		}
	}
	if len(in.EncryptionConfig) > 1 {
		return invalid("Only one encryptionConfig is allowed")
	}
	for _, e := range in.EncryptionConfig {
		if !slices.Equal(e.Resources, []string{"secrets"}) {
			return invalid("The only resource that can be encrypted is secrets, not %s", strings.Join(e.Resources, ", "))
		}
		if !keyARN.MatchString(e.Provider.KeyArn) {
			return invalid("The keyArn %s in encryptionConfig provider is invalid", e.Provider.KeyArn)
		}
	}
	switch in.UpgradePolicy.SupportType {
	case "", "STANDARD", "EXTENDED":
	default:
		return invalid("Invalid supportType %q: must be STANDARD or EXTENDED", in.UpgradePolicy.SupportType)
	}
	return nil
}

// allLogs returns the enabled and the disabled types, as in DescribeCluster.
func allLogs(in Logging) Logging {
	on, off := []string{}, []string{}
	for _, t := range logTypes {
		enabled := false
		for _, setup := range in.ClusterLogging {
			if slices.Contains(setup.Types, t) {
				enabled = setup.Enabled
			}
		}
		if enabled {
			on = append(on, t)
		} else {
			off = append(off, t)
		}
	}
	var out Logging
	for _, setup := range []LogSetup{{on, true}, {off, false}} {
		if len(setup.Types) > 0 {
			out.ClusterLogging = append(out.ClusterLogging, setup)
		}
	}
	return out
}

// makeNetwork creates the cluster security group and the control plane's network interfaces in two zones.
func (s *Service) makeNetwork(c *cluster, subnets []ec2.Subnet, groups []string) error {
	group, err := s.config.Network.CreateSecurityGroup(subnets[0].VPCID, fmt.Sprintf("eks-cluster-sg-%s-%s", c.Name, randomHex(4)),
		"EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any managed workloads.", true,
		map[string]string{"Name": "eks-cluster-sg-" + c.Name, "kubernetes.io/cluster/" + c.Name: "owned", "aws:eks:cluster-name": c.Name})
	if err != nil {
		return invalid("%v", err)
	}
	c.ResourcesVpcConfig.ClusterSecurityGroupID = group
	if c.interfaces, err = s.makeInterfaces(c, subnets, groups); err != nil {
		s.dropNetwork(c)
		return invalid("%v", err)
	}
	return nil
}

// makeInterfaces creates a network interface of the control plane in each of two zones, or none.
func (s *Service) makeInterfaces(c *cluster, subnets []ec2.Subnet, groups []string) (ids []string, err error) {
	groups = append([]string{c.ResourcesVpcConfig.ClusterSecurityGroupID}, groups...)
	zones := map[string]bool{}
	for _, n := range subnets {
		if zones[n.Zone] || len(zones) == 2 {
			continue
		}
		zones[n.Zone] = true
		id, err := s.config.Network.CreateNetworkInterface(n.ID, groups, "Amazon EKS "+c.Name, "amazon-eks", map[string]string{
			"cluster.k8s.amazonaws.com/name": c.Name,
		})
		if err != nil {
			s.dropInterfaces(ids)
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (s *Service) dropInterfaces(ids []string) {
	for _, id := range ids {
		s.config.Network.DeleteNetworkInterface(id)
	}
}

// dropNetwork retains a security group that is still in use, like EKS.
func (s *Service) dropNetwork(c *cluster) {
	s.dropInterfaces(c.interfaces)
	if err := s.config.Network.DeleteSecurityGroup(c.ResourcesVpcConfig.ClusterSecurityGroupID); err != nil {
		s.config.Log.Warn("the cluster security group stays", "cluster", c.Name, "error", err)
	}
}

// create makes a cluster ACTIVE: the simulated work, and the real control plane in parallel.
func (s *Service) create(ctx context.Context, c *cluster, selfManagedAddons bool) {
	started := make(chan error, 1)
	issuer := fmt.Sprintf("https://oidc.eks.%s.amazonaws.com/id/%s", s.config.Region, strings.ToUpper(randomHex(16)))
	go func() { started <- s.startPlane(ctx, c, issuer, selfManagedAddons) }()
	worked := s.config.Clock.Work(ctx, createWork)
	err := <-started
	if worked != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changes.Announce()
	if err != nil {
		c.Status = failed
		c.Health.Issues = append(c.Health.Issues, Issue{Code: "InternalFailure", Message: err.Error(), ResourceIDs: []string{}})
		s.config.Log.Error("a cluster's control plane did not start", "cluster", c.Name, "error", err)
		return
	}
	endpoint, ca := c.plane.Address()
	if s.config.SourceOf != nil {
		if endpoint, err = s.endpointFor(c, s.config.User); err != nil {
			c.Status = failed
			c.Health.Issues = append(c.Health.Issues, Issue{Code: "InternalFailure", Message: err.Error(), ResourceIDs: []string{}})
			s.config.Log.Error("a cluster has no endpoint", "cluster", c.Name, "error", err)
			return
		}
	}
	c.Endpoint, c.CertificateAuthority.Data = endpoint, base64.StdEncoding.EncodeToString(ca)
	c.Identity = &Identity{}
	c.Identity.OIDC.Issuer = issuer
	c.Status = active
}

// startPlane starts the control plane and adds the objects of every EKS cluster.
func (s *Service) startPlane(ctx context.Context, c *cluster, issuer string, selfManagedAddons bool) error {
	dir, err := s.planeDir(c.Name)
	if err != nil {
		return err
	}
	plane, err := s.config.Start(ctx, kubernetes.Options{
		Name: c.Name, Dir: dir, BinDir: s.config.BinDir, Minor: c.Version, ServiceCIDR: c.KubernetesNetworkConfig.ServiceIpv4Cidr,
		Issuer: issuer, TokenWebhookURL: s.webhook + "/" + c.Name, RuntimeConfig: s.config.RuntimeConfig, Log: s.config.Log,
		Settings: c.settings(),
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	c.plane = plane // from here on Close stops it
	s.mu.Unlock()
	client, err := plane.Client("", nil)
	if err != nil {
		return err
	}
	if err := bindPolicies(ctx, client); err != nil {
		return err
	}
	if selfManagedAddons {
		if err := s.installSelfManaged(ctx, c, client); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.admin, c.networkReady = client, selfManagedAddons
	return nil
}

// find returns a cluster. The caller holds s.mu.
func (s *Service) find(name string) (*cluster, error) {
	c, ok := s.clusters[name]
	if !ok {
		return nil, notFound("No cluster found for name: %s.", name)
	}
	return c, nil
}

// findActive returns a cluster that can be changed.
func (s *Service) findActive(name string) (*cluster, error) {
	c, err := s.find(name)
	if err == nil && c.Status != active && c.Status != updating {
		return nil, invalidRequest("Cluster '%s' is not in ACTIVE status: it is %s", name, c.Status)
	}
	return c, err
}

// NamedInput names a cluster.
type NamedInput struct{ Name string }

// DescribeCluster of the API.
func (s *Service) DescribeCluster(_ context.Context, caller iam.Caller, in NamedInput) (*ClusterOutput, error) {
	if err := caller.Authorize("eks:DescribeCluster", s.clusterARN(in.Name), nil); err != nil {
		return nil, err
	}
	from := s.sourceOf(caller)
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(in.Name)
	if err != nil {
		return nil, err
	}
	d, err := s.describeFor(c, from)
	if err != nil {
		return nil, err
	}
	return &ClusterOutput{d}, nil
}

// ListClustersInput of the API.
type ListClustersInput struct {
	Include []string
	Page
}

// ListClustersOutput of the API.
type ListClustersOutput struct {
	Clusters  []string `json:"clusters"`
	NextToken *string  `json:"nextToken"`
}

// ListClusters of the API.
func (s *Service) ListClusters(_ context.Context, caller iam.Caller, in ListClustersInput) (*ListClustersOutput, error) {
	if err := caller.Authorize("eks:ListClusters", "*", nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names, next := in.paginate(keys(s.clusters))
	return &ListClustersOutput{names, next}, nil
}

// DeleteCluster starts deleting a cluster. https://docs.aws.amazon.com/eks/latest/APIReference/API_DeleteCluster.html
func (s *Service) DeleteCluster(_ context.Context, caller iam.Caller, in NamedInput) (*ClusterOutput, error) {
	if err := caller.Authorize("eks:DeleteCluster", s.clusterARN(in.Name), nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(in.Name)
	if err != nil {
		return nil, err
	}
	switch c.Status {
	case creating, updating:
		return nil, inUse("Cannot delete cluster %s while it is %s", c.Name, c.Status)
	case deleting:
		return &ClusterOutput{c.describe()}, nil
	}
	if c.DeletionProtection {
		return nil, invalidRequest("Cluster %s cannot be deleted because deletion protection is enabled", c.Name)
	}
	c.Status = deleting
	s.changes.Announce()
	s.background(func(ctx context.Context) {
		if c.plane != nil {
			c.plane.Stop()
		}
		s.dropGates(c)
		if s.config.Clock.Work(ctx, deleteWork) != nil {
			return
		}
		s.dropNetwork(c)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.clusters, c.Name)
		s.changes.Announce()
	})
	return &ClusterOutput{c.describe()}, nil
}

func cloneTags(tags map[string]string) map[string]string {
	if tags == nil {
		return map[string]string{}
	}
	return maps.Clone(tags)
}
