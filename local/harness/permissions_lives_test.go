package harness

// Lives that between them make every call of drover's functions and machines. Whoever adds a call adds it to one of these.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/apiserver"
	"github.com/drover-run/drover/local/cloudformation"
	"github.com/drover-run/drover/local/ec2"
	"github.com/drover-run/drover/local/endpoint"
	"github.com/drover-run/drover/local/resource"
	"github.com/drover-run/drover/local/wire"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

const (
	secondPool = "    - {name: b, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}\n"
)

var errQuota = &wire.Error{Code: "AddressLimitExceeded", Message: "The maximum number of addresses has been reached.", Status: 400}

// create a cluster that becomes Ready.
func (l *life) create(more string) {
	l.Upload(names.ReleaseSpec("r1"), Release())
	l.Upload(names.ClusterSpec("demo"), Spec("demo", more))
	l.settle()
	l.phase(status.Ready)
}

func (l *life) phase(want status.Phase) {
	s := l.Status("demo")
	require.Equal(l.t, want, s.Phase, s.Message)
}

// change the spec and wait.
func (l *life) change(more string) {
	l.Upload(names.ClusterSpec("demo"), Spec("demo", more))
	l.settle()
}

// unheard uploads a spec that nobody hears of.
func (l *life) unheard(more string) {
	l.Events.Decide(lose("aws.s3", names.ClusterSpec("demo")))
	l.Upload(names.ClusterSpec("demo"), Spec("demo", more))
	l.settle()
	l.Events.Decide(nil)
}

// again converges by hand and waits.
func (l *life) again() {
	l.Converge("demo")
	l.settle()
}

// lose events of a kind.
func lose(source, holding string) func(Event) Fate {
	return func(e Event) Fate {
		if e.Source == source && strings.Contains(string(e.Detail), holding) {
			return Lost
		}
		return Delivered
	}
}

// sweep until it comes to rest; executions that wait for ever would not.
func (l *life) sweep() {
	for range 12 {
		time.Sleep(5 * time.Minute)
		l.swept()
	}
	l.settle()
}

// swept runs the sweep once; the functions' log says why it fails.
func (l *life) swept() { _ = l.SweepNow() }

// audited runs the audit and waits for what it starts.
func (l *life) audited() {
	_ = l.AuditNow() // the functions' log says why it fails
	l.settle()
}

// busy has pods run on the cluster's nodes whose budget lets none of them go.
func (l *life) busy(pods int) {
	l.API("drover-demo").Run(apiserver.App{Name: "shop", Replicas: pods, Start: time.Second, Stop: time.Second, Grace: time.Minute})
	time.Sleep(time.Minute)
}

// terminate a node as a person does who thinks it is ill.
func (l *life) terminate() {
	_, err := autoscalingapi.NewFromConfig(l.Config()).TerminateInstanceInAutoScalingGroup(l.t.Context(), &autoscalingapi.TerminateInstanceInAutoScalingGroupInput{
		InstanceId: aws.String(l.instance()), ShouldDecrementDesiredCapacity: aws.Bool(false),
	})
	require.NoError(l.t, err)
}

func failing(step, kind, stack string, err error) func(string, resource.Request) error {
	return func(s string, r resource.Request) error {
		if s == step && r.Type == kind && strings.HasSuffix(r.StackName, stack) {
			return err
		}
		return nil
	}
}

// functionFails has a function fail always.
func (l *life) functionFails(step string) {
	l.Functions.handlers[step] = wrap(logWriter{l.Account}, step, boundary.Handler[json.RawMessage, struct{}](
		func(ctx context.Context, _ json.RawMessage) (struct{}, error) {
			return struct{}{}, errors.New("it broke")
		},
	))
}

