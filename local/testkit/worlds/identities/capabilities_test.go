package identities_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

const (
	admins = "1234567890-01234567-89ab-cdef-0123-456789abcdef"
	argo   = "argoCD: {identityCenterARN: \"" + harness.IdentityCenter + "\", admins: [" + admins + "]}"
	gitops = "{name: gitops, type: ArgoCD, roleARN: \"" + harness.CapabilityRole + "\", " + argo + "}"
	graphs = "{name: graphs, type: KRO, roleARN: \"" + harness.CapabilityRole + "\"}"
)

// withCapabilities uploads a spec with capabilities.
func withCapabilities(a *harness.Account, capabilities ...string) *status.Status {
	more := lives.Unprotected
	if len(capabilities) > 0 {
		more += "  capabilities:\n    - " + strings.Join(capabilities, "\n    - ") + "\n"
	}
	a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", more))
	a.Settle()
	return a.Status("demo")
}

func TestCapabilities(t *testing.T) {
	a := start(t, harness.Options{Workloads: true})
	s := withCapabilities(a, gitops)
	require.Equal(t, status.Ready, s.Phase, s.Message)
	get := func(name string) *eks.Capability { return a.EKS.Capability(names.EKSCluster("demo"), name) }
	made := get("gitops")
	require.Equal(t, "ACTIVE ARGOCD "+harness.CapabilityRole+" argocd", strings.Join(
		[]string{made.Status, made.Type, made.RoleARN, made.ArgoCD.Namespace}, " "))
	require.Equal(t, harness.IdentityCenter, made.ArgoCD.AwsIdc.IdcInstanceArn)
	require.Equal(t, "demo", made.Tags[names.TagCluster])

	t.Run("change in place", func(t *testing.T) {
		s := withCapabilities(a, strings.NewReplacer(harness.CapabilityRole, harness.OtherCapabilityRole, "["+admins+"]",
			"[01234567-89ab-cdef-0123-456789abcdef]").Replace(gitops), graphs)
		require.Equal(t, status.Ready, s.Phase, s.Message)
		require.Equal(t, made.ARN, get("gitops").ARN)
		require.Equal(t, harness.OtherCapabilityRole, get("gitops").RoleARN)
		require.Equal(t, "01234567-89ab-cdef-0123-456789abcdef", get("gitops").ArgoCD.RbacRoleMappings[0].Identities[0].Id)
		require.Equal(t, "KRO", get("graphs").Type)
		require.Equal(t, status.Ready, withCapabilities(a, gitops, graphs).Phase)
	})
	t.Run("are not replaced", func(t *testing.T) {
		for field, changed := range map[string]string{
			"gitops].name: gitops -> deploys":            strings.Replace(gitops, "name: gitops", "name: deploys", 1),
			"gitops].argoCD.namespace: argocd -> deploy": strings.Replace(gitops, "admins:", "namespace: deploy, admins:", 1),
		} {
			mark := a.Calls.Mark()
			s := withCapabilities(a, changed, graphs)
			require.Equal(t, "ChangeRefused", s.Condition(status.Converged).Reason, s.Message)
			require.Contains(t, strings.ReplaceAll(s.Message, "→", "->"), field)
			require.Contains(t, s.Message, "remove the capability, and add the other one in a second edit")
			for _, call := range a.Calls.Since(mark) {
				require.NotEqual(t, "CreateChangeSet", call.Action)
			}
		}
		require.Equal(t, status.Ready, withCapabilities(a, gitops, graphs).Phase)
	})
	t.Run("leave with the spec, one by one or all", func(t *testing.T) {
		require.Equal(t, status.Ready, withCapabilities(a, graphs).Phase)
		require.Nil(t, get("gitops"))
		require.NotNil(t, get("graphs"))
		require.Equal(t, status.Ready, withCapabilities(a).Phase)
		require.Nil(t, get("graphs"))
		require.NotContains(t, a.Stacks("demo"), names.Capabilities)
	})
	t.Run("are deleted before their control plane", func(t *testing.T) {
		require.Equal(t, status.Ready, withCapabilities(a, gitops).Phase)
		mark := a.Calls.Mark()
		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		require.Equal(t, status.Deleted, a.Status("demo").Phase, a.Status("demo").Message)
		var order []string
		for _, call := range a.Calls.Since(mark) {
			for _, stack := range []string{names.Capabilities, names.ControlPlane} {
				if call.Action == "DeleteStack" && strings.HasSuffix(call.Resource, names.Stack("demo", stack)) {
					order = append(order, stack)
				}
			}
		}
		require.Equal(t, []string{names.Capabilities, names.ControlPlane}, order)
	})
}

// A role that EKS cannot assume fails the capability, and nothing else.
func TestCapabilityWithoutTrust(t *testing.T) {
	a := start(t, harness.Options{Workloads: true})
	_, err := a.Identities.CreateRole(iam.Role{Name: "capability-pods", TrustDocument: trustOf(t, a, harness.WorkloadRole)})
	require.NoError(t, err)
	role := strings.Replace(harness.CapabilityRole, "gitops", "pods", 1)
	s := withCapabilities(a, strings.Replace(graphs, harness.CapabilityRole, role, 1))
	require.Equal(t, status.Failed, s.Phase)
	require.Contains(t, s.Message, "The trust policy of role "+role+" must let capabilities.eks.amazonaws.com assume it")
	require.Contains(t, a.Stacks("demo"), names.PoolStack("a"), "the pools do not wait")
}

// What the settings do not allow is refused at upload.
func TestCapabilitiesBeyondTheSettings(t *testing.T) {
	a := start(t, harness.Options{Workloads: true})
	for capability, why := range map[string]string{
		strings.Replace(graphs, harness.CapabilityRole, harness.WorkloadRole, 1): "has a path, and CloudFormation accepts no path in the role " +
			"of a capability: name a role without one, such as arn:aws:iam::" + harness.ID + ":role/checkout",
		strings.Replace(graphs, harness.CapabilityRole, harness.OtherRole, 1): "the cell allows the roles",
		strings.Replace(gitops, "ssoins-0", "ssoins-1", 1):                    "the cell allows the instance " + harness.IdentityCenter,
	} {
		s := withCapabilities(a, capability)
		require.Equal(t, status.ReasonSpecInvalid, s.Condition(status.SpecAccepted).Reason)
		require.Contains(t, s.Condition(status.SpecAccepted).Message, why)
	}
}
