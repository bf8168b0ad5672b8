package deletion_test

// docs/leaving.md, step by step: drover is removed, and users keep the cluster without it.

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// leaver carries out the page for the cluster demo and its pool a.
type leaver struct {
	*life
	stacks *cloudformation.Client
	groups *autoscaling.Client
	eks    *eks.Client

	mu      sync.Mutex
	hooks   []autoscalingtypes.LifecycleHook // as drover made them
	removed []apiserver.Removal
	called  map[string]bool // such as "autoscaling PutLifecycleHook"
}

// soon is longer than an instance takes to serve or to end, and shorter than the timeouts of drover's hooks.
const soon = 15 * time.Minute

// returnHeading starts the page's part on the return to drover.
const returnHeading = "\n## Returning to drover\n"

func TestLeaving(t *testing.T) {
	for name, c := range map[string]struct{ pool, spec string }{
		"a pool with rolling updates":           {"minSize: 2, maxSize: 4", ""},
		"a pool with instance refreshes":        {"minSize: 2, maxSize: 4, update: {strategy: InstanceRefresh}", ""},
		"a cluster with a private endpoint":     {"minSize: 2, maxSize: 4", lives.PrivateEndpoint},
		"a cluster without deletion protection": {"minSize: 2, maxSize: 4", lives.Unprotected},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(a *life) {
				before := a.AllResources()
				l := newLeaver(a)
				defer l.Redeploy() // the account ends only with its executions
				l.leave(c.pool, c.spec)
				l.updatePool()
				l.replaceNodes()
				l.removeAccess()
				l.addNode()
				l.requireEvictions()
				l.deleteCluster()

				require.Equal(t, status.Ready, l.Status("demo").Phase, "no function writes a status")
				for arn := range l.AllResources() {
					require.Contains(t, before, arn, "no resource of the cluster remains")
				}
				l.Remove(names.ClusterSpec("demo"), "")
				leaving, _, _ := strings.Cut(l.page(), returnHeading)
				l.requireCommands(leaving)
			})
		})
	}
}

func TestReturnToDrover(t *testing.T) {
	run(t, func(a *life) {
		l := newLeaver(a)
		defer l.Redeploy()
		l.leave("minSize: 2, maxSize: 4", "")
		l.updatePool()
		l.removeAccess()
		l.restoreHooks()
		for _, stack := range []string{names.PoolStack("a"), names.ControlPlane} {
			in := l.update(names.Stack("demo", stack), func(template string) string { return template }, nil)
			in.TemplateBody, in.UsePreviousTemplate = nil, aws.Bool(true)
			in.Tags = slices.DeleteFunc(in.Tags, func(tag types.Tag) bool { return aws.ToString(tag.Key) == names.TagChecksum })
			l.updateStack(stack, in)
		}
		before := l.Group("demo", "a")
		_, returning, _ := strings.Cut(l.page(), returnHeading)
		l.requireCommands(returning)

		l.Redeploy()
		l.ConvergeAgain()
		l.RequirePhase(status.Ready)
		l.RequireRenewed(before, 4)
		l.requireEvictions()
		require.Len(t, l.entriesOfDrover(), 5)
		require.Equal(t, l.hooks, l.describeHooks())
		template := l.update(names.Stack("demo", names.PoolStack("a")), func(template string) string { return template }, nil).TemplateBody
		require.NotContains(t, *template, "VolumeSize: 44")
		require.NoError(t, l.AuditNow())
		if c := l.Status("demo").Condition(status.InSync); c != nil { // the audit writes the condition when something differs
			require.Equal(t, "True", c.Status, c.Message)
		}
	})
}

func newLeaver(a *life) *leaver {
	return &leaver{
		life: a, stacks: cloudformation.NewFromConfig(a.Config()), groups: autoscaling.NewFromConfig(a.Config()),
		eks: eks.NewFromConfig(a.Config()), called: map[string]bool{},
	}
}

// leave creates a cluster and removes drover. Then it does what the page says about pools, while a node starts. Each call is recorded.
func (l *leaver) leave(fields, spec string) {
	l.T.Helper()
	l.Upload(names.ReleaseSpec("r1"), harness.Release())
	l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", spec), "minSize: 1, maxSize: 3", fields, 1))
	l.Settle()
	l.RequirePhase(status.Ready)
	l.runShop()
	l.Undeploy()
	l.OnAnswer(l.record)
	l.startNode()
	l.shortenHooks()
	l.finishLaunch()
	l.stopBalancing()
	l.addNode()
}

