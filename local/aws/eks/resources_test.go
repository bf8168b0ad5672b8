package eks

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/resource"
)

func (b *testbed) clusterRequest(name string) resource.Request {
	subnets := []any{}
	for _, s := range b.subnets {
		subnets = append(subnets, s)
	}
	return resource.Request{
		Type: "AWS::EKS::Cluster", LogicalID: "Cluster", StackName: "s", Caller: b.admin, Account: testAccount, Region: testRegion,
		Tags: map[string]string{"aws:cloudformation:stack-name": "s", "team": "platform"},
		Properties: map[string]any{
			"Name": name, "Version": "1.35", "RoleArn": b.roleARN, "BootstrapSelfManagedAddons": false, "DeletionProtection": "true",
			"AccessConfig":            map[string]any{"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": false},
			"KubernetesNetworkConfig": map[string]any{"ServiceIpv4Cidr": "172.20.0.0/16"},
			"Logging":                 map[string]any{"ClusterLogging": map[string]any{"EnabledTypes": []any{map[string]any{"Type": "audit"}}}},
			"ResourcesVpcConfig":      map[string]any{"SubnetIds": subnets, "EndpointPrivateAccess": true, "EndpointPublicAccess": "true"},
			"UpgradePolicy":           map[string]any{"SupportType": "STANDARD"},
		},
	}
}

// next is an update of a resource with changed properties.
func next(r resource.Request, id string, change map[string]any) resource.Request {
	r.PhysicalID, r.Old = id, r.Properties
	properties := map[string]any{}
	for k, v := range r.Old {
		properties[k] = v
	}
	for k, v := range change {
		properties[k] = v
	}
	r.Properties = properties
	return r
}

