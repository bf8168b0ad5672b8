package cloudwatch

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/engine/wire"
)

// Wire returns the API of CloudWatch, in the protocols CBOR and Query.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "monitoring", Prefix: "cloudwatch", Protocol: wire.CBOR, Version: "2010-08-01", TargetPrefix: "GraniteServiceVersion20100801",
		Operations: map[string]wire.Operation{
			"GetMetricStatistics": s.getMetricStatistics,
			"GetMetricData":       s.getMetricData,
			"ListMetrics":         s.listMetrics,
			"DescribeAlarms":      s.describeAlarms,
			"PutMetricAlarm":      s.putMetricAlarm,
			"SetAlarmState":       s.setAlarmState,
			"EnableAlarmActions":  s.switchActions(true),
			"DisableAlarmActions": s.switchActions(false),
			"DeleteAlarms":        s.deleteAlarms,
			"ListTagsForResource": s.listTagsForResource,
			"TagResource":         s.tagResource,
			"UntagResource":       s.untagResource,
			"ListDashboards":      s.listDashboards,
			"GetDashboard":        s.getDashboard,
		},
	}
}

func checkPeriod(period int) (time.Duration, error) {
	if period < 60 || period%60 != 0 {
		return 0, wire.Errorf("InvalidParameterValue", "The parameter Period must be a multiple of 60, not %d", period)
	}
	return time.Duration(period) * time.Second, nil
}

func (s *Service) getMetricStatistics(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Namespace, MetricName, Unit string
		Dimensions                  []dimension
		StartTime, EndTime          time.Time
		Period                      int
		Statistics                  []string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	period, err := checkPeriod(in.Period)
	if err != nil {
		return nil, err
	}
	if !in.StartTime.Before(in.EndTime) || in.EndTime.Sub(in.StartTime)/period > 1440 {
		return nil, wire.Errorf("InvalidParameterCombination", "StartTime must be before EndTime, with at most 1,440 periods between them.")
	}
	type datapoint struct {
		Timestamp                                   time.Time
		SampleCount, Average, Sum, Minimum, Maximum *float64
		Unit                                        string
	}
	out := struct {
		Label      string
		Datapoints []datapoint
	}{Label: in.MetricName}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.metrics[seriesKey(in.Namespace, in.MetricName, toMap(in.Dimensions))]
	if m == nil {
		return out, nil
	}
	for at := in.StartTime.Truncate(period); at.Before(in.EndTime); at = at.Add(period) {
		st := m.between(at, at.Add(period))
		if st.count == 0 {
			continue
		}
		p := datapoint{Timestamp: at, Unit: m.unit}
		for _, name := range in.Statistics {
			value, ok := st.value(name)
			if !ok {
				return nil, wire.Errorf("InvalidParameterValue", "The parameter Statistics must hold Sum, Average, Minimum, Maximum or SampleCount, "+
					"not %s", name)
			}
			*map[string]**float64{
				"Sum": &p.Sum, "Average": &p.Average, "Minimum": &p.Minimum, "Maximum": &p.Maximum, "SampleCount": &p.SampleCount,
			}[name] = &value
		}
		out.Datapoints = append(out.Datapoints, p)
	}
	return out, nil
}

func (s *Service) getMetricData(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		MetricDataQueries []struct {
			ID         string `json:"Id"`
			Label      string
			ReturnData *bool
			MetricStat *struct {
				Metric struct {
					Namespace, MetricName string
					Dimensions            []dimension
				}
				Period     int
				Stat, Unit string
			}
		}
		StartTime, EndTime time.Time
		ScanBy             string
		MaxDatapoints      *int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	type result struct {
		ID         string `json:"Id" xml:"Id"`
		Label      string
		StatusCode string
		Timestamps []time.Time
		Values     []float64
	}
	out := struct{ MetricDataResults []result }{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range in.MetricDataQueries {
		if q.MetricStat == nil {
			return nil, wire.Unsupported("cloudwatch", "metric data expressions")
		}
		if q.ReturnData != nil && !*q.ReturnData {
			continue
		}
		period, err := checkPeriod(q.MetricStat.Period)
		if err != nil {
			return nil, err
		}
		r := result{ID: q.ID, Label: q.Label, StatusCode: "Complete"}
		if r.Label == "" {
			r.Label = q.MetricStat.Metric.MetricName
		}
		m := s.metrics[seriesKey(q.MetricStat.Metric.Namespace, q.MetricStat.Metric.MetricName, toMap(q.MetricStat.Metric.Dimensions))]
		for at := in.StartTime.Truncate(period); m != nil && at.Before(in.EndTime); at = at.Add(period) {
			st := m.between(at, at.Add(period))
			if st.count == 0 {
				continue
			}
			value, ok := st.value(q.MetricStat.Stat)
			if !ok {
				return nil, wire.Unsupported("cloudwatch", "the statistic "+q.MetricStat.Stat)
			}
			r.Timestamps, r.Values = append(r.Timestamps, at), append(r.Values, value)
		}
		if in.ScanBy != "TimestampAscending" {
			slices.Reverse(r.Timestamps)
			slices.Reverse(r.Values)
		}
		out.MetricDataResults = append(out.MetricDataResults, r)
	}
	return out, nil
}

func (s *Service) listMetrics(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Namespace, MetricName, NextToken, RecentlyActive string
		Dimensions                                       []struct {
			Name  string
			Value *string
		}
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	type shown struct {
		Namespace, MetricName string
		Dimensions            []dimension
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []shown
	for _, key := range slices.Sorted(maps.Keys(s.metrics)) {
		m := s.metrics[key]
		matches := (in.Namespace == "" || in.Namespace == m.namespace) && (in.MetricName == "" || in.MetricName == m.name)
		for _, d := range in.Dimensions {
			value, ok := m.dimensions[d.Name]
			matches = matches && ok && (d.Value == nil || *d.Value == value)
		}
		if !matches {
			continue
		}
		one := shown{Namespace: m.namespace, MetricName: m.name}
		for _, name := range slices.Sorted(maps.Keys(m.dimensions)) {
			one.Dimensions = append(one.Dimensions, dimension{name, m.dimensions[name]})
		}
		all = append(all, one)
	}
	all, next, err := page(all, in.NextToken, nil, 500)
	return struct {
		Metrics   []shown
		NextToken string `json:",omitempty" xml:",omitempty"`
	}{all, next}, err
}

func (s *Service) dashboardARN(name string) string {
	return "arn:" + s.identities.Partition + ":cloudwatch::" + s.identities.Account + ":dashboard/" + name
}

func (s *Service) listDashboards(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ DashboardNamePrefix string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	type entry struct {
		DashboardName, DashboardArn string
		LastModified                time.Time
		Size                        int
	}
	out := struct{ DashboardEntries []entry }{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.dashboards)) {
		if strings.HasPrefix(name, in.DashboardNamePrefix) {
			d := s.dashboards[name]
			out.DashboardEntries = append(out.DashboardEntries, entry{name, s.dashboardARN(name), d.changed, len(d.body)})
		}
	}
	return out, nil
}

func (s *Service) getDashboard(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ DashboardName string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(s.dashboardARN(in.DashboardName)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.dashboards[in.DashboardName]
	if !ok {
		return nil, &wire.Error{Code: "ResourceNotFound", Message: "Dashboard " + in.DashboardName + " does not exist", Status: 404}
	}
	return struct{ DashboardName, DashboardArn, DashboardBody string }{in.DashboardName, s.dashboardARN(in.DashboardName), d.body}, nil
}
