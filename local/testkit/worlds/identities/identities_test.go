// Package identities_test has the tests of roles for pods, with a cell whose settings allow some.
package identities_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/admission"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// withAgent is the release with the agent of pod identity.
func withAgent() string {
	return strings.Replace(harness.Release(), "    - {name: vpc-cni,", "    - {name: eks-pod-identity-agent, version: v1.3.10-eksbuild.1}\n"+
		"    - {name: vpc-cni,", 1)
}

func start(t *testing.T, options harness.Options) *harness.Account {
	a := harness.StartWith(t, options)
	a.Upload(names.ReleaseSpec("r1"), withAgent())
	return a
}

func upload(a *harness.Account, identities ...string) *status.Status {
	more := ""
	if len(identities) > 0 {
		more = "  podIdentities:\n    - " + strings.Join(identities, "\n    - ") + "\n"
	}
	a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", more))
	a.Settle()
	return a.Status("demo")
}

// associations returns the roles of service accounts that no add-on owns.
func associations(t *testing.T, a *harness.Account) map[string]string {
	client, name := awseks.NewFromConfig(a.Config()), names.EKSCluster("demo")
	roles := map[string]string{}
	listed, err := client.ListPodIdentityAssociations(t.Context(), &awseks.ListPodIdentityAssociationsInput{ClusterName: &name})
	require.NoError(t, err)
	for _, association := range listed.Associations {
		if association.OwnerArn != nil {
			continue
		}
		out, err := client.DescribePodIdentityAssociation(t.Context(), &awseks.DescribePodIdentityAssociationInput{
			ClusterName: &name, AssociationId: association.AssociationId,
		})
		require.NoError(t, err)
		roles[*association.Namespace+"/"+*association.ServiceAccount] = *out.Association.RoleArn
	}
	return roles
}

const checkout = "{namespace: shop, serviceAccount: checkout, roleARN: " + harness.WorkloadRole + "}"

func TestPodIdentities(t *testing.T) {
	a := start(t, harness.Options{Workloads: true})
	require.Equal(t, status.Ready, upload(a).Phase, a.Status("demo").Message)
	require.NotContains(t, a.Stacks("demo"), names.Identities, "a stack without resources does not exist")
	require.Empty(t, associations(t, a))

	mark := a.Calls.Mark()
	s := upload(a, checkout, "{namespace: data, serviceAccount: export, policies: [AmazonS3ReadOnlyAccess]}",
		"{preset: ClusterAutoscaler}", "{preset: LoadBalancerController}")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	roles := associations(t, a)
	require.Equal(t, []string{
		"data/export", "kube-system/aws-load-balancer-controller", "kube-system/cluster-autoscaler", "shop/checkout",
	}, slices.Sorted(maps.Keys(roles)))
	require.Equal(t, harness.WorkloadRole, roles["shop/checkout"])
	for account, boundary := range map[string]string{
		"data/export":                    "policy/workloads",
		"kube-system/cluster-autoscaler": "policy/drover-eu-central-1-boundary",
	} {
		role, err := a.Identities.RoleByARN(roles[account])
		require.NoError(t, err)
		require.Equal(t, "/drover/", role.Path)
		require.Equal(t, "arn:aws:iam::"+harness.ID+":"+boundary, role.Boundary)
	}
	for _, call := range a.Calls.Since(mark) {
		require.False(t, call.Action == "ExecuteChangeSet" && !strings.Contains(call.Resource, names.Identities), "%s changes", call.Resource)
	}

	t.Run("give pods what their role allows, and nothing more", func(t *testing.T) {
		caller, _, err := a.Identities.AssumeRoleForPod(roles["data/export"], "export", nil)
		require.NoError(t, err)
		require.NoError(t, caller.Authorize("s3:GetObject", "arn:aws:s3:::"+harness.WorkloadBucket+"/1", nil))
		require.Error(t, caller.Authorize("s3:GetObject", "arn:aws:s3:::"+harness.SpecsBucket+"/1", nil), "the boundary")
		require.Error(t, caller.Authorize("s3:PutObject", "arn:aws:s3:::"+harness.WorkloadBucket+"/1", nil), "the policy")
	})
	t.Run("change in place, and leave with the spec", func(t *testing.T) {
		role, err := a.Identities.CreateRole(iam.Role{Name: "other", Path: "/workloads/", TrustDocument: trustOf(t, a, harness.WorkloadRole)})
		require.NoError(t, err)
		other := a.Identities.RoleARN(role)
		s := upload(a, strings.Replace(checkout, harness.WorkloadRole, other, 1))
		require.Equal(t, status.Ready, s.Phase, s.Message)
		require.Equal(t, map[string]string{"shop/checkout": other}, associations(t, a))
		require.Equal(t, status.Ready, upload(a).Phase)
		require.Empty(t, associations(t, a))
		require.NotContains(t, a.Stacks("demo"), names.Identities)
	})
}