func TestClusterStack(t *testing.T) {
	b := newTestbed(t, 10_000)
	ctx := t.Context()
	cluster, entry, addon := b.Resources()["AWS::EKS::Cluster"], b.Resources()["AWS::EKS::AccessEntry"], b.Resources()["AWS::EKS::Addon"]

	r := b.clusterRequest("demo")
	made, err := cluster.Create(ctx, r)
	require.NoError(t, err)
	require.Equal(t, "demo", made.PhysicalID)
	for _, name := range cluster.Schema().Attributes {
		if name != "EncryptionConfigKeyArn" {
			require.NotEmpty(t, made.Attributes[name], name)
		}
	}
	describe := func() *Cluster {
		out, err := b.DescribeCluster(ctx, b.admin, NamedInput{"demo"})
		require.NoError(t, err)
		return out.Cluster
	}
	require.Equal(t, r.Tags, describe().Tags)
	require.Equal(t, LogSetup{[]string{"audit"}, true}, describe().Logging.ClusterLogging[0])

	// All properties that change in place, in one update.
	r = next(r, "demo", map[string]any{
		"Version": "1.36", "DeletionProtection": false, "UpgradePolicy": map[string]any{"SupportType": "EXTENDED"}, "Logging": map[string]any{},
		"ResourcesVpcConfig": map[string]any{
			"SubnetIds": []any{b.subnets[0], b.subnets[1]}, "EndpointPrivateAccess": true, "EndpointPublicAccess": false,
		},
	})
	r.Tags = map[string]string{"team": "other"}
	_, err = cluster.Update(ctx, r)
	require.NoError(t, err)
	c := describe()
	require.Equal(t, "1.36", c.Version)
	require.Equal(t, "EXTENDED", c.UpgradePolicy.SupportType)
	require.False(t, c.DeletionProtection || c.ResourcesVpcConfig.EndpointPublicAccess)
	require.Len(t, c.ResourcesVpcConfig.SubnetIds, 2)
	require.Empty(t, c.ResourcesVpcConfig.PublicAccessCidrs)
	require.False(t, c.Logging.ClusterLogging[0].Enabled)
	require.Equal(t, r.Tags, c.Tags)

	role := b.role(t, "dev", "lambda.amazonaws.com")
	policy := func(name, kind string) any {
		return map[string]any{"PolicyArn": "arn:aws:eks::aws:cluster-access-policy/" + name, "AccessScope": map[string]any{"Type": kind}}
	}
	er := resource.Request{Caller: b.admin, Properties: map[string]any{
		"ClusterName": "demo", "PrincipalArn": role, "Type": "STANDARD", "KubernetesGroups": []any{"devs"},
		"AccessPolicies": []any{policy("AmazonEKSViewPolicy", "cluster")},
	}}
	made, err = entry.Create(ctx, er)
	require.NoError(t, err)
	require.Equal(t, role+"|demo", made.PhysicalID)
	_, err = entry.Update(ctx, next(er, made.PhysicalID, map[string]any{
		"KubernetesGroups": []any{"ops"}, "AccessPolicies": []any{policy("AmazonEKSEditPolicy", "cluster")},
	}))
	require.NoError(t, err)
	e := b.clusters["demo"].entries[role]
	require.Equal(t, []string{"ops"}, e.KubernetesGroups)
	require.Equal(t, []string{"arn:aws:eks::aws:cluster-access-policy/AmazonEKSEditPolicy"}, keys(e.policies))

	pods := b.role(t, "pods", "pods.eks.amazonaws.com")
	ar := resource.Request{Caller: b.admin, Tags: map[string]string{"a": "b"}, Properties: map[string]any{
		"ClusterName": "demo", "AddonName": "vpc-cni", "AddonVersion": "v1.20.4-eksbuild.2", "ResolveConflicts": "OVERWRITE",
		"PodIdentityAssociations": []any{map[string]any{"ServiceAccount": "aws-node", "RoleArn": pods}},
	}}
	made, err = addon.Create(ctx, ar)
	require.NoError(t, err)
	require.Equal(t, "demo|vpc-cni", made.PhysicalID)
	require.Contains(t, made.Attributes["Arn"], ":addon/demo/vpc-cni/")
	ar = next(ar, made.PhysicalID, map[string]any{"AddonVersion": "v1.21.1-eksbuild.1", "PodIdentityAssociations": []any{}})
	_, err = addon.Update(ctx, ar)
	require.NoError(t, err)
	require.Equal(t, "v1.21.1-eksbuild.1", b.clusters["demo"].addons["vpc-cni"].AddonVersion)
	require.Empty(t, b.clusters["demo"].identities)

	for range 2 { // an absent resource is no error
		require.NoError(t, addon.Delete(ctx, resource.Request{PhysicalID: "demo|vpc-cni", Caller: b.admin}))
		require.NoError(t, entry.Delete(ctx, resource.Request{PhysicalID: role + "|demo", Caller: b.admin}))
	}
	for range 2 {
		require.NoError(t, cluster.Delete(ctx, resource.Request{PhysicalID: "demo", Caller: b.admin}))
	}
	require.Empty(t, b.clusters)
}

func TestProtectedClusterIsNotDeleted(t *testing.T) {
	b := newTestbed(t, 10_000)
	_, err := b.Resources()["AWS::EKS::Cluster"].Create(t.Context(), b.clusterRequest("demo"))
	require.NoError(t, err)
	err = b.Resources()["AWS::EKS::Cluster"].Delete(t.Context(), resource.Request{PhysicalID: "demo", Caller: b.admin})
	require.ErrorContains(t, err, "deletion protection is enabled")
	require.Equal(t, active, b.clusters["demo"].Status)
}

func TestPropertiesThatThereAreNot(t *testing.T) {
	b := newTestbed(t, 10_000)
	r := b.clusterRequest("demo")
	r.Properties["ResourcesVpcConfig"] = map[string]any{"SubnetIDs": []any{}}
	_, err := b.Resources()["AWS::EKS::Cluster"].Create(t.Context(), r)
	require.ErrorContains(t, err, "#/ResourcesVpcConfig: extraneous key [SubnetIDs]")
}

// exampleReleases are the add-on versions by Kubernetes minor and name.
func exampleReleases(t *testing.T) map[string]map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../../examples/releases/1*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	minor := regexp.MustCompile(`kubernetesVersion: "([\d.]+)"`)
	line := regexp.MustCompile(`- name: (\S+)\s+version: (\S+)`)
	releases := map[string]map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		found := map[string]string{}
		for _, m := range line.FindAllSubmatch(b, -1) {
			found[string(m[1])] = string(m[2])
		}
		require.NotEmpty(t, found, f)
		releases[string(minor.FindSubmatch(b)[1])] = found
	}
	return releases
}
