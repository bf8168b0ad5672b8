package cloudwatch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	aws_cw "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudwatch"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

type topics struct{ messages []string }

func (t *topics) Publish(_ context.Context, caller iam.Caller, topic, subject, _ string) (string, error) {
	t.messages = append(t.messages, caller.ARN()+" "+topic+" "+subject)
	return "id", nil
}

func newService() (*cloudwatch.Service, *topics, *iam.Service) {
	identities := iam.New("111122223333", "eu-west-1", &clock.Clock{})
	sink := &topics{}
	return cloudwatch.New(identities, &clock.Clock{}, sink), sink, identities
}

func newClients(t *testing.T) (*cloudwatch.Service, *aws_cw.Client, *cloudwatchlogs.Client, iam.Caller) {
	t.Helper()
	s, _, identities := newService()
	e := endpoint.New(identities, nil)
	e.Handle(s.Wire(), s.LogsWire())
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	admin, c := identities.Admin()
	cfg := aws.Config{
		Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, ""),
	}
	lambdaruntime.KeepConnections(&cfg)
	return s, aws_cw.NewFromConfig(cfg), cloudwatchlogs.NewFromConfig(cfg), admin
}

func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

func embeddedLine(at time.Time, value string) string {
	return fmt.Sprintf(
		`{"_aws":{"Timestamp":%d,"CloudWatchMetrics":[{"Namespace":"drover","Dimensions":[["Cluster"],[]],`+
			`"Metrics":[{"Name":"Converged","Unit":"Count"}]}]},"Cluster":"demo","Converged":%s,"level":"INFO"}`, at.UnixMilli(), value)
}

func TestMetricsFromLogLines(t *testing.T) {
	s, client, _, _ := newClients(t)
	s.EnsureLogGroup("/aws/lambda/drover-report")
	now := time.Now()
	for _, line := range []string{
		embeddedLine(now, "1"), embeddedLine(now, "[2,3]"), embeddedLine(now, `"many"`), `{"_aws":"nothing"}`, `not JSON but "_aws"`,
		`{"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"drover","Dimensions":[["Absent"]],` +
			`"Metrics":[{"Name":"Converged"}]}]},"Converged":9}`,
	} {
		s.WriteLog("/aws/lambda/drover-report", "stream", line)
	}
	ctx := t.Context()
	metrics, err := client.ListMetrics(ctx, &aws_cw.ListMetricsInput{Namespace: aws.String("drover")})
	require.NoError(t, err)
	require.Len(t, metrics.Metrics, 2, "with and without the dimension")
	statistics := func(in *aws_cw.GetMetricStatisticsInput) (*aws_cw.GetMetricStatisticsOutput, error) {
		in.Namespace, in.MetricName, in.StartTime, in.EndTime, in.Period = aws.String("drover"), aws.String("Converged"),
			aws.Time(now.Add(-time.Hour)), aws.Time(now.Add(time.Hour)), aws.Int32(3600*3)
		return client.GetMetricStatistics(ctx, in)
	}
	got, err := statistics(&aws_cw.GetMetricStatisticsInput{
		Statistics: []types.Statistic{"Sum", "Maximum", "SampleCount", "Average", "Minimum"},
		Dimensions: []types.Dimension{{Name: aws.String("Cluster"), Value: aws.String("demo")}},
	})
	require.NoError(t, err)
	p := got.Datapoints[len(got.Datapoints)-1]
	require.Equal(t, []float64{6, 3, 3, 2, 1}, []float64{*p.Sum, *p.Maximum, *p.SampleCount, *p.Average, *p.Minimum})
	require.Equal(t, types.StandardUnitCount, p.Unit)
	none, err := statistics(&aws_cw.GetMetricStatisticsInput{
		Statistics: []types.Statistic{"Sum"}, Dimensions: []types.Dimension{{Name: aws.String("Cluster"), Value: aws.String("other")}},
	})
	require.NoError(t, err)
	require.Empty(t, none.Datapoints)
	data, err := client.GetMetricData(ctx, &aws_cw.GetMetricDataInput{StartTime: aws.Time(now.Add(-time.Hour)),
		EndTime: aws.Time(now.Add(time.Hour)), MetricDataQueries: []types.MetricDataQuery{{
			Id: aws.String("a"), MetricStat: &types.MetricStat{
				Metric: &types.Metric{Namespace: aws.String("drover"), MetricName: aws.String("Converged")}, Period: aws.Int32(60),
				Stat: aws.String("Sum"),
			},
		}}})
	require.NoError(t, err)
	require.Equal(t, []float64{6}, data.MetricDataResults[0].Values)
	_, err = client.GetMetricData(ctx, &aws_cw.GetMetricDataInput{
		StartTime: &now, EndTime: &now, MetricDataQueries: []types.MetricDataQuery{{Id: aws.String("a"), Expression: aws.String("b+c")}},
	})
	require.Equal(t, "UnsupportedByLocalAccount", code(err))
}

