package eks

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/kubernetes"
)

func awsError(t *testing.T, err error, code, message string) {
	t.Helper()
	var e *iam.Error
	require.True(t, errors.As(err, &e), "%v", err)
	require.Equal(t, code, e.Code, "%v", err)
	require.Contains(t, e.Message, message)
}

func TestCreateClusterRefuses(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.cluster(t, "there")
	elsewhere := makeSubnets(t, b.network, b.admin, "10.9")
	lambda := b.role(t, "not-for-eks", "lambda.amazonaws.com")
	no := false
	tests := map[string]struct {
		change        func(*CreateClusterInput)
		code, message string
	}{
		"a name that is taken": {func(in *CreateClusterInput) {
			in.Name = "there"
		}, "ResourceInUseException", "already exists"},
		"a name that is too long": {func(in *CreateClusterInput) {
			in.Name = strings.Repeat("a", 101)
		}, "InvalidParameterException", "at most 100"},
		"a name that begins with a dash": {func(in *CreateClusterInput) {
			in.Name = "-a"
		}, "InvalidParameterException", "must begin with"},
		"a version that EKS never had": {func(in *CreateClusterInput) {
			in.Version = "1.99"
		}, "InvalidParameterException", "unsupported Kubernetes version"},
		"a version past its support": {func(in *CreateClusterInput) {
			in.Version = "1.30"
		}, "InvalidParameterException", "unsupported Kubernetes version"},
		"a version that cannot be run here": {func(in *CreateClusterInput) {
			in.Version = "1.37"
		}, "UnsupportedByLocalAccount", "1.33 to 1.36"},
		"a role that is not there": {func(in *CreateClusterInput) {
			in.RoleArn += "-not"
		}, "InvalidParameterException", "could not be assumed"},
		"a role that does not trust EKS": {func(in *CreateClusterInput) {
			in.RoleArn = lambda
		}, "InvalidParameterException", "could not be assumed"},
		"no subnets": {func(in *CreateClusterInput) {
			in.ResourcesVpcConfig.SubnetIds = nil
		}, "InvalidParameterException", "two different AZs"},
		"subnets of one zone": {func(in *CreateClusterInput) {
			in.ResourcesVpcConfig.SubnetIds = b.subnets[:1]
		}, "InvalidParameterException", "two different AZs"},
		"subnets of two VPCs": {func(in *CreateClusterInput) {
			in.ResourcesVpcConfig.SubnetIds = append(b.subnets[:1:1], elsewhere[1])
		}, "InvalidParameterException", "same VPC"},
		"a subnet that is not there": {func(in *CreateClusterInput) {
			in.ResourcesVpcConfig.SubnetIds = []string{"subnet-0"}
		}, "InvalidParameterException", "subnet-0"},
		"a security group that is not there": {func(in *CreateClusterInput) {
			in.ResourcesVpcConfig.SecurityGroupIds = []string{"sg-0"}
		}, "InvalidParameterException", "sg-0"},
		"an unreachable endpoint": {func(in *CreateClusterInput) {
			in.ResourcesVpcConfig.EndpointPublicAccess = &no
		}, "InvalidParameterException", "cannot be false"},
		"public CIDRs that are none": {func(in *CreateClusterInput) {
			in.ResourcesVpcConfig.PublicAccessCidrs = []string{"1.2.3.4/8"}
		}, "InvalidParameterException", "1.2.3.4/8"},
		"services outside private ranges": {func(in *CreateClusterInput) {
			in.KubernetesNetworkConfig.ServiceIpv4Cidr = "8.0.0.0/16"
		}, "InvalidParameterException", "8.0.0.0/16"},
		"services in too small a range": {func(in *CreateClusterInput) {
			in.KubernetesNetworkConfig.ServiceIpv4Cidr = "172.20.0.0/25"
		}, "InvalidParameterException", "between /12 and /24"},
		"services in the VPC's range": {func(in *CreateClusterInput) {
			in.KubernetesNetworkConfig.ServiceIpv4Cidr = "10.0.0.0/16"
		}, "InvalidParameterException", "overlaps"},
		"IPv6": {func(in *CreateClusterInput) {
			in.KubernetesNetworkConfig.IpFamily = "ipv6"
		}, "UnsupportedByLocalAccount", "ipv6"},
		"the mode that is the default": {func(in *CreateClusterInput) {
			in.AccessConfig.AuthenticationMode = ""
		}, "UnsupportedByLocalAccount", "CONFIG_MAP"},
		"an unknown log": {func(in *CreateClusterInput) {
			in.Logging.ClusterLogging = []LogSetup{{Types: []string{"kubelet"}}}
		}, "InvalidParameterException", "kubelet"},
		"an unknown support type": {func(in *CreateClusterInput) {
			in.UpgradePolicy.SupportType = "FOREVER"
		}, "InvalidParameterException", "FOREVER"},
		"encryption of something else than secrets": {func(in *CreateClusterInput) {
			in.EncryptionConfig = []EncryptionConfig{{Resources: []string{"pods"}}}
		}, "InvalidParameterException", "pods"},
		"encryption by a key that is none": {func(in *CreateClusterInput) {
			in.EncryptionConfig = []EncryptionConfig{{Resources: []string{"secrets"}}}
		}, "InvalidParameterException", "keyArn"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := b.input("demo")
			tt.change(&in)
			_, err := b.CreateCluster(t.Context(), b.admin, in)
			awsError(t, err, tt.code, tt.message)
		})
	}
	list, err := b.ListClusters(t.Context(), b.admin, ListClustersInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"there"}, list.Clusters, "what was refused left nothing")

	again := b.input("twice")
	again.ClientRequestToken = "token"
	for range 2 {
		_, err = b.CreateCluster(t.Context(), b.admin, again)
		require.NoError(t, err, "the same request token is the same request")
	}
}

