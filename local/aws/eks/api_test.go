package eks

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
)

func code(t *testing.T, err error) string {
	t.Helper()
	var e smithy.APIError
	require.True(t, errors.As(err, &e), "%v", err)
	return e.ErrorCode()
}

// TestSDK calls the API with the AWS SDK.
func TestSDK(t *testing.T) {
	b := newTestbed(t, 10_000)
	_, credentials := b.identities.Admin()
	sdk, ctx := b.sdk(t, credentials), t.Context()

	created, err := sdk.CreateCluster(ctx, &awseks.CreateClusterInput{
		Name: aws.String("demo"), Version: aws.String("1.35"), RoleArn: &b.roleARN,
		ResourcesVpcConfig:      &types.VpcConfigRequest{SubnetIds: b.subnets, EndpointPrivateAccess: aws.Bool(true)},
		KubernetesNetworkConfig: &types.KubernetesNetworkConfigRequest{ServiceIpv4Cidr: aws.String("172.20.0.0/16")},
		AccessConfig:            &types.CreateAccessConfigRequest{AuthenticationMode: types.AuthenticationModeApi},
		Logging: &types.Logging{
			ClusterLogging: []types.LogSetup{{Types: []types.LogType{types.LogTypeAudit}, Enabled: aws.Bool(true)}},
		},
		BootstrapSelfManagedAddons: aws.Bool(false), Tags: map[string]string{"team": "platform"}, DeletionProtection: aws.Bool(true),
	})
	require.NoError(t, err)
	require.Equal(t, types.ClusterStatusCreating, created.Cluster.Status)
	require.Nil(t, created.Cluster.Endpoint, "there is no endpoint while it is CREATING")
	require.NotNil(t, created.Cluster.CreatedAt)
	b.await(t, "demo", active)

	described, err := sdk.DescribeCluster(ctx, &awseks.DescribeClusterInput{Name: aws.String("demo")})
	require.NoError(t, err)
	c := described.Cluster
	require.Equal(t, "arn:aws:eks:us-east-1:111122223333:cluster/demo", *c.Arn)
	require.Equal(t, types.ClusterStatusActive, c.Status)
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("authority")), *c.CertificateAuthority.Data)
	require.Regexp(t, `^https://oidc\.eks\.us-east-1\.amazonaws\.com/id/[0-9A-F]{32}$`, *c.Identity.Oidc.Issuer)
	require.Equal(t, []string{"0.0.0.0/0"}, c.ResourcesVpcConfig.PublicAccessCidrs)
	require.True(t, c.ResourcesVpcConfig.EndpointPrivateAccess && c.ResourcesVpcConfig.EndpointPublicAccess)
	require.NotEmpty(t, *c.ResourcesVpcConfig.ClusterSecurityGroupId)
	require.Len(t, c.Logging.ClusterLogging, 2)
	require.Equal(t, types.SupportTypeExtended, c.UpgradePolicy.SupportType)

	listed, err := sdk.ListClusters(ctx, &awseks.ListClustersInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"demo"}, listed.Clusters)

	// The creator is its administrator, which is the default.
	entries, err := sdk.ListAccessEntries(ctx, &awseks.ListAccessEntriesInput{ClusterName: aws.String("demo")})
	require.NoError(t, err)
	require.Equal(t, []string{"arn:aws:iam::111122223333:user/admin"}, entries.AccessEntries)
	policies, err := sdk.ListAssociatedAccessPolicies(ctx, &awseks.ListAssociatedAccessPoliciesInput{
		ClusterName: aws.String("demo"), PrincipalArn: &entries.AccessEntries[0],
	})
	require.NoError(t, err)
	require.Equal(t, "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy", *policies.AssociatedAccessPolicies[0].PolicyArn)

	update, err := sdk.UpdateClusterVersion(ctx, &awseks.UpdateClusterVersionInput{Name: aws.String("demo"), Version: aws.String("1.36")})
	require.NoError(t, err)
	require.Equal(t, types.UpdateStatusInProgress, update.Update.Status)
	b.await(t, "demo", active)
	finished, err := sdk.DescribeUpdate(ctx, &awseks.DescribeUpdateInput{Name: aws.String("demo"), UpdateId: update.Update.Id})
	require.NoError(t, err)
	require.Equal(t, types.UpdateStatusSuccessful, finished.Update.Status)
	require.Equal(t, "1.36", b.planes["demo"].minor.Load())

	addon, err := sdk.CreateAddon(ctx, &awseks.CreateAddonInput{
		ClusterName: aws.String("demo"), AddonName: aws.String("vpc-cni"), ResolveConflicts: types.ResolveConflictsOverwrite,
	})
	require.NoError(t, err)
	require.Equal(t, types.AddonStatusCreating, addon.Addon.Status)
	require.Equal(t, "v1.21.1-eksbuild.1", *addon.Addon.AddonVersion, "the default is the newest that fits")
	waiter := awseks.NewAddonActiveWaiter(sdk, func(o *awseks.AddonActiveWaiterOptions) { o.MinDelay, o.MaxDelay = 1, 10 })
	require.NoError(t, waiter.Wait(ctx, &awseks.DescribeAddonInput{ClusterName: aws.String("demo"), AddonName: aws.String("vpc-cni")}, 10e9))

	tags, err := sdk.ListTagsForResource(ctx, &awseks.ListTagsForResourceInput{ResourceArn: c.Arn})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"team": "platform"}, tags.Tags)
	_, err = sdk.UntagResource(ctx, &awseks.UntagResourceInput{ResourceArn: c.Arn, TagKeys: []string{"team"}})
	require.NoError(t, err)

	_, err = sdk.DeleteCluster(ctx, &awseks.DeleteClusterInput{Name: aws.String("demo")})
	require.Equal(t, "InvalidRequestException", code(t, err), "it is protected")
	_, err = sdk.UpdateClusterConfig(ctx, &awseks.UpdateClusterConfigInput{Name: aws.String("demo"), DeletionProtection: aws.Bool(false)})
	require.NoError(t, err)
	b.await(t, "demo", active)
	_, err = sdk.DeleteCluster(ctx, &awseks.DeleteClusterInput{Name: aws.String("demo")})
	require.NoError(t, err)
	require.NoError(t, awseks.NewClusterDeletedWaiter(sdk, func(o *awseks.ClusterDeletedWaiterOptions) { o.MinDelay, o.MaxDelay = 1, 10 }).
		Wait(ctx, &awseks.DescribeClusterInput{Name: aws.String("demo")}, 10e9))
	require.True(t, b.planes["demo"].stopped)
	require.Empty(t, b.Tagged(ctx))
}

