package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/servicequotas"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

// withOIDCProvider is the field of a cluster with an IAM OIDC provider.
const withOIDCProvider = "  controlPlane: {oidcProvider: true}\n"

func TestOIDCProvider(t *testing.T) {
	change := func(a *harness.Account, more string) *status.Status {
		a.Upload("clusters/demo.yaml", harness.Spec("demo", more))
		a.Settle()
		return a.Status("demo")
	}
	t.Run("exists while the spec has it", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("releases/r1.yaml", harness.Release())
		require.Equal(t, status.Ready, change(a, "").Phase, a.Status("demo").Message)
		require.Empty(t, a.Identities.OIDCProviders(), "pod identity does not need one")

		mark := a.Calls.Mark()
		require.Equal(t, status.Ready, change(a, withOIDCProvider).Phase, a.Status("demo").Message)
		providers := a.Identities.OIDCProviders()
		require.Len(t, providers, 1)
		require.Equal(t, "demo", providers[0].Tags["drover:cluster"])
		require.Equal(t, []string{"sts.amazonaws.com"}, providers[0].ClientIDs)

		require.Equal(t, status.Ready, change(a, "").Phase, a.Status("demo").Message)
		require.Empty(t, a.Identities.OIDCProviders())
		for _, call := range a.Calls.Since(mark) {
			require.False(t, call.Action == "ExecuteChangeSet" && !strings.Contains(call.Resource, "control-plane"), "%s changes", call.Resource)
		}
	})
	t.Run("takes from a quota of the whole account", func(t *testing.T) {
		a := harness.Start(t)
		a.Quotas.Set(servicequotas.OIDCProviders, 0)
		a.Upload("releases/r1.yaml", harness.Release())
		s := change(a, withOIDCProvider)
		require.Equal(t, "AccountNotReady", s.Condition(status.Converged).Reason, s.Message)
		require.Contains(t, s.Message, "\nProviderQuota: 0 of 0 OIDC providers are used; needed: 1: aws service-quotas "+
			"request-service-quota-increase --region us-east-1 --service-code iam --quota-code L-858F3967 --desired-value 1\n")
		require.Empty(t, a.Stacks("demo"))
		require.Equal(t, status.Ready, change(a, "").Phase, "without a provider there is room")
		s = change(a, withOIDCProvider)
		require.Equal(t, "StackFailed", s.Condition(status.Converged).Reason, s.Message)
		require.Contains(t, s.Message, "Cannot exceed quota for OpenIdConnectProvidersPerAccount: 0")
		require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", a.Stacks("demo")["control-plane"])
	})
}
