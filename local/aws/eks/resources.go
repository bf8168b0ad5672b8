package eks

// The CloudFormation resource types. Each is a sequence of API operations with CloudFormation's identity.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_EKS.html

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/resource"
)

// Resources returns the providers by type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{
		"AWS::EKS::Cluster":                clusterProvider{s},
		"AWS::EKS::AccessEntry":            entryProvider{s},
		"AWS::EKS::Addon":                  addonProvider{s},
		"AWS::EKS::PodIdentityAssociation": podIdentityProvider{s},
		"AWS::EKS::IdentityProviderConfig": identityProviderProvider{s},
		"AWS::EKS::Capability":             capabilityProvider{s},
	}
}

// changeTags changes a resource's tags to those of the template.
func (s *Service) changeTags(ctx context.Context, caller iam.Caller, arn string, want map[string]string) error {
	s.mu.Lock()
	tags, err := s.tagsOf(arn)
	is := maps.Clone(tags)
	s.mu.Unlock()
	if err != nil || maps.Equal(is, want) {
		return err
	}
	var removed []string
	for k := range is {
		if _, ok := want[k]; !ok {
			removed = append(removed, k)
		}
	}
	slices.Sort(removed)
	if len(removed) > 0 {
		if _, err := s.UntagResource(ctx, caller, TagsInput{ResourceARN: arn, TagKeys: removed}); err != nil {
			return err
		}
	}
	return s.withTags(caller, "TagResource", arn, func(tags map[string]string) error {
		maps.Copy(tags, want)
		return nil
	})
}

// ignoreNotFound ignores the error of an absent resource.
func ignoreNotFound(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

type clusterProvider struct{ s *Service }

func (p clusterProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"Name": resource.Replaces, "RoleArn": resource.Replaces, "EncryptionConfig": resource.Replaces,
			"BootstrapSelfManagedAddons": resource.Replaces,
			"KubernetesNetworkConfig":    resource.Replaces,
			"Version":                    resource.InPlace, "AccessConfig": resource.InPlace, "UpgradePolicy": resource.InPlace,
			"Logging":            resource.InPlace,
			"ResourcesVpcConfig": resource.InPlace, "DeletionProtection": resource.InPlace, "ZonalShiftConfig": resource.InPlace,
			"ControlPlaneScalingConfig": resource.InPlace, "KubeApiServerConfig": resource.InPlace,
			"KubeControllerManagerConfig": resource.InPlace, "KubeSchedulerConfig": resource.InPlace,
			"Tags": resource.InPlace,
		},
		Required: []string{"RoleArn", "ResourcesVpcConfig"},
		Attributes: []string{
			"Arn", "Id", "Endpoint", "CertificateAuthorityData", "ClusterSecurityGroupId", "EncryptionConfigKeyArn", "OpenIdConnectIssuerUrl",
		},
	}
}

// clusterProperties of AWS::EKS::Cluster. Logging and tags have a different form than in the API.
type clusterProperties struct {
	Name, Version, RoleArn    string
	ResourcesVpcConfig        VPCRequest
	KubernetesNetworkConfig   NetworkConfig
	EncryptionConfig          []EncryptionConfig
	AccessConfig              AccessConfig
	UpgradePolicy             UpgradePolicy
	ZonalShiftConfig          *ZonalShiftConfig
	ControlPlaneScalingConfig *ScalingConfig
	Components
	BootstrapSelfManagedAddons *bool
	DeletionProtection         bool
	Logging                    struct {
		ClusterLogging struct{ EnabledTypes []struct{ Type string } }
	}
	Tags []resource.Tag
}

func (c clusterProperties) logging() Logging {
	var types []string
	for _, t := range c.Logging.ClusterLogging.EnabledTypes {
		types = append(types, t.Type)
	}
	return allLogs(Logging{ClusterLogging: []LogSetup{{Types: types, Enabled: true}}})
}

