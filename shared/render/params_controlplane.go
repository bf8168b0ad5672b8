package render

// The control plane stack: the EKS cluster, access to it, and the permissions of its nodes.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// controlPlaneParams are the parameters of control-plane.yaml.tmpl.
type controlPlaneParams struct {
	Description, Name, Version string
	// Retain protects stateful resources against deletion.
	Retain bool
	roleParams
	// ClusterPolicy and AdminPolicy are ARNs of AWS's: of an IAM policy, and of an EKS access policy.
	ClusterPolicy, AdminPolicy string
	// MakeKey creates a key for secrets. Otherwise KeyARN is the spec's key.
	MakeKey                                       bool
	KeyARN, KeyAlias, KeyDescription, AccountRoot string
	// StackRole is the role that CloudFormation uses on the stacks of clusters.
	StackRole, LogGroup string
	// Logs are the types of logs to send, sorted.
	Logs                            []string
	ServiceCIDR, SupportType        string
	PublicEndpoint, PrivateEndpoint bool
	PublicCIDRs                     []string
	// OIDCProvider creates an IAM OIDC provider.
	OIDCProvider   bool
	SecurityGroups []string
	// Identity is nil without an identity provider.
	Identity     *identityProvider
	LogRetention int
	LogKeyARN    string
	Tier         string
	// Settings is nil if none is stated.
	Settings *settings
	// ZonalShift is nil if it is not stated.
	ZonalShift *zonalShift
	// Kept is what EKS keeps when the template no longer states it: see the constant Kept.
	Kept string
	// NodeService is EC2's principal.
	NodeService       string
	NodePolicies      []string
	NodeConfiguration string
	// PrepareRole and the others are roles of drover's functions.
	PrepareRole, JoinRole, DrainRole, SweepRole, UpgradeRole string
	Access                                                   []accessEntry
	// Relay is nil if the endpoint is open to everyone. RelayGroup has the values of the relay's security group and role.
	Relay, RelayGroup *relayParams
}

// accessEntry gives a principal access to the cluster. Its id is derived from the principal.
type accessEntry struct {
	ID, Principal string
	Groups        []string
	Policies      []accessPolicy
}

type accessPolicy struct {
	ARN        string
	Namespaces []string
}

// nodePolicies are the policies that every node needs: to join, to pull images, and for access without SSH.
// https://docs.aws.amazon.com/eks/latest/userguide/create-node-role.html
var nodePolicies = []string{"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore"}