func TestQuotaOfClusters(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.config.MaxClusters = func() int { return 1 }
	b.cluster(t, "demo")
	_, err := b.CreateCluster(t.Context(), b.admin, b.input("other"))
	awsError(t, err, "ResourceLimitExceededException", "max number of clusters")
}

func TestZonesWithoutEKS(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.network.SetZoneID("us-east-1b", "use1-az3")
	_, err := b.CreateCluster(t.Context(), b.admin, b.input("demo"))
	awsError(t, err, "UnsupportedAvailabilityZoneException",
		"Cannot create cluster 'demo' because us-east-1b, the targeted availability zone, "+
			"does not currently have sufficient capacity to support the cluster. Retry and choose from these availability zones: "+
			"us-east-1a, us-east-1c")
}

func TestUpdatesOneAtATime(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.cluster(t, "demo")
	ctx := t.Context()
	refused := func(code, message string, in UpdateClusterConfigInput) {
		t.Helper()
		in.Name = "demo"
		_, err := b.UpdateClusterConfig(ctx, b.admin, in)
		awsError(t, err, code, message)
	}
	version := func(v string) error {
		_, err := b.UpdateClusterVersion(ctx, b.admin, UpdateClusterVersionInput{Name: "demo", Version: v})
		return err
	}
	yes := true
	refused("InvalidParameterException", "Only one type", UpdateClusterConfigInput{})
	refused("InvalidParameterException", "Only one type", UpdateClusterConfigInput{
		DeletionProtection: &yes, UpgradePolicy: &UpgradePolicy{"STANDARD"},
	})
	refused("InvalidParameterException", "Only one type", UpdateClusterConfigInput{
		ResourcesVpcConfig: &VPCRequest{SubnetIds: b.subnets, EndpointPrivateAccess: &yes},
	})
	refused("InvalidParameterException", "already at the desired", UpdateClusterConfigInput{
		ResourcesVpcConfig: &VPCRequest{EndpointPublicAccess: &yes},
	})
	refused("InvalidParameterException", "already at the desired", UpdateClusterConfigInput{
		AccessConfig: &AccessConfig{AuthenticationMode: "API"},
	})

	_, err := b.UpdateClusterConfig(ctx, b.admin, UpdateClusterConfigInput{
		Name: "demo", ResourcesVpcConfig: &VPCRequest{EndpointPrivateAccess: &yes, PublicAccessCidrs: []string{"192.0.2.0/24"}},
	})
	require.NoError(t, err)
	awsError(t, version("1.36"), "ResourceInUseException", "in progress")
	_, err = b.DeleteCluster(ctx, b.admin, NamedInput{"demo"})
	awsError(t, err, "ResourceInUseException", "UPDATING")
	b.await(t, "demo", active)
	out, err := b.DescribeCluster(ctx, b.admin, NamedInput{"demo"})
	require.NoError(t, err)
	require.Equal(t, []string{"192.0.2.0/24"}, out.Cluster.ResourcesVpcConfig.PublicAccessCidrs)
	require.True(t, out.Cluster.ResourcesVpcConfig.EndpointPrivateAccess && out.Cluster.ResourcesVpcConfig.EndpointPublicAccess)
}

