package upgrade_test

// Alarms whose actions upgrades disable.

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cloudwatchapi "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// A spec may name any alarm of the account. drover disables the actions only of alarms that their owners tagged.
func TestUpgradeDisablesOnlyTaggedAlarms(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		_, err := l.CloudWatchClient().PutMetricAlarm(l.T.Context(), &cloudwatchapi.PutMetricAlarmInput{
			AlarmName: aws.String("drover-converge-failed"), Namespace: aws.String("drover"), MetricName: aws.String("Failed"),
			Statistic: cloudwatchtypes.StatisticSum,
			Period:    aws.Int32(300), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0),
			ComparisonOperator: cloudwatchtypes.ComparisonOperatorGreaterThanThreshold,
			TreatMissingData:   aws.String("notBreaching"), Tags: []cloudwatchtypes.Tag{
				{Key: aws.String("drover:silence"), Value: aws.String("never")},
			},
		})
		require.NoError(t, err)
		l.CreateOldCluster("  upgrade: {alarms: [shop-is-down, drover-converge-failed]}\n")
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepControlPlane)
		time.Sleep(time.Minute)
		require.False(t, l.AlarmEnabled(), "the owner of this one lets it")
		require.Equal(t, []string{"shop-is-down"}, l.UpgradeRecord().Alarms)
		found := l.Status("demo").Upgrade.Checks
		i := slices.IndexFunc(found, func(c status.Check) bool { return c.Name == "AlarmsSilenced" })
		require.GreaterOrEqual(t, i, 0, "%v", found)
		require.False(t, found[i].Blocks)
		require.Contains(t, found[i].Message, "drover:silence=upgrade: drover-converge-failed")
		l.SettleAll()
		require.Equal(t, "SUCCEEDED :", l.verdict(arn))
		l.RequireUpgraded()
		for _, call := range l.Calls.Since(0) {
			require.False(t, call.Action == "DisableAlarmActions" && strings.Contains(call.Resource, "drover-converge-failed"))
		}
	})
}

// The tag is removed while the actions are disabled. They are enabled nevertheless.
func TestUntaggedAlarmIsEnabledAgain(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepControlPlane)
		time.Sleep(time.Minute)
		require.False(t, l.AlarmEnabled())
		_, err := l.CloudWatchClient().UntagResource(l.T.Context(), &cloudwatchapi.UntagResourceInput{
			ResourceARN: aws.String("arn:aws:cloudwatch:" + harness.Region + ":" + harness.ID + ":alarm:shop-is-down"),
			TagKeys:     []string{"drover:silence"},
		})
		require.NoError(t, err)
		l.SettleAll()
		l.RequireUpgraded()
	})
}
