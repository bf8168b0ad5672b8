// Package cloudwatch adapts CloudWatch: it reads the alarms that a cluster's spec names, and disables and enables their actions.
package cloudwatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
)

// Alarms of an account and region.
type Alarms struct{ client client }

// New returns the alarms of an account.
func New(client *cloudwatch.Client) *Alarms { return &Alarms{newClient(client)} }

// maxNames is how many alarms one call may name.
const maxNames = 100

// Describe returns the alarms of these names that exist, metric and composite ones, and whether upgrades may disable their actions.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
func (a *Alarms) Describe(ctx context.Context, named []string) ([]preflight.Alarm, error) {
	return a.describe(ctx, named, a.mayDisableActions)
}

// States is Describe without the permission to disable actions: it reads no tags.
func (a *Alarms) States(ctx context.Context, named []string) ([]preflight.Alarm, error) {
	return a.describe(ctx, named, func(context.Context, string) (bool, error) { return false, nil })
}

func (a *Alarms) describe(
	ctx context.Context, named []string, mayDisableActions func(ctx context.Context, arn string) (bool, error),
) ([]preflight.Alarm, error) {
	var found []preflight.Alarm
	for some := range slices.Chunk(named, maxNames) {
		out, err := a.client.DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{
			AlarmNames: some, AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm, types.AlarmTypeCompositeAlarm},
			MaxRecords: aws.Int32(maxNames),
		})
		if err != nil {
			return nil, fmt.Errorf("describing alarms: %w", err)
		}
		for _, m := range out.MetricAlarms {
			silence, err := mayDisableActions(ctx, aws.ToString(m.AlarmArn))
			if err != nil {
				return nil, fmt.Errorf("reading the tags of alarm %s: %w", aws.ToString(m.AlarmName), err)
			}
			found = append(found, preflight.Alarm{
				Name: aws.ToString(m.AlarmName), State: string(m.StateValue), Reason: aws.ToString(m.StateReason),
				Since: aws.ToTime(m.StateTransitionedTimestamp), Actions: aws.ToBool(m.ActionsEnabled), Silence: silence,
			})
		}
		for _, c := range out.CompositeAlarms {
			found = append(found, preflight.Alarm{
				Name: aws.ToString(c.AlarmName), State: string(c.StateValue), Reason: aws.ToString(c.StateReason),
				Since: aws.ToTime(c.StateTransitionedTimestamp), Actions: aws.ToBool(c.ActionsEnabled), Composite: true,
			})
		}
	}
	return found, nil
}

// mayDisableActions reports whether a metric alarm has the tag with which its owner lets upgrades disable its
// actions. An alarm that no longer exists does not.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_ListTagsForResource.html
func (a *Alarms) mayDisableActions(ctx context.Context, arn string) (bool, error) {
	out, err := a.client.ListTagsForResource(ctx, &cloudwatch.ListTagsForResourceInput{ResourceARN: &arn})
	var notFound *types.ResourceNotFoundException
	if errors.As(err, &notFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(out.Tags, func(t types.Tag) bool {
		return aws.ToString(t.Key) == names.TagSilence && aws.ToString(t.Value) == names.SilenceUpgrade
	}), nil
}

// DisableActions disables the actions of alarms: they change their state, but notify no one. After an error, the actions of some may be
// disabled. A repeated call is no error.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DisableAlarmActions.html
func (a *Alarms) DisableActions(ctx context.Context, named []string) error {
	for some := range slices.Chunk(named, maxNames) {
		if _, err := a.client.DisableAlarmActions(ctx, &cloudwatch.DisableAlarmActionsInput{AlarmNames: some}); err != nil {
			return fmt.Errorf("disabling the actions of alarms: %w", err)
		}
	}
	return nil
}

// EnableActions enables the actions of alarms again. Alarms that no longer exist are no error.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_EnableAlarmActions.html
func (a *Alarms) EnableActions(ctx context.Context, named []string) error {
	for some := range slices.Chunk(named, maxNames) {
		if _, err := a.client.EnableAlarmActions(ctx, &cloudwatch.EnableAlarmActionsInput{AlarmNames: some}); err != nil {
			return fmt.Errorf("enabling the actions of alarms: %w", err)
		}
	}
	return nil
}