func (p clusterProvider) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	var in clusterProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	if in.Name == "" {
		in.Name = r.GeneratedName(100)
	}
	for _, t := range in.Logging.ClusterLogging.EnabledTypes {
		if err := checkSettings(CreateClusterInput{Logging: Logging{[]LogSetup{{Types: []string{t.Type}}}}}); err != nil {
			return resource.Result{}, err
		}
	}
	_, err := p.s.CreateCluster(ctx, r.Caller, CreateClusterInput{
		Name: in.Name, Version: in.Version, RoleArn: in.RoleArn, ResourcesVpcConfig: in.ResourcesVpcConfig,
		KubernetesNetworkConfig: in.KubernetesNetworkConfig,
		Logging:                 in.logging(), EncryptionConfig: in.EncryptionConfig, AccessConfig: in.AccessConfig,
		UpgradePolicy:             in.UpgradePolicy,
		ControlPlaneScalingConfig: in.ControlPlaneScalingConfig, Components: in.Components,
		ZonalShiftConfig: in.ZonalShiftConfig, BootstrapSelfManagedAddons: in.BootstrapSelfManagedAddons,
		DeletionProtection: in.DeletionProtection, Tags: tagging.Merge(r.Tags, in.Tags),
	})
	if err != nil {
		return resource.Result{}, err
	}
	// The cluster exists now. Errors also return its name, so that a rollback deletes it.
	created := resource.Result{PhysicalID: in.Name}
	if _, err := p.s.DescribeCluster(ctx, r.Caller, NamedInput{in.Name}); err != nil {
		return created, err
	}
	return p.stable(ctx, in.Name)
}

// stable waits until a cluster has no running operation.
func (p clusterProvider) stable(ctx context.Context, name string) (resource.Result, error) {
	result := resource.Result{PhysicalID: name}
	err := p.s.wait(ctx, func() (bool, error) {
		c, err := p.s.find(name)
		if err != nil {
			return false, err
		}
		switch c.Status {
		case active:
			result.Attributes = map[string]any{
				"Arn": c.ARN, "Id": c.Name, "Endpoint": c.Endpoint, "CertificateAuthorityData": c.CertificateAuthority.Data,
				"ClusterSecurityGroupId": c.ResourcesVpcConfig.ClusterSecurityGroupID, "OpenIdConnectIssuerUrl": c.Identity.OIDC.Issuer,
			}
			for _, e := range c.EncryptionConfig {
				result.Attributes["EncryptionConfigKeyArn"] = e.Provider.KeyArn
			}
			return true, nil
		case failed, deleting:
			return false, fmt.Errorf("Resource handler returned message: cluster %s is %s: %v", name, c.Status, c.Health.Issues)
		}
		return false, nil
	})
	return result, err
}

// Update makes the changes in sequence, because EKS accepts one kind of change at a time.
func (p clusterProvider) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	var in, was clusterProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	if err := resource.Decode(r.Old, &was); err != nil {
		return resource.Result{}, err
	}
	name := r.PhysicalID
	if in.Version != was.Version && in.Version != "" {
		if err := p.move(ctx, r, in.Version); err != nil {
			return resource.Result{}, err
		}
	}
	changes, err := configChanges(name, was, in)
	if err != nil {
		return resource.Result{}, err
	}
	for _, change := range changes {
		out, err := p.s.UpdateClusterConfig(ctx, r.Caller, change)
		if err := p.finish(ctx, name, out, err); err != nil {
			return resource.Result{}, err
		}
	}
	if err := p.s.changeTags(ctx, r.Caller, p.s.clusterARN(name), tagging.Merge(r.Tags, in.Tags)); err != nil {
		return resource.Result{}, err
	}
	return p.stable(ctx, name)
}

// move changes a cluster to the version of its template. A cluster with that version is left unchanged, so a user who updated the cluster
// outside of CloudFormation may then write the version into the template. A rolled back stack keeps the version too, because a version
// rollback must be requested. questions.LowerVersion decides whether a lower version in a template requests one.
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html
func (p clusterProvider) move(ctx context.Context, r resource.Request, version string) error {
	name := r.PhysicalID
	out, err := p.s.DescribeCluster(ctx, r.Caller, NamedInput{name})
	if err != nil {
		return err
	}
	ahead := minorNumber(version) - minorNumber(out.Cluster.Version)
	if ahead == 0 || ahead < 0 && r.Rollback {
		return nil
	}
	if ahead < 0 && !p.s.config.Readings.Other(questions.LowerVersion) {
		return invalid("Unsupported Kubernetes minor version update from %s to %s", out.Cluster.Version, version)
	}
	update, err := p.s.UpdateClusterVersion(ctx, r.Caller, UpdateClusterVersionInput{Name: name, Version: version})
	return p.finish(ctx, name, update, err)
}

