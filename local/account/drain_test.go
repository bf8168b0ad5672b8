package account

// Nodes that are removed: by scale-in, by a spot interruption, or by an operator. Their pods are evicted within their
// budgets first.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/kubernetes/workload"
	"github.com/drover-run/drover/shared/names"
)

func TestDrains(t *testing.T) {
	t.Parallel()
	const name = "draining"
	cloud.retire(t, name)
	spec := specOf(name, object{"name": "one", "instanceTypes": []string{"m7i.large"}, "minSize": 1, "maxSize": 4})
	cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))
	scaling := autoscaling.NewFromConfig(cloud.Config())
	resize := func(n int32) {
		_, err := scaling.SetDesiredCapacity(t.Context(), &autoscaling.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String(names.Group(name, "one")), DesiredCapacity: &n,
		})
		require.NoError(t, err)
		cloud.until(t, func() bool {
			return poolsOf(t, name)["one"] == int(n) && cloud.readyNodes(t, name) == int(n)
		}, func() string { return cloud.executions(name) })
	}
	resize(3)

	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	cluster := connect(t, name)
	web := workload.Workload{
		Namespace: "shop", Name: "web", Kind: workload.Deployment, Replicas: 9, MaxUnavailable: "2", ReadyAfter: 200 * time.Millisecond,
		Grace: time.Second,
	}
	require.NoError(t, cluster.Deploy(ctx, web))
	require.NoError(t, cluster.Budgeted(ctx, web))
	pods, err := cluster.Watch(ctx)
	require.NoError(t, err)
	defer pods.Close()
	requireBudget := func(t *testing.T) {
		require.NoError(t, pods.Wait(ctx, "all pods to be back", func() bool { return pods.Settled(web) }))
		_, least := pods.Healthy(web.Namespace, web.Name)
		require.GreaterOrEqual(t, least, 7, "the budget is broken")
		require.NoError(t, cluster.Budgeted(ctx, web))
		pods.Forget()
	}
	// ended waits for the only drain that started after a time with a name in its input, and returns its output. A sweep
	// that read the hook just before its completion starts another one, which has nothing to do.
	ended := func(t *testing.T, since time.Time, named string) map[string]any {
		var list []stepfunctions.Execution
		cloud.until(t, func() bool {
			list = slices.DeleteFunc(cloud.since("drover-drain-node", since), func(x stepfunctions.Execution) bool {
				return !strings.Contains(x.Input, named) || strings.Contains(x.Output, "is not waiting at the hook")
			})
			return len(list) == 1 && list[0].Status == "SUCCEEDED"
		}, func() string { return fmt.Sprint(list) })
		var output map[string]any
		require.NoError(t, json.Unmarshal([]byte(list[0].Output), &output))
		return output
	}

	t.Run("evicts pods within budgets at a scale-in", func(t *testing.T) {
		started := time.Now()
		before := cloud.nodeNames(t, name)
		resize(2)
		output := ended(t, started, names.Group(name, "one"))
		require.Equal(t, "Done", output["outcome"])
		require.Equal(t, "one", output["pool"])
		require.Contains(t, before, output["node"])
		require.NotContains(t, cloud.nodeNames(t, name), output["node"])
		requireBudget(t)
	})
	t.Run("evicts pods at a spot interruption", func(t *testing.T) {
		started := time.Now()
		node := nodesOf(t, name)[0]
		id := instanceOf(node)
		cloud.Events.Emit(t.Context(), "aws.ec2", "EC2 Spot Instance Interruption Warning", []string{"arn:aws:ec2:us-east-1a:instance/" + id},
			map[string]any{"instance-id": id, "instance-action": "terminate"})
		require.Equal(t, node.Name, ended(t, started, id)["node"])
		for _, n := range nodesOf(t, name) {
			require.Equal(t, n.Name == node.Name, n.Spec.Unschedulable)
			_, held := n.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"]
			require.False(t, held, "the autoscaler is not disabled for a drained node")
		}
		require.Empty(t, pods.On(web.Namespace, node.Name))
		requireBudget(t)
	})
	t.Run("ignores instances of other owners", func(t *testing.T) {
		started := time.Now()
		cloud.Events.Emit(t.Context(), "aws.ec2", "EC2 Instance Rebalance Recommendation", []string{
			"arn:aws:ec2:us-east-1:000000000000:instance/i-0000000000000001",
		},
			map[string]any{"instance-id": "i-0000000000000001"})
		require.Equal(t, "Gone", ended(t, started, "i-0000000000000001")["outcome"])
	})
	t.Run("fails for an unknown node", func(t *testing.T) {
		out, err := sfn.NewFromConfig(cloud.Config()).StartExecution(t.Context(), &sfn.StartExecutionInput{
			StateMachineArn: aws.String("arn:aws:states:" + cloud.Region() + ":" + ID + ":stateMachine:drover-drain-node"),
			Input:           aws.String(`{"cluster":"` + name + `","node":"nowhere"}`),
		})
		require.NoError(t, err)
		var x *sfn.DescribeExecutionOutput
		cloud.until(t, func() bool {
			x, err = sfn.NewFromConfig(cloud.Config()).DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: out.ExecutionArn})
			return err == nil && x.Status == sfntypes.ExecutionStatusFailed
		}, func() string { return cloud.executions(name) })
		require.Contains(t, aws.ToString(x.Cause), "has no node nowhere")
	})
}

func (w *world) readyNodes(t *testing.T, cluster string) int {
	n := 0
	for _, node := range nodesOf(t, cluster) {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
				n++
			}
		}
	}
	return n
}

func (w *world) nodeNames(t *testing.T, cluster string) (list []string) {
	for _, node := range nodesOf(t, cluster) {
		list = append(list, node.Name)
	}
	return list
}

// instanceOf returns the EC2 instance of a node.
func instanceOf(n corev1.Node) string {
	return n.Spec.ProviderID[strings.LastIndex(n.Spec.ProviderID, "/")+1:]
}
