package harness

// Upgrades by the real machine and function, in virtual time: good days and bad ones.

import (
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	cloudwatchapi "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// alarmed names an alarm that upgrades silence.
const alarmed = "  upgrade: {alarms: [shop-is-down]}\n"

// old creates a cluster of Kubernetes 1.35; the release r2 is of 1.36.
func (l *life) old(more string) {
	l.t.Helper()
	l.Upload(names.ReleaseSpec("r1"), ReleaseOf("1.35", "r1"))
	l.Upload(names.ReleaseSpec("r2"), ReleaseOf("1.36", "r2"))
	_, err := l.cloudwatch().PutMetricAlarm(l.t.Context(), &cloudwatchapi.PutMetricAlarmInput{
		AlarmName: aws.String("shop-is-down"), Namespace: aws.String("shop"), MetricName: aws.String("errors"), Statistic: cloudwatchtypes.StatisticSum,
		Period: aws.Int32(300), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0), ComparisonOperator: cloudwatchtypes.ComparisonOperatorGreaterThanThreshold,
		TreatMissingData: aws.String("notBreaching"), ActionsEnabled: aws.Bool(true),
	})
	require.NoError(l.t, err)
	l.change(more)
	l.phase(status.Ready)
}

func (l *life) cloudwatch() *cloudwatchapi.Client { return cloudwatchapi.NewFromConfig(l.Config()) }

// alarm brings the alarm into a state.
func (l *life) alarm(state cloudwatchtypes.StateValue) {
	l.t.Helper()
	_, err := l.cloudwatch().SetAlarmState(l.t.Context(), &cloudwatchapi.SetAlarmStateInput{
		AlarmName: aws.String("shop-is-down"), StateValue: state, StateReason: aws.String("a test says so"),
	})
	require.NoError(l.t, err)
}

// sounds says whether the alarm's actions are on.
func (l *life) sounds() bool {
	l.t.Helper()
	out, err := l.cloudwatch().DescribeAlarms(l.t.Context(), &cloudwatchapi.DescribeAlarmsInput{AlarmNames: []string{"shop-is-down"}})
	require.NoError(l.t, err)
	require.Len(l.t, out.MetricAlarms, 1)
	return aws.ToBool(out.MetricAlarms[0].ActionsEnabled)
}

// upgrade starts the upgrade machine as a person does, and returns its execution.
func (l *life) upgrade(in events.Upgrade) string {
	l.t.Helper()
	in.Cluster = "demo"
	input, err := json.Marshal(in)
	require.NoError(l.t, err)
	arn, err := l.States.Start(l.t.Context(), l.Admin(), l.machineARN("upgrade"), uuid.NewString(), string(input))
	require.NoError(l.t, err)
	return arn
}
