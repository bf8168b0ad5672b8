package eks

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddonsRefuse(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.cluster(t, "demo")
	pods := b.role(t, "pods", "pods.eks.amazonaws.com")
	identity := func(role string) []AddonPodIdentity {
		return []AddonPodIdentity{{ServiceAccount: "aws-node", RoleArn: role}}
	}
	_, err := b.CreateAddon(t.Context(), b.admin, CreateAddonInput{
		ClusterName: "demo", AddonName: "vpc-cni", PodIdentityAssociations: identity(pods),
	})
	require.NoError(t, err)
	tests := map[string]struct {
		in            CreateAddonInput
		code, message string
	}{
		"an unknown add-on": {CreateAddonInput{AddonName: "calico"}, "InvalidParameterException", "calico"},
		"one that is there": {CreateAddonInput{AddonName: "vpc-cni"}, "ResourceInUseException", "already exists"},
		"an unknown version": {
			CreateAddonInput{
				AddonName: "coredns", AddonVersion: "v1.0.0-eksbuild.1",
			}, "InvalidParameterException", "version specified is not supported",
		},
		"a version for another Kubernetes": {
			CreateAddonInput{
				AddonName: "kube-proxy", AddonVersion: "v1.36.1-eksbuild.2",
			}, "InvalidParameterException", "not supported for Kubernetes version 1.35",
		},
		"a way of resolving that is none": {
			CreateAddonInput{AddonName: "coredns", ResolveConflicts: "MERGE"}, "InvalidParameterException", "MERGE",
		},
		"a configuration that is no JSON": {
			CreateAddonInput{AddonName: "coredns", ConfigurationValues: "{"}, "InvalidParameterException", "not in valid JSON",
		},
		"a role that does not trust pods": {
			CreateAddonInput{
				AddonName: "coredns", PodIdentityAssociations: identity(b.roleARN),
			}, "InvalidParameterException", "must let pods.eks.amazonaws.com",
		},
		"a service account that has a role": {
			CreateAddonInput{AddonName: "coredns", PodIdentityAssociations: identity(pods)}, "ResourceInUseException", "Association already exists",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.in.ClusterName = "demo"
			_, err := b.CreateAddon(t.Context(), b.admin, tt.in)
			awsError(t, err, tt.code, tt.message)
		})
	}
	list, err := b.ListAddons(t.Context(), b.admin, ListAddonsInput{ClusterName: "demo"})
	require.NoError(t, err)
	require.Equal(t, []string{"vpc-cni"}, list.Addons)
	owned, err := b.ListPodIdentityAssociations(t.Context(), b.admin, ListPodIdentityAssociationsInput{ClusterName: "demo"})
	require.NoError(t, err)
	require.Len(t, owned.Associations, 1)
	require.NotEmpty(t, owned.Associations[0].OwnerARN)
}