func TestVersionsAndAddonsThatThereAre(t *testing.T) {
	b := newTestbed(t, 1)
	_, credentials := b.identities.Admin()
	sdk, ctx := b.sdk(t, credentials), t.Context()

	versions, err := sdk.DescribeClusterVersions(ctx, &awseks.DescribeClusterVersionsInput{DefaultOnly: aws.Bool(true)})
	require.NoError(t, err)
	require.Len(t, versions.ClusterVersions, 1)
	require.Equal(t, "1.36", *versions.ClusterVersions[0].ClusterVersion)
	require.Equal(t, types.VersionStatusStandardSupport, versions.ClusterVersions[0].VersionStatus)

	one, err := sdk.DescribeClusterVersions(ctx, &awseks.DescribeClusterVersionsInput{ClusterVersions: []string{"1.32"}})
	require.NoError(t, err)
	require.Equal(t, types.VersionStatusExtendedSupport, one.ClusterVersions[0].VersionStatus)
	require.True(t, one.ClusterVersions[0].EndOfExtendedSupportDate.After(*one.ClusterVersions[0].EndOfStandardSupportDate))

	addons, err := sdk.DescribeAddonVersions(ctx, &awseks.DescribeAddonVersionsInput{
		AddonName: aws.String("coredns"), KubernetesVersion: aws.String("1.36"),
	})
	require.NoError(t, err)
	require.Len(t, addons.Addons, 1)
	require.Equal(t, "v1.14.0-eksbuild.1", *addons.Addons[0].AddonVersions[0].AddonVersion)
	require.True(t, addons.Addons[0].AddonVersions[0].Compatibilities[0].DefaultVersion)

	// Unsupported operations are errors that name them.
	_, err = sdk.CancelUpdate(ctx, &awseks.CancelUpdateInput{Name: aws.String("demo"), UpdateId: aws.String("u")})
	require.Equal(t, "UnsupportedByLocalAccount", code(t, err))
	_, err = sdk.CreateCluster(ctx, &awseks.CreateClusterInput{
		Name: aws.String("demo"), RoleArn: &b.roleARN, ResourcesVpcConfig: &types.VpcConfigRequest{SubnetIds: b.subnets},
		ComputeConfig: &types.ComputeConfigRequest{Enabled: aws.Bool(true)},
	})
	require.Equal(t, "UnsupportedByLocalAccount", code(t, err))
	require.ErrorContains(t, err, "computeConfig")
}