var lives = map[string]func(*life){
	"a cluster is made, left alone, changed, and a pool removed": func(l *life) {
		l.create(secondPool + unprotected)
		l.again()
		l.change(strings.Replace(secondPool, "maxSize: 3", "maxSize: 3, labels: {a: b}", 1) + unprotected) // rolls
		l.phase(status.Ready)
		l.change(unprotected)
		l.phase(status.Ready)
		require.NotContains(l.t, l.Stacks("demo"), "pool-b")
	},
	"a cluster that is protected": func(l *life) {
		l.create("")
	},
	"a replacement that is refused": func(l *life) {
		l.create("")
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", ""), "10.0.0.0/16", "10.1.0.0/16", 1))
		l.settle()
	},
	"node configuration that is too large for user data": func(l *life) {
		file := fmt.Sprintf("      files: [{path: /etc/x, content: %q}]\n", strings.Repeat("x", 40_000))
		l.create("    - name: b\n      instanceTypes: [m7i.large]\n      minSize: 1\n      maxSize: 3\n" + file)
	},
	"a release that is edited changes nothing": func(l *life) {
		l.create("")
		l.Upload(names.ReleaseSpec("r1"), strings.Replace(Release(), "v1.13.2-eksbuild.1", "v1.13.2-eksbuild.2", 1))
		l.again()
		l.phase(status.Ready)
	},
	"specs that cannot be used": func(l *life) {
		l.Upload(names.ClusterSpec("demo"), "kind: Nothing\n")
		l.settle()
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
	},
	"a network that cannot be made at first": func(l *life) {
		l.OnResource(failing("create", "AWS::EC2::VPC", "network", errQuota))
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
		l.settle()
		l.phase(status.Failed)
		l.OnResource(nil)
		l.again()
		l.phase(status.Ready)
	},
	"a rollback that fails at first": func(l *life) {
		l.create("")
		l.OnResource(failing("update", "AWS::EKS::Addon", "addons", errQuota))
		l.change("  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.2}]\n")
		l.phase(status.Failed)
		l.OnResource(nil)
		l.again()
		l.phase(status.Ready)
	},
	"a change set that an execution left": func(l *life) {
		executed := 0
		l.OnCall(func(call endpoint.Call) error {
			if call.Action == "ExecuteChangeSet" {
				if executed++; executed == 2 { // the first is the network's
					return &wire.Error{Code: "InsufficientCapabilitiesException", Message: "not now", Status: 400}
				}
			}
			return nil
		})
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		l.settle()
		l.phase(status.Failed)
		l.again()
		l.phase(status.Ready)
	},
	"every event of a stack is lost": func(l *life) {
		l.Events.Decide(lose("aws.cloudformation", ""))
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		l.sweep()
		l.phase(status.Ready)
	},
	"the event of a failure is lost": func(l *life) {
		l.Events.Decide(lose("aws.cloudformation", ""))
		l.OnResource(failing("create", "AWS::EC2::VPC", "network", errQuota))
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		l.sweep()
		l.phase(status.Failed)
	},
	"the event of a spec is lost": func(l *life) {
		l.Events.Decide(lose("aws.s3", ""))
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		time.Sleep(time.Minute)
		l.sweep()
		l.phase(status.Ready)
	},
	"an execution that is stopped, and swept up": func(l *life) {
		l.stopped()
		l.sweep()
		l.phase(status.Failed)
	},
	"an execution that is stopped, and another": func(l *life) {
		l.stopped()
		l.again()
		l.phase(status.Ready)
	},
	"somebody deletes the status again and again": func(l *life) {
		l.forget("status/")
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
		l.settle()
		l.phase(status.Ready)
	},
	"a spec that is deleted in the middle": func(l *life) {
		l.once("change", "ExecuteChangeSet", "", func() { l.Remove(names.ClusterSpec("demo"), "") })
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		l.settle()
	},
	"a cluster that nobody has heard of": func(l *life) {
		l.again()
	},
	"somebody else's update that is over before anybody waits for it": func(l *life) {
		l.create("")
		l.OnResource(failing("update", "AWS::EC2::VPC", "network", errQuota))
		l.Events.Decide(lose("aws.cloudformation", "network")) // or another function tells the step first
		l.besides()
		l.change("  tags: {team: b}\n")
	},
	"somebody deletes a lease that is held": func(l *life) {
		l.once("change", "GetObject", "leases/demo.json", func() { l.drop(names.Lease("demo")) })
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		l.settle()
	},
	"several nodes that do not join": func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), strings.ReplaceAll(Release(), ec2.ImageID("1.36", "amd64"), ec2.SilentImageID("1.36", "amd64")))
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", unprotected), "minSize: 1", "minSize: 2", 1))
		time.Sleep(20 * time.Minute)
		l.swept() // while they are waited for
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
	"a drain by hand that somebody stops": func(l *life) {
		l.create(unprotected)
		l.busy(1)
		input := fmt.Sprintf(`{"cluster": "demo", "node": %q}`, l.API("drover-demo").Nodes()[0].Name)
		_, err := l.States.Start(l.t.Context(), l.Admin(), l.machineARN("drain-node"), "hand", input)
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
		_, err := autoscalingapi.NewFromConfig(l.Config()).SuspendProcesses(l.t.Context(), &autoscalingapi.SuspendProcessesInput{
			AutoScalingGroupName: aws.String("drover-demo-pool-a"),
			ScalingProcesses:     []string{"HealthCheck", "ReplaceUnhealthy", "AZRebalance", "AlarmNotification", "ScheduledActions"},
		})
		require.NoError(l.t, err)
		l.swept()
	},
	"an audit of a cluster with a node that is ill, and a stack that is gone": func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", unprotected), "minSize: 1", "minSize: 3", 1))
		l.settle()
		l.phase(status.Ready)
		l.audited()
		l.Nodes.Decide(func(_ string, n []kube.Health) ([]kube.Health, error) {
			n[1].Ready, n[1].Since = false, time.Now().Add(-time.Hour)
			return n, nil
		})
		l.audited()
		l.Nodes.Decide(nil)
		_, err := l.CloudFormation.DeleteStack(l.t.Context(), l.Admin(), &cloudformation.DeleteStackInput{StackName: "drover-demo-addons-on-nodes"})
		require.NoError(l.t, err)
		l.settle()
		l.audited()
	},
	"an audit of a stack that somebody changed": func(l *life) {
		l.create(unprotected)
		for _, stack := range l.CloudFormation.Stacks() {
			if stack.StackName == "drover-demo-addons" {
				_, err := l.CloudFormation.UpdateStack(l.t.Context(), l.Admin(), &cloudformation.UpdateStackInput{
					StackName: stack.StackName, UsePreviousTemplate: true, Capabilities: []string{"CAPABILITY_IAM"},
					Parameters: []cloudformation.Parameter{{ParameterKey: "ClusterName", UsePreviousValue: true}}, Tags: stack.Tags[1:],
				})
				require.NoError(l.t, err)
			}
		}
		l.settle()
		l.audited()
	},
	"a pool that is rolled by hand, and at a time": func(l *life) {
		l.create(unprotected)
		_, err := l.States.Start(l.t.Context(), l.Admin(), l.converge, "hand", `{"cluster": "demo", "roll": ["a"]}`)
		require.NoError(l.t, err)
		l.settle()
		at := time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", unprotected), "maxSize: 3", "maxSize: 3, rollAt: \""+at+"\"", 1))
		l.settle()
		time.Sleep(3 * time.Hour)
		l.sweep()
	},
	"a pool that gets its first node when somebody scales it": func(l *life) {
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
	"a release that comes late": func(l *life) {
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		l.settle()
		l.audited()
		l.Upload(names.ReleaseSpec("r1"), Release())
		time.Sleep(time.Hour)
		l.audited()
		l.phase(status.Ready)
	},
	"an upgrade, once more, and of a cluster that is not there": func(l *life) {
		l.old(alarmed)
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
	},
	"an upgrade that is stopped in the middle, and two others": func(l *life) {
		l.old(alarmed)
		l.unheard("  tags: {team: b}\n" + alarmed)
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		time.Sleep(time.Minute)
		l.States.Stop(arn, "Stopped", "by a person")
		l.settle()
		l.upgrade(events.Upgrade{Release: "r2"})
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
	},
	"an upgrade that the spec asks for, stopped, and found by the audit": func(l *life) {
		l.old(alarmed)
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", alarmed), "name: r1", "name: r2", 1))
		l.step(upgrade.StepControlPlane)
		l.States.Stop(l.record().Execution, "Stopped", "by a person")
		l.settle()
		for range 2 {
			time.Sleep(15 * time.Minute)
			l.audited()
		}
	},
	"a channel that moves": func(l *life) {
		channels := func(stable string) string {
			return "apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec: {stable: " + stable + "}\n"
		}
		l.Upload("releases/channels.yaml", channels("r1"))
		l.old("  upgrade: {channel: Stable, window: {start: \"22:00\", duration: 4h}}\n")
		l.audited()
		l.Upload("releases/channels.yaml", channels("r2"))
		l.audited()
		l.sweep()
	},
	"an upgrade while somebody else converges": func(l *life) {
		l.old(alarmed)
		l.unheard("  kubernetesVersion: \"1.36\"\n  tags: {team: b}\n" + alarmed)
		puts := 0
		l.OnCall(func(call endpoint.Call) error {
			if CalledBy(call) == "upgrade" && call.Action == "PutObject" && strings.Contains(call.Resource, names.Upgrade("demo")) {
				if puts++; puts == 2 { // it begins
					l.Converge("demo")
					time.Sleep(time.Second)
				}
			}
			return nil
		})
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
	},
	"an execution that waits for nothing": func(l *life) {
		l.Events.Decide(lose("aws.cloudformation", ""))
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		time.Sleep(2 * time.Hour)
		l.drop(names.Waiter("drover-demo-network"))
		time.Sleep(time.Minute)
		_ = l.AuditNow()
		l.Events.Decide(nil)
		time.Sleep(2 * time.Hour)
		l.audited()
		l.audited()
	},
	"a cluster that is deleted with its spec": func(l *life) {
		l.create(unprotected)
		for _, volume := range l.KubernetesMakes("demo") {
			l.persist("demo", volume, "Delete")
		}
		l.noted("demo")
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
		l.phase(status.Deleted)
		require.Empty(l.t, l.notes("demo"))
	},
	"a cluster that is deleted, while somebody deletes its status": func(l *life) {
		l.create(unprotected)
		l.KubernetesMakes("demo")
		l.once("prepare", "GetObject", "status/clusters/demo.json", func() { l.drop(names.Status("demo")) })
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
	},
	"a cluster that is deleted, while somebody deletes its lease": func(l *life) {
		l.create(unprotected)
		l.KubernetesMakes("demo")
		l.once("clean", "GetObject", "leases/demo.json", func() { l.drop(names.Lease("demo")) })
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
	},
	"nodes that do not join, and a status that is deleted": func(l *life) {
		l.forget("status/")
		l.Upload(names.ReleaseSpec("r1"), strings.ReplaceAll(Release(), ec2.ImageID("1.36", "amd64"), ec2.SilentImageID("1.36", "amd64")))
		l.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
		l.settle()
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
	"the drain function fails": func(l *life) {
		l.create(secondPool + unprotected)
		l.functionFails("drain")
		l.change(unprotected)
		l.phase(status.Ready)
	},
	"a node that leaves by itself, with a pod that stays": func(l *life) {
		l.create(unprotected)
		l.busy(1)
		l.terminate()
		time.Sleep(20 * time.Minute)
		l.swept()
		l.busy(0)
		l.settle()
	},
	"a spot instance that EC2 takes back": func(l *life) {
		l.create(unprotected)
		l.Events.Emit(l.t.Context(), "aws.ec2", "EC2 Spot Instance Interruption Warning", nil, map[string]string{
			"instance-id": l.instance(), "instance-action": "terminate",
		})
		l.settle()
	},
}

// instance is one of the cluster's nodes.
func (l *life) instance() string {
	id := l.API("drover-demo").Nodes()[0].ProviderID
	return id[strings.LastIndex(id, "/")+1:]
}

// stopped is a cluster whose execution somebody stopped while it waited for the control plane.
func (l *life) stopped() {
	l.Events.Decide(lose("aws.cloudformation", "control-plane"))
	l.Upload(names.ReleaseSpec("r1"), Release())
	l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
	for range 24 * 60 {
		time.Sleep(time.Minute)
		if l.Idle() && l.Stacks("demo")["control-plane"] == "CREATE_COMPLETE" {
			break
		}
	}
	l.States.StopAll("Aborted", "by a person")
	l.Events.Decide(nil)
	time.Sleep(time.Minute)
}

// once does something just before a function's first call of a kind.
func (l *life) once(function, action, suffix string, do func()) {
	var once sync.Once
	l.OnCall(func(call endpoint.Call) error {
		if CalledBy(call) == function && call.Action == action && strings.HasSuffix(call.Resource, suffix) {
			once.Do(do)
		}
		return nil
	})
}

// forget deletes what functions are about to read of drover's own state, each time.
func (l *life) forget(prefix string) {
	l.OnCall(func(call endpoint.Call) error {
		key, ours := strings.CutPrefix(call.Resource, "arn:aws:s3:::"+StateBucket+"/"+prefix)
		if ours && call.Action == "GetObject" && CalledBy(call) != "admin" {
			l.drop(prefix + key)
		}
		return nil
	})
}

// drop an object of drover's own state.
func (l *life) drop(key string) {
	_, err := environment.S3(l.Config()).DeleteObject(l.t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(StateBucket), Key: &key})
	require.NoError(l.t, err)
}

// besides has a person update the network just before the change function looks at it; the update is over, and was rolled back, when
// the function has said that it waits.
func (l *life) besides() {
	const stackName = "drover-demo-network"
	var began, over sync.Once
	l.OnCall(func(call endpoint.Call) error {
		switch {
		case CalledBy(call) != "change":
		case call.Action == "GetObject" && strings.Contains(call.Resource, names.Leases):
			began.Do(func() {
				for _, stack := range l.CloudFormation.Stacks() {
					if stack.StackName == stackName {
						_, err := l.CloudFormation.UpdateStack(l.t.Context(), l.Admin(), &cloudformation.UpdateStackInput{
							StackName: stackName, UsePreviousTemplate: true, Tags: append(stack.Tags, cloudformation.Tag{Key: "by", Value: "somebody else"}),
						})
						require.NoError(l.t, err)
					}
				}
			})
		case call.Action == "PutObject" && strings.Contains(call.Resource, names.Waiters):
			over.Do(func() {
				_, err := l.CloudFormation.Wait(l.t.Context(), stackName)
				require.NoError(l.t, err)
			})
		}
		return nil
	})
}
