package account

// Upgrades of real control planes with workloads: one that the schedule starts, and one that EKS fails. Package
// local/testkit/worlds/upgrade tests upgrades with many more faults.

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/kubernetes/workload"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// exampleRelease returns one of the examples, as a file and decoded.
func (w *world) exampleRelease(t *testing.T, name string) (body []byte, release *api.Release) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(w.root, "examples", "releases", name+".yaml"))
	require.NoError(t, err)
	release, errs := api.ReadRelease(names.ReleaseSpec(name), body, api.Options{Name: name})
	require.NoError(t, errs.Err())
	return body, release
}

// older uploads release 1.35-1 and returns the spec of a cluster at that release, which disables alarms in upgrades.
func (w *world) older(t *testing.T, cluster string, alarms []string, pools ...object) object {
	t.Helper()
	body, _ := w.exampleRelease(t, "1.35-1")
	_, err := w.specs.Put(t.Context(), names.ReleaseSpec("1.35-1"), body)
	require.NoError(t, err)
	spec := specOf(cluster, pools...)
	spec["spec"].(object)["release"] = object{"name": "1.35-1"}
	spec["spec"].(object)["upgrade"] = object{"alarms": alarms}
	return spec
}

// alarm creates an alarm in state OK. mayBeSilenced sets the tag that allows upgrades to disable its actions.
func alarm(t *testing.T, name string, mayBeSilenced bool) {
	t.Helper()
	in := &cloudwatch.PutMetricAlarmInput{
		AlarmName: &name, Namespace: aws.String("shop"), MetricName: aws.String("errors"), Statistic: cloudwatchtypes.StatisticSum,
		Period:            aws.Int32(300),
		EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0), ComparisonOperator: cloudwatchtypes.ComparisonOperatorGreaterThanThreshold,
		TreatMissingData: aws.String("notBreaching"), ActionsEnabled: aws.Bool(true),
	}
	if mayBeSilenced {
		in.Tags = []cloudwatchtypes.Tag{{Key: aws.String(names.TagSilence), Value: aws.String(names.SilenceUpgrade)}}
	}
	_, err := cloudwatch.NewFromConfig(cloud.Config()).PutMetricAlarm(t.Context(), in)
	require.NoError(t, err)
}

// sounds reports whether an alarm's actions are enabled.
func sounds(t *testing.T, name string) bool {
	t.Helper()
	out, err := cloudwatch.NewFromConfig(cloud.Config()).DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{
		AlarmNames: []string{name},
	})
	require.NoError(t, err)
	require.Len(t, out.MetricAlarms, 1)
	return aws.ToBool(out.MetricAlarms[0].ActionsEnabled)
}

// runs compares a cluster with a release: EKS's version, the API server's own, and those of each add-on and node.
func (w *world) runs(t *testing.T, cluster, release string) {
	t.Helper()
	_, want := w.exampleRelease(t, release)
	client := eks.NewFromConfig(w.Config())
	described, err := client.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String(names.EKSCluster(cluster))})
	require.NoError(t, err)
	require.Equal(t, want.Spec.KubernetesVersion, *described.Cluster.Version)
	require.Equal(t, ekstypes.ClusterStatusActive, described.Cluster.Status)

	_, kubeconfig, err := w.EKS.Administrator(names.EKSCluster(cluster))
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	server, err := discovered.ServerVersion()
	require.NoError(t, err)
	require.Equal(t, want.Spec.KubernetesVersion, server.EmulationMajor+"."+server.EmulationMinor)

	for _, a := range want.Spec.Addons {
		addon, err := client.DescribeAddon(t.Context(), &eks.DescribeAddonInput{
			ClusterName: described.Cluster.Name, AddonName: aws.String(a.Name),
		})
		require.NoError(t, err)
		require.Equal(t, a.Version, *addon.Addon.AddonVersion, a.Name)
	}
	nodes := nodesOf(t, cluster)
	require.NotEmpty(t, nodes)
	for _, n := range nodes {
		require.True(t, strings.HasPrefix(n.Status.NodeInfo.KubeletVersion, "v"+want.Spec.KubernetesVersion+"."), "%s has %s", n.Name,
			n.Status.NodeInfo.KubeletVersion)
	}
}

