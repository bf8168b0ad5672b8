package harness

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
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// A spec may name any alarm of the account. drover disables the actions only of alarms that their owners tagged.
func TestUpgradeDisablesOnlyTaggedAlarms(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		_, err := l.cloudwatch().PutMetricAlarm(l.t.Context(), &cloudwatchapi.PutMetricAlarmInput{
			AlarmName: aws.String("drover-converge-failed"), Namespace: aws.String("drover"), MetricName: aws.String("Failed"),
			Statistic: cloudwatchtypes.StatisticSum,
			Period:    aws.Int32(300), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0),
			ComparisonOperator: cloudwatchtypes.ComparisonOperatorGreaterThanThreshold,
			TreatMissingData:   aws.String("notBreaching"), Tags: []cloudwatchtypes.Tag{
				{Key: aws.String("drover:silence"), Value: aws.String("never")},
			},
		})
		require.NoError(t, err)
		l.old("  upgrade: {alarms: [shop-is-down, drover-converge-failed]}\n")
		arn := l.upgrade(events.Upgrade{Release: "r2"})
		l.step(upgrade.StepControlPlane)
		time.Sleep(time.Minute)
		require.False(t, l.sounds(), "the owner of this one lets it")
		require.Equal(t, []string{"shop-is-down"}, l.record().Alarms)
		found := l.Status("demo").Upgrade.Checks
		i := slices.IndexFunc(found, func(c status.Check) bool { return c.Name == "AlarmsSilenced" })
		require.GreaterOrEqual(t, i, 0, "%v", found)
		require.False(t, found[i].Blocks)
		require.Contains(t, found[i].Message, "drover:silence=upgrade: drover-converge-failed")
		l.settle()
		require.Equal(t, "SUCCEEDED :", l.verdict(arn))
		l.upgraded()
		for _, call := range l.Calls.Since(0) {
			require.False(t, call.Action == "DisableAlarmActions" && strings.Contains(call.Resource, "drover-converge-failed"))
		}
	})
}

// The tag is removed while the actions are disabled. They are enabled nevertheless.
func TestUntaggedAlarmIsEnabledAgain(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.old(alarmed)
		l.upgrade(events.Upgrade{Release: "r2"})
		l.step(upgrade.StepControlPlane)
		time.Sleep(time.Minute)
		require.False(t, l.sounds())
		_, err := l.cloudwatch().UntagResource(l.t.Context(), &cloudwatchapi.UntagResourceInput{
			ResourceARN: aws.String("arn:aws:cloudwatch:" + Region + ":" + ID + ":alarm:shop-is-down"), TagKeys: []string{"drover:silence"},
		})
		require.NoError(t, err)
		l.settle()
		l.upgraded()
	})
}
