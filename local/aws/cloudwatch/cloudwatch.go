// Package cloudwatch simulates Amazon CloudWatch: metrics, alarms, dashboards and logs.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/Welcome.html
//
// Metrics come from log lines in the Embedded Metric Format and from services in this process. They are stored as
// statistics of minutes. Supported are GetMetricStatistics, GetMetricData (of metrics, without expressions),
// ListMetrics, DescribeAlarms, PutMetricAlarm, SetAlarmState, EnableAlarmActions, DisableAlarmActions, DeleteAlarms,
// ListTagsForResource, TagResource and UntagResource (of alarms, which have aws:ResourceTag), ListDashboards and
// GetDashboard. Alarms have one metric. New data and Run evaluate them. Their actions are SNS topics. There are no
// PutMetricData, percentiles, metric math, anomaly detection, composite alarms or rendered widgets.
//
// The logs API supports DescribeLogGroups, DeleteLogGroup, DescribeLogStreams, GetLogEvents, FilterLogEvents (terms, not
// JSON patterns) and ListTagsForResource. Only services in this process write lines. Retention is stored without effect.
// The policy of a log group's key must allow CloudWatch Logs to use it.
// There are no subscriptions, metric filters or Insights.
//
// Resource types: AWS::CloudWatch::Alarm, AWS::CloudWatch::Dashboard, AWS::Logs::LogGroup.
package cloudwatch

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/clock"
)

// Topics receive the notifications of alarms: sns.Service.
type Topics interface {
	Publish(ctx context.Context, caller iam.Caller, topicARN, subject, message string) (messageID string, err error)
}

// Keys authorize the use of a key: kms.Service.
type Keys interface {
	AuthorizeFor(caller iam.Caller, action, id string, encryption map[string]string) error
}

// Service has the account's metrics, alarms, dashboards and logs.
type Service struct {
	// Keys, if set before use, are the keys with which log groups are encrypted.
	Keys Keys

	identities *iam.Service
	clock      *clock.Clock
	topics     Topics

	mu         sync.Mutex
	metrics    map[string]*metric
	alarms     map[string]*alarm
	dashboards map[string]dashboard
	groups     map[string]*group
}

type dashboard struct {
	body    string
	changed time.Time
}

// New returns an empty service.
func New(identities *iam.Service, c *clock.Clock, topics Topics) *Service {
	return &Service{
		identities: identities, clock: c, topics: topics,
		metrics: map[string]*metric{}, alarms: map[string]*alarm{}, dashboards: map[string]dashboard{}, groups: map[string]*group{},
	}
}

// Run evaluates alarms every ten seconds until the context ends, so that missing data has an effect.
func (s *Service) Run(ctx context.Context) {
	for s.clock.Timer(ctx, 10*time.Second) == nil {
		s.evaluate(ctx)
	}
}

// metric is one series: a namespace, a name and dimensions.
type metric struct {
	namespace, name string
	dimensions      map[string]string
	unit            string
	minutes         map[int64]*statistics // by Unix minute
}

// statistics of a minute or a period.
type statistics struct {
	sum, least, greatest, count float64
}

func (st *statistics) add(other statistics) {
	if st.count == 0 {
		*st = other
		return
	}
	st.sum, st.count = st.sum+other.sum, st.count+other.count
	st.least, st.greatest = math.Min(st.least, other.least), math.Max(st.greatest, other.greatest)
}

// value returns a statistic by AWS's name. It returns false for an unsupported statistic.
func (st statistics) value(name string) (float64, bool) {
	switch name {
	case "Sum":
		return st.sum, true
	case "Average":
		return st.sum / st.count, true
	case "Minimum":
		return st.least, true
	case "Maximum":
		return st.greatest, true
	case "SampleCount":
		return st.count, true
	}
	return 0, false
}

