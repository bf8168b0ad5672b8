package permissions_test

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// withAddons is the release with further add-ons.
func withAddons(name string, addons ...string) string {
	return strings.Replace(harness.ReleaseOf("1.36", name), "    - {name: vpc-cni,", "    - "+strings.Join(addons, "\n    - ")+
		"\n    - {name: vpc-cni,", 1)
}

// identityLives give pods roles, and check the permissions of add-ons.
var identityLives = map[string]func(*life){
	"pods get roles, other roles and none": func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), withAddons("r1", "{name: eks-pod-identity-agent, version: v1.3.10-eksbuild.1}"))
		upload := func(identities string) {
			l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected+identities))
			l.SettleAll()
			l.RequirePhase(status.Ready)
		}
		const export = "    - {namespace: data, serviceAccount: export, policies: [AmazonS3ReadOnlyAccess]}\n"
		upload("  podIdentities:\n    - {namespace: shop, serviceAccount: checkout, roleARN: \"" + harness.WorkloadRole + "\"}\n" +
			export + "    - {preset: ClusterAutoscaler}\n")
		upload("  podIdentities:\n" + export + "  tags: {team: a}\n")
		upload("")
		require.NotContains(l.T, l.Stacks("demo"), names.Identities)
	},
	"capabilities come, change and go": func(l *life) {
		upload := func(more string) {
			l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected+more))
			l.SettleAll()
			l.RequirePhase(status.Ready)
		}
		gitops := func(role, admins string) string {
			return "  capabilities:\n    - {name: gitops, type: ArgoCD, roleARN: \"" + role + "\", argoCD: {identityCenterARN: \"" +
				harness.IdentityCenter + "\", admins: [" + admins + "]}}\n"
		}
		const group = "01234567-89ab-cdef-0123-456789abcdef"
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		upload(gitops(harness.CapabilityRole, "") + "  tags: {team: a}\n")
		upload(gitops(harness.OtherCapabilityRole, group))
		upload("")
		require.NotContains(l.T, l.Stacks("demo"), names.Capabilities)
	},
	"a release whose add-on has no permissions": func(l *life) {
		const dns = "{name: external-dns, version: v0.20.0-eksbuild.1}"
		l.CreateCluster(lives.Unprotected)
		l.Upload(names.ReleaseSpec("r2"), withAddons("r2", dns))
		l.SettleAll()
		l.Events.Decide(lives.LoseEvents("aws.s3", names.ReleaseSpec("r3")))
		l.Upload(names.ReleaseSpec("r3"), withAddons("r3", dns))
		time.Sleep(15 * time.Minute)
		l.Audit()
		verdict, err := l.State().ReleaseStatus(l.T.Context(), "r3")
		require.NoError(l.T, err)
		require.False(l.T, verdict.Status.Usable)
	},
}