// Simulated times: a cluster takes nine minutes, and an add-on without nodes is DEGRADED after fifteen.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		began := time.Now()
		b.cluster(t, "demo")
		require.Equal(t, 9*time.Minute, time.Since(began))

		addon := func(name string) *Addon {
			out, err := b.DescribeAddon(t.Context(), b.admin, AddonInput{"demo", name})
			require.NoError(t, err)
			return out.Addon
		}
		for _, name := range []string{"kube-proxy", "coredns"} {
			_, err := b.CreateAddon(t.Context(), b.admin, CreateAddonInput{ClusterName: "demo", AddonName: name})
			require.NoError(t, err)
		}
		time.Sleep(31 * time.Second)
		require.Equal(t, active, addon("kube-proxy").Status, "a DaemonSet needs no nodes")
		require.Equal(t, creating, addon("coredns").Status, "a Deployment does")
		time.Sleep(16 * time.Minute)
		require.Equal(t, degraded, addon("coredns").Status)
		require.Equal(t, "InsufficientNumberOfReplicas", addon("coredns").Health.Issues[0].Code)
		b.planes["demo"].makeAvailable(t, "coredns")
		time.Sleep(time.Second)
		require.Equal(t, active, addon("coredns").Status)
		require.Empty(t, addon("coredns").Health.Issues)

		_, err := b.UpdateAddon(t.Context(), b.admin, UpdateAddonInput{
			AddonInput: AddonInput{"demo", "coredns"}, AddonVersion: "v1.12.4-eksbuild.1",
		})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Equal(t, "v1.12.4-eksbuild.1", addon("coredns").AddonVersion)
		_, err = b.DeleteAddon(t.Context(), b.admin, DeleteAddonInput{AddonInput: AddonInput{"demo", "coredns"}})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = b.DescribeAddon(t.Context(), b.admin, AddonInput{"demo", "coredns"})
		awsError(t, err, "ResourceNotFoundException", "coredns")
	})
}

func TestClusterFailsIfItsControlPlaneDoesNotStart(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.config.Start = func(context.Context, kubernetes.Options) (ControlPlane, error) {
		return nil, errors.New("etcd died: exit status 1")
	}
	provider := b.Resources()["AWS::EKS::Cluster"]
	r := b.clusterRequest("demo")
	r.Properties["DeletionProtection"] = false
	result, err := provider.Create(t.Context(), r)
	require.ErrorContains(t, err, "etcd died")
	require.Equal(t, "demo", result.PhysicalID, "a rollback has to know what to delete")
	require.NoError(t, provider.Delete(t.Context(), resource.Request{PhysicalID: "demo", Caller: b.admin}))
	require.Empty(t, b.clusters)
}

// Each call needs the documented permission on its resource.
func TestPermissions(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.cluster(t, "drover-demo")
	b.cluster(t, "other")
	caller, _ := b.assume(t, "operator", `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":["eks:CreateCluster","eks:DescribeCluster","eks:CreateAddon","eks:TagResource"],
			"Resource":"arn:aws:eks:us-east-1:111122223333:cluster/drover-*"},
		{"Effect":"Allow","Action":["ec2:DescribeSubnets"],"Resource":"*"}]}`)
	ctx := t.Context()
	_, err := b.DescribeCluster(ctx, caller, NamedInput{"drover-demo"})
	require.NoError(t, err)
	for name, call := range map[string]func() error{
		"arn:aws:eks:us-east-1:111122223333:cluster/other": func() error {
			_, err := b.DescribeCluster(ctx, caller, NamedInput{"other"})
			return err
		},
		"eks:CreateCluster on resource: arn:aws:eks:us-east-1:111122223333:cluster/new": func() error {
			_, err := b.CreateCluster(ctx, caller, b.input("new"))
			return err
		},
		"eks:ListClusters": func() error { _, err := b.ListClusters(ctx, caller, ListClustersInput{}); return err },
		"iam:PassRole on resource: " + b.roleARN: func() error {
			_, err := b.CreateCluster(ctx, caller, b.input("drover-new"))
			return err
		},
		"eks:TagResource on resource: arn:aws:eks:us-east-1:111122223333:addon/drover-demo/vpc-cni/": func() error {
			_, err := b.CreateAddon(ctx, caller, CreateAddonInput{
				ClusterName: "drover-demo", AddonName: "vpc-cni", Tags: map[string]string{"a": "b"},
			})
			return err
		},
		"eks:DescribeAddon": func() error {
			_, err := b.DescribeAddon(ctx, caller, AddonInput{"drover-demo", "vpc-cni"})
			return err
		},
		"eks:DeleteAccessEntry on resource: arn:aws:eks:us-east-1:111122223333:access-entry/drover-demo/role/111122223333/x/": func() error {
			_, err := b.DeleteAccessEntry(ctx, caller, EntryInput{"drover-demo", "arn:aws:iam::111122223333:role/x"})
			return err
		},
		"eks:CreatePodIdentityAssociation": func() error {
			_, err := b.CreatePodIdentityAssociation(ctx, caller, CreatePodIdentityAssociationInput{ClusterName: "drover-demo"})
			return err
		},
	} {
		awsError(t, call(), "AccessDenied", name)
	}
}
