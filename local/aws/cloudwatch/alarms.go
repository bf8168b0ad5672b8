package cloudwatch

// Alarms on one metric. https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/engine/wire"
)

// States of an alarm.
const (
	stateOK           = "OK"
	stateAlarm        = "ALARM"
	stateInsufficient = "INSUFFICIENT_DATA"
)

type alarm struct {
	definition alarmDefinition
	tags       map[string]string
	state      string
	reason     string
	changed    time.Time
	configured time.Time
}

// alarmDefinition has the fields of the API's MetricAlarm.
type alarmDefinition struct {
	AlarmName, Namespace, MetricName, Statistic      string
	AlarmDescription                                 string `json:",omitempty" xml:",omitempty"`
	Unit                                             string `json:",omitempty" xml:",omitempty"`
	Dimensions                                       []dimension
	Period, EvaluationPeriods, DatapointsToAlarm     int
	Threshold                                        float64
	ComparisonOperator, TreatMissingData             string
	ActionsEnabled                                   bool
	AlarmActions, OKActions, InsufficientDataActions []string
}

type dimension struct{ Name, Value string }

func toMap(dimensions []dimension) map[string]string {
	m := map[string]string{}
	for _, d := range dimensions {
		m[d.Name] = d.Value
	}
	return m
}

var comparisons = map[string]func(value, threshold float64) bool{
	"GreaterThanOrEqualToThreshold": func(v, t float64) bool { return v >= t },
	"GreaterThanThreshold":          func(v, t float64) bool { return v > t },
	"LessThanThreshold":             func(v, t float64) bool { return v < t },
	"LessThanOrEqualToThreshold":    func(v, t float64) bool { return v <= t },
}

// check sets defaults. It rejects definitions that this package would not evaluate as AWS does.
func (d *alarmDefinition) check() error {
	if d.DatapointsToAlarm == 0 {
		d.DatapointsToAlarm = d.EvaluationPeriods
	}
	if d.TreatMissingData == "" {
		d.TreatMissingData = "missing"
	}
	_, statistic := statistics{count: 1}.value(d.Statistic)
	switch {
	case d.Namespace == "" || d.MetricName == "":
		return wire.Unsupported("cloudwatch", "alarms on anything but one metric")
	case !statistic:
		return wire.Unsupported("cloudwatch", "the alarm statistic "+d.Statistic)
	case comparisons[d.ComparisonOperator] == nil:
		return wire.Unsupported("cloudwatch", "the comparison operator "+d.ComparisonOperator)
	case !slices.Contains([]string{"missing", "ignore", "breaching", "notBreaching"}, d.TreatMissingData):
		return wire.Errorf("ValidationError", "Value '%s' at 'treatMissingData' failed to satisfy constraint: Member must be one of missing, "+
			"ignore, breaching, notBreaching", d.TreatMissingData)
	case d.Period < 60 || d.Period%60 != 0:
		return wire.Unsupported("cloudwatch", fmt.Sprintf("an alarm period of %d seconds, which is no multiple of a minute", d.Period))
	case d.EvaluationPeriods < 1 || d.DatapointsToAlarm < 1 || d.DatapointsToAlarm > d.EvaluationPeriods ||
		d.Period*d.EvaluationPeriods > 7*24*3600:
		return wire.Errorf("ValidationError", "the alarm's Period, EvaluationPeriods and DatapointsToAlarm do not fit together")
	}
	for _, action := range slices.Concat(d.AlarmActions, d.OKActions, d.InsufficientDataActions) {
		if !strings.Contains(action, ":sns:") {
			return wire.Unsupported("cloudwatch", "the alarm action "+action)
		}
	}
	return nil
}

