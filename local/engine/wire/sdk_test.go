package wire_test

// The protocols, tested with the SDK's own clients: the service decodes their requests and they decode its answers.

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/wire"
)

// serve serves one operation and returns the SDK's configuration for it.
func serve(t *testing.T, s wire.Service, action string, op wire.Operation) aws.Config {
	t.Helper()
	s.Operations = map[string]wire.Operation{action: op}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = s.Serve(w, wire.Request{HTTP: r, Region: "eu-west-1", Account: "111122223333", RequestID: "request-1"})
	}))
	t.Cleanup(server.Close)
	return aws.Config{
		Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", ""),
		RetryMaxAttempts: 1,
	}
}

func TestQuery(t *testing.T) {
	when := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	type tag struct{ Key, Value string }
	type group struct {
		AutoScalingGroupName string
		MinSize              int
		CreatedTime          time.Time
		AvailabilityZones    []string
		Tags                 []tag
		Status               *string
	}
	cfg := serve(t, wire.Service{Name: "autoscaling", Protocol: wire.Query, Version: "2011-01-01"}, "DescribeAutoScalingGroups",
		func(_ context.Context, c *wire.Call) (any, error) {
			var in struct {
				AutoScalingGroupNames []string
				MaxRecords            *int
				Filters               []struct {
					Name   string
					Values []string
				}
			}
			if err := c.Decode(&in); err != nil {
				return nil, err
			}
			require.Equal(t, []string{"a", "b & <c>"}, in.AutoScalingGroupNames)
			require.Equal(t, 7, *in.MaxRecords)
			require.Equal(t, "tag:x", in.Filters[0].Name)
			require.Equal(t, []string{"1", "2"}, in.Filters[0].Values)
			return struct{ AutoScalingGroups []group }{[]group{{
				AutoScalingGroupName: "b & <c>", MinSize: 3, CreatedTime: when, AvailabilityZones: []string{"eu-west-1a"}, Tags: []tag{{"k", "v\n"}},
			}}}, nil
		})
	out, err := autoscaling.NewFromConfig(cfg).DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{
		AutoScalingGroupNames: []string{
			"a", "b & <c>",
		}, MaxRecords: aws.Int32(7), Filters: []astypes.Filter{{Name: aws.String("tag:x"), Values: []string{"1", "2"}}},
	})
	require.NoError(t, err)
	g := out.AutoScalingGroups[0]
	require.Equal(t, "b & <c>", *g.AutoScalingGroupName)
	require.EqualValues(t, 3, *g.MinSize)
	require.Equal(t, when, *g.CreatedTime)
	require.Equal(t, []string{"eu-west-1a"}, g.AvailabilityZones)
	require.Equal(t, "v\n", *g.Tags[0].Value)
	require.Nil(t, g.Status)
}

func TestQueryMaps(t *testing.T) {
	cfg := serve(t, wire.Service{
		Name: "sns", Protocol: wire.Query, Version: "2010-03-31",
	}, "CreateTopic", func(_ context.Context, c *wire.Call) (any, error) {
		var in struct {
			Name       string
			Attributes map[string]string
		}
		if err := c.Decode(&in); err != nil {
			return nil, err
		}
		require.Equal(t, map[string]string{"FifoTopic": "true", "DisplayName": "d"}, in.Attributes)
		return struct{ TopicArn string }{"arn:" + in.Name}, nil
	})
	client := sns.NewFromConfig(cfg)
	out, err := client.CreateTopic(t.Context(), &sns.CreateTopicInput{
		Name: aws.String("n"), Attributes: map[string]string{"FifoTopic": "true", "DisplayName": "d"},
	})
	require.NoError(t, err)
	require.Equal(t, "arn:n", *out.TopicArn)

	_, err = client.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("n"), DataProtectionPolicy: aws.String("p")})
	requireCode(t, err, "UnsupportedByLocalAccount", "the parameter DataProtectionPolicy")
	_, err = client.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: aws.String("a")})
	requireCode(t, err, "UnsupportedByLocalAccount", "the operation DeleteTopic")
}

