package cloudwatch

// The API operations of alarms. https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_Operations.html

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// maxAlarmNames limits the names of one call.
const maxAlarmNames = 100

// putMetricAlarm creates an alarm, or changes an existing one, which keeps its state.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
func (s *Service) putMetricAlarm(ctx context.Context, c *wire.Call) (any, error) {
	var in struct {
		AlarmName, AlarmDescription, Namespace, MetricName, Statistic, Unit string
		Dimensions                                                          []dimension
		Period, EvaluationPeriods, DatapointsToAlarm                        int
		Threshold                                                           *float64
		ComparisonOperator, TreatMissingData                                string
		ActionsEnabled                                                      *bool
		AlarmActions, OKActions, InsufficientDataActions                    []string
		Tags                                                                []struct{ Key, Value string }
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := s.authorizeAlarm(c, in.AlarmName); err != nil {
		return nil, err
	}
	if in.AlarmName == "" || len(in.AlarmName) > 255 || in.Threshold == nil {
		return nil, wire.Errorf("ValidationError", "An alarm needs a name of at most 255 characters and a Threshold")
	}
	now := s.clock.Now()
	a := &alarm{
		tags: map[string]string{}, state: stateInsufficient, reason: "Unchecked: Initial alarm creation", configured: now, changed: now,
		definition: alarmDefinition{
			AlarmName: in.AlarmName, AlarmDescription: in.AlarmDescription, Namespace: in.Namespace, MetricName: in.MetricName,
			Statistic: in.Statistic, Unit: in.Unit,
			Dimensions: in.Dimensions, Period: in.Period, EvaluationPeriods: in.EvaluationPeriods, DatapointsToAlarm: in.DatapointsToAlarm,
			Threshold:          *in.Threshold,
			ComparisonOperator: in.ComparisonOperator, TreatMissingData: in.TreatMissingData, ActionsEnabled: in.ActionsEnabled == nil ||
				*in.ActionsEnabled,
			AlarmActions: in.AlarmActions, OKActions: in.OKActions, InsufficientDataActions: in.InsufficientDataActions,
		},
	}
	if err := a.definition.check(); err != nil {
		return nil, err
	}
	for _, t := range in.Tags {
		a.tags[t.Key] = t.Value
	}
	s.mu.Lock()
	if old, ok := s.alarms[in.AlarmName]; ok {
		// the call does not change the tags of an existing alarm
		a.state, a.reason, a.changed, a.tags = old.state, old.reason, old.changed, old.tags
	}
	s.alarms[in.AlarmName] = a
	s.mu.Unlock()
	s.evaluate(ctx)
	return nil, nil
}

// authorizeAlarm authorizes a call on an alarm. Its tags are condition keys. All alarms here are metric alarms;
// composite ones would have no condition keys.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoncloudwatch.html
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_alarms_and_tagging.html
func (s *Service) authorizeAlarm(c *wire.Call, name string) error {
	context := map[string]string{}
	s.mu.Lock()
	if a := s.alarms[name]; a != nil {
		for key, value := range a.tags {
			context["aws:ResourceTag/"+key] = value
		}
	}
	s.mu.Unlock()
	return c.AuthorizeContext(s.arn("cloudwatch", "alarm:"+name), context)
}

// namedAlarms decodes the names of a call and authorizes the call on each.
func (s *Service) namedAlarms(c *wire.Call) ([]string, error) {
	var in struct{ AlarmNames []string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	for _, name := range in.AlarmNames {
		if err := s.authorizeAlarm(c, name); err != nil {
			return nil, err
		}
	}
	if len(in.AlarmNames) == 0 || len(in.AlarmNames) > maxAlarmNames {
		return nil, wire.Errorf("ValidationError", "AlarmNames must hold 1 to %d names, not %d", maxAlarmNames, len(in.AlarmNames))
	}
	return in.AlarmNames, nil
}

// switchActions performs EnableAlarmActions and DisableAlarmActions. While the actions are disabled, an alarm changes
// its state without a notification. Unknown names are ignored.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DisableAlarmActions.html
func (s *Service) switchActions(on bool) wire.Operation {
	return func(_ context.Context, c *wire.Call) (any, error) {
		names, err := s.namedAlarms(c)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, name := range names {
			if a := s.alarms[name]; a != nil && a.definition.ActionsEnabled != on {
				a.definition.ActionsEnabled, a.configured = on, s.clock.Now()
			}
		}
		return nil, nil
	}
}

// deleteAlarms deletes all named alarms, or none.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DeleteAlarms.html
func (s *Service) deleteAlarms(_ context.Context, c *wire.Call) (any, error) {
	names, err := s.namedAlarms(c)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if s.alarms[name] == nil {
			return nil, &wire.Error{Code: "ResourceNotFound", Message: "Alarm " + name + " does not exist", Status: 404}
		}
	}
	for _, name := range names {
		delete(s.alarms, name)
	}
	return nil, nil
}

func (s *Service) describeAlarms(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		AlarmNames                                           []string
		AlarmNamePrefix, StateValue, ActionPrefix, NextToken string
		AlarmTypes                                           []string
		MaxRecords                                           *int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(s.arn("cloudwatch", "alarm:*")); err != nil {
		return nil, err
	}
	type shown struct {
		AlarmArn string
		alarmDefinition
		StateValue, StateReason                           string
		StateUpdatedTimestamp, StateTransitionedTimestamp time.Time
		AlarmConfigurationUpdatedTimestamp                time.Time
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []shown
	for _, name := range slices.Sorted(maps.Keys(s.alarms)) {
		a := s.alarms[name]
		if len(in.AlarmNames) > 0 && !slices.Contains(in.AlarmNames, name) || !strings.HasPrefix(name, in.AlarmNamePrefix) ||
			in.StateValue != "" && in.StateValue != a.state || len(in.AlarmTypes) > 0 && !slices.Contains(in.AlarmTypes, "MetricAlarm") ||
			in.ActionPrefix != "" && !slices.ContainsFunc(a.definition.AlarmActions, func(action string) bool {
				return strings.HasPrefix(action, in.ActionPrefix)
			}) {
			continue
		}
		all = append(all, shown{
			AlarmArn: s.arn("cloudwatch", "alarm:"+name), alarmDefinition: a.definition, StateValue: a.state, StateReason: a.reason,
			StateUpdatedTimestamp: a.changed, StateTransitionedTimestamp: a.changed, AlarmConfigurationUpdatedTimestamp: a.configured,
		})
	}
	all, next, err := page(all, in.NextToken, in.MaxRecords, 100)
	return struct {
		MetricAlarms []shown
		NextToken    string `json:",omitempty" xml:",omitempty"`
	}{all, next}, err
}

func (s *Service) setAlarmState(ctx context.Context, c *wire.Call) (any, error) {
	var in struct{ AlarmName, StateValue, StateReason, StateReasonData string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := s.authorizeAlarm(c, in.AlarmName); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{stateOK, stateAlarm, stateInsufficient}, in.StateValue) {
		return nil, wire.Errorf("ValidationError", "StateValue must be OK, ALARM or INSUFFICIENT_DATA, not %q", in.StateValue)
	}
	s.mu.Lock()
	a, ok := s.alarms[in.AlarmName]
	notify := func() {}
	if ok && a.state != in.StateValue {
		notify = s.change(ctx, a, in.StateValue, in.StateReason, s.clock.Now())
	}
	s.mu.Unlock()
	if !ok {
		return nil, &wire.Error{Code: "ResourceNotFound", Message: "Alarm " + in.AlarmName + " does not exist", Status: 404}
	}
	notify()
	return nil, nil
}

// taggedAlarm authorizes the call and returns the alarm with an ARN. On success it leaves the lock held: the caller
// unlocks.
func (s *Service) taggedAlarm(c *wire.Call, arn string) (*alarm, error) {
	name, ok := strings.CutPrefix(arn, s.arn("cloudwatch", "alarm:"))
	if !ok {
		return nil, wire.Unsupported("cloudwatch", "tags of "+arn)
	}
	if err := s.authorizeAlarm(c, name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if a := s.alarms[name]; a != nil {
		return a, nil
	}
	s.mu.Unlock()
	return nil, &wire.Error{Code: "ResourceNotFoundException", Message: "Alarm " + name + " does not exist", Status: 404}
}

// listTagsForResource, tagResource and untagResource operate on the tags of one alarm.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_TagResource.html
func (s *Service) listTagsForResource(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ ResourceARN string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	a, err := s.taggedAlarm(c, in.ResourceARN)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return struct{ Tags []resource.Tag }{tagging.List(a.tags)}, nil
}

func (s *Service) tagResource(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ResourceARN string
		Tags        []resource.Tag
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	a, err := s.taggedAlarm(c, in.ResourceARN)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	a.tags = tagging.Merge(a.tags, in.Tags)
	return nil, nil
}

func (s *Service) untagResource(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ResourceARN string
		TagKeys     []string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	a, err := s.taggedAlarm(c, in.ResourceARN)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, key := range in.TagKeys {
		delete(a.tags, key)
	}
	return nil, nil
}
