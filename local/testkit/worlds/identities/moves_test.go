package identities_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// edit uploads a spec with add-ons and pod identities, and further fields.
func edit(a *harness.Account, addons, identities []string, more string) *status.Status {
	if len(addons) > 0 {
		more += "  addons:\n    - " + strings.Join(addons, "\n    - ") + "\n"
	}
	if len(identities) > 0 {
		more += "  podIdentities:\n    - " + strings.Join(identities, "\n    - ") + "\n"
	}
	a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", more))
	a.Settle()
	return a.Status("demo")
}

// EKS has one association for a service account. Each move is one edit.
func TestIdentityMoves(t *testing.T) {
	const (
		dns        = "{name: external-dns, version: v0.20.0-eksbuild.1, podIdentities: "
		dnsOwn     = dns + "[{serviceAccount: external-dns, roleARN: \"" + harness.WorkloadRole + "\"}]}"
		dnsNone    = dns + "[]}"
		dnsAccount = "{namespace: external-dns, serviceAccount: external-dns, roleARN: \"" + harness.WorkloadRole + "\"}"
		cniNone    = "{name: vpc-cni, podIdentities: []}"
		cniAccount = "{namespace: kube-system, serviceAccount: aws-node, roleARN: \"" + harness.WorkloadRole + "\"}"
	)
	type spec struct{ addons, identities []string }
	for name, c := range map[string]struct {
		with, without spec
		account       string
	}{
		"of an add-on that needs nodes": {
			spec{[]string{dnsOwn}, nil}, spec{[]string{dnsNone}, []string{dnsAccount}}, "external-dns/external-dns",
		},
		"of an add-on that leaves": {spec{[]string{dnsOwn}, nil}, spec{nil, []string{dnsAccount}}, "external-dns/external-dns"},
		"of an add-on that nodes need": {
			spec{nil, []string{checkout}}, spec{[]string{cniNone}, []string{checkout, cniAccount}}, "kube-system/aws-node",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, harness.Options{Workloads: true})
			for range 2 {
				s := edit(a, c.with.addons, c.with.identities, "")
				require.Equal(t, status.Ready, s.Phase, s.Message)
				require.Contains(t, owned(t, a), strings.Split(c.account, "/")[1])
				s = edit(a, c.without.addons, c.without.identities, "")
				require.Equal(t, status.Ready, s.Phase, s.Message)
				require.Equal(t, harness.WorkloadRole, associations(t, a)[c.account])
				require.NotContains(t, owned(t, a), strings.Split(c.account, "/")[1])
			}
			s := edit(a, c.with.addons, c.with.identities, "")
			require.Equal(t, status.Ready, s.Phase, s.Message)
		})
	}
	t.Run("cannot be a swap", func(t *testing.T) {
		a := start(t, harness.Options{Workloads: true})
		s := edit(a, []string{dnsOwn, cniNone}, []string{cniAccount}, "")
		require.Equal(t, status.Ready, s.Phase, s.Message)
		mark := a.Calls.Mark()
		s = edit(a, []string{dnsNone}, []string{dnsAccount}, "") // two moves between three stacks
		require.Equal(t, status.Ready, s.Phase, s.Message)
		for _, call := range a.Calls.Since(mark) {
			require.False(t, call.Action == "ExecuteChangeSet" && strings.Contains(call.Resource, "pool"), "%s changes", call.Resource)
		}

		const efs = "{name: aws-efs-csi-driver, version: v2.1.15-eksbuild.1, podIdentities: "
		efsAccount := strings.ReplaceAll(cniAccount, "aws-node", "efs-csi-controller-sa")
		s = edit(a, []string{dnsNone, efs + "[{serviceAccount: efs-csi-controller-sa, policies: [AmazonEFSCSIDriverPolicy]}]}"},
			[]string{dnsAccount}, "")
		require.Equal(t, status.Ready, s.Phase, s.Message)
		s = edit(a, []string{dnsOwn, efs + "[]}"}, []string{efsAccount}, "")
		require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
		require.Equal(t, "podIdentities: kube-system/efs-csi-controller-sa of spec.addons → spec.podIdentities "+
			"(external-dns/external-dns moves to where the other comes from, and EKS allows one role for each service account: move "+
			"them in two edits)", s.Message)
	})
}

// A stack of identities that fails stops no other stack.
func TestIdentitiesFail(t *testing.T) {
	a := start(t, harness.Options{Workloads: true})
	require.Equal(t, status.Ready, upload(a).Phase)
	role, err := a.Identities.RoleByARN(harness.WorkloadRole)
	require.NoError(t, err)
	require.NoError(t, a.DeleteRole(role.Name))
	s := edit(a, []string{"{name: external-dns, version: v0.20.0-eksbuild.1, podIdentities: []}"}, []string{checkout}, "  tags: {team: a}\n")
	require.Equal(t, status.Failed, s.Phase)
	require.Contains(t, s.Message, "stack drover-demo-identities is ")
	require.NotContains(t, s.Message, "pool")
	require.Equal(t, "a", a.Stack("demo", "pool-a").Tags["team"])
	require.Contains(t, a.Stack("demo", names.NodeAddons).Outputs, "ExternalDnsVersion")
	s = edit(a, nil, nil, "  tags: {team: b}\n")
	require.Equal(t, status.Ready, s.Phase, s.Message)
}
