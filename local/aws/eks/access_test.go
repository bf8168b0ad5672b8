package eks

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAccessEntriesRefuse(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.cluster(t, "demo")
	role := b.role(t, "dev", "lambda.amazonaws.com")
	tests := map[string]struct {
		in            CreateAccessEntryInput
		code, message string
	}{
		"a principal that is none": {CreateAccessEntryInput{PrincipalArn: "dev"}, "InvalidParameterException", "principalArn is invalid"},
		"a role that is not there": {
			CreateAccessEntryInput{PrincipalArn: role + "-not"}, "InvalidParameterException", "principalArn is invalid",
		},
		"a session instead of its role": {
			CreateAccessEntryInput{
				PrincipalArn: "arn:aws:sts::111122223333:assumed-role/dev/s",
			}, "InvalidParameterException", "principalArn is invalid",
		},
		"an unknown type": {CreateAccessEntryInput{PrincipalArn: role, Type: "EC2_PLAN9"}, "InvalidParameterException", "EC2_PLAN9"},
		"a type that is not here": {
			CreateAccessEntryInput{PrincipalArn: role, Type: "EC2_WINDOWS"}, "UnsupportedByLocalAccount", "EC2_WINDOWS",
		},
		"groups of Kubernetes itself": {
			CreateAccessEntryInput{PrincipalArn: role, KubernetesGroups: []string{"system:masters"}}, "InvalidParameterException",
			"cannot start with system:",
		},
		"a user name of Kubernetes": {
			CreateAccessEntryInput{PrincipalArn: role, Username: "system:admin"}, "InvalidParameterException", "cannot start with system:",
		},
		"a user name of nodes": {
			CreateAccessEntryInput{PrincipalArn: role, Type: "EC2_LINUX", Username: "n"}, "InvalidParameterException", "EC2_LINUX",
		},
		"a cluster that is not there": {CreateAccessEntryInput{ClusterName: "demi", PrincipalArn: role}, "ResourceNotFoundException", "demi"},
		"a principal that has one":    {CreateAccessEntryInput{PrincipalArn: b.roleARN}, "ResourceInUseException", "already in use"},
	}
	_, err := b.CreateAccessEntry(t.Context(), b.admin, CreateAccessEntryInput{ClusterName: "demo", PrincipalArn: b.roleARN})
	require.NoError(t, err)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.in.ClusterName == "" {
				tt.in.ClusterName = "demo"
			}
			_, err := b.CreateAccessEntry(t.Context(), b.admin, tt.in)
			awsError(t, err, tt.code, tt.message)
		})
	}
}

func TestAssociateAccessPolicyRefuses(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.cluster(t, "demo")
	node := b.role(t, "node", "ec2.amazonaws.com")
	for principal, kind := range map[string]string{b.roleARN: "STANDARD", node: "EC2_LINUX"} {
		_, err := b.CreateAccessEntry(t.Context(), b.admin, CreateAccessEntryInput{ClusterName: "demo", PrincipalArn: principal, Type: kind})
		require.NoError(t, err)
	}
	const prefix = "arn:aws:eks::aws:cluster-access-policy/"
	cluster := AccessScope{Type: "cluster"}
	tests := map[string]struct {
		principal, policy string
		scope             AccessScope
		code, message     string
	}{
		"a principal without an entry": {
			principal: "arn:aws:iam::111122223333:role/x", policy: prefix + "AmazonEKSViewPolicy", scope: cluster,
			code: "ResourceNotFoundException", message: "principalArn",
		},
		"a policy of nodes": {
			principal: node, policy: prefix + "AmazonEKSViewPolicy", scope: cluster, code: "InvalidParameterException", message: "EC2_LINUX",
		},
		"an IAM policy": {
			principal: b.roleARN, policy: "arn:aws:iam::aws:policy/AdministratorAccess", scope: cluster, code: "InvalidParameterException",
			message: "policyArn",
		},
		"a policy that is not here": {
			principal: b.roleARN, policy: prefix + "AmazonEKSAutoNodePolicy", scope: cluster, code: "UnsupportedByLocalAccount",
			message: "AmazonEKSAutoNodePolicy",
		},
		"a scope without a type": {
			principal: b.roleARN, policy: prefix + "AmazonEKSViewPolicy", scope: AccessScope{}, code: "InvalidParameterException",
			message: "accessScope",
		},
		"namespaces without any": {
			principal: b.roleARN, policy: prefix + "AmazonEKSViewPolicy", scope: AccessScope{Type: "namespace"},
			code: "InvalidParameterException", message: "accessScope",
		},
		"a whole cluster with namespaces": {
			principal: b.roleARN, policy: prefix + "AmazonEKSViewPolicy", scope: AccessScope{Type: "cluster", Namespaces: []string{"a"}},
			code: "InvalidParameterException", message: "accessScope",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := b.AssociateAccessPolicy(t.Context(), b.admin, AssociateAccessPolicyInput{"demo", tt.principal, tt.policy, tt.scope})
			awsError(t, err, tt.code, tt.message)
		})
	}
}

// The catalog has every add-on version of the example releases.
func TestReleasesOfTheExamples(t *testing.T) {
	for minor, addons := range exampleReleases(t) {
		for name, version := range addons {
			entry, err := findCatalogAddon(name)
			require.NoError(t, err)
			require.NoError(t, entry.check(version, minor))
		}
	}
}

func TestAccessOfRecreatedRole(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.cluster(t, "demo")
	first, _ := b.assume(t, "dev", "")
	entry := CreateAccessEntryInput{ClusterName: "demo", PrincipalArn: first.RoleARN()}
	_, err := b.CreateAccessEntry(t.Context(), b.admin, entry)
	require.NoError(t, err)
	_, _, _, err = b.identify("demo", first)
	require.NoError(t, err)

	require.NoError(t, b.identities.DeleteRole("dev"))
	second, _ := b.assume(t, "dev", "")
	_, _, _, err = b.identify("demo", second)
	require.ErrorContains(t, err, "the role was recreated")

	_, err = b.DeleteAccessEntry(t.Context(), b.admin, EntryInput{ClusterName: "demo", PrincipalArn: entry.PrincipalArn})
	require.NoError(t, err)
	_, err = b.CreateAccessEntry(t.Context(), b.admin, entry)
	require.NoError(t, err)
	_, _, _, err = b.identify("demo", second)
	require.NoError(t, err)
}
