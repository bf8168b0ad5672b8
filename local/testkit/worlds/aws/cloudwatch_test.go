package aws_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/aws/cloudwatch"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
)

// putAlarm creates an alarm. silence is the value of its tag, "" for none.
func putAlarm(t *testing.T, client *awscloudwatch.Client, name, silence string, actions bool) {
	t.Helper()
	in := &awscloudwatch.PutMetricAlarmInput{
		AlarmName: &name, Namespace: aws.String("shop"), MetricName: aws.String("errors"), Statistic: types.StatisticSum, Period: aws.Int32(300),
		EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
		TreatMissingData: aws.String("notBreaching"), ActionsEnabled: &actions,
	}
	if silence != "" {
		in.Tags = []types.Tag{{Key: aws.String("team"), Value: aws.String("shop")}, {Key: aws.String(names.TagSilence), Value: &silence}}
	}
	_, err := client.PutMetricAlarm(t.Context(), in)
	require.NoError(t, err)
}

func TestAlarms(t *testing.T) {
	a := harness.Start(t)
	client := awscloudwatch.NewFromConfig(a.Config())
	all := cloudwatch.New(client)
	putAlarm(t, client, "allowed", names.SilenceUpgrade, true)
	putAlarm(t, client, "never", "never", true)
	putAlarm(t, client, "untagged", "", true)
	putAlarm(t, client, "off", names.SilenceUpgrade, false)
	require.NotNil(t, client)
	_, err := client.SetAlarmState(t.Context(), &awscloudwatch.SetAlarmStateInput{
		AlarmName: aws.String("never"), StateValue: types.StateValueAlarm, StateReason: aws.String("too many errors"),
	})
	require.NoError(t, err)

	found, err := all.Describe(t.Context(), []string{"allowed", "never", "untagged", "off", "absent"})
	require.NoError(t, err)
	by := map[string]preflight.Alarm{}
	for _, alarm := range found {
		require.False(t, alarm.Since.IsZero())
		by[alarm.Name] = preflight.Alarm{Actions: alarm.Actions, Silence: alarm.Silence, Reason: alarm.Reason}
		if alarm.Name == "never" {
			require.Equal(t, "ALARM", alarm.State)
		}
	}
	require.Equal(t, "too many errors", by["never"].Reason)
	require.Len(t, by, 4)
	for name, want := range map[string][2]bool{
		"allowed": {true, true}, "never": {true, false}, "untagged": {true, false}, "off": {false, true},
	} {
		require.Equal(t, want, [2]bool{by[name].Actions, by[name].Silence}, name)
	}
	t.Run("fail if their tags cannot be read", func(t *testing.T) {
		a.OnCall(func(call endpoint.Call) error {
			if call.Action == "ListTagsForResource" {
				return &wire.Error{Code: "AccessDenied", Message: "no", Status: 403}
			}
			return nil
		})
		defer a.OnCall(nil)
		_, err := all.Describe(t.Context(), []string{"allowed"})
		require.Equal(t, "AccessDenied", fault.Code(err))
		require.ErrorContains(t, err, "allowed")
	})
}

// CloudWatch takes 100 names a call. A second call must follow, and its failure must be returned.
func TestManyAlarms(t *testing.T) {
	a := harness.Start(t)
	client := awscloudwatch.NewFromConfig(a.Config())
	all := cloudwatch.New(client)
	var named []string
	for i := range 101 {
		name := fmt.Sprintf("alarm-%03d", i)
		putAlarm(t, client, name, names.SilenceUpgrade, true)
		named = append(named, name)
	}
	on := func() (count int) {
		found, err := all.Describe(t.Context(), named)
		require.NoError(t, err)
		require.Len(t, found, len(named))
		for _, alarm := range found {
			if alarm.Actions {
				count++
			}
		}
		return count
	}
	require.Equal(t, 101, on())
	require.NoError(t, all.DisableActions(t.Context(), named))
	require.Zero(t, on())
	require.NoError(t, all.EnableActions(t.Context(), append([]string{"absent"}, named...)))
	require.Equal(t, 101, on())
	for action, call := range map[string]func() error{
		"DisableAlarmActions": func() error { return all.DisableActions(t.Context(), named) },
		"EnableAlarmActions":  func() error { return all.EnableActions(t.Context(), named) },
		"DescribeAlarms":      func() error { _, err := all.Describe(t.Context(), named); return err },
	} {
		t.Run(action+" returns the error of the second call", func(t *testing.T) {
			calls := 0
			a.OnCall(func(c endpoint.Call) error {
				if c.Action == action {
					if calls++; calls == 2 {
						return &wire.Error{Code: "AccessDenied", Message: "no", Status: 403}
					}
				}
				return nil
			})
			defer a.OnCall(nil)
			require.Equal(t, "AccessDenied", fault.Code(call()))
			require.Equal(t, 2, calls)
		})
	}
}