// upgrades returns the executions of the upgrade machine for a cluster, except early checks, which any audit may start.
func (w *world) upgrades(cluster string) []stepfunctions.Execution {
	return slices.DeleteFunc(w.sinceOf(cluster, "drover-upgrade", time.Time{}), func(x stepfunctions.Execution) bool {
		return strings.Contains(x.Input, `"checkOnly":true`)
	})
}

// upgradeSteps are the steps of an upgrade by one minor version.
var upgradeSteps = []string{"control plane to 1.36", "add-ons to the versions of the release", "nodes to the images of the release"}

// requireCompleted requires that an upgrade to 1.36-1 completed every step.
func requireCompleted(t *testing.T, u *status.Upgrade, origin upgrade.Origin) {
	t.Helper()
	require.Equal(t, string(upgrade.Done), u.Phase, u.Message)
	require.Equal(t, []string{
		"1.35-1", "1.35", "1.36-1", "1.36", string(origin),
	}, []string{u.From, u.FromVersion, u.To, u.ToVersion, u.Origin})
	require.Len(t, u.Steps, len(upgradeSteps))
	for i, step := range u.Steps {
		require.Equal(t, upgradeSteps[i], step.Name)
		require.NotNil(t, step.Ended, step.Name)
		require.False(t, step.Ended.Before(*step.Started), step.Name)
		if i > 0 {
			require.False(t, step.Started.Before(*u.Steps[i-1].Ended), "%s waits for the one before", step.Name)
		}
	}
}

func TestScheduledUpgrade(t *testing.T) {
	t.Parallel()
	const name, ours, others = "scheduled", "scheduled-shop-is-down", "scheduled-others"
	cloud.retire(t, name)
	alarm(t, ours, true)
	alarm(t, others, false)
	pools := map[string]int{"workers": 2, "batch": 1}
	// Drains take some seconds longer than CloudFormation.
	workloads := append(slices.Clone(rolledWorkloads), workload.Workload{
		Namespace: "shop", Name: "slow", Kind: workload.Deployment, Replicas: 6, EndsAfter: 4 * time.Second, Grace: 10 * time.Second,
	})
	spec := cloud.older(t, name, []string{ours, others}, pool("workers", pools["workers"]), pool("batch", pools["batch"]))
	cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))
	cloud.runs(t, name, "1.35-1")

	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	cluster := connect(t, name)
	require.NoError(t, cluster.Deploy(ctx, workloads...))
	var version string
	scheduled := func(at time.Time) {
		spec["spec"].(object)["upgrade"].(object)["at"] = object{"time": at.Format(time.RFC3339), "release": "1.36-1"}
		version = cloud.upload(t, name, text(t, spec))
		s := cloud.await(t, name, "scheduled for its upgrade", func(s status.Status) bool {
			return s.PlannedVersion == version && s.Phase == status.Ready && s.Upgrade != nil && s.Upgrade.At != nil && at.Equal(*s.Upgrade.At)
		})
		require.Equal(t, status.UpgradeScheduled, s.Upgrade.Phase)
	}
	uploaded := time.Now()
	scheduled(uploaded.Add(time.Hour).UTC().Truncate(time.Second))
	took := time.Since(uploaded)

	// The API server restarts as another version. The watch misses changes in between, but pods do not change, because
	// nothing drains then.
	pods, err := cluster.WatchOverRestarts(ctx)
	require.NoError(t, err)
	defer pods.Close()
	require.NoError(t, pods.Wait(ctx, "the workloads", func() bool { return pods.Settled(workloads...) }))
	require.NoError(t, cluster.Budgeted(ctx, workloads...))
	pods.Forget()
	require.Empty(t, cloud.upgrades(name), "it is not time")
	before, observers := instancesOf(t, name), map[string]*observer{}
	for pool := range pools {
		observers[pool] = observe(t, name, pool)
	}
	at := time.Now().Add(4*time.Second + 4*took).UTC().Truncate(time.Second) // a busy machine reports it later
	scheduled(at)
	require.NoError(t, cloud.clock.Timer(ctx, time.Until(at)))

	sweep(t)
	cloud.await(t, name, "replacing its nodes", func(s status.Status) bool {
		if s.Upgrade == nil || s.Upgrade.Ended != nil || len(s.Upgrade.Steps) < len(upgradeSteps) || s.Upgrade.Steps[2].Started == nil {
			return false
		}
		require.False(t, sounds(t, ours), "its owner lets upgrades silence it")
		require.True(t, sounds(t, others))
		return true
	})
	// For drains in flight the upgrade checks as backoff.StepCalls says.
	s := cloud.awaitWithin(t, 3*patience, name, "upgraded", func(s status.Status) bool { return s.Upgrade.Ended != nil })
	for _, n := range nodesOf(t, name) {
		require.NotContains(t, before, instanceOf(n), "old nodes are removed at the end")
	}
	cloud.quiet(t, name)
	for _, x := range cloud.sinceOf(name, "drover-drain-node", at) {
		require.True(t, x.Stopped.Before(s.Upgrade.Steps[2].Ended.Add(time.Second)),
			"the step waits for drains")
	}
	requireCompleted(t, s.Upgrade, upgrade.OriginAt)
	cloud.runs(t, name, "1.36-1")
	require.True(t, sounds(t, ours))
	require.True(t, sounds(t, others))
	for pool, size := range pools {
		cloud.atRest(t, name, pool, size)
		observers[pool].stop()
		observers[pool].requireKept(t, size, 0, 1)
	}
	require.NoError(t, pods.Wait(ctx, "all pods to be back", func() bool { return pods.Settled(workloads...) }))
	keptBudgets(t, pods, workloads)

	mark := cloud.Calls.Mark()
	sweep(t)
	cloud.quiet(t, name)
	require.Len(t, cloud.upgrades(name), 1, "it fires once")
	for _, call := range cloud.mutations(mark) {
		require.NotContains(t, call, name)
	}
	require.Len(t, cloud.ready(t, name, version).Upgrades, 1)
}