func trustOf(t *testing.T, a *harness.Account, arn string) string {
	role, err := a.Identities.RoleByARN(arn)
	require.NoError(t, err)
	return role.TrustDocument
}

// What the settings do not allow is refused at upload. If it were not, IAM would deny it.
func TestPodIdentitiesBeyondTheSettings(t *testing.T) {
	const (
		other     = "{namespace: shop, serviceAccount: checkout, roleARN: " + harness.OtherRole + "}"
		privilege = "{namespace: shop, serviceAccount: checkout, policies: [AdministratorAccess]}"
	)
	for name, c := range map[string]struct{ identity, refused, denied string }{
		"a role": {other, "podIdentities[0].roleARN: Invalid value: \"" + harness.OtherRole + "\": the cell allows the roles arn:aws:iam::" +
			harness.ID + ":role/workloads/*, arn:aws:iam::" + harness.ID + ":role/capability-*: choose another role, or the " +
			"platform team adds it to workloadRoles of cellSettings in cdk.json",
			"is not authorized to perform: iam:GetRole on resource: " + harness.OtherRole},
		"a policy": {privilege, "podIdentities[0].policies[0]: Invalid value: \"AdministratorAccess\": the cell allows the policies " +
			"AmazonS3ReadOnlyAccess: choose another policy",
			"is not authorized to perform: iam:AttachRolePolicy on resource: arn:aws:iam::" + harness.ID + ":role/drover/drover-demo-identities-"},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, harness.Options{Workloads: true})
			require.Equal(t, status.Ready, upload(a).Phase)
			mark := a.Calls.Mark()
			s := upload(a, c.identity)
			require.Equal(t, status.ReasonSpecInvalid, s.Condition(status.SpecAccepted).Reason)
			require.Contains(t, s.Condition(status.SpecAccepted).Message, c.refused)
			for _, call := range a.Calls.Since(mark) {
				require.NotEqual(t, "CreateChangeSet", call.Action)
			}
			s = upload(a)
			require.Equal(t, status.Ready, s.Phase, s.Message)

			// The functions allow everything. CloudFormation's role does not.
			for _, settings := range []*api.CellSettings{a.Functions.Planner.Settings, a.Functions.Admit.Admitter.(*admission.Admitter).Settings} {
				settings.WorkloadRoles = append(settings.WorkloadRoles, harness.OtherRole)
				settings.WorkloadPolicies = append(settings.WorkloadPolicies, "AdministratorAccess")
			}
			s = upload(a, c.identity)
			require.Equal(t, status.Failed, s.Phase)
			require.Contains(t, s.Message, c.denied)
			require.Contains(t, s.Message, "stack drover-demo-identities is ", "the failed stack is named")
			require.Empty(t, associations(t, a))
		})
	}
	t.Run("the default allows none", func(t *testing.T) {
		a := start(t, harness.Options{})
		s := upload(a, checkout)
		require.Contains(t, s.Condition(status.SpecAccepted).Message, "podIdentities[0].roleARN: Forbidden: the cell allows no role: "+
			"the platform team adds roles to workloadRoles of cellSettings in cdk.json, and deploys drover")
		require.Empty(t, a.Stacks("demo"))
	})
	t.Run("an agent is needed", func(t *testing.T) {
		a := harness.StartWith(t, harness.Options{Workloads: true})
		a.Upload(names.ReleaseSpec("r1"), harness.Release())
		s := upload(a, checkout)
		require.Contains(t, fmt.Sprint(s), "spec.podIdentities: pods get their credentials from the add-on eks-pod-identity-agent: "+
			"add it to spec.addons, or use a release with it")
	})
}