func TestJSON(t *testing.T) {
	when := time.Date(2026, 11, 20, 12, 0, 0, 123e6, time.UTC)
	cfg := serve(t, wire.Service{Name: "states", Protocol: wire.JSON10, TargetPrefix: "AWSStepFunctions"}, "StartExecution",
		func(_ context.Context, c *wire.Call) (any, error) {
			var in struct{ StateMachineArn, Name, Input string }
			if err := c.Decode(&in); err != nil {
				return nil, err
			}
			if in.Name == "taken" {
				return nil, wire.Errorf("ExecutionAlreadyExists", "Execution Already Exists: 'taken'")
			}
			return struct {
				ExecutionArn string    `json:"executionArn"`
				StartDate    time.Time `json:"startDate"`
			}{in.StateMachineArn + in.Input, when}, nil
		})
	client := sfn.NewFromConfig(cfg)
	out, err := client.StartExecution(t.Context(), &sfn.StartExecutionInput{
		StateMachineArn: aws.String("m"), Name: aws.String("n"), Input: aws.String(`{"a":"ü"}`),
	})
	require.NoError(t, err)
	require.Equal(t, `m{"a":"ü"}`, *out.ExecutionArn)
	require.Equal(t, when, out.StartDate.UTC())
	_, err = client.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: aws.String("m"), Name: aws.String("taken")})
	requireCode(t, err, "ExecutionAlreadyExists", "Execution Already Exists: 'taken'")
}

func TestREST(t *testing.T) {
	service := wire.Service{Name: "eks", Protocol: wire.RESTJSON, Routes: map[string]string{
		"GET /clusters/{name}/access-entries":                            "ListAccessEntries",
		"POST /clusters/{name}/access-entries/{principalArn}":            "UpdateAccessEntry",
		"GET /clusters/{name}":                                           "DescribeCluster",
		"POST /clusters/{name}/access-entries/{principalArn}/{anything}": "Other",
	}}
	cfg := serve(t, service, "UpdateAccessEntry", func(_ context.Context, c *wire.Call) (any, error) {
		var in struct {
			Name, PrincipalArn, ClientRequestToken string
			KubernetesGroups                       []string
		}
		if err := c.Decode(&in); err != nil {
			return nil, err
		}
		type entry struct {
			ClusterName      string    `json:"clusterName"`
			PrincipalArn     string    `json:"principalArn"`
			KubernetesGroups []string  `json:"kubernetesGroups"`
			CreatedAt        time.Time `json:"createdAt"`
		}
		return struct {
			AccessEntry entry `json:"accessEntry"`
		}{entry{in.Name, in.PrincipalArn, in.KubernetesGroups, time.Unix(1700000000, 0)}}, nil
	})
	out, err := eks.NewFromConfig(cfg).UpdateAccessEntry(t.Context(), &eks.UpdateAccessEntryInput{
		ClusterName: aws.String("demo"), PrincipalArn: aws.String("arn:aws:iam::1:role/a/b"), KubernetesGroups: []string{"g"},
		ClientRequestToken: aws.String("t"),
	})
	require.NoError(t, err)
	require.Equal(t, "arn:aws:iam::1:role/a/b", *out.AccessEntry.PrincipalArn)
	require.Equal(t, []string{"g"}, out.AccessEntry.KubernetesGroups)
	require.EqualValues(t, 1700000000, out.AccessEntry.CreatedAt.Unix())

	cfg = serve(t, service, "DescribeCluster", func(context.Context, *wire.Call) (any, error) {
		return nil, &wire.Error{Code: "ResourceNotFoundException", Message: "No cluster found for name: x.", Status: 404}
	})
	_, err = eks.NewFromConfig(cfg).DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("x")})
	var missing *ekstypes.ResourceNotFoundException
	require.ErrorAs(t, err, &missing)
	require.Equal(t, "No cluster found for name: x.", *missing.Message)

	cfg = serve(t, service, "ListAccessEntries", func(_ context.Context, c *wire.Call) (any, error) {
		var in struct {
			Name, NextToken string
			MaxResults      *int
		}
		if err := c.Decode(&in); err != nil {
			return nil, err
		}
		require.Equal(t, 5, *in.MaxResults)
		return &wire.Response{Status: 200, Body: json.RawMessage(`{"accessEntries":["` + in.NextToken + `"]}`)}, nil
	})
	listed, err := eks.NewFromConfig(cfg).ListAccessEntries(t.Context(), &eks.ListAccessEntriesInput{
		ClusterName: aws.String("x"), MaxResults: aws.Int32(5), NextToken: aws.String("t/&"),
	})
	require.NoError(t, err)
	require.Equal(t, []string{"t/&"}, listed.AccessEntries)
}

