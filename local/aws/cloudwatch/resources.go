package cloudwatch

// CloudFormation resource types.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_CloudWatch.html

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Resources returns the providers by resource type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{
		"AWS::CloudWatch::Alarm": alarmProvider{s}, "AWS::CloudWatch::Dashboard": dashboardProvider{s}, "AWS::Logs::LogGroup": groupProvider{s},
	}
}

type alarmProvider struct{ s *Service }

func (alarmProvider) Schema() resource.Schema {
	schema := resource.Schema{
		Properties: map[string]resource.UpdateBehavior{"AlarmName": resource.Replaces},
		Required:   []string{"ComparisonOperator", "EvaluationPeriods"},
		Attributes: []string{"Arn"},
	}
	for _, name := range []string{
		"ActionsEnabled", "AlarmActions", "AlarmDescription", "ComparisonOperator", "DatapointsToAlarm", "Dimensions", "EvaluationPeriods",
		"InsufficientDataActions", "MetricName", "Namespace", "OKActions", "Period", "Statistic", "Tags", "Threshold", "TreatMissingData", "Unit",
	} {
		schema.Properties[name] = resource.InPlace
	}
	return schema
}

func (p alarmProvider) wantedAlarm(r resource.Request) (*alarm, error) {
	var in struct {
		AlarmName, AlarmDescription, ComparisonOperator, MetricName, Namespace, Statistic, Threshold, TreatMissingData, Unit string
		ActionsEnabled                                                                                                       *bool
		AlarmActions, InsufficientDataActions, OKActions                                                                     []string
		DatapointsToAlarm, EvaluationPeriods, Period                                                                         int
		Dimensions                                                                                                           []dimension
		Tags                                                                                                                 []resource.Tag
	}
	if err := resource.Decode(r.Properties, &in); err != nil {
		return nil, err
	}
	threshold, err := strconv.ParseFloat(in.Threshold, 64)
	if err != nil {
		return nil, wire.Errorf("ValidationError", "the alarm's Threshold %q is not a number", in.Threshold)
	}
	a := &alarm{
		tags: tagging.Merge(r.Tags, in.Tags), state: stateInsufficient, reason: "Unchecked: Initial alarm creation",
		configured: p.s.clock.Now(), changed: p.s.clock.Now(),
		definition: alarmDefinition{
			AlarmName: in.AlarmName, AlarmDescription: in.AlarmDescription, Namespace: in.Namespace, MetricName: in.MetricName,
			Statistic: in.Statistic, Unit: in.Unit,
			Dimensions: in.Dimensions, Period: in.Period, EvaluationPeriods: in.EvaluationPeriods, DatapointsToAlarm: in.DatapointsToAlarm,
			Threshold:          threshold,
			ComparisonOperator: in.ComparisonOperator, TreatMissingData: in.TreatMissingData, ActionsEnabled: in.ActionsEnabled == nil ||
				*in.ActionsEnabled,
			AlarmActions: in.AlarmActions, OKActions: in.OKActions, InsufficientDataActions: in.InsufficientDataActions,
		},
	}
	if r.PhysicalID != "" {
		a.definition.AlarmName = r.PhysicalID
	} else if a.definition.AlarmName == "" {
		a.definition.AlarmName = r.GeneratedName(255)
	}
	return a, a.definition.check()
}

// set creates or changes an alarm. A changed alarm keeps its state.
func (p alarmProvider) set(ctx context.Context, r resource.Request) (resource.Result, error) {
	a, err := p.wantedAlarm(r)
	if err != nil {
		return resource.Result{}, err
	}
	name := a.definition.AlarmName
	arn := p.s.arn("cloudwatch", "alarm:"+name)
	if err := r.Caller.Authorize("cloudwatch:PutMetricAlarm", arn, nil); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	old, ok := p.s.alarms[name]
	if ok && r.PhysicalID == "" {
		p.s.mu.Unlock()
		return resource.Result{}, wire.Errorf("AlreadyExists", "Resource of type 'AWS::CloudWatch::Alarm' with identifier '%s' "+
			"already exists.", name)
	}
	if ok {
		a.state, a.reason, a.changed = old.state, old.reason, old.changed
	}
	p.s.alarms[name] = a
	p.s.mu.Unlock()
	p.s.evaluate(ctx)
	return resource.Result{PhysicalID: name, Attributes: map[string]any{"Arn": arn}}, nil
}

func (p alarmProvider) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	return p.set(ctx, r)
}

func (p alarmProvider) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	return p.set(ctx, r)
}

func (p alarmProvider) Delete(_ context.Context, r resource.Request) error {
	if err := r.Caller.Authorize("cloudwatch:DeleteAlarms", p.s.arn("cloudwatch", "alarm:"+r.PhysicalID), nil); err != nil {
		return err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	delete(p.s.alarms, r.PhysicalID)
	return nil
}

type dashboardProvider struct{ s *Service }

func (dashboardProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{"DashboardName": resource.Replaces, "DashboardBody": resource.InPlace},
		Required:   []string{"DashboardBody"},
	}
}

