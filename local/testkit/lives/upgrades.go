package lives

// Upgrades: a cluster of 1.35, a release of 1.36, an alarm, the executions of an operator, and the state at the end.

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cloudwatchapi "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// Alarmed names an alarm whose actions upgrades disable.
const Alarmed = "  upgrade: {alarms: [shop-is-down]}\n"

// CreateOldCluster creates a cluster of Kubernetes 1.35; the release r2 is of 1.36.
func (l *Life) CreateOldCluster(more string) {
	l.T.Helper()
	l.Upload(names.ReleaseSpec("r1"), harness.ReleaseOf("1.35", "r1"))
	l.Upload(names.ReleaseSpec("r2"), harness.ReleaseOf("1.36", "r2"))
	_, err := l.CloudWatchClient().PutMetricAlarm(l.T.Context(), &cloudwatchapi.PutMetricAlarmInput{
		AlarmName: aws.String("shop-is-down"), Namespace: aws.String("shop"), MetricName: aws.String("errors"),
		Statistic: cloudwatchtypes.StatisticSum,
		Period:    aws.Int32(300), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0),
		ComparisonOperator: cloudwatchtypes.ComparisonOperatorGreaterThanThreshold,
		TreatMissingData:   aws.String("notBreaching"), ActionsEnabled: aws.Bool(true),
		Tags: []cloudwatchtypes.Tag{{Key: aws.String("drover:silence"), Value: aws.String("upgrade")}},
	})
	require.NoError(l.T, err)
	l.ChangeSpec(more)
	l.RequirePhase(status.Ready)
}

// CloudWatchClient returns a client of CloudWatch.
func (l *Life) CloudWatchClient() *cloudwatchapi.Client {
	return cloudwatchapi.NewFromConfig(l.Config())
}

// AlarmEnabled reports whether the alarm's actions are enabled.
func (l *Life) AlarmEnabled() bool {
	l.T.Helper()
	out, err := l.CloudWatchClient().DescribeAlarms(l.T.Context(), &cloudwatchapi.DescribeAlarmsInput{AlarmNames: []string{"shop-is-down"}})
	require.NoError(l.T, err)
	require.Len(l.T, out.MetricAlarms, 1)
	return aws.ToBool(out.MetricAlarms[0].ActionsEnabled)
}

// StartUpgrade starts an upgrade of the cluster as an operator does, and returns the execution's ARN.
func (l *Life) StartUpgrade(in events.Upgrade) string {
	l.T.Helper()
	in.Cluster = "demo"
	input, err := json.Marshal(in)
	require.NoError(l.T, err)
	arn, err := l.StepFunctions.Start(l.T.Context(), l.Admin(), l.MachineARN("upgrade"), uuid.NewString(), string(input))
	require.NoError(l.T, err)
	return arn
}

// UpgradeRecord returns the record of the cluster's upgrade.
func (l *Life) UpgradeRecord() *upgrade.Record {
	l.T.Helper()
	r, _, err := l.State().Upgrade(l.T.Context(), "demo")
	require.NoError(l.T, err)
	if r == nil {
		return &upgrade.Record{}
	}
	return r
}

// AddFault adds a fault rule, and returns a function that removes it.
func AddFault(t testing.TB, bad *faults.Engine, rule string) (end func()) {
	t.Helper()
	r, err := faults.Parse(rule)
	require.NoError(t, err)
	id, err := bad.Add(time.Now(), r)
	require.NoError(t, err)
	return func() { bad.Remove(id) }
}