func TestEKSFailsAnUpgrade(t *testing.T) {
	t.Parallel()
	const name, ours = "unfit", "unfit-shop-is-down"
	cloud.retire(t, name)
	alarm(t, ours, true)
	spec := cloud.older(t, name, []string{ours}, pool("one", 1))
	cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))
	const input = `{"cluster":"` + name + `","release":"1.36-1"}`

	var failed *sfn.DescribeExecutionOutput
	cloud.exclusively(func() {
		cloud.fault(t, "PUT", "?seed=1", "update-fails action=VersionUpdate cluster="+name+" count=1")
		failed = execute(t, "upgrade", input)
	})
	require.Equal(t, sfntypes.ExecutionStatusFailed, failed.Status)
	require.Equal(t, status.ReasonUpgradeStopped, aws.ToString(failed.Error))
	stored, err := cloud.state.Status(t.Context(), name)
	require.NoError(t, err)
	u := stored.Status.Upgrade
	require.Equal(t, string(upgrade.Stopped), u.Phase)
	require.Equal(t, aws.ToString(failed.Cause), u.Message)
	for _, says := range []string{
		"StackFailed: stack " + names.Stack(name, names.ControlPlane), "did not pass its health checks; the cluster remains on version 1.35",
		"No step is complete yet. Next: control plane to 1.36. To continue: `drover upgrade " + name +
			"`, which starts drover-upgrade with {\"cluster\":\"" + name + "\"}",
	} {
		require.Contains(t, u.Message, says)
	}
	require.Equal(t, status.ReasonUpgradeStopped, stored.Status.Condition(status.Upgraded).Reason)
	require.True(t, sounds(t, ours))
	cloud.runs(t, name, "1.35-1")

	again := execute(t, "upgrade", input)
	require.Equal(t, sfntypes.ExecutionStatusSucceeded, again.Status, aws.ToString(again.Cause))
	stored, err = cloud.state.Status(t.Context(), name)
	require.NoError(t, err)
	requireCompleted(t, stored.Status.Upgrade, upgrade.OriginCommand)
	require.Equal(t, status.Ready, stored.Status.Phase, stored.Status.Message)
	require.Len(t, stored.Status.Upgrades, 2)
	require.True(t, sounds(t, ours))
	cloud.runs(t, name, "1.36-1")
	cloud.atRest(t, name, "one", 1)
}