// runShop runs pods with a budget on the cluster, and records how they end.
func (l *leaver) runShop() {
	api := l.API("drover-demo")
	api.Run(apiserver.App{Name: "shop", Replicas: 8, MaxUnavailable: 1, Start: time.Second, Stop: time.Second, Grace: 10 * time.Second})
	api.OnRemoval(func(r apiserver.Removal) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.removed = append(l.removed, r)
	})
}

func (l *leaver) record(call endpoint.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.called[call.Service+" "+call.Action] = true
}

// requireEvictions requires that pods left their nodes only within their budget.
func (l *leaver) requireEvictions() {
	l.T.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.NotEmpty(l.T, l.removed)
	for _, r := range l.removed {
		require.Equal(l.T, "evicted", r.How, "%+v", r)
		require.GreaterOrEqual(l.T, r.Healthy, r.Desired, "%+v", r)
	}
}

// wait waits until done returns true. done makes calls, and a call wakes Until: it would not let time pass.
func (l *leaver) wait(what string, done func() bool) {
	l.T.Helper()
	for range 6 * 60 * 6 {
		if done() {
			return
		}
		time.Sleep(10 * time.Second)
	}
	require.Fail(l.T, "waited too long until "+what, "stacks %v, group %+v", l.Stacks("demo"), l.Group("demo", "a"))
}

// requireNodes waits until the pool has this number of instances in service, each with a Ready node. No hook holds an instance.
func (l *leaver) requireNodes(desired int) {
	l.T.Helper()
	began := time.Now()
	l.wait("the pool has its nodes", func() bool {
		group, ready := l.Group("demo", "a"), 0
		for _, n := range l.API("drover-demo").Nodes() {
			if n.Ready && slices.ContainsFunc(group.Instances, func(i pool.Instance) bool { return strings.HasSuffix(n.ProviderID, i.ID) }) {
				ready++
			}
		}
		return len(group.Instances) == desired && group.Serving() == desired && ready == desired
	})
	require.Less(l.T, time.Since(began), soon)
}

// startNode adds a node to the pool, and waits until it is Ready. Its instance waits at the launch hook.
func (l *leaver) startNode() {
	l.T.Helper()
	l.SetPoolSize(3)
	l.wait("the new node is Ready", func() bool {
		return slices.ContainsFunc(l.API("drover-demo").Nodes(), func(n apiserver.Node) bool {
			waiting := l.waiting()
			return waiting != "" && n.Ready && strings.HasSuffix(n.ProviderID, waiting)
		})
	})
}

// waiting returns the instance at the launch hook, or "".
func (l *leaver) waiting() string {
	for _, i := range l.Group("demo", "a").Instances {
		if i.State == pool.PendingWait {
			return i.ID
		}
	}
	return ""
}

// finishLaunch completes the launch hook of the instance that waits there.
func (l *leaver) finishLaunch() {
	l.T.Helper()
	_, err := l.groups.CompleteLifecycleAction(l.T.Context(), &autoscaling.CompleteLifecycleActionInput{
		AutoScalingGroupName: aws.String(lives.PoolGroup), LifecycleHookName: aws.String(pool.LaunchHook),
		InstanceId: aws.String(l.waiting()), LifecycleActionResult: aws.String("CONTINUE"),
	})
	require.NoError(l.T, err)
	l.requireNodes(3)
}

// stopBalancing stops Auto Scaling from terminating nodes to balance zones.
func (l *leaver) stopBalancing() {
	l.T.Helper()
	_, err := l.groups.SuspendProcesses(l.T.Context(), &autoscaling.SuspendProcessesInput{
		AutoScalingGroupName: aws.String(lives.PoolGroup), ScalingProcesses: []string{"AZRebalance"},
	})
	require.NoError(l.T, err)
}