// newControlPlaneParams computes the values of the control plane's template.
func newControlPlaneParams(in Cluster) (*controlPlaneParams, error) {
	cell, cluster := in.Cell, in.Resolved
	spec, name := cluster.Spec.ControlPlane, eksName(cluster)
	p := &controlPlaneParams{
		Description:     "drover: control plane of cluster " + cluster.Metadata.Name,
		Name:            name,
		Version:         cluster.Spec.KubernetesVersion,
		Retain:          isProtected(cluster),
		roleParams:      cell.roles(),
		ClusterPolicy:   cell.managedPolicy("AmazonEKSClusterPolicy"),
		AdminPolicy:     cell.accessPolicy("AmazonEKSClusterAdminPolicy"),
		MakeKey:         spec.EncryptionKeyARN == "",
		KeyARN:          spec.EncryptionKeyARN,
		KeyAlias:        "alias/" + name,
		KeyDescription:  "Kubernetes secrets of " + name,
		AccountRoot:     fmt.Sprintf("arn:%s:iam::%s:root", cell.Partition, cell.Account),
		StackRole:       names.RoleARN(cell.Partition, cell.Account, cell.Region, "cloudformation"),
		LogGroup:        "/aws/eks/" + name + "/cluster",
		Logs:            slices.Sorted(slices.Values(spec.Logs)),
		ServiceCIDR:     spec.ServiceCIDR,
		PublicEndpoint:  isEnabled(spec.Endpoint.Public),
		PrivateEndpoint: isEnabled(spec.Endpoint.Private),
		PublicCIDRs:     spec.Endpoint.PublicCIDRs,
		OIDCProvider:    spec.OIDCProvider,
		SecurityGroups:  slices.Sorted(slices.Values(spec.SecurityGroups)),
		Identity:        newIdentityProvider(spec.IdentityProvider),
		LogRetention:    spec.LogRetentionDays,
		LogKeyARN:       spec.LogKeyARN,
		Tier:            spec.Tier,
		ZonalShift:      newZonalShift(spec.ZonalShift),
		NodeService:     "ec2.amazonaws.com",
		// The userdata/ folder of names.UserData.
		NodeConfiguration: fmt.Sprintf("arn:%s:s3:::%s/userdata/*", cell.Partition, cell.StateBucket),
		PrepareRole:       names.RoleARN(cell.Partition, cell.Account, cell.Region, "prepare"),
		JoinRole:          names.RoleARN(cell.Partition, cell.Account, cell.Region, "join"),
		DrainRole:         names.RoleARN(cell.Partition, cell.Account, cell.Region, "drain"),
		SweepRole:         names.RoleARN(cell.Partition, cell.Account, cell.Region, "sweep"),
		UpgradeRole:       names.RoleARN(cell.Partition, cell.Account, cell.Region, "upgrade"),
	}
	if err := p.addSettings(&spec); err != nil {
		return nil, err
	}
	if err := p.addRelay(in); err != nil {
		return nil, err
	}
	if cell.Partition == "aws-cn" {
		p.NodeService = "ec2.amazonaws.com.cn"
	}
	switch spec.SupportType {
	case api.SupportStandard, "":
		p.SupportType = "STANDARD"
	case api.SupportExtended:
		p.SupportType = "EXTENDED"
	default:
		return nil, fmt.Errorf("spec.controlPlane.supportType: %q is not one of Standard, Extended", spec.SupportType)
	}
	for _, policy := range nodePolicies {
		p.NodePolicies = append(p.NodePolicies, cell.managedPolicy(policy))
	}
	if cluster.HasAddon("vpc-cni") && !cluster.HasAddon(api.PodIdentityAgent) {
		// Without the agent, the CNI gets its permissions only from the node's role.
		p.NodePolicies = append(p.NodePolicies, cell.managedPolicy("AmazonEKS_CNI_Policy"))
	}
	taken := []string{p.PrepareRole, p.JoinRole, p.DrainRole, p.SweepRole, p.UpgradeRole}
	for i, entry := range spec.Access {
		if slices.Contains(taken, entry.PrincipalARN) {
			return nil, fmt.Errorf("spec.controlPlane.access[%d].principalARN: %q has an access entry already", i, entry.PrincipalARN)
		}
		taken = append(taken, entry.PrincipalARN)
		out := accessEntry{ID: digest(entry.PrincipalARN), Principal: entry.PrincipalARN, Groups: entry.Groups}
		for _, policy := range entry.Policies {
			out.Policies = append(out.Policies, accessPolicy{ARN: cell.accessPolicy(policy.Name), Namespaces: policy.Namespaces})
		}
		p.Access = append(p.Access, out)
	}
	// Sorted by id, so that the order in the spec does not matter.
	slices.SortFunc(p.Access, func(a, b accessEntry) int { return strings.Compare(a.ID, b.ID) })
	return p, nil
}

// roleParams are common to all roles of a template: the path of clusters' roles, and the boundary. Without the boundary, CloudFormation's
// role may not create them.
type roleParams struct{ RolePath, Boundary string }

func (c Cell) roles() roleParams {
	return roleParams{RolePath: names.ClusterRoles, Boundary: names.BoundaryARN(c.Partition, c.Account, c.Region)}
}

// managedPolicy returns the ARN of an AWS managed policy.
func (c Cell) managedPolicy(name string) string {
	return "arn:" + c.Partition + ":iam::aws:policy/" + name
}

// accessPolicy returns the ARN of an EKS access policy.
// https://docs.aws.amazon.com/eks/latest/userguide/access-policy-permissions.html
func (c Cell) accessPolicy(name string) string {
	return "arn:" + c.Partition + ":eks::aws:cluster-access-policy/" + name
}

// digest returns a logical id for a name that contains other characters.
func digest(name string) string { return names.SHA256([]byte(name))[:16] }
