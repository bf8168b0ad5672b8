package sweep_test

// Nodes in the status: when they are added, and when they are removed.

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/status"
)

// The status keeps an instance that did not join an idle pool until the pool has enough other instances. A converge after that reports
// nothing.
func TestFailedJoinIsRemovedOnceItsPoolIsWhole(t *testing.T) {
	lives.RunWithFaults(t, func(l *lives.Life, bad *faults.Engine) {
		l.CreateCluster(lives.Unprotected)
		end := lives.AddFault(t, bad, "kubelet-version=v1.39.1-eks-1")
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.T.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String("drover-demo-pool-a"), DesiredCapacity: aws.Int32(2),
		})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		require.NotEmpty(t, l.Status("demo").Nodes)
		require.Equal(t, status.NodeNotJoined, l.Status("demo").Nodes[0].State)
		l.Audit()
		require.NotEmpty(t, l.Status("demo").Nodes, "its pool has one of two instances in service")
		end()
		time.Sleep(10 * time.Minute)
		require.Len(t, l.Group("demo", "a").Instances, 2)
		l.Audit()
		require.Empty(t, l.Status("demo").Nodes)
		mark := l.Calls.Mark()
		l.Converge("demo")
		l.SettleAll()
		for _, call := range l.Calls.Since(mark) {
			require.False(t, call.Mutating && harness.CalledBy(call) == "report", "%s %s", call.Action, call.Resource)
		}
		l.RequirePhase(status.Ready)
	})
}

// A drain continues if the status cannot be written. If its last write fails, the audit removes the node once no execution drains it.
func TestNodeIsReportedUntilItsDrainEnds(t *testing.T) {
	lives.RunWithFaults(t, func(l *lives.Life, _ *faults.Engine) {
		l.CreateCluster(lives.Unprotected)
		l.RunBlockedPods(3) // the budget allows no eviction
		l.TerminateInstance()
		time.Sleep(20 * time.Minute)
		require.Len(t, l.Status("demo").Nodes, 1)
		require.NoError(t, l.AuditNow())
		require.Len(t, l.Status("demo").Nodes, 1, "it is still being drained")

		l.OnCall(func(call endpoint.Call) error {
			if harness.CalledBy(call) == "drain" && call.Action == "PutObject" {
				return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
			}
			return nil
		})
		l.API("drover-demo").Run(apiserver.App{Name: "shop", Replicas: 0, Start: time.Second, Stop: time.Second, Grace: time.Minute})
		time.Sleep(10 * time.Minute)
		l.OnCall(nil)
		for _, x := range l.Executions("drain-node") {
			require.NotEqual(t, "RUNNING", x.Status)
		}
		require.Len(t, l.Status("demo").Nodes, 1)
		l.Audit()
		require.Empty(t, l.Status("demo").Nodes)
	})
}

// A new instance waits while its cluster is unreachable. The status reports it for as long, although no drain runs.
func TestInstanceThatWaitsForItsClusterIsReported(t *testing.T) {
	lives.RunWithFaults(t, func(l *lives.Life, _ *faults.Engine) {
		l.CreateCluster(lives.Unprotected)
		l.API("drover-demo").Down(2 * time.Hour)
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.T.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String("drover-demo-pool-a"), DesiredCapacity: aws.Int32(2),
		})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		waiting := l.Status("demo").Nodes
		require.Len(t, waiting, 1)
		require.Equal(t, status.NodeUnreachable, waiting[0].State)
		_ = l.AuditNow() // the audit cannot reach the cluster either
		now := l.Status("demo").Nodes
		require.Len(t, now, 1, "its execution continues")
		require.Equal(t, waiting[0].Since, now[0].Since)
		time.Sleep(90 * time.Minute)
		require.Empty(t, l.Status("demo").Nodes, "it joined")
	})
}
