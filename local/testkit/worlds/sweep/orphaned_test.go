package sweep_test

// Network and control plane whose stack is deleted by hand under a cluster that is protected, and so lives on without them.

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// lose deletes a stack by hand though it is protected.
func lose(t *testing.T, a *harness.Account, stack string) {
	t.Helper()
	_, err := a.CloudFormation.UpdateTerminationProtection(t.Context(), a.Admin(), &cloudformation.UpdateTerminationProtectionInput{
		StackName: names.Stack("demo", stack),
	})
	require.NoError(t, err)
	deleted(t, a, stack)
	require.NotContains(t, a.Stacks("demo"), stack)
}

// there lists what is in the account of some kinds.
func there(a *harness.Account, kinds ...string) (found []string) {
	for arn := range a.AllResources() {
		if slices.ContainsFunc(kinds, func(kind string) bool { return strings.Contains(arn, kind) }) {
			found = append(found, arn)
		}
	}
	slices.Sort(found)
	return found
}

func TestNothingIsMadeBesideAClusterThatLostItsNetworkOrControlPlane(t *testing.T) {
	const said = "the EKS cluster drover-demo is there without it"
	for _, stack := range []string{names.Network, names.ControlPlane} {
		t.Run(stack, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "")
			lose(t, a, stack)
			kept := there(a, ":vpc/", ":subnet/", ":natgateway/", ":cluster/")
			require.NotEmpty(t, there(a, ":vpc/"))
			require.Len(t, there(a, ":cluster/"), 1)
			before := converges(a)

			// The audit tells it, and starts nothing.
			audit(t, a)
			s := a.Status("demo")
			require.Equal(t, status.Ready, s.Phase)
			require.Equal(t, status.ReasonDrifted, s.Condition(status.InSync).Reason)
			require.Contains(t, s.Condition(status.InSync).Message, "stack "+stack+" is missing")
			require.Contains(t, s.Condition(status.InSync).Message, said)
			require.NotContains(t, s.Condition(status.InSync).Message, "made anew")
			require.Equal(t, before, converges(a))

			// Nor does a new spec make one, and it is still told.
			mark := a.Calls.Mark()
			a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  tags: {team: b}\n"))
			a.Settle()
			audit(t, a)
			s = a.Status("demo")
			require.Equal(t, status.Stopped, s.Phase)
			require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
			require.Contains(t, s.Message, said)
			require.Contains(t, s.Condition(status.InSync).Message, "stack "+stack+" is missing")
			for _, call := range a.Calls.Since(mark) {
				require.NotEqual(t, "CreateChangeSet", call.Action, call.Resource)
			}
			require.Equal(t, kept, there(a, ":vpc/", ":subnet/", ":natgateway/", ":cluster/"))
		})
	}
}

// The stack is deleted between planning and changing: the change looks once more, and the next plan says what is.
func TestAStackThatIsDeletedAfterItWasPlannedIsNotMadeBesideItsCluster(t *testing.T) {
	for _, stack := range []string{names.Network, names.ControlPlane} {
		t.Run(stack, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "")
			vpcs := there(a, ":vpc/")
			beforeItsChange(a, names.Stack("demo", stack), func(name string) {
				_, err := a.CloudFormation.UpdateTerminationProtection(context.Background(), a.Admin(),
					&cloudformation.UpdateTerminationProtectionInput{StackName: name})
				require.NoError(t, err)
				_, err = a.CloudFormation.DeleteStack(context.Background(), a.Admin(), &cloudformation.DeleteStackInput{StackName: name})
				require.NoError(t, err)
			})
			a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  tags: {team: b}\n"))
			a.Settle()
			s := a.Status("demo")
			require.Equal(t, status.Stopped, s.Phase)
			require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
			require.Contains(t, s.Message, "the EKS cluster drover-demo is there without it")
			require.Equal(t, vpcs, there(a, ":vpc/"))
		})
	}
}

// The tag is taken between planning and changing: the change looks once more.
func TestAStackThatLosesItsTagAfterItWasPlannedIsNotChanged(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	beforeItsChange(a, "drover-demo-network", func(name string) {
		require.NoError(t, a.Retag(name, func(tags map[string]string) { delete(tags, names.TagCluster) }))
	})
	a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  tags: {team: b}\n"))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
	require.Contains(t, s.Message, "tag drover:cluster of stack drover-demo-network: absent → demo")
	require.Equal(t, "UPDATE_COMPLETE", a.Stacks("demo")[names.Network])
}

// beforeItsChange does something to a stack between its plan and its change: when the change looks at it first.
func beforeItsChange(a *harness.Account, name string, do func(name string)) {
	var once sync.Once
	a.OnCall(func(call endpoint.Call) error {
		if harness.CalledBy(call) == "change" && call.Action == "DescribeStacks" && strings.Contains(call.Resource, name) {
			once.Do(func() { do(name) })
		}
		return nil
	})
}
