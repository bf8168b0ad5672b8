package releases_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestAddonPermissions(t *testing.T) {
	const dns = "addons: [{name: external-dns, version: v0.20.0"
	for name, c := range map[string]struct {
		addon, message string
	}{
		"none": {"}", "the add-on external-dns v0.20.0 needs permissions in AWS, and has no podIdentities; EKS recommends for service account " +
			"dns: AmazonRoute53FullAccess (drover creates no role for AmazonRoute53FullAccess: name a role in roleARN)"},
		"a role":         {", podIdentities: [{serviceAccount: dns, roleARN: \"arn:aws:iam::111122223333:role/workloads/dns\"}]}", ""},
		"from elsewhere": {", podIdentities: []}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			f.upload("r1", editedRelease("addons: [{name: coredns, version: v1.13.2}", dns+c.addon))
			verdict := f.check(t, "r1")
			require.Equal(t, c.message == "", verdict.Usable)
			if c.message != "" {
				require.Equal(t, "AddonPermissions", verdict.Checks[0].Name)
				require.Equal(t, c.message, verdict.Checks[0].Message)
			} else {
				require.NotContains(t, f.described, "configuration of external-dns")
			}
		})
	}
	t.Run("wrong ones are errors of the file", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", editedRelease("addons: [{name: coredns, version: v1.13.2}",
			dns+", podIdentities: [{serviceAccount: dns, policies: [AdministratorAccess]}, {serviceAccount: dns}]}"))
		message := f.check(t, "r1").Checks[0].Message
		require.Contains(t, message, `spec.addons[0].podIdentities[0].policies[0]: Invalid value: "AdministratorAccess": must be a policy `+
			`for which drover creates a role: AWSXrayWriteOnlyAccess, AmazonEBSCSIDriverPolicyV2, AmazonEFSCSIDriverPolicy, AmazonEKS_CNI_Policy, `+
			`CloudWatchAgentServerPolicy`)
		require.Contains(t, message, `spec.addons[0].podIdentities[1]: Required value: state one of roleARN, policies`)
		require.Contains(t, message, `spec.addons[0].podIdentities[1].serviceAccount: Duplicate value: "dns"`)
	})
}

func TestDraftPermissions(t *testing.T) {
	c := newCatalogs()
	c.addons["external-dns"], c.addons["aws-efs-csi-driver"], c.addons["metrics-server"] = "v0.20.0", "v2.1.15", "v0.8.1"
	c.recommended = map[string][]api.RecommendedIdentity{
		"vpc-cni":            {{ServiceAccount: "aws-node", Policies: []string{"AmazonEKS_CNI_Policy"}}},
		"aws-ebs-csi-driver": {{ServiceAccount: "ebs-csi-controller-sa", Policies: []string{"AmazonEBSCSIDriverPolicy"}}},
		"external-dns":       {{ServiceAccount: "external-dns", Policies: []string{"AmazonRoute53FullAccess"}}},
		"aws-efs-csi-driver": {{ServiceAccount: "efs-csi-controller-sa", Policies: []string{"AmazonEFSCSIDriverPolicy"}}},
	}
	role := []api.AddonIdentity{{ServiceAccount: "efs-csi-controller-sa", RoleARN: "arn:aws:iam::111122223333:role/workloads/efs"}}
	o := draftOptions()
	o.From = &api.Release{Spec: api.ReleaseSpec{TemplateVersion: "v1", Addons: []api.Addon{
		{Name: "vpc-cni", PodIdentities: []api.AddonIdentity{{ServiceAccount: "old", Policies: []string{"AmazonEKS_CNI_Policy"}}}},
		{Name: "aws-ebs-csi-driver"}, {Name: "external-dns"}, {Name: "aws-efs-csi-driver", PodIdentities: role},
		{Name: "metrics-server", PodIdentities: []api.AddonIdentity{}},
	}}}
	draft, err := c.draft(t, o)
	require.NoError(t, err)
	require.Contains(t, string(draft.YAML()), `    - name: "vpc-cni"
      version: "v1.21.1-eksbuild.1"
      podIdentities: [{"serviceAccount":"aws-node","policies":["AmazonEKS_CNI_Policy"]}]
    - name: "aws-ebs-csi-driver"
      version: "v1.55.0-eksbuild.1"
      podIdentities: [{"serviceAccount":"ebs-csi-controller-sa","policies":["AmazonEBSCSIDriverPolicyV2"]}]
    - name: "external-dns"
      version: "v0.20.0"
      # EKS recommends for service account external-dns: AmazonRoute53FullAccess. Name a role in podIdentities.
    - name: "aws-efs-csi-driver"
      version: "v2.1.15"
      podIdentities: [{"serviceAccount":"efs-csi-controller-sa","roleARN":"arn:aws:iam::111122223333:role/workloads/efs"}]
    - name: "metrics-server"
      version: "v0.8.1"
      podIdentities: []
`)
	require.Equal(t, "old", o.From.Spec.Addons[0].PodIdentities[0].ServiceAccount, "the other release stays")

	c.recommended["external-dns"] = []api.RecommendedIdentity{{ServiceAccount: "external-dns"}}
	draft, err = c.draft(t, o)
	require.NoError(t, err)
	require.Contains(t, string(draft.YAML()), "    - name: \"external-dns\"\n      version: \"v0.20.0\"\n"+
		"      # Service account external-dns needs permissions, and EKS recommends no policy. Name a role in podIdentities.\n")
	require.Equal(t, "the add-on external-dns v0.20.0 needs permissions in AWS, and has no podIdentities; EKS recommends no policy for "+
		"service account external-dns: name a role in roleARN",
		api.AddonWithoutPermission{Name: "external-dns", Version: "v0.20.0", Recommended: c.recommended["external-dns"]}.String())
}