// RequireUpgraded requires that every part of a cluster was updated to 1.36 once, without leftovers.
func (l *Life) RequireUpgraded() {
	l.T.Helper()
	s := l.Status("demo")
	require.Equal(l.T, status.Ready, s.Phase, s.Message)
	require.Equal(l.T, "Done", s.Upgrade.Phase, s.Upgrade.Message)
	require.Equal(l.T, "True", s.Condition(status.Upgraded).Status)
	stack := l.Stack("demo", names.ControlPlane)
	require.Equal(l.T, "1.36", stack.Outputs["KubernetesVersion"])
	require.True(l.T, strings.HasPrefix(stack.Tags[names.TagRelease], "r2@"), stack.Tags[names.TagRelease])
	nodes := l.API("drover-demo").Nodes()
	require.NotEmpty(l.T, nodes)
	for _, n := range nodes {
		require.True(l.T, strings.HasPrefix(n.KubeletVersion, "v1.36."), n.KubeletVersion)
	}
	require.Equal(l.T, upgrade.Done, l.UpgradeRecord().State)
	require.Empty(l.T, l.UpgradeRecord().Alarms)
	require.True(l.T, l.AlarmEnabled())
	require.Equal(l.T, 1, l.VersionUpdates(), "EKS was asked once")
	p, reason, message, err := l.Functions.Planner.Preview(l.T.Context(), "demo")
	require.NoError(l.T, err)
	require.Empty(l.T, reason, message)
	require.Empty(l.T, p.Changes)
	lease, err := l.State().Lease(l.T.Context(), "demo")
	require.NoError(l.T, err)
	require.Empty(l.T, lease.Execution)
}

// VersionUpdates counts the requested updates of the control plane's version.
func (l *Life) VersionUpdates() int {
	l.T.Helper()
	out, err := l.EKS.ListUpdates(l.T.Context(), l.Admin(), eks.ListUpdatesInput{Name: "drover-demo"})
	require.NoError(l.T, err)
	count := 0
	for _, id := range out.UpdateIDs {
		u, err := l.EKS.DescribeUpdate(l.T.Context(), l.Admin(), eks.DescribeUpdateInput{Name: "drover-demo", UpdateID: id})
		require.NoError(l.T, err)
		if u.Update.Type == "VersionUpdate" && u.Update.Status == "Successful" {
			count++
		}
	}
	return count
}

// WaitForStep waits until a step of an upgrade is open. Until cannot be used: reading the record is a call itself.
func (l *Life) WaitForStep(kind upgrade.StepKind) {
	l.T.Helper()
	for range 24 * 60 {
		r := l.UpgradeRecord()
		if r.State == upgrade.Running && r.Step < len(r.Steps) && r.Steps[r.Step].Kind == kind {
			return
		}
		time.Sleep(time.Minute)
	}
	require.Fail(l.T, "the step "+string(kind)+" was not opened", "%s", l.Status("demo").Message)
}

// Executions lists the executions of a machine, oldest first.
func (l *Life) Executions(machine string) (all []stepfunctions.Execution) {
	for _, x := range l.StepFunctions.Executions() {
		if x.MachineName == names.Prefix+machine {
			all = append(all, x)
		}
	}
	return all
}

// WaitForUpdate waits until CloudFormation updates a stack.
func (l *Life) WaitForUpdate(stack string) {
	l.Until(stack+" changes", func() bool { return l.Stacks("demo")[stack] == "UPDATE_IN_PROGRESS" })
}

// ChangeRelease uploads the spec with another release.
func (l *Life) ChangeRelease(release string) {
	l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", Alarmed), "name: r1", "name: "+release, 1))
}

// BlockPods blocks all pods of an app by a budget, or removes the app.
func (l *Life) BlockPods(blocked bool) {
	replicas := 0
	if blocked {
		replicas = 3
	}
	l.RunBlockedPods(replicas)
}

// Mutates reports whether a call may change something: its action is not one that only reads.
func Mutates(call endpoint.Call) bool {
	return !slices.ContainsFunc([]string{"Get", "List", "Describe", "Head", "AssumeRole"}, func(p string) bool {
		return strings.HasPrefix(call.Action, p)
	})
}

// ChannelsOf returns a channels file whose channel stable names a release.
func ChannelsOf(stable string) string {
	return "apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec: {stable: " + stable + "}\n"
}