func (p dashboardProvider) set(r resource.Request) (resource.Result, error) {
	var in struct{ DashboardName, DashboardBody string }
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	if !json.Valid([]byte(in.DashboardBody)) {
		return resource.Result{}, wire.Errorf("InvalidParameterInput", "The dashboard body is invalid: it is not JSON")
	}
	if in.DashboardName == "" {
		in.DashboardName = r.PhysicalID
	}
	if in.DashboardName == "" {
		in.DashboardName = r.GeneratedName(255)
	}
	if err := r.Caller.Authorize("cloudwatch:PutDashboard", p.s.dashboardARN(in.DashboardName), nil); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.dashboards[in.DashboardName] = dashboard{in.DashboardBody, p.s.clock.Now()}
	return resource.Result{PhysicalID: in.DashboardName}, nil
}

func (p dashboardProvider) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	return p.set(r)
}

func (p dashboardProvider) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	return p.set(r)
}

func (p dashboardProvider) Delete(_ context.Context, r resource.Request) error {
	if err := r.Caller.Authorize("cloudwatch:DeleteDashboards", p.s.dashboardARN(r.PhysicalID), nil); err != nil {
		return err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	delete(p.s.dashboards, r.PhysicalID)
	return nil
}

type groupProvider struct{ s *Service }

func (groupProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"LogGroupName": resource.Replaces, "RetentionInDays": resource.InPlace, "KmsKeyId": resource.InPlace, "Tags": resource.InPlace,
		},
		Attributes: []string{"Arn"},
	}
}

type groupProperties struct {
	LogGroupName, KmsKeyId string // the properties' names
	RetentionInDays        int
	Tags                   []resource.Tag
}

// retentions that CloudWatch Logs accepts, in days.
// https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
var retentions = []int{0, 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

func (p groupProvider) decode(r resource.Request) (in groupProperties, err error) {
	if err := resource.Decode(r.Properties, &in); err != nil {
		return in, err
	}
	if !slices.Contains(retentions, in.RetentionInDays) {
		return in, wire.Errorf("InvalidParameterException", "%d is not a valid retention in days", in.RetentionInDays)
	}
	return in, nil
}

func (p groupProvider) result(name string) resource.Result {
	return resource.Result{PhysicalID: name, Attributes: map[string]any{"Arn": p.s.groupARN(name)}}
}

func (p groupProvider) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	in, err := p.decode(r)
	if err != nil {
		return resource.Result{}, err
	}
	if in.LogGroupName == "" {
		in.LogGroupName = r.GeneratedName(512)
	}
	if err := r.Caller.Authorize("logs:CreateLogGroup", p.s.groupARN(in.LogGroupName), nil); err != nil {
		return resource.Result{}, err
	}
	if err := p.associate(r, in.LogGroupName, "", in.KmsKeyId); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if _, ok := p.s.groups[in.LogGroupName]; ok {
		return resource.Result{}, wire.Errorf("ResourceAlreadyExistsException", "Resource of type 'AWS::Logs::LogGroup' with identifier '%s' "+
			"already exists.", in.LogGroupName)
	}
	g := p.s.group(in.LogGroupName, p.s.clock.Now())
	g.retentionDays, g.key, g.tags = in.RetentionInDays, in.KmsKeyId, tagging.Merge(r.Tags, in.Tags)
	return p.result(in.LogGroupName), nil
}

func (p groupProvider) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	in, err := p.decode(r)
	if err != nil {
		return resource.Result{}, err
	}
	if err := r.Caller.Authorize("logs:PutRetentionPolicy", p.s.groupARN(r.PhysicalID), nil); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	g, ok := p.s.groups[r.PhysicalID]
	var key string
	if ok {
		key = g.key
	}
	p.s.mu.Unlock()
	if !ok {
		return resource.Result{}, wire.Errorf("ResourceNotFoundException", "The specified log group does not exist.")
	}
	if err := p.associate(r, r.PhysicalID, key, in.KmsKeyId); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	g.retentionDays, g.key, g.tags = in.RetentionInDays, in.KmsKeyId, maps.Clone(tagging.Merge(r.Tags, in.Tags))
	return p.result(r.PhysicalID), nil
}

// associate checks that a key may encrypt the logs of a group: CloudFormation's role associates it, and the key's policy must allow
// CloudWatch Logs to use it. A key of another account is not simulated, and allows everything.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html
func (p groupProvider) associate(r resource.Request, name, before, key string) error {
	arn := p.s.groupARN(name)
	switch {
	case key == before:
		return nil
	case key == "":
		return r.Caller.Authorize("logs:DisassociateKmsKey", arn, nil)
	}
	if err := r.Caller.Authorize("logs:AssociateKmsKey", arn, nil); err != nil {
		return err
	}
	arn = p.s.arn("logs", "log-group:"+name)
	parts, owner := strings.Split(arn, ":"), strings.Split(key, ":")
	if p.s.Keys == nil || len(owner) > 4 && owner[4] != parts[4] {
		return nil
	}
	service := p.s.identities.ServiceCaller("logs."+parts[3]+".amazonaws.com", arn)
	if err := p.s.Keys.AuthorizeFor(service, "GenerateDataKey", key, map[string]string{"aws:logs:arn": arn}); err != nil {
		return wire.Errorf("InvalidParameterException", "The specified KMS key does not exist or is not allowed to be used with Arn '%s'", arn)
	}
	return nil
}

func (p groupProvider) Delete(_ context.Context, r resource.Request) error {
	if err := r.Caller.Authorize("logs:DeleteLogGroup", p.s.groupARN(r.PhysicalID), nil); err != nil {
		return err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	delete(p.s.groups, r.PhysicalID)
	return nil
}