func alarm(t *testing.T, s *cloudwatch.Service, caller iam.Caller, properties map[string]any) resource.Request {
	t.Helper()
	r := resource.Request{StackName: "drover", LogicalID: "Alarm", Caller: caller, Properties: map[string]any{
		"AlarmName": "failed", "Namespace": "drover", "MetricName": "Failed", "Statistic": "Sum", "Period": 60.0, "EvaluationPeriods": 3.0,
		"DatapointsToAlarm": 2.0,
		"Threshold":         1.0, "ComparisonOperator": "GreaterThanOrEqualToThreshold", "AlarmActions": []any{
			"arn:aws:sns:eu-west-1:111122223333:topic",
		},
	}}
	for k, v := range properties {
		r.Properties[k] = v
	}
	result, err := s.Resources()["AWS::CloudWatch::Alarm"].Create(t.Context(), r)
	require.NoError(t, err)
	r.PhysicalID = result.PhysicalID
	return r
}

func TestAlarms(t *testing.T) {
	for name, test := range map[string]struct {
		properties map[string]any
		minutes    []float64 // one value per minute; -1 is none
		want       []string  // the state after each
	}{
		"two of three breaching datapoints raise it": {
			nil, []float64{0, 1, 0, 1, 0, 0}, []string{"OK", "OK", "OK", "ALARM", "OK", "OK"},
		},
		"missing data alone leave it undecided": {
			nil, []float64{-1, 0, -1, -1, -1, -1}, []string{"INSUFFICIENT_DATA", "OK", "OK", "OK", "OK", "INSUFFICIENT_DATA"},
		},
		"missing data as not breaching end it": {
			map[string]any{
				"TreatMissingData": "notBreaching",
			}, []float64{-1, 1, 1, -1, -1, -1}, []string{"OK", "OK", "ALARM", "ALARM", "ALARM", "OK"},
		},
		"missing data as breaching raise it": {
			map[string]any{
				"TreatMissingData": "breaching",
			}, []float64{-1, 0, 0, 0, -1, -1, -1}, []string{"ALARM", "ALARM", "OK", "OK", "OK", "OK", "ALARM"},
		},
		"missing data ignored keep it": {
			map[string]any{"TreatMissingData": "ignore", "EvaluationPeriods": 1.0, "DatapointsToAlarm": 1.0}, []float64{1, -1, -1, 0, -1, 1},
			[]string{"ALARM", "ALARM", "ALARM", "OK", "OK", "ALARM"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, sink, identities := newService()
				caller, _ := identities.Admin()
				alarm(t, s, caller, test.properties)
				ctx, cancel := context.WithCancel(t.Context())
				go s.Run(ctx)
				raised := 0
				previous := "INSUFFICIENT_DATA"
				for i, value := range test.minutes {
					if value >= 0 {
						s.Put(ctx, "drover", "Failed", nil, "Count", value)
					}
					time.Sleep(59 * time.Second)
					state := s.AlarmStates()["failed"]
					require.Equal(t, test.want[i], state, "minute %d", i)
					if state == "ALARM" && previous != state {
						raised++
					}
					previous = state
					time.Sleep(time.Second)
				}
				cancel()
				synctest.Wait()
				if test.properties["TreatMissingData"] != "breaching" {
					require.Len(t, sink.messages, raised, "each change to ALARM notifies once")
				}
				for _, m := range sink.messages {
					require.Equal(t, `cloudwatch.amazonaws.com arn:aws:sns:eu-west-1:111122223333:topic ALARM: "failed" in eu-west-1`, m)
				}
			})
		})
	}
}