// configChanges returns the calls that change one configuration to another.
func configChanges(name string, was, in clusterProperties) ([]UpdateClusterConfigInput, error) {
	var changes []UpdateClusterConfigInput
	from, to := was.ResourcesVpcConfig, in.ResourcesVpcConfig
	if !slices.Equal(from.SubnetIds, to.SubnetIds) || !slices.Equal(from.SecurityGroupIds, to.SecurityGroupIds) {
		changes = append(changes, UpdateClusterConfigInput{
			ResourcesVpcConfig: &VPCRequest{SubnetIds: to.SubnetIds, SecurityGroupIds: append([]string{}, to.SecurityGroupIds...)},
		})
	}
	from.SubnetIds, from.SecurityGroupIds, to.SubnetIds, to.SecurityGroupIds = nil, nil, nil, nil
	if !reflect.DeepEqual(from, to) {
		changes = append(changes, UpdateClusterConfigInput{ResourcesVpcConfig: &to})
	}
	if logging := in.logging(); !reflect.DeepEqual(was.logging(), logging) {
		changes = append(changes, UpdateClusterConfigInput{Logging: &logging})
	}
	if was.AccessConfig.AuthenticationMode != in.AccessConfig.AuthenticationMode {
		changes = append(changes, UpdateClusterConfigInput{AccessConfig: &AccessConfig{AuthenticationMode: in.AccessConfig.AuthenticationMode}})
	}
	if !reflect.DeepEqual(was.AccessConfig.BootstrapClusterCreatorAdminPermissions, in.AccessConfig.BootstrapClusterCreatorAdminPermissions) {
		return nil, unsupportedError("changing AccessConfig.BootstrapClusterCreatorAdminPermissions, which replaces a cluster")
	}
	if was.UpgradePolicy != in.UpgradePolicy {
		policy := in.UpgradePolicy
		if policy.SupportType == "" {
			policy.SupportType = "EXTENDED"
		}
		changes = append(changes, UpdateClusterConfigInput{UpgradePolicy: &policy})
	}
	// What a template no longer states stays: an update of EKS without a field keeps its value.
	// https://docs.aws.amazon.com/eks/latest/userguide/control-plane-configuration.html
	if in.ZonalShiftConfig != nil && !reflect.DeepEqual(was.ZonalShiftConfig, in.ZonalShiftConfig) {
		changes = append(changes, UpdateClusterConfigInput{ZonalShiftConfig: in.ZonalShiftConfig})
	}
	if components := changedComponents(was.Components, in.Components); components.isSet() {
		changes = append(changes, UpdateClusterConfigInput{Components: components})
	}
	if in.ControlPlaneScalingConfig != nil && !reflect.DeepEqual(was.ControlPlaneScalingConfig, in.ControlPlaneScalingConfig) {
		tier := UpdateClusterConfigInput{ControlPlaneScalingConfig: in.ControlPlaneScalingConfig}
		if in.ControlPlaneScalingConfig.Tier == standardTier {
			changes = append(changes, tier) // after the settings that it does not have
		} else {
			changes = append([]UpdateClusterConfigInput{tier}, changes...)
		}
	}
	if was.DeletionProtection != in.DeletionProtection {
		changes = append(changes, UpdateClusterConfigInput{DeletionProtection: &in.DeletionProtection})
	}
	for i := range changes {
		changes[i].Name = name
	}
	return changes, nil
}

// finish waits for an update of a cluster and returns its result. It ignores the error of an update without changes, such as the rollback
// of a failed update.
func (p clusterProvider) finish(ctx context.Context, name string, out *UpdateOutput, err error) error {
	if errors.As(err, &unchangedError{}) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.s.wait(ctx, func() (bool, error) {
		c, err := p.s.find(name)
		if err != nil {
			return false, err
		}
		for _, u := range c.updates {
			if u.ID == out.Update.ID && u.Status == updateFailed {
				return false, fmt.Errorf("%s: %s", u.Type, u.Errors[0].Message)
			}
		}
		return c.Status != updating, nil
	})
}

func (p clusterProvider) Delete(ctx context.Context, r resource.Request) error {
	// A running creation or update ends first: EKS does not delete a cluster during a change.
	err := p.s.wait(ctx, func() (bool, error) {
		c, err := p.s.find(r.PhysicalID)
		return err == nil && c.Status != creating && c.Status != updating, err
	})
	if err != nil {
		return ignoreNotFound(err)
	}
	if _, err := p.s.DeleteCluster(ctx, r.Caller, NamedInput{r.PhysicalID}); err != nil {
		return ignoreNotFound(err)
	}
	return ignoreNotFound(p.s.wait(ctx, func() (bool, error) {
		_, err := p.s.find(r.PhysicalID)
		return false, err
	}))
}