func TestCBOR(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	type datapoint struct {
		Timestamp time.Time
		Sum       *float64
		Unit      string
	}
	cfg := serve(t, wire.Service{
		Name: "monitoring", Prefix: "cloudwatch", Protocol: wire.CBOR,
	}, "GetMetricStatistics", func(_ context.Context, c *wire.Call) (any, error) {
		var in struct {
			Namespace, MetricName string
			StartTime, EndTime    time.Time
			Period                int
			Statistics            []string
			Dimensions            []struct{ Name, Value string }
		}
		if err := c.Decode(&in); err != nil {
			return nil, err
		}
		if in.Namespace == "" {
			return nil, &wire.Error{Code: "AccessDenied", Message: "no", Status: 403}
		}
		require.Equal(t, start, in.StartTime)
		require.Equal(t, 60, in.Period)
		require.Equal(t, []string{"Sum"}, in.Statistics)
		sum := -1.5
		return struct {
			Label      string
			Datapoints []datapoint
		}{in.MetricName, []datapoint{{start, &sum, "Count"}}}, nil
	})
	client := cloudwatch.NewFromConfig(cfg)
	out, err := client.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String("drover"), MetricName: aws.String("Converged"), StartTime: &start, EndTime: aws.Time(start.Add(time.Hour)),
		Period: aws.Int32(60), Statistics: []cwtypes.Statistic{
			"Sum",
		}, Dimensions: []cwtypes.Dimension{{Name: aws.String("a"), Value: aws.String("b")}},
	})
	require.NoError(t, err)
	require.Equal(t, "Converged", *out.Label)
	require.Equal(t, -1.5, *out.Datapoints[0].Sum)
	require.Equal(t, start, out.Datapoints[0].Timestamp.UTC())
	_, err = client.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String(""), MetricName: aws.String("x"), StartTime: &start, EndTime: &start, Period: aws.Int32(60),
	})
	requireCode(t, err, "AccessDenied", "no")
}

// The same service answers the Query protocol of old aws commands.
func TestQueryOfACBORService(t *testing.T) {
	cfg := serve(t, wire.Service{Name: "monitoring", Prefix: "cloudwatch", Protocol: wire.CBOR, Version: "2010-08-01"}, "ListMetrics",
		func(_ context.Context, c *wire.Call) (any, error) {
			var in struct{ Namespace string }
			if err := c.Decode(&in); err != nil {
				return nil, err
			}
			return struct{ Metrics []struct{ Namespace string } }{[]struct{ Namespace string }{{in.Namespace}}}, nil
		})
	got := post(t, *cfg.BaseEndpoint, "Action=ListMetrics&Version=2010-08-01&Namespace=drover")
	require.Contains(t, got, "<ListMetricsResult><Metrics><member><Namespace>drover</Namespace></member></Metrics></ListMetricsResult>")
}

func TestQueryIsRejectedWithoutVersion(t *testing.T) {
	cfg := serve(t, wire.Service{
		Name: "sqs", Protocol: wire.JSON10, TargetPrefix: "AmazonSQS",
	}, "ListQueues", func(context.Context, *wire.Call) (any, error) {
		return nil, nil
	})
	require.Contains(t, post(t, *cfg.BaseEndpoint, "Action=ListQueues&Version=2012-11-05"), "does not support the Query protocol")
}

