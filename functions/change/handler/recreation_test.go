package handler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
)

func TestRecreation(t *testing.T) {
	outputs := map[string]string{"VpcId": "vpc-1"}
	const readsCluster = "deleted " + names.ClusterResource + " of " + controlPlane
	for name, test := range map[string]struct {
		stack     string
		protected bool
		now       stack.Deployed
		control   string
		deleted   bool
		refused   string
		asks      bool
	}{
		"deletes a stack whose creation failed": {
			stack: "addons", now: stack.Deployed{Status: "ROLLBACK_COMPLETE"}, control: "UPDATE_COMPLETE",
		},
		"deletes a pool whose deletion failed": {
			stack: "pool-a", now: stack.Deployed{Status: "DELETE_FAILED", Outputs: outputs}, control: "UPDATE_COMPLETE",
		},
		"deletes a network whose creation failed": {
			stack: names.Network, protected: true, now: stack.Deployed{Status: "ROLLBACK_COMPLETE"}, control: "UPDATE_COMPLETE",
		},
		"deletes a network when there is no control plane": {
			stack: names.Network, now: stack.Deployed{Status: "DELETE_FAILED", Outputs: outputs},
		},
		"deletes a network when the EKS cluster is deleted": {
			stack: names.Network, now: stack.Deployed{Status: "DELETE_FAILED", Outputs: outputs}, control: "DELETE_FAILED", deleted: true,
			asks: true,
		},
		"keeps a network while the EKS cluster exists": {
			stack: names.Network, now: stack.Deployed{Status: "DELETE_FAILED", Outputs: outputs, StatusReason: "in use. "},
			control: "UPDATE_COMPLETE", refused: "stack drover-demo-network is DELETE_FAILED: in use: ", asks: true,
		},
		"deletes a protected stack when the EKS cluster is deleted": {
			stack: names.ControlPlane, protected: true, now: stack.Deployed{Status: "DELETE_FAILED", Outputs: outputs}, control: "DELETE_FAILED",
			deleted: true, asks: true,
		},
		"keeps a protected stack while the EKS cluster exists": {
			stack: names.ControlPlane, protected: true, now: stack.Deployed{Status: "DELETE_FAILED", Outputs: outputs, StatusReason: "in use"},
			control: "DELETE_FAILED",
			refused: "stack drover-demo-control-plane is DELETE_FAILED: in use: the EKS cluster drover-demo still exists", asks: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			name := names.Stack("demo", test.stack)
			a := newAccount(t, plan.Change{Stack: test.stack, StackName: name, Operation: plan.Update, Protected: test.protected})
			a.stacks[controlPlane] = stack.Deployed{Status: test.control}
			a.stacks[name], a.deleted = test.now, test.deleted
			err := a.handle(t)
			require.Equal(t, test.asks, a.reads[readsCluster] == 1)
			if test.refused != "" {
				require.Equal(t, "ChangeRefused", nameOf(err))
				require.ErrorContains(t, err, test.refused)
				require.Equal(t, []string{"delete waiter"}, a.calls)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{"register", "delete"}, a.calls)
			require.True(t, a.waiter(t).Again, "the task creates the stack afterwards")
		})
	}
	failed := func(t *testing.T) *account {
		a := newAccount(t, plan.Change{Stack: names.Network, StackName: network, Operation: plan.Update})
		a.stacks[network] = stack.Deployed{Status: "DELETE_FAILED", Outputs: outputs, TerminationProtection: true}
		a.stacks[controlPlane], a.deleted = stack.Deployed{Status: "DELETE_FAILED"}, true
		return a
	}
	t.Run("switches termination protection off first", func(t *testing.T) {
		a := failed(t)
		require.NoError(t, a.handle(t))
		require.Equal(t, []string{"protect false", "register", "delete"}, a.calls)
	})
	for name, call := range map[string]string{
		"fails when the control plane cannot be read":    "describe " + controlPlane,
		"fails when the EKS cluster cannot be read":      readsCluster,
		"fails when protection cannot be switched off":   "protect false",
		"fails when the waiter cannot be registered":     "register",
		"fails when CloudFormation refuses to delete it": "delete",
	} {
		t.Run(name, func(t *testing.T) {
			a := failed(t)
			a.failing[call] = errThrottled
			require.ErrorIs(t, a.handle(t), errThrottled)
			require.Equal(t, "DELETE_FAILED", a.stacks[network].Status)
		})
	}
}
