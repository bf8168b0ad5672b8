package permissions_test

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
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// nodeLives join and drain nodes, and roll and scale pools.
var nodeLives = map[string]func(*life){
	"several nodes that do not join": func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), strings.ReplaceAll(harness.Release(), ec2.ImageID("1.36", "amd64"), ec2.SilentImageID("1.36", "amd64")))
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "minSize: 1", "minSize: 2", 1))
		time.Sleep(20 * time.Minute)
		l.Sweep() // while join waits for them
		l.SettleAll()
		l.RequirePhase(status.Failed)
	},
	"every event of an instance is lost": func(l *life) {
		l.Events.Decide(lives.LoseEvents("aws.autoscaling", ""))
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		l.SweepForAnHour()
		l.RequirePhase(status.Ready)
		l.TerminateInstance()
		l.SweepForAnHour()
	},
	"nodes with a disk from a snapshot": func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "maxSize: 3",
			"maxSize: 3, volumes: [{device: /dev/xvdb, snapshotID: "+l.EC2.AddSnapshot(200, false)+"}]", 1))
		l.SettleAll()
		l.RequirePhase(status.Ready)
	},
	"nodes with a key of their own, and then with one that is disabled": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		key := func(enabled bool) string {
			properties := harness.KeyPolicy(map[string]any{"Effect": "Allow", "Action": "kms:*", "Resource": "*",
				"Principal": map[string]any{"AWS": []any{
					harness.ID, "arn:aws:iam::" + harness.ID + ":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
				}}})
			properties["Enabled"] = enabled
			return "arn:aws:kms:" + harness.Region + ":" + harness.ID + ":key/" + l.CreateResource("AWS::KMS::Key", properties)
		}
		with := func(key string) string {
			return strings.Replace(harness.Spec("demo", lives.Unprotected), "maxSize: 3", `maxSize: 3, rootVolume: {kmsKeyARN: "`+key+`"}`, 1)
		}
		l.Upload(names.ClusterSpec("demo"), with(key(true)))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		l.Upload(names.ClusterSpec("demo"), with(key(false)))
		l.SettleAll()
		require.Contains(l.T, l.Status("demo").Message, "is not enabled: its state is Disabled")
	},
	"nodes with a security group of their own": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		vpc := l.Stack("demo", names.Network).Outputs["VpcId"]
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "maxSize: 3",
			"maxSize: 3, securityGroups: ["+l.CreateSecurityGroup("office", vpc)+"]", 1))
		l.SettleAll()
		l.RequirePhase(status.Ready)
	},
	"a drain by hand that an operator stops": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		l.RunBlockedPods(1)
		input := fmt.Sprintf(`{"cluster": "demo", "node": %q}`, l.API("drover-demo").Nodes()[0].Name)
		_, err := l.StepFunctions.Start(l.T.Context(), l.Admin(), l.MachineARN("drain-node"), "hand", input)
		require.NoError(l.T, err)
		time.Sleep(5 * time.Minute)
		l.StepFunctions.StopAll("Aborted", "by an operator")
		time.Sleep(5 * time.Minute)
		l.Sweep()
		l.RunBlockedPods(0)
		l.SettleAll()
	},
	"processes of a group that an update left suspended": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		l.OnResource(func(step string, r resource.Request) error {
			if step != "update" || r.Type != "AWS::AutoScaling::AutoScalingGroup" {
				return nil
			}
			_, err := autoscalingapi.NewFromConfig(l.Config()).SuspendProcesses(l.T.Context(), &autoscalingapi.SuspendProcessesInput{
				AutoScalingGroupName: aws.String(r.StackName),
				ScalingProcesses:     []string{"HealthCheck", "ReplaceUnhealthy", "AZRebalance", "AlarmNotification", "ScheduledActions"},
			})
			return err
		})
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "maxSize: 3", "maxSize: 2", 1))
		l.SettleAll()
		l.Sweep()
	},
	"an audit of a cluster with an unhealthy node and a missing stack": func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "minSize: 1", "minSize: 3", 1))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		l.Audit()
		ill := l.API("drover-demo").Nodes()[1].Name
		require.True(l.T, l.API("drover-demo").Silence(ill, true))
		time.Sleep(21 * time.Minute)
		l.Audit()
		require.NotContains(l.T, l.nodes(), ill, "it is replaced")
		_, err := l.CloudFormation.DeleteStack(l.T.Context(), l.Admin(), &cloudformation.DeleteStackInput{
			StackName: "drover-demo-addons-on-nodes",
		})
		require.NoError(l.T, err)
		l.SettleAll()
		l.Audit()
	},
	"a pool that is rolled by hand, and at a time": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		_, err := l.StepFunctions.Start(l.T.Context(), l.Admin(), l.MachineARN("converge"), "hand", `{"cluster": "demo", "roll": ["a"]}`)
		require.NoError(l.T, err)
		l.SettleAll()
		l.Audit() // with the requested roll
		at := time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "maxSize: 3", "maxSize: 3, rollAt: \""+
			at+"\"", 1))
		l.SettleAll()
		time.Sleep(3 * time.Hour)
		l.SweepForAnHour()
	},
	"a pool whose first node comes from an external scale-out": func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "minSize: 1", "minSize: 0", 1))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		require.NotContains(l.T, l.Stacks("demo"), names.NodeAddons)
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.T.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String("drover-demo-pool-a"), DesiredCapacity: aws.Int32(1),
		})
		require.NoError(l.T, err)
		l.SweepForAnHour()
		require.Contains(l.T, l.Stacks("demo"), names.NodeAddons)
		l.RequirePhase(status.Ready)
	},
	"nodes that do not join, and a status that is deleted": func(l *life) {
		l.forget("status/")
		l.Upload(names.ReleaseSpec("r1"), strings.ReplaceAll(harness.Release(), ec2.ImageID("1.36", "amd64"), ec2.SilentImageID("1.36", "amd64")))
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		l.SettleAll()
		l.remember()
		l.RequirePhase(status.Failed)
	},
	"nodes that do not join": func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), strings.ReplaceAll(harness.Release(), ec2.ImageID("1.36", "amd64"), ec2.SilentImageID("1.36", "amd64")))
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		l.SettleAll()
		l.RequirePhase(status.Failed)
	},
	"the join function fails": func(l *life) {
		l.functionFails("join")
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		l.SettleAll()
		l.RequirePhase(status.Failed)
	},
	"the join function fails for a day, outside of an update": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		l.functionFails("join")
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.T.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String("drover-demo-pool-a"), DesiredCapacity: aws.Int32(2),
		})
		require.NoError(l.T, err)
		time.Sleep(time.Minute)
		launching := l.Group("demo", "a").Launching()
		require.Len(l.T, launching, 1)
		time.Sleep(23 * time.Hour)
		require.Equal(l.T, launching, l.Group("demo", "a").Launching(), "the node may be Ready")
		watches := func(x stepfunctions.Execution) bool {
			return x.Status == "RUNNING" && strings.Contains(x.Input, launching[0])
		}
		for slices.ContainsFunc(l.StepFunctions.Executions(), watches) {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		require.NotEqual(l.T, launching, l.Group("demo", "a").Launching(), "the machine leaves the hook open until it times out")
	},
	"the drain function fails": func(l *life) {
		l.CreateCluster(lives.SecondPool + lives.Unprotected)
		l.functionFails("drain")
		l.ChangeSpec(lives.Unprotected) // the hook stays open longer than the step waits for the deletion of the pool
		l.ConvergeAgain()
		l.RequirePhase(status.Ready)
	},
	"the drain function answers what its machine does not know": func(l *life) {
		l.CreateCluster(lives.SecondPool + lives.Unprotected)
		l.functionSays("drain", map[string]string{"outcome": "Perhaps"}, nil)
		began := time.Now()
		l.ChangeSpec(lives.Unprotected)
		l.RequirePhase(status.Ready)
		require.Less(l.T, time.Since(began), 30*time.Minute, "the hook is not waited for")
	},
	"a node that leaves by itself, with a pod that stays": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		l.RunBlockedPods(1)
		leaving := l.nodes()[0]
		l.TerminateInstance()
		time.Sleep(20 * time.Minute)
		l.Sweep()
		time.Sleep(20 * time.Minute)
		require.Contains(l.T, l.nodes(), leaving, "its hook, of half an hour, is kept open")
		require.True(l.T, slices.ContainsFunc(l.Status("demo").Nodes, func(n status.Node) bool {
			return n.Name == leaving && n.State == status.NodeBlocked
		}))
		l.RunBlockedPods(0)
		l.SettleAll()
		require.NotContains(l.T, l.nodes(), leaving)
	},
	"an instance that boots while the API server is away": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		before := l.Instances()
		l.API("drover-demo").Down(150 * time.Minute)
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.T.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String("drover-demo-pool-a"), DesiredCapacity: aws.Int32(2),
		})
		require.NoError(l.T, err)
		time.Sleep(10 * time.Minute)
		launched := l.Instances()
		require.Len(l.T, launched, len(before)+1)
		time.Sleep(2 * time.Hour)
		require.Len(l.T, l.Group("demo", "a").Launching(), 1, "its hook, of two hours, is kept open")
		l.SettleAll()
		require.ElementsMatch(l.T, launched, l.Instances())
		require.Len(l.T, l.nodes(), 2)
	},
	"a spot instance that EC2 interrupts": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		l.Events.Emit(l.T.Context(), "aws.ec2", "EC2 Spot Instance Interruption Warning", nil, map[string]string{
			"instance-id": l.Instance(), "instance-action": "terminate",
		})
		l.SettleAll()
	},
}
