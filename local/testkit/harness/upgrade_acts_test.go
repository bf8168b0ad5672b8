package harness

// The steps and assertions of upgrade tests in virtual time: a cluster of 1.35, a release of 1.36, an alarm, executions by
// an operator, and the conditions at the end.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cloudwatchapi "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// alarmed names an alarm whose actions upgrades disable.
const alarmed = "  upgrade: {alarms: [shop-is-down]}\n"

// old creates a cluster of Kubernetes 1.35; the release r2 is of 1.36.
func (l *life) old(more string) {
	l.t.Helper()
	l.Upload(names.ReleaseSpec("r1"), ReleaseOf("1.35", "r1"))
	l.Upload(names.ReleaseSpec("r2"), ReleaseOf("1.36", "r2"))
	_, err := l.cloudwatch().PutMetricAlarm(l.t.Context(), &cloudwatchapi.PutMetricAlarmInput{
		AlarmName: aws.String("shop-is-down"), Namespace: aws.String("shop"), MetricName: aws.String("errors"),
		Statistic: cloudwatchtypes.StatisticSum,
		Period:    aws.Int32(300), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0),
		ComparisonOperator: cloudwatchtypes.ComparisonOperatorGreaterThanThreshold,
		TreatMissingData:   aws.String("notBreaching"), ActionsEnabled: aws.Bool(true),
		Tags: []cloudwatchtypes.Tag{{Key: aws.String("drover:silence"), Value: aws.String("upgrade")}},
	})
	require.NoError(l.t, err)
	l.change(more)
	l.phase(status.Ready)
}

func (l *life) cloudwatch() *cloudwatchapi.Client { return cloudwatchapi.NewFromConfig(l.Config()) }

// alarm sets the state of the alarm.
func (l *life) alarm(state cloudwatchtypes.StateValue) {
	l.t.Helper()
	_, err := l.cloudwatch().SetAlarmState(l.t.Context(), &cloudwatchapi.SetAlarmStateInput{
		AlarmName: aws.String("shop-is-down"), StateValue: state, StateReason: aws.String("a test says so"),
	})
	require.NoError(l.t, err)
}

// sounds returns true if the alarm's actions are enabled.
func (l *life) sounds() bool {
	l.t.Helper()
	out, err := l.cloudwatch().DescribeAlarms(l.t.Context(), &cloudwatchapi.DescribeAlarmsInput{AlarmNames: []string{"shop-is-down"}})
	require.NoError(l.t, err)
	require.Len(l.t, out.MetricAlarms, 1)
	return aws.ToBool(out.MetricAlarms[0].ActionsEnabled)
}

// upgrade starts the upgrade machine as an operator does, and returns its execution.
func (l *life) upgrade(in events.Upgrade) string {
	l.t.Helper()
	in.Cluster = "demo"
	input, err := json.Marshal(in)
	require.NoError(l.t, err)
	arn, err := l.States.Start(l.t.Context(), l.Admin(), l.MachineARN("upgrade"), uuid.NewString(), string(input))
	require.NoError(l.t, err)
	return arn
}

// record returns the record of the cluster's upgrade.
func (l *life) record() *upgrade.Record {
	l.t.Helper()
	r, _, err := l.State().Upgrade(l.t.Context(), "demo")
	require.NoError(l.t, err)
	if r == nil {
		return &upgrade.Record{}
	}
	return r
}

// upgradeLife runs a life with upgrades in virtual time.
func upgradeLife(t *testing.T, run func(l *life, bad *faults.Engine)) {
	synctest.Test(t, func(t *testing.T) {
		bad := faults.New(1)
		a := StartWith(t, Options{Bubble: true, Faults: bad})
		defer a.Close()
		run(&life{a}, bad)
	})
}

// strike adds a fault rule, and returns a function that ends it.
func strike(t testing.TB, bad *faults.Engine, rule string) (end func()) {
	t.Helper()
	r, err := faults.Parse(rule)
	require.NoError(t, err)
	id, err := bad.Add(time.Now(), r)
	require.NoError(t, err)
	return func() { bad.Remove(id) }
}

// upgraded asserts that every part of a cluster was updated to 1.36 once, without leftovers.
func (l *life) upgraded() {
	l.t.Helper()
	s := l.Status("demo")
	require.Equal(l.t, status.Ready, s.Phase, s.Message)
	require.Equal(l.t, "Done", s.Upgrade.Phase, s.Upgrade.Message)
	require.Equal(l.t, "True", s.Condition(status.Upgraded).Status)
	stack := l.Stack("demo", names.ControlPlane)
	require.Equal(l.t, "1.36", stack.Outputs["KubernetesVersion"])
	require.True(l.t, strings.HasPrefix(stack.Tags[names.TagRelease], "r2@"), stack.Tags[names.TagRelease])
	nodes := l.API("drover-demo").Nodes()
	require.NotEmpty(l.t, nodes)
	for _, n := range nodes {
		require.True(l.t, strings.HasPrefix(n.KubeletVersion, "v1.36."), n.KubeletVersion)
	}
	require.Equal(l.t, upgrade.Done, l.record().State)
	require.Empty(l.t, l.record().Alarms)
	require.True(l.t, l.sounds())
	require.Equal(l.t, 1, l.updates(), "EKS was asked once")
	p, reason, message, err := l.Functions.Planner.Preview(l.t.Context(), "demo")
	require.NoError(l.t, err)
	require.Empty(l.t, reason, message)
	require.Empty(l.t, p.Changes)
	lease, err := l.State().Lease(l.t.Context(), "demo")
	require.NoError(l.t, err)
	require.Empty(l.t, lease.Execution)
}

// updates counts the requested updates of the control plane's version.
func (l *life) updates() int {
	l.t.Helper()
	out, err := l.EKS.ListUpdates(l.t.Context(), l.Admin(), eks.ListUpdatesInput{Name: "drover-demo"})
	require.NoError(l.t, err)
	count := 0
	for _, id := range out.UpdateIDs {
		u, err := l.EKS.DescribeUpdate(l.t.Context(), l.Admin(), eks.DescribeUpdateInput{Name: "drover-demo", UpdateID: id})
		require.NoError(l.t, err)
		if u.Update.Type == "VersionUpdate" && u.Update.Status == "Successful" {
			count++
		}
	}
	return count
}

// verdict returns the result of an execution.
func (l *life) verdict(arn string) string {
	x := l.Execution(arn)
	var answer events.UpgradeResult
	if json.Unmarshal([]byte(x.Output), &answer) == nil && answer.Outcome == events.UpgradeRefused {
		return fmt.Sprintf("%s %s: %s", x.Status, answer.Outcome, answer.Message)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s", x.Status, x.Error, x.Cause))
}

// over waits until an execution has ended.
func (l *life) over(arn string) {
	l.t.Helper()
	l.Until("it is over", func() bool { return l.Execution(arn).Status != "RUNNING" })
}

// step waits until a step of an upgrade is open. Until cannot be used: reading the record is a call itself.
func (l *life) step(kind upgrade.StepKind) {
	l.t.Helper()
	for range 24 * 60 {
		r := l.record()
		if r.State == upgrade.Running && r.Step < len(r.Steps) && r.Steps[r.Step].Kind == kind {
			return
		}
		time.Sleep(time.Minute)
	}
	require.Fail(l.t, "the step "+string(kind)+" was not opened", "%s", l.Status("demo").Message)
}