// shortenHooks makes the lifecycle hooks of the pool end by themselves, soon.
func (l *leaver) shortenHooks() {
	l.T.Helper()
	l.hooks = l.describeHooks()
	for _, hook := range l.hooks {
		_, err := l.groups.PutLifecycleHook(l.T.Context(), &autoscaling.PutLifecycleHookInput{
			AutoScalingGroupName: aws.String(lives.PoolGroup), LifecycleHookName: hook.LifecycleHookName,
			HeartbeatTimeout: aws.Int32(30), DefaultResult: aws.String("CONTINUE"),
		})
		require.NoError(l.T, err)
	}
	l.requireShortHooks()
}

// restoreHooks makes the hooks what they were, and Auto Scaling balance zones.
func (l *leaver) restoreHooks() {
	l.T.Helper()
	for _, hook := range l.hooks {
		_, err := l.groups.PutLifecycleHook(l.T.Context(), &autoscaling.PutLifecycleHookInput{
			AutoScalingGroupName: hook.AutoScalingGroupName, LifecycleHookName: hook.LifecycleHookName,
			LifecycleTransition: hook.LifecycleTransition, HeartbeatTimeout: hook.HeartbeatTimeout, DefaultResult: hook.DefaultResult,
			NotificationMetadata: hook.NotificationMetadata,
		})
		require.NoError(l.T, err)
	}
	_, err := l.groups.ResumeProcesses(l.T.Context(), &autoscaling.ResumeProcessesInput{
		AutoScalingGroupName: aws.String(lives.PoolGroup), ScalingProcesses: []string{"AZRebalance"},
	})
	require.NoError(l.T, err)
}

func (l *leaver) describeHooks() []autoscalingtypes.LifecycleHook {
	l.T.Helper()
	described, err := l.groups.DescribeLifecycleHooks(l.T.Context(), &autoscaling.DescribeLifecycleHooksInput{
		AutoScalingGroupName: aws.String(lives.PoolGroup),
	})
	require.NoError(l.T, err)
	require.Len(l.T, described.LifecycleHooks, 2)
	return described.LifecycleHooks
}

func (l *leaver) requireShortHooks() {
	l.T.Helper()
	for _, hook := range l.describeHooks() {
		require.EqualValues(l.T, 30, aws.ToInt32(hook.HeartbeatTimeout))
		require.Equal(l.T, "CONTINUE", aws.ToString(hook.DefaultResult))
	}
}

func (l *leaver) addNode() {
	l.T.Helper()
	desired := len(l.Group("demo", "a").Instances) + 1
	l.SetPoolSize(desired)
	l.requireNodes(desired)
}

// updatePool changes the pool's template: its launch template has a larger volume. No node is replaced.
func (l *leaver) updatePool() {
	l.T.Helper()
	before, stackName := l.Group("demo", "a"), names.Stack("demo", names.PoolStack("a"))
	in := l.update(stackName, func(template string) string {
		template = l.edit("pool-before.yaml > pool.yaml", template)
		require.Equal(l.T, 2, strings.Count(template, " HeartbeatTimeout: 30\n"))
		require.Equal(l.T, 2, strings.Count(template, " DefaultResult: CONTINUE\n"))
		volume := regexp.MustCompile(`VolumeSize: \d+`)
		require.Regexp(l.T, volume, template)
		return volume.ReplaceAllString(template, "VolumeSize: 44")
	}, map[string]string{"ReplaceNodes": "false", "Nodes": "changed by hand"})
	in.Tags = nil // the stack keeps them
	l.updateStack(names.PoolStack("a"), in)
	after := l.Group("demo", "a")
	require.Equal(l.T, before.Instances, after.Instances, "the update replaces no node")
	require.NotEqual(l.T, before.TemplateVersion, after.TemplateVersion)
	l.requireShortHooks()
}

// replaceNodes replaces the pool's nodes, one by one: a new node first, then a drain, then the end of the old instance.
func (l *leaver) replaceNodes() {
	l.T.Helper()
	before := l.Group("demo", "a").Instances
	_, err := l.groups.UpdateAutoScalingGroup(l.T.Context(), &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String(lives.PoolGroup), MaxSize: aws.Int32(int32(len(before) + 1)),
	})
	require.NoError(l.T, err)
	for _, old := range before {
		l.addNode()
		l.drain(old.ID)
		_, err := l.groups.TerminateInstanceInAutoScalingGroup(l.T.Context(), &autoscaling.TerminateInstanceInAutoScalingGroupInput{
			InstanceId: aws.String(old.ID), ShouldDecrementDesiredCapacity: aws.Bool(true),
		})
		require.NoError(l.T, err)
		l.requireNodes(len(before))
	}
	group := l.Group("demo", "a")
	for _, i := range group.Instances {
		require.Equal(l.T, group.TemplateVersion, i.TemplateVersion)
	}
}