type entryProvider struct{ s *Service }

func (p entryProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"ClusterName": resource.Replaces, "PrincipalArn": resource.Replaces, "Type": resource.Replaces,
			"Username": resource.InPlace, "KubernetesGroups": resource.InPlace, "AccessPolicies": resource.InPlace, "Tags": resource.InPlace,
		},
		Required:   []string{"ClusterName", "PrincipalArn"},
		Attributes: []string{"AccessEntryArn"},
	}
}

type entryProperties struct {
	ClusterName, PrincipalArn, Type, Username string
	KubernetesGroups                          []string
	AccessPolicies                            []struct {
		PolicyArn   string
		AccessScope AccessScope
	}
	Tags []resource.Tag
}

// entryID is the identifier of an access entry. Principals contain no "|".
func entryID(cluster, principal string) string { return principal + "|" + cluster }

func splitEntryID(id string) EntryInput {
	principal, cluster, _ := strings.Cut(id, "|")
	return EntryInput{ClusterName: cluster, PrincipalArn: principal}
}

func (p entryProvider) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	var in entryProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	out, err := p.s.CreateAccessEntry(ctx, r.Caller, CreateAccessEntryInput{
		ClusterName: in.ClusterName, PrincipalArn: in.PrincipalArn, Type: in.Type, Username: in.Username, KubernetesGroups: in.KubernetesGroups,
		Tags: tagging.Merge(r.Tags, in.Tags),
	})
	if err != nil {
		return resource.Result{}, err
	}
	result := resource.Result{
		PhysicalID: entryID(in.ClusterName, in.PrincipalArn), Attributes: map[string]any{"AccessEntryArn": out.AccessEntry.AccessEntryARN},
	}
	return result, p.associate(ctx, r.Caller, in)
}

// associate changes the policies of an entry to those of the template.
func (p entryProvider) associate(ctx context.Context, caller iam.Caller, in entryProperties) error {
	id := EntryInput{ClusterName: in.ClusterName, PrincipalArn: in.PrincipalArn}
	want := map[string]bool{}
	for _, a := range in.AccessPolicies {
		want[a.PolicyArn] = true
		if _, err := p.s.AssociateAccessPolicy(ctx, caller, AssociateAccessPolicyInput{
			in.ClusterName, in.PrincipalArn, a.PolicyArn, a.AccessScope,
		}); err != nil {
			return err
		}
	}
	list, err := p.s.ListAssociatedAccessPolicies(ctx, caller, ListAssociatedAccessPoliciesInput{EntryInput: id})
	if err != nil {
		return err
	}
	for _, a := range list.AssociatedAccessPolicies {
		if !want[a.PolicyArn] {
			if _, err := p.s.DisassociateAccessPolicy(ctx, caller, DisassociateAccessPolicyInput{
				in.ClusterName, in.PrincipalArn, a.PolicyArn,
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p entryProvider) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	var in, was entryProperties
	if err := errors.Join(resource.Decode(r.Properties, &in), resource.Decode(r.Old, &was)); err != nil {
		return resource.Result{}, err
	}
	id := splitEntryID(r.PhysicalID)
	if in.Username != was.Username || !slices.Equal(in.KubernetesGroups, was.KubernetesGroups) {
		change := UpdateAccessEntryInput{ClusterName: id.ClusterName, PrincipalArn: id.PrincipalArn, KubernetesGroups: &in.KubernetesGroups}
		if in.Username != was.Username {
			change.Username = &in.Username
		}
		if _, err := p.s.UpdateAccessEntry(ctx, r.Caller, change); err != nil {
			return resource.Result{}, err
		}
	}
	if err := p.associate(ctx, r.Caller, in); err != nil {
		return resource.Result{}, err
	}
	out, err := p.s.DescribeAccessEntry(ctx, r.Caller, id)
	if err != nil {
		return resource.Result{}, err
	}
	arn := out.AccessEntry.AccessEntryARN
	return resource.Result{
		PhysicalID: r.PhysicalID, Attributes: map[string]any{"AccessEntryArn": arn},
	}, p.s.changeTags(ctx, r.Caller, arn, tagging.Merge(r.Tags, in.Tags))
}

func (p entryProvider) Delete(ctx context.Context, r resource.Request) error {
	_, err := p.s.DeleteAccessEntry(ctx, r.Caller, splitEntryID(r.PhysicalID))
	return ignoreNotFound(err)
}
