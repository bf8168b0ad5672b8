package change_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// An operator turned termination protection off and deleted a stack that holds state, and CloudFormation could not finish. drover must not
// finish the deletion in order to create another stack.
func TestExternalDeletionOfStateIsNotContinued(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "  deletionProtection: true\n")
	const name = "drover-demo-network"
	_, err := a.CloudFormation.UpdateTerminationProtection(t.Context(), a.Admin(), &cloudformation.UpdateTerminationProtectionInput{
		StackName: name, EnableTerminationProtection: false,
	})
	require.NoError(t, err)
	a.OnResource(func(step string, r resource.Request) error {
		if step == "delete" && r.Type == "AWS::EC2::NatGateway" {
			return &wire.Error{Code: "DependencyViolation", Message: "it is in use", Status: 400}
		}
		return nil
	})
	_, err = a.CloudFormation.DeleteStack(t.Context(), a.Admin(), &cloudformation.DeleteStackInput{StackName: name})
	require.NoError(t, err)
	a.Settle()
	require.Equal(t, "DELETE_FAILED", a.Stacks("demo")["network"])

	a.OnResource(nil)
	a.Converge("demo")
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Equal(t, "ChangeRefused", s.Condition(status.Converged).Reason)
	require.Contains(t, s.Message, "drover-demo-network is DELETE_FAILED")
	require.Contains(t, s.Message, "the EKS cluster drover-demo still exists")
	require.Equal(t, "DELETE_FAILED", a.Stacks("demo")["network"])
}

// A stack was left in review with a change set that holds the outputs of a deleted network. Executing it would put the cluster into
// deleted subnets.
func TestChangeSetOfAnEarlierExecution(t *testing.T) {
	a := harness.Start(t)
	executed := 0
	a.OnCall(func(call endpoint.Call) error {
		if call.Action != "ExecuteChangeSet" {
			return nil
		}
		if executed++; executed > 1 { // the first is the network's
			return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
		}
		return nil
	})
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  deletionProtection: false\n"))
	a.Settle()
	require.Equal(t, map[string]string{"network": "CREATE_COMPLETE", "control-plane": "REVIEW_IN_PROGRESS"}, a.Stacks("demo"))
	require.Contains(t, a.Status("demo").Message, "not now")
	require.NoError(t, a.SweepNow())
	require.Equal(t, "REVIEW_IN_PROGRESS", a.Stacks("demo")["control-plane"])

	_, err := a.CloudFormation.DeleteStack(t.Context(), a.Admin(), &cloudformation.DeleteStackInput{StackName: "drover-demo-network"})
	require.NoError(t, err)
	a.Settle()
	a.OnCall(nil)
	a.Converge("demo")
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

// A sweep runs after the change function has stored the waiter and before it executes the change set.
func TestSweepBetweenWaiterAndExecution(t *testing.T) {
	a := harness.Start(t)
	swept := 0
	a.OnCall(func(call endpoint.Call) error {
		if call.Action == "ExecuteChangeSet" {
			swept++
			require.NoError(t, a.SweepNow())
			waiters, err := a.State().List(t.Context(), names.Waiters)
			require.NoError(t, err)
			require.NotEmpty(t, waiters, "the waiter stays")
		}
		return nil
	})
	a.Cluster("demo", "")
	require.Equal(t, 6, swept, "each stack, and the control plane's protection")
}