// judge returns the state for the data of the last periods. The current minute counts once it has data, so that alarms
// come early rather than late.
func (d *alarmDefinition) judge(m *metric, now time.Time, present string) (state, reason string) {
	end := now.Truncate(time.Minute)
	if m != nil && m.minutes[end.Unix()/60] != nil {
		end = end.Add(time.Minute)
	}
	period := time.Duration(d.Period) * time.Second
	breaching, datapoints := 0, 0
	var points []string
	for i := range d.EvaluationPeriods {
		var st statistics
		if m != nil {
			st = m.between(end.Add(-time.Duration(i+1)*period), end.Add(-time.Duration(i)*period))
		}
		if st.count == 0 {
			if d.TreatMissingData == "breaching" {
				breaching++
			}
			continue
		}
		datapoints++
		value, _ := st.value(d.Statistic) // check has verified that the statistic is supported
		points = append(points, fmt.Sprint(value))
		if comparisons[d.ComparisonOperator](value, d.Threshold) {
			breaching++
		}
	}
	switch {
	case breaching >= d.DatapointsToAlarm:
		return stateAlarm, fmt.Sprintf("Threshold Crossed: "+
			"%d out of the last %d datapoints [%s] crossed the threshold (%v, %s) (minimum %d datapoints for OK -> ALARM transition).",
			breaching, d.EvaluationPeriods, strings.Join(points, ", "), d.Threshold, d.ComparisonOperator, d.DatapointsToAlarm)
	case datapoints == 0 && d.TreatMissingData == "missing":
		return stateInsufficient, "Insufficient Data: no datapoints were received."
	case datapoints == 0 && d.TreatMissingData == "ignore":
		return present, "Unchanged: no datapoints were received."
	}
	return stateOK, fmt.Sprintf("Threshold Crossed: %d out of the last %d datapoints [%s] crossed the threshold (%v, %s), fewer than %d.",
		breaching, d.EvaluationPeriods, strings.Join(points, ", "), d.Threshold, d.ComparisonOperator, d.DatapointsToAlarm)
}

// AlarmStates returns the states of all alarms by name.
func (s *Service) AlarmStates() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := map[string]string{}
	for name, a := range s.alarms {
		states[name] = a.state
	}
	return states
}

// evaluate updates all alarms and notifies of changes.
func (s *Service) evaluate(ctx context.Context) {
	s.mu.Lock()
	now := s.clock.Now()
	var notices []func()
	for _, name := range slices.Sorted(maps.Keys(s.alarms)) {
		a := s.alarms[name]
		d := &a.definition
		state, reason := d.judge(s.metrics[seriesKey(d.Namespace, d.MetricName, toMap(d.Dimensions))], now, a.state)
		if state != a.state {
			notices = append(notices, s.change(ctx, a, state, reason, now))
		}
	}
	s.mu.Unlock()
	for _, notify := range notices {
		notify()
	}
}

// change sets an alarm's state. It returns a function that notifies, to be called without the lock.
func (s *Service) change(ctx context.Context, a *alarm, state, reason string, now time.Time) (notify func()) {
	old := a.state
	a.state, a.reason, a.changed = state, reason, now
	d := a.definition
	arn := s.arn("cloudwatch", "alarm:"+d.AlarmName)
	message, err := json.Marshal(map[string]any{
		"AlarmName": d.AlarmName, "AlarmDescription": d.AlarmDescription, "AWSAccountId": s.identities.Account, "AlarmArn": arn,
		"Region":        s.identities.Region,
		"NewStateValue": state, "NewStateReason": reason, "OldStateValue": old, "StateChangeTime": now.Format("2006-01-02T15:04:05.000-0700"),
		"Trigger": map[string]any{
			"MetricName": d.MetricName, "Namespace": d.Namespace, "Statistic": d.Statistic, "Dimensions": d.Dimensions, "Period": d.Period,
			"EvaluationPeriods": d.EvaluationPeriods, "DatapointsToAlarm": d.DatapointsToAlarm, "ComparisonOperator": d.ComparisonOperator,
			"Threshold": d.Threshold,
		},
	})
	if err != nil { // plain values can always be encoded
		panic(err)
	}
	actions := map[string][]string{stateAlarm: d.AlarmActions, stateOK: d.OKActions, stateInsufficient: d.InsufficientDataActions}[state]
	if !d.ActionsEnabled {
		actions = nil
	}
	return func() {
		for _, topic := range actions {
			subject := fmt.Sprintf("%s: %q in %s", state, d.AlarmName, s.identities.Region)
			subject = subject[:min(len(subject), 100)]
			if _, err := s.topics.Publish(ctx, s.identities.ServiceCaller("cloudwatch.amazonaws.com", arn), topic, subject,
				string(message)); err != nil {
				slog.Warn("an alarm's action failed", "alarm", d.AlarmName, "action", topic, "error", err)
			}
		}
	}
}