func seriesKey(namespace, name string, dimensions map[string]string) string {
	parts := []string{namespace, name}
	for _, k := range slices.Sorted(maps.Keys(dimensions)) {
		parts = append(parts, k, dimensions[k])
	}
	return strings.Join(parts, "\x00")
}

// Put adds a value to a metric, at the current time.
func (s *Service) Put(ctx context.Context, namespace, name string, dimensions map[string]string, unit string, value float64) {
	s.put(namespace, name, dimensions, unit, s.clock.Now(), value)
	s.evaluate(ctx)
}

func (s *Service) put(namespace, name string, dimensions map[string]string, unit string, at time.Time, values ...float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := seriesKey(namespace, name, dimensions)
	m, ok := s.metrics[key]
	if !ok {
		m = &metric{namespace: namespace, name: name, dimensions: maps.Clone(dimensions), unit: unit, minutes: map[int64]*statistics{}}
		s.metrics[key] = m
	}
	minute := at.Unix() / 60
	if m.minutes[minute] == nil {
		m.minutes[minute] = &statistics{}
	}
	for _, v := range values {
		m.minutes[minute].add(statistics{v, v, v, 1})
	}
}

// between merges the minutes of [start, end).
func (m *metric) between(start, end time.Time) (st statistics) {
	for minute := start.Unix() / 60; minute < (end.Unix()+59)/60; minute++ {
		if have, ok := m.minutes[minute]; ok {
			st.add(*have)
		}
	}
	return st
}

// embeddedMetrics is a log line in the Embedded Metric Format.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
type embeddedMetrics struct {
	AWS *struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct {
				Name, Unit string
			}
		}
	} `json:"_aws"`
}

// ingest adds the metrics of a log line. A line that does not follow the format has none, as on AWS.
func (s *Service) ingest(line string) bool {
	if !strings.Contains(line, `"_aws"`) {
		return false
	}
	var format embeddedMetrics
	var members map[string]any
	if json.Unmarshal([]byte(line), &format) != nil || format.AWS == nil || json.Unmarshal([]byte(line), &members) != nil {
		return false
	}
	at := time.UnixMilli(format.AWS.Timestamp)
	found := false
	for _, directive := range format.AWS.CloudWatchMetrics {
		sets := directive.Dimensions
		if len(sets) == 0 {
			sets = [][]string{nil}
		}
		for _, m := range directive.Metrics {
			values, ok := numbers(members[m.Name])
			if !ok || directive.Namespace == "" {
				continue
			}
			for _, set := range sets {
				dimensions := map[string]string{}
				for _, name := range set {
					if text, ok := members[name].(string); ok {
						dimensions[name] = text
					}
				}
				if len(dimensions) < len(set) {
					continue // a dimension without its member makes the set invalid
				}
				unit := m.Unit
				if unit == "" {
					unit = "None"
				}
				s.put(directive.Namespace, m.Name, dimensions, unit, at, values...)
				found = true
			}
		}
	}
	return found
}

func numbers(v any) ([]float64, bool) {
	switch v := v.(type) {
	case float64:
		return []float64{v}, true
	case []any:
		var list []float64
		for _, x := range v {
			f, ok := x.(float64)
			if !ok {
				return nil, false
			}
			list = append(list, f)
		}
		return list, len(list) > 0
	}
	return nil, false
}

func (s *Service) arn(service, rest string) string {
	return "arn:" + s.identities.Partition + ":" + service + ":" + s.identities.Region + ":" + s.identities.Account + ":" + rest
}

// Tagged returns the alarms and log groups with their tags.
func (s *Service) Tagged(context.Context) (list []tagging.Tagged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, a := range s.alarms {
		list = append(list, tagging.Tagged{ARN: s.arn("cloudwatch", "alarm:"+name), Tags: maps.Clone(a.tags)})
	}
	for name, g := range s.groups {
		list = append(list, tagging.Tagged{ARN: s.arn("logs", "log-group:"+name), Tags: maps.Clone(g.tags)})
	}
	return list
}
