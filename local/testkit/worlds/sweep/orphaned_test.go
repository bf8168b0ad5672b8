package sweep_test

// Networks and control planes whose stack an operator deletes although the cluster is protected. The EKS cluster continues without it.

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

// lose deletes a protected stack as an operator.
func lose(t *testing.T, a *harness.Account, stack string) {
	t.Helper()
	_, err := a.CloudFormation.UpdateTerminationProtection(t.Context(), a.Admin(), &cloudformation.UpdateTerminationProtectionInput{
		StackName: names.Stack("demo", stack),
	})
	require.NoError(t, err)
	deleteStack(t, a, stack)
	require.NotContains(t, a.Stacks("demo"), stack)
}

// listKinds lists the resources of some kinds in the account.
func listKinds(a *harness.Account, kinds ...string) (found []string) {
	for arn := range a.AllResources() {
		if slices.ContainsFunc(kinds, func(kind string) bool { return strings.Contains(arn, kind) }) {
			found = append(found, arn)
		}
	}
	slices.Sort(found)
	return found
}

func TestMissingStackOfALiveClusterIsNotCreated(t *testing.T) {
	const orphaned = "the EKS cluster drover-demo exists without it"
	for _, stack := range []string{names.Network, names.ControlPlane} {
		t.Run(stack, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "")
			lose(t, a, stack)
			kept := listKinds(a, ":vpc/", ":subnet/", ":natgateway/", ":cluster/")
			require.NotEmpty(t, listKinds(a, ":vpc/"))
			require.Len(t, listKinds(a, ":cluster/"), 1)
			before := converges(a)

			// The audit reports it, and starts nothing.
			audit(t, a)
			s := a.Status("demo")
			require.Equal(t, status.Ready, s.Phase)
			require.Equal(t, status.ReasonDrifted, s.Condition(status.InSync).Reason)
			require.Contains(t, s.Condition(status.InSync).Message, "stack "+stack+" is missing")
			require.Contains(t, s.Condition(status.InSync).Message, orphaned)
			require.NotContains(t, s.Condition(status.InSync).Message, "recreates")
			require.Equal(t, before, converges(a))

			// A new spec creates no stack either, and the finding stays.
			mark := a.Calls.Mark()
			a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  tags: {team: b}\n"))
			a.Settle()
			audit(t, a)
			s = a.Status("demo")
			require.Equal(t, status.Stopped, s.Phase)
			require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
			require.Contains(t, s.Message, orphaned)
			require.Contains(t, s.Condition(status.InSync).Message, "stack "+stack+" is missing")
			for _, call := range a.Calls.Since(mark) {
				require.NotEqual(t, "CreateChangeSet", call.Action, call.Resource)
			}
			require.Equal(t, kept, listKinds(a, ":vpc/", ":subnet/", ":natgateway/", ":cluster/"))
		})
	}
}

// The stack is deleted between planning and changing. The change reads it again, and the next plan refuses to create it.
func TestStackDeletedAfterPlanningIsNotCreated(t *testing.T) {
	for _, stack := range []string{names.Network, names.ControlPlane} {
		t.Run(stack, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "")
			vpcs := listKinds(a, ":vpc/")
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
			require.Contains(t, s.Message, "the EKS cluster drover-demo exists without it")
			require.Equal(t, vpcs, listKinds(a, ":vpc/"))
		})
	}
}

// The tag is removed between planning and changing. The change reads the stack again.
func TestStackUntaggedAfterPlanningIsNotChanged(t *testing.T) {
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

// beforeItsChange runs do between the plan and the change of a stack, when the change first reads it.
func beforeItsChange(a *harness.Account, name string, do func(name string)) {
	var once sync.Once
	a.OnCall(func(call endpoint.Call) error {
		if harness.CalledBy(call) == "change" && call.Action == "DescribeStacks" && strings.Contains(call.Resource, name) {
			once.Do(func() { do(name) })
		}
		return nil
	})
}
