package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

// The status of a pool whose nodes do not join names each of them with its reason. A converge that succeeds removes them.
func TestVerdictNamesNodesThatDidNotJoin(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	a.OnResource(func(step string, r resource.Request) error {
		if step != "create" || r.Type != "AWS::AutoScaling::AutoScalingGroup" {
			return nil
		}
		require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
			for _, n := range []status.Node{
				{Instance: "i-1", Pool: "a", State: status.NodeNotJoined, Message: "the instance has not registered as a node"},
				{Instance: "i-2", Pool: "b", State: status.NodeNotJoined, Message: "of another pool"},
				{Instance: "i-3", Pool: "a", State: status.NodeDraining, Message: "a drain"},
			} {
				s.SetNode(n, time.Now())
			}
		}))
		return &wire.Error{Code: "InternalFailure", Message: "Received 0 SUCCESS signal(s) out of 1", Status: 400}
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Contains(t, s.Message, "Received 0 SUCCESS signal(s)")
	require.Contains(t, s.Message, "\npool a: instance i-1 did not join: the instance has not registered as a node")
	require.NotContains(t, s.Message, "i-2")
	require.NotContains(t, s.Message, "i-3")
	require.Equal(t, s.Message, "StackFailed: "+s.Condition(status.Converged).Message)
	require.Contains(t, a.StepFunctions.Executions()[0].Cause, "i-1")
	require.Len(t, s.Nodes, 3)

	a.OnResource(nil)
	a.Converge("demo")
	a.Settle()
	s = a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Len(t, s.Nodes, 1, "the drain stays")
	require.Equal(t, "i-3", s.Nodes[0].Instance)
}