// drain does what kubectl drain does: it cordons the node of an instance and evicts its pods until none is left.
func (l *leaver) drain(instance string) {
	l.T.Helper()
	client, node := l.Kubernetes("demo"), ""
	for _, n := range l.API("drover-demo").Nodes() {
		if strings.HasSuffix(n.ProviderID, instance) {
			node = n.Name
		}
	}
	require.NotEmpty(l.T, node)
	_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Patch(l.T.Context(), node,
		apitypes.MergePatchType, []byte(`{"spec": {"unschedulable": true}}`), metav1.PatchOptions{})
	require.NoError(l.T, err)
	for range 100 {
		left := 0
		for _, p := range l.API("drover-demo").Pods() {
			if p.Node != node || p.App != "shop" {
				continue
			}
			left++
			eviction := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": p.Name, "namespace": "default"},
			}}
			_, _ = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("default").
				Create(l.T.Context(), eviction, metav1.CreateOptions{}, "eviction") // a budget may refuse it: then again
		}
		if left == 0 {
			return
		}
		time.Sleep(5 * time.Second)
	}
	require.Fail(l.T, "the node is not drained")
}

// removeAccess removes the access entries of drover's roles, and the RBAC objects.
func (l *leaver) removeAccess() {
	l.T.Helper()
	require.Len(l.T, l.entriesOfDrover(), 5)
	in := l.update(names.Stack("demo", names.ControlPlane), func(template string) string {
		return l.edit("before.yaml > without-access.yaml", template)
	}, nil)
	in.Tags = nil // the stack keeps them
	l.updateStack(names.ControlPlane, in)
	require.Empty(l.T, l.entriesOfDrover())
	for _, resource := range []string{"clusterrolebindings", "clusterroles"} {
		objects := l.Kubernetes("demo").Resource(schema.GroupVersionResource{
			Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource,
		})
		found, err := objects.List(l.T.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=drover"})
		require.NoError(l.T, err)
		require.Len(l.T, found.Items, 4)
		for _, o := range found.Items {
			require.NoError(l.T, objects.Delete(l.T.Context(), o.GetName(), metav1.DeleteOptions{}))
		}
	}
}

// entriesOfDrover lists the principals of access entries that are roles of drover.
func (l *leaver) entriesOfDrover() []string {
	l.T.Helper()
	listed, err := l.eks.ListAccessEntries(l.T.Context(), &eks.ListAccessEntriesInput{ClusterName: aws.String("drover-demo")})
	require.NoError(l.T, err)
	return slices.DeleteFunc(listed.AccessEntries, func(principal string) bool {
		return !strings.HasPrefix(principal, harness.RoleARN(""))
	})
}

// updateStack updates a stack of the cluster, and waits.
func (l *leaver) updateStack(stack string, in *cloudformation.UpdateStackInput) {
	l.T.Helper()
	_, err := l.stacks.UpdateStack(l.T.Context(), in)
	require.NoError(l.T, err)
	l.wait("the stack is updated", func() bool { return !strings.HasSuffix(l.Stacks("demo")[stack], "IN_PROGRESS") })
	require.Equal(l.T, "UPDATE_COMPLETE", l.Stacks("demo")[stack], l.failures(stack))
}

// failures lists the reasons of the last events of a stack.
func (l *leaver) failures(stack string) (reasons []string) {
	events, err := l.stacks.DescribeStackEvents(l.T.Context(), &cloudformation.DescribeStackEventsInput{
		StackName: aws.String(names.Stack("demo", stack)),
	})
	require.NoError(l.T, err)
	for _, e := range events.StackEvents {
		if e.ResourceStatusReason != nil {
			reasons = append(reasons, aws.ToString(e.LogicalResourceId)+": "+*e.ResourceStatusReason)
		}
	}
	return reasons[:min(5, len(reasons))]
}

// update returns the update of a stack to a changed template, with its present parameters and tags, and some other parameters.
func (l *leaver) update(stackName string, change func(string) string, parameters map[string]string) *cloudformation.UpdateStackInput {
	l.T.Helper()
	template, err := l.stacks.GetTemplate(l.T.Context(), &cloudformation.GetTemplateInput{StackName: &stackName})
	require.NoError(l.T, err)
	described, err := l.stacks.DescribeStacks(l.T.Context(), &cloudformation.DescribeStacksInput{StackName: &stackName})
	require.NoError(l.T, err)
	in := &cloudformation.UpdateStackInput{
		StackName: &stackName, TemplateBody: aws.String(change(aws.ToString(template.TemplateBody))), Tags: described.Stacks[0].Tags,
		Capabilities: []types.Capability{types.CapabilityCapabilityNamedIam},
	}
	for _, p := range described.Stacks[0].Parameters {
		if value, found := parameters[aws.ToString(p.ParameterKey)]; found {
			in.Parameters = append(in.Parameters, types.Parameter{ParameterKey: p.ParameterKey, ParameterValue: &value})
			continue
		}
		in.Parameters = append(in.Parameters, types.Parameter{ParameterKey: p.ParameterKey, UsePreviousValue: aws.Bool(true)})
	}
	return in
}

// deleteCluster deletes the stacks in order.
func (l *leaver) deleteCluster() {
	l.T.Helper()
	order := [][]string{{names.PoolStack("a")}, {names.NodeAddons}, {names.Addons}, {names.ControlPlane}, {names.Network}}
	for name := range l.Stacks("demo") {
		require.True(l.T, slices.ContainsFunc(order, func(stage []string) bool { return slices.Contains(stage, name) }), name)
	}
	for _, name := range []string{names.ControlPlane, names.Network} {
		in := l.update(names.Stack("demo", name), func(template string) string {
			template = l.edit("before.yaml > stack.yaml", template)
			require.NotContains(l.T, template, "Retain")
			return template
		}, map[string]string{"DeletionProtection": "false"})
		in.Tags = append(in.Tags, types.Tag{Key: aws.String("protection"), Value: aws.String("off")})
		l.updateStack(name, in)
	}
	require.False(l.T, l.Protected("drover-demo"))
	for _, stage := range order {
		for _, stack := range stage {
			name := aws.String(names.Stack("demo", stack))
			_, err := l.stacks.UpdateTerminationProtection(l.T.Context(), &cloudformation.UpdateTerminationProtectionInput{
				StackName: name, EnableTerminationProtection: aws.Bool(false),
			})
			require.NoError(l.T, err)
			_, err = l.stacks.DeleteStack(l.T.Context(), &cloudformation.DeleteStackInput{StackName: name})
			require.NoError(l.T, err)
			l.wait("the stack "+stack+" is deleted", func() bool {
				state := l.Stacks("demo")[stack]
				require.NotEqual(l.T, "DELETE_FAILED", state, stack)
				return state == ""
			})
		}
	}
}

// page reads docs/leaving.md.
func (l *leaver) page() string {
	l.T.Helper()
	_, here, _, _ := runtime.Caller(0)
	page, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../../../docs/leaving.md"))
	require.NoError(l.T, err)
	return string(page)
}

// edit runs the page's sed or awk command for files on a template.
func (l *leaver) edit(files, template string) string {
	l.T.Helper()
	found := regexp.MustCompile(`(?m)^(sed|awk) '([^']+)' ` + regexp.QuoteMeta(files) + `$`).FindStringSubmatch(l.page())
	require.NotNil(l.T, found, files)
	command := exec.CommandContext(l.T.Context(), found[1], found[2])
	command.Stdin = strings.NewReader(template)
	edited, err := command.Output()
	require.NoError(l.T, err)
	return string(edited)
}

// requireCommands requires that the test made the calls of all commands in a part of the page.
func (l *leaver) requireCommands(part string) {
	l.T.Helper()
	commands := regexp.MustCompile(`(?m)^ *aws (autoscaling|cloudformation|eks) ([a-z-]+)`).FindAllStringSubmatch(part, -1)
	require.NotEmpty(l.T, commands)
	for _, command := range commands {
		var action strings.Builder
		for word := range strings.SplitSeq(command[2], "-") {
			action.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
		if command[2] != "wait" {
			require.True(l.T, l.called[command[1]+" "+action.String()], "%s: the test does not make the call", command[0])
		}
	}
}