func TestAlarmsAndDashboards(t *testing.T) {
	s, client, _, caller := newClients(t)
	ctx := t.Context()
	r := alarm(t, s, caller, map[string]any{"Dimensions": []any{map[string]any{"Name": "Cluster", "Value": "demo"}}, "Threshold": "1.5"})
	s.Put(ctx, "drover", "Failed", map[string]string{"Cluster": "demo"}, "Count", 2)
	got, err := client.DescribeAlarms(ctx, &aws_cw.DescribeAlarmsInput{AlarmNamePrefix: aws.String("fail")})
	require.NoError(t, err)
	a := got.MetricAlarms[0]
	require.Equal(t, "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:failed", *a.AlarmArn)
	require.Equal(t, types.StateValueOk, a.StateValue)
	require.Equal(t, 1.5, *a.Threshold)
	require.Equal(t, "demo", *a.Dimensions[0].Value)
	require.True(t, *a.ActionsEnabled)
	_, err = client.SetAlarmState(ctx, &aws_cw.SetAlarmStateInput{
		AlarmName: aws.String("failed"), StateValue: "ALARM", StateReason: aws.String("try"),
	})
	require.NoError(t, err)
	got, err = client.DescribeAlarms(ctx, &aws_cw.DescribeAlarmsInput{StateValue: "ALARM"})
	require.NoError(t, err)
	require.Len(t, got.MetricAlarms, 1)
	require.NoError(t, s.Resources()["AWS::CloudWatch::Alarm"].Delete(ctx, r))

	provider := s.Resources()["AWS::CloudWatch::Dashboard"]
	_, err = provider.Create(ctx, resource.Request{
		Caller: caller, Properties: map[string]any{"DashboardName": "drover", "DashboardBody": `{"widgets":[]}`},
	})
	require.NoError(t, err)
	dashboard, err := client.GetDashboard(ctx, &aws_cw.GetDashboardInput{DashboardName: aws.String("drover")})
	require.NoError(t, err)
	require.JSONEq(t, `{"widgets":[]}`, *dashboard.DashboardBody)
	_, err = client.GetDashboard(ctx, &aws_cw.GetDashboardInput{DashboardName: aws.String("none")})
	require.Equal(t, "ResourceNotFound", code(err))
	_, err = provider.Create(ctx, resource.Request{Caller: caller, Properties: map[string]any{"DashboardBody": "{"}})
	require.ErrorContains(t, err, "not JSON")
}

func TestPutMetricAlarmRejects(t *testing.T) {
	s, _, identities := newService()
	caller, _ := identities.Admin()
	for name, properties := range map[string]map[string]any{
		"the alarm statistic p99":                         {"Statistic": "p99"},
		"extraneous key [Metrics]":                        {"Metrics": []any{}},
		"comparison operator GreaterThanUpperThreshold":   {"ComparisonOperator": "GreaterThanUpperThreshold"},
		"an alarm period of 10 seconds":                   {"Period": 10.0},
		"do not fit together":                             {"DatapointsToAlarm": 4.0},
		"the alarm action arn:aws:automate:eu:ec2:stop":   {"AlarmActions": []any{"arn:aws:automate:eu:ec2:stop"}},
		"Threshold \"many\" is not a number":              {"Threshold": "many"},
		"one of missing, ignore, breaching, notBreaching": {"TreatMissingData": "never"},
	} {
		t.Run(name, func(t *testing.T) {
			r := resource.Request{Caller: caller, Properties: map[string]any{
				"AlarmName": "a", "Namespace": "n", "MetricName": "m", "Statistic": "Sum", "Period": 60.0, "EvaluationPeriods": 1.0, "Threshold": 1.0,
				"ComparisonOperator": "GreaterThanThreshold",
			}}
			for k, v := range properties {
				r.Properties[k] = v
			}
			_, err := s.Resources()["AWS::CloudWatch::Alarm"].Create(t.Context(), r)
			require.ErrorContains(t, err, name)
		})
	}
}