// An add-on of the spec that needs permissions is refused without some.
func TestAddonIdentities(t *testing.T) {
	a := start(t, harness.Options{Workloads: true})
	require.Equal(t, status.Ready, upload(a).Phase)
	change := func(addon string) *status.Status {
		a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  addons:\n    - "+addon+"\n"))
		a.Settle()
		return a.Status("demo")
	}
	const dns = "{name: external-dns, version: v0.20.0-eksbuild.1"
	s := change(dns + "}")
	require.Equal(t, "AddonWithoutPermission", s.Condition(status.SpecAccepted).Reason)
	require.Equal(t, status.Ready, s.Phase, "the last good spec applies")
	require.Contains(t, s.Condition(status.SpecAccepted).Message, "spec.addons[external-dns]: the add-on external-dns "+
		"v0.20.0-eksbuild.1 needs permissions in AWS, and has no podIdentities: state podIdentities, or an empty list if its pods have "+
		"their permissions from elsewhere; for the policies that EKS recommends, run aws eks describe-addon-configuration --addon-name "+
		"external-dns --addon-version v0.20.0-eksbuild.1")

	s = change(dns + ", podIdentities: [{serviceAccount: external-dns, roleARN: \"" + harness.OtherRole + "\"}]}")
	require.Contains(t, s.Condition(status.SpecAccepted).Message, "spec.addons[0].podIdentities[0].roleARN: Invalid value: \""+
		harness.OtherRole+"\": the cell allows the roles")

	s = change(dns + ", podIdentities: [{serviceAccount: external-dns, roleARN: \"" + harness.WorkloadRole + "\"}]}")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Equal(t, harness.WorkloadRole, owned(t, a)["external-dns"])
	s = change(dns + "}")
	require.Equal(t, "AddonWithoutPermission", s.Condition(status.SpecAccepted).Reason)
	require.Equal(t, "spec.addons[external-dns]: the add-on external-dns v0.20.0-eksbuild.1 needs permissions in AWS, and has no "+
		"podIdentities, so its pods would lose their role: state podIdentities, or an empty list if its pods have their permissions from "+
		"elsewhere; for the policies that EKS recommends, run aws eks describe-addon-configuration --addon-name external-dns "+
		"--addon-version v0.20.0-eksbuild.1", s.Condition(status.SpecAccepted).Message)
	require.Equal(t, harness.WorkloadRole, owned(t, a)["external-dns"])
	s = change(dns + ", podIdentities: []}")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.NotContains(t, owned(t, a), "external-dns", "an empty list removes them")

	s = change("{name: aws-efs-csi-driver, version: v2.1.15-eksbuild.1, podIdentities: [{serviceAccount: efs-csi-controller-sa, " +
		"policies: [AmazonEFSCSIDriverPolicy]}]}")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	role, err := a.Identities.RoleByARN(owned(t, a)["efs-csi-controller-sa"])
	require.NoError(t, err)
	require.Equal(t, []string{"arn:aws:iam::aws:policy/service-role/AmazonEFSCSIDriverPolicy"}, role.Attached)
}

// owned returns the roles of service accounts whose associations belong to add-ons.
func owned(t *testing.T, a *harness.Account) map[string]string {
	client, name := awseks.NewFromConfig(a.Config()), names.EKSCluster("demo")
	roles := map[string]string{}
	listed, err := client.ListPodIdentityAssociations(t.Context(), &awseks.ListPodIdentityAssociationsInput{ClusterName: &name})
	require.NoError(t, err)
	for _, association := range listed.Associations {
		if association.OwnerArn == nil {
			continue
		}
		out, err := client.DescribePodIdentityAssociation(t.Context(), &awseks.DescribePodIdentityAssociationInput{
			ClusterName: &name, AssociationId: association.AssociationId,
		})
		require.NoError(t, err)
		roles[*association.ServiceAccount] = *out.Association.RoleArn
	}
	return roles
}
