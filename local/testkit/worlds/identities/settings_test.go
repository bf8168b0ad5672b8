package identities_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/admission"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

const (
	export = "{namespace: data, serviceAccount: export, policies: [AmazonS3ReadOnlyAccess]}"
	// settingsPolicy is what the settings add to CloudFormation's role.
	settingsPolicy = "arn:aws:iam::" + harness.ID + ":policy/" + names.Prefix + harness.Region + "-cloudformation-workloads"
)

// deploySettings gives the functions other settings, as a deployment of drover does.
func deploySettings(t *testing.T, a *harness.Account, settings string) {
	parsed, err := api.ParseCellSettings(settings)
	require.NoError(t, err)
	for _, s := range []*api.CellSettings{
		a.Functions.Planner.Settings, a.Functions.Admit.Admitter.(*admission.Admitter).Settings,
	} {
		account := s.Account
		*s = parsed
		s.Account = account
	}
}

// A deployment without the settings takes rights. What clusters have of them can still be removed.
func TestSettingsAreRemoved(t *testing.T) {
	created := func(t *testing.T) (*harness.Account, string) {
		a := start(t, harness.Options{Workloads: true})
		a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected+"  podIdentities:\n    - "+export+"\n    - "+checkout+"\n"))
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
		role := associations(t, a)["data/export"]
		deploySettings(t, a, "")
		require.NoError(t, a.Identities.DetachRolePolicy(names.Role(harness.Region, "cloudformation"), settingsPolicy))
		return a, role
	}
	requireNoRole := func(t *testing.T, a *harness.Account, role string) {
		_, err := a.Identities.RoleByARN(role)
		var failed *iam.Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, "NoSuchEntity", failed.Code)
	}
	t.Run("and the cluster is edited", func(t *testing.T) {
		a, role := created(t)
		s := upload(a, export, checkout)
		require.Equal(t, status.ReasonSpecInvalid, s.Condition(status.SpecAccepted).Reason)
		s = upload(a, "{preset: ClusterAutoscaler}")
		require.Equal(t, status.Ready, s.Phase, s.Message)
		requireNoRole(t, a, role)
	})
	t.Run("and the cluster is deleted", func(t *testing.T) {
		a, role := created(t)
		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		require.Empty(t, a.Stacks("demo"))
		requireNoRole(t, a, role)
	})
	t.Run("and the boundary is another one", func(t *testing.T) {
		a, role := created(t)
		const other = "arn:aws:iam::" + harness.ID + ":policy/other"
		_, err := a.Identities.CreatePolicy(iam.ManagedPolicy{Name: "other", Document: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow",` +
			`"Action":"s3:ListBucket","Resource":"*"}]}`})
		require.NoError(t, err)
		policy, err := a.Identities.ManagedPolicy(settingsPolicy)
		require.NoError(t, err)
		document := strings.ReplaceAll(policy.Document, "policy/workloads", "policy/other")
		require.NoError(t, a.Identities.SetPolicyDocument(settingsPolicy, document))
		require.NoError(t, a.Identities.AttachRolePolicy(names.Role(harness.Region, "cloudformation"), settingsPolicy))
		deploySettings(t, a, strings.ReplaceAll(harness.WorkloadSettings, "policy/workloads", "policy/other"))

		s := upload(a, export)
		require.Equal(t, status.Ready, s.Phase, s.Message)
		bounded, err := a.Identities.RoleByARN(associations(t, a)["data/export"])
		require.NoError(t, err)
		require.Equal(t, other, bounded.Boundary)
		requireNoRole(t, a, role)
	})
}

// The verdict on a release names what the cell does not allow. A cluster of it names the release.
func TestReleaseBeyondTheSettings(t *testing.T) {
	const (
		forbids = "podIdentities[0].roleARN: Invalid value: \"" + harness.OtherRole + "\": the cell allows the roles arn:aws:iam::" + harness.ID +
			":role/workloads/*, arn:aws:iam::" + harness.ID + ":role/capability-*: choose another role, or the platform team adds it to " +
			"workloadRoles of cellSettings in cdk.json, and deploys drover"
		dns = "    - {name: external-dns, version: v0.20.0-eksbuild.1, podIdentities: [{serviceAccount: external-dns, roleARN: \"" +
			harness.OtherRole + "\"}]}\n"
	)
	a := start(t, harness.Options{Workloads: true})
	a.Upload(names.ReleaseSpec("r1"), strings.Replace(withAgent(), "    - {name: vpc-cni,", dns+"    - {name: vpc-cni,", 1))
	a.Settle()
	verdict, err := a.State().ReleaseStatus(t.Context(), "r1")
	require.NoError(t, err)
	require.False(t, verdict.Status.Usable)
	require.Regexp(t, `^releases/r1\.yaml:\d+: spec\.addons\[\d\]\.`+regexp.QuoteMeta(forbids)+`$`, verdict.Status.Checks[0].Message)

	s := upload(a)
	accepted := s.Condition(status.SpecAccepted)
	require.Equal(t, status.ReasonReleaseUnusable, accepted.Reason)
	require.Equal(t, "the release r1: spec.addons[external-dns]."+forbids, accepted.Message)
	a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  addons:\n    - {name: external-dns, podIdentities: [{serviceAccount: "+
		"external-dns, roleARN: \""+harness.WorkloadRole+"\"}]}\n"))
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, "a role of the spec replaces that of the release")
}
