package harness

// Lives with calls about nodes.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/states"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// nodeLives join and drain nodes, and roll and scale pools.
var nodeLives = map[string]func(*life){
	"several nodes that do not join": func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), strings.ReplaceAll(Release(), ec2.ImageID("1.36", "amd64"), ec2.SilentImageID("1.36", "amd64")))
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", unprotected), "minSize: 1", "minSize: 2", 1))
		time.Sleep(20 * time.Minute)
		l.swept() // while join waits for them
		l.settle()
		l.phase(status.Failed)
	},
	"every event of an instance is lost": func(l *life) {
		l.Events.Decide(lose("aws.autoscaling", ""))
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
		l.sweep()
		l.phase(status.Ready)
		l.terminate()
		l.sweep()
	},
	"a drain by hand that an operator stops": func(l *life) {
		l.create(unprotected)
		l.busy(1)
		input := fmt.Sprintf(`{"cluster": "demo", "node": %q}`, l.API("drover-demo").Nodes()[0].Name)
		_, err := l.States.Start(l.t.Context(), l.Admin(), l.MachineARN("drain-node"), "hand", input)
		require.NoError(l.t, err)
		time.Sleep(5 * time.Minute)
		l.States.StopAll("Aborted", "by a person")
		time.Sleep(5 * time.Minute)
		l.swept()
		l.busy(0)
		l.settle()
	},
	"processes of a group that an update left suspended": func(l *life) {
		l.create(unprotected)
		l.OnResource(func(step string, r resource.Request) error {
			if step != "update" || r.Type != "AWS::AutoScaling::AutoScalingGroup" {
				return nil
			}
			_, err := autoscalingapi.NewFromConfig(l.Config()).SuspendProcesses(l.t.Context(), &autoscalingapi.SuspendProcessesInput{
				AutoScalingGroupName: aws.String(r.StackName),
				ScalingProcesses:     []string{"HealthCheck", "ReplaceUnhealthy", "AZRebalance", "AlarmNotification", "ScheduledActions"},
			})
			return err
		})
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", unprotected), "maxSize: 3", "maxSize: 2", 1))
		l.settle()
		l.swept()
	},
	"an audit of a cluster with an unhealthy node and a missing stack": func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", unprotected), "minSize: 1", "minSize: 3", 1))
		l.settle()
		l.phase(status.Ready)
		l.audited()
		ill := l.API("drover-demo").Nodes()[1].Name
		require.True(l.t, l.API("drover-demo").Silence(ill, true))
		time.Sleep(21 * time.Minute)
		l.audited()
		require.NotContains(l.t, l.nodes(), ill, "it is replaced")
		_, err := l.CloudFormation.DeleteStack(l.t.Context(), l.Admin(), &cloudformation.DeleteStackInput{
			StackName: "drover-demo-addons-on-nodes",
		})
		require.NoError(l.t, err)
		l.settle()
		l.audited()
	},
	"a pool that is rolled by hand, and at a time": func(l *life) {
		l.create(unprotected)
		_, err := l.States.Start(l.t.Context(), l.Admin(), l.MachineARN("converge"), "hand", `{"cluster": "demo", "roll": ["a"]}`)
		require.NoError(l.t, err)
		l.settle()
		l.audited() // with the requested roll
		at := time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", unprotected), "maxSize: 3", "maxSize: 3, rollAt: \""+at+"\"", 1))
		l.settle()
		time.Sleep(3 * time.Hour)
		l.sweep()
	},
	"a pool whose first node comes from an external scale-out": func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", unprotected), "minSize: 1", "minSize: 0", 1))
		l.settle()
		l.phase(status.Ready)
		require.NotContains(l.t, l.Stacks("demo"), names.NodeAddons)
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.t.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String("drover-demo-pool-a"), DesiredCapacity: aws.Int32(1),
		})
		require.NoError(l.t, err)
		l.sweep()
		require.Contains(l.t, l.Stacks("demo"), names.NodeAddons)
		l.phase(status.Ready)
	},
	"nodes that do not join, and a status that is deleted": func(l *life) {
		l.forget("status/")
		l.Upload(names.ReleaseSpec("r1"), strings.ReplaceAll(Release(), ec2.ImageID("1.36", "amd64"), ec2.SilentImageID("1.36", "amd64")))
		l.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
		l.settle()
		l.remember()
		l.phase(status.Failed)
	},
	"nodes that do not join": func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), strings.ReplaceAll(Release(), ec2.ImageID("1.36", "amd64"), ec2.SilentImageID("1.36", "amd64")))
		l.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
		l.settle()
		l.phase(status.Failed)
	},
	"the join function fails": func(l *life) {
		l.functionFails("join")
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
		l.settle()
		l.phase(status.Failed)
	},
	"the join function fails for a day, outside of an update": func(l *life) {
		l.create(unprotected)
		l.functionFails("join")
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.t.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String("drover-demo-pool-a"), DesiredCapacity: aws.Int32(2),
		})
		require.NoError(l.t, err)
		time.Sleep(time.Minute)
		launching := l.Group("demo", "a").Launching()
		require.Len(l.t, launching, 1)
		time.Sleep(23 * time.Hour)
		require.Equal(l.t, launching, l.Group("demo", "a").Launching(), "the node may be Ready")
		watches := func(x states.Execution) bool { return x.Status == "RUNNING" && strings.Contains(x.Input, launching[0]) }
		for slices.ContainsFunc(l.States.Executions(), watches) {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		require.NotEqual(l.t, launching, l.Group("demo", "a").Launching(), "the machine leaves the hook open until it times out")
	},
	"the drain function fails": func(l *life) {
		l.create(secondPool + unprotected)
		l.functionFails("drain")
		l.change(unprotected) // the hook stays open longer than the step waits for the deletion of the pool
		l.again()
		l.phase(status.Ready)
	},
	"the drain function answers what its machine does not know": func(l *life) {
		l.create(secondPool + unprotected)
		l.functionSays("drain", map[string]string{"outcome": "Perhaps"}, nil)
		began := time.Now()
		l.change(unprotected)
		l.phase(status.Ready)
		require.Less(l.t, time.Since(began), 30*time.Minute, "the hook is not waited for")
	},
	"a node that leaves by itself, with a pod that stays": func(l *life) {
		l.create(unprotected)
		l.busy(1)
		leaving := l.nodes()[0]
		l.terminate()
		time.Sleep(20 * time.Minute)
		l.swept()
		time.Sleep(20 * time.Minute)
		require.Contains(l.t, l.nodes(), leaving, "its hook, of half an hour, is kept open")
		require.True(l.t, slices.ContainsFunc(l.Status("demo").Nodes, func(n status.Node) bool {
			return n.Name == leaving && n.State == status.NodeBlocked
		}))
		l.busy(0)
		l.settle()
		require.NotContains(l.t, l.nodes(), leaving)
	},
	"an instance that boots while the API server is away": func(l *life) {
		l.create(unprotected)
		before := l.instances()
		l.API("drover-demo").Down(4 * time.Hour)
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.t.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String("drover-demo-pool-a"), DesiredCapacity: aws.Int32(2),
		})
		require.NoError(l.t, err)
		time.Sleep(10 * time.Minute)
		launched := l.instances()
		require.Len(l.t, launched, len(before)+1)
		time.Sleep(3 * time.Hour)
		require.Len(l.t, l.Group("demo", "a").Launching(), 1, "its hook, of two hours, is kept open")
		l.settle()
		require.ElementsMatch(l.t, launched, l.instances())
		require.Len(l.t, l.nodes(), 2)
	},
	"a spot instance that EC2 takes back": func(l *life) {
		l.create(unprotected)
		l.Events.Emit(l.t.Context(), "aws.ec2", "EC2 Spot Instance Interruption Warning", nil, map[string]string{
			"instance-id": l.instance(), "instance-action": "terminate",
		})
		l.settle()
	},
}