func TestEC2Query(t *testing.T) {
	type instance struct {
		InstanceID string                        `xml:"instanceId"`
		Tags       []struct{ Key, Value string } `xml:"tagSet"`
	}
	cfg := serve(t, wire.Service{
		Name: "ec2", Protocol: wire.EC2Query, Version: "2016-11-15",
	}, "DescribeInstances", func(_ context.Context, c *wire.Call) (any, error) {
		var in struct {
			InstanceID []string `json:"InstanceId"`
			Filter     []struct {
				Name  string
				Value []string
			}
			DryRun bool
		}
		if err := c.Decode(&in); err != nil {
			return nil, err
		}
		if in.DryRun {
			return nil, &wire.Error{Code: "AccessDenied", Message: "You are not authorized", Status: 403}
		}
		require.Equal(t, []string{"i-1", "i-2"}, in.InstanceID)
		require.Equal(t, []string{"x", "y"}, in.Filter[0].Value)
		return struct{ Instances []instance }{[]instance{{"i-1", []struct{ Key, Value string }{{"k", "v"}}}}}, nil
	})
	got := post(t, *cfg.BaseEndpoint,
		"Action=DescribeInstances&Version=2016-11-15&InstanceId.2=i-2&InstanceId.1=i-1&Filter.1.Name=tag:a&Filter.1.Value.1=x&Filter.1.Value.2=y")
	require.Contains(t, got,
		`<requestId>request-1</requestId><instances><item><instanceId>i-1</instanceId>`+
			`<tagSet><item><key>k</key><value>v</value></item></tagSet></item></instances>`)
	got = post(t, *cfg.BaseEndpoint, "Action=DescribeInstances&Version=2016-11-15&DryRun=true")
	require.Contains(t, got, "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not "+
		"authorized</Message></Error></Errors>")
}

func TestDecodeRejects(t *testing.T) {
	cfg := serve(t, wire.Service{Name: "ssm", Protocol: wire.JSON11, TargetPrefix: "AmazonSSM", Version: "2014-11-06"}, "GetParameters",
		func(_ context.Context, c *wire.Call) (any, error) {
			var in struct {
				Names          []string
				WithDecryption bool
				Count          int
				Filter         struct{ Key string }
				When           time.Time
			}
			return nil, c.Decode(&in)
		})
	for name, test := range map[string]struct{ body, want string }{
		"an unknown parameter":           {`{"Nmaes":[]}`, "the parameter Nmaes"},
		"an unknown nested parameter":    {`{"Filter":{"Key":"a","Value":"b"}}`, "the parameter Filter.Value"},
		"a string for a list":            {`{"Names":"a"}`, `the parameter Names must be a list, not "a"`},
		"a number for a string":          {`{"Names":["a",1]}`, "the parameter Names[1] must be a string, not 1"},
		"a string for a boolean":         {`{"WithDecryption":"true"}`, "the parameter WithDecryption must be a boolean"},
		"a fraction for an integer":      {`{"Count":1.5}`, "the parameter Count must be an integer, not 1.5"},
		"a word for a time":              {`{"When":"soon"}`, "the parameter When must be a timestamp"},
		"a body that is no object":       {`[]`, "the body is not a JSON object"},
		"a body with something after it": {`{} {}`, "text after the body's JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequest(http.MethodPost, *cfg.BaseEndpoint, strings.NewReader(test.body))
			require.NoError(t, err)
			r.Header.Set("X-Amz-Target", "AmazonSSM.GetParameters")
			r.Header.Set("Content-Type", "application/x-amz-json-1.1")
			response, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			defer response.Body.Close()
			require.Equal(t, 400, response.StatusCode)
			var body struct{ Message string }
			require.NoError(t, json.NewDecoder(response.Body).Decode(&body))
			require.Contains(t, body.Message, test.want)
		})
	}
	require.Contains(t, post(t, *cfg.BaseEndpoint, "Action=GetParameters&Names.member.x=1"), "the parameter Names must be a list")
	require.Contains(t, post(t, *cfg.BaseEndpoint, "Action=GetParameters&Names=1&Names.member.1=1"), "is a value and a structure")
	require.Contains(t, post(t, *cfg.BaseEndpoint, "Version=1"), "<Code>MissingAction</Code>")
}

func post(t *testing.T, url, form string) string {
	t.Helper()
	response, err := http.Post(url, "application/x-www-form-urlencoded; charset=utf-8", strings.NewReader(form))
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

func requireCode(t *testing.T, err error, code, message string) {
	t.Helper()
	var e smithy.APIError
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.ErrorCode())
	require.Contains(t, e.ErrorMessage(), message)
}