func TestLogs(t *testing.T) {
	s, _, client, caller := newClients(t)
	ctx := t.Context()
	provider := s.Resources()["AWS::Logs::LogGroup"]
	r := resource.Request{
		StackName: "drover", LogicalID: "Log", Caller: caller, Properties: map[string]any{
			"LogGroupName": "/aws/lambda/drover-plan", "RetentionInDays": 30.0,
		},
	}
	created, err := provider.Create(ctx, r)
	require.NoError(t, err)
	require.Equal(t, "arn:aws:logs:eu-west-1:111122223333:log-group:/aws/lambda/drover-plan:*", created.Attributes["Arn"])
	for i := range 5 {
		s.WriteLog("/aws/lambda/drover-plan", fmt.Sprintf("stream-%d", i%2), fmt.Sprintf("line %d level=%s", i, []string{"INFO", "ERROR"}[i%2]))
	}
	groups, err := client.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: aws.String("/aws/lambda/")})
	require.NoError(t, err)
	require.EqualValues(t, 30, *groups.LogGroups[0].RetentionInDays)
	streams, err := client.DescribeLogStreams(ctx, &cloudwatchlogs.DescribeLogStreamsInput{
		LogGroupName: aws.String("/aws/lambda/drover-plan"), OrderBy: "LastEventTime", Descending: aws.Bool(true),
	})
	require.NoError(t, err)
	require.Len(t, streams.LogStreams, 2)

	filter := func(pattern string) (lines []string, err error) {
		pages := cloudwatchlogs.NewFilterLogEventsPaginator(client, &cloudwatchlogs.FilterLogEventsInput{
			LogGroupName: aws.String("/aws/lambda/drover-plan"), FilterPattern: &pattern, Limit: aws.Int32(2),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			for _, e := range page.Events {
				lines = append(lines, (*e.Message)[:6])
			}
		}
		return lines, nil
	}
	for pattern, want := range map[string][]string{
		"":                       {"line 0", "line 1", "line 2", "line 3", "line 4"},
		"ERROR":                  {"line 1", "line 3"},
		`"line 1" ERROR`:         {"line 1"},
		`?"line 0" ?"line 3"`:    {"line 0", "line 3"},
		`line -ERROR -"line 0"`:  {"line 2", "line 4"},
		"nothing like this here": nil,
	} {
		got, err := filter(pattern)
		require.NoError(t, err)
		require.ElementsMatch(t, want, got, pattern)
	}
	t.Run("loses lines for a group that does not exist", func(t *testing.T) {
		s.WriteLog("/aws/lambda/drover-absent", "one", "a line")
		_, err := client.FilterLogEvents(ctx, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("/aws/lambda/drover-absent")})
		require.Equal(t, "ResourceNotFoundException", code(err))
	})
	t.Run("includes the end and limits a page to a megabyte", func(t *testing.T) {
		group := "/aws/lambda/drover-large"
		s.EnsureLogGroup(group)
		for range 3 {
			s.WriteLog(group, "one", strings.Repeat("x", 600_000))
		}
		first, err := client.FilterLogEvents(ctx, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &group})
		require.NoError(t, err)
		require.Len(t, first.Events, 1)
		pages, count := cloudwatchlogs.NewFilterLogEventsPaginator(client, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &group}), 0
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			require.NoError(t, err)
			count += len(page.Events)
		}
		require.Equal(t, 3, count)
		at := first.Events[0].Timestamp
		until, err := client.FilterLogEvents(ctx, &cloudwatchlogs.FilterLogEventsInput{
			LogGroupName: &group, StartTime: at, EndTime: at,
		})
		require.NoError(t, err)
		require.NotEmpty(t, until.Events)
	})
	_, err = filter(`{ $.level = "ERROR" }`)
	require.Equal(t, "UnsupportedByLocalAccount", code(err))

	get := func(in cloudwatchlogs.GetLogEventsInput) *cloudwatchlogs.GetLogEventsOutput {
		in.LogGroupName, in.LogStreamName, in.Limit = aws.String("/aws/lambda/drover-plan"), aws.String("stream-0"), aws.Int32(2)
		out, err := client.GetLogEvents(ctx, &in)
		require.NoError(t, err)
		return out
	}
	first := get(cloudwatchlogs.GetLogEventsInput{StartFromHead: aws.Bool(true)})
	require.Equal(t, "line 0", (*first.Events[0].Message)[:6])
	second := get(cloudwatchlogs.GetLogEventsInput{NextToken: first.NextForwardToken})
	require.Len(t, second.Events, 1)
	last := get(cloudwatchlogs.GetLogEventsInput{NextToken: second.NextForwardToken})
	require.Empty(t, last.Events)
	require.Equal(t, *second.NextForwardToken, *last.NextForwardToken, "an unchanged token means the end")
	require.Equal(t, "line 4", (*get(cloudwatchlogs.GetLogEventsInput{}).Events[1].Message)[:6], "the newest without a direction")

	_, err = client.GetLogEvents(ctx, &cloudwatchlogs.GetLogEventsInput{LogGroupName: aws.String("none"), LogStreamName: aws.String("x")})
	require.Equal(t, "ResourceNotFoundException", code(err))
	_, err = provider.Create(ctx, r)
	require.ErrorContains(t, err, "already exists")
	r.Properties = map[string]any{"RetentionInDays": 2.0}
	_, err = provider.Create(ctx, r)
	require.ErrorContains(t, err, "not a valid retention")
}
