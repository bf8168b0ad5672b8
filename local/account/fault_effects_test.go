package account

// The effect of each kind of fault where it acts: the caller's error, the delay, and the result. These tests do not
// verify the engine's decisions. Faults of instances, clusters and executions are in rules_test.go, those of upgrades in
// upgrade_test.go.

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/faults"
	s3adapter "github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

// codeOf returns the error code that a client got; empty means success.
func codeOf(t *testing.T, err error) string {
	if err == nil {
		return ""
	}
	var apiErr smithy.APIError
	require.True(t, errors.As(err, &apiErr), "%v", err)
	return apiErr.ErrorCode()
}

func TestLambdaLimit(t *testing.T) {
	client := lambda.NewFromConfig(cloud.Config(), func(o *lambda.Options) { o.Retryer = aws.NopRetryer{} })
	invoke := func(function string) string {
		_, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String(function), Payload: []byte(`{}`)})
		return codeOf(t, err)
	}
	cloud.fault(t, "PUT", "?seed=1", "lambda-limit function=drain")
	require.Equal(t, "TooManyRequestsException", invoke(names.Function("drain")))
	require.Empty(t, invoke(names.Function("join")), "the rule names another function")
	require.Equal(t, 1, cloud.Faults.Struck()[faults.LambdaLimit])
	for _, alarm := range []string{"drover-drain-throttles", "drover-lambda-concurrency"} {
		require.Equal(t, "ALARM", cloud.CloudWatch.AlarmStates()[alarm], alarm)
	}
	cloud.Faults.Clear()
	require.Empty(t, invoke(names.Function("drain")))
}

func TestFaultsOfCalls(t *testing.T) {
	bucket := names.SpecsBucket(ID, "us-east-1")
	tests := map[string]struct {
		rule        string
		conditional bool
		code        string
		least       time.Duration
		written     bool
	}{
		"nothing":    {rule: "throttle service=s3 caller=none", conditional: true, written: true},
		"throttle":   {rule: "throttle service=s3 action=PutObject", code: "SlowDown"},
		"an error":   {rule: "error=InternalError status=500 service=s3 action=PutObject", code: "InternalError"},
		"latency":    {rule: "latency=400ms service=s3 action=PutObject", least: 400 * time.Millisecond, written: true},
		"a conflict": {rule: "conflict service=s3", conditional: true, code: "ConditionalRequestConflict"},
		"a conflict of a write without condition": {rule: "conflict service=s3", written: true},
		"a conflict with its own write": {
			rule: "conflict=412 service=s3", conditional: true, code: "PreconditionFailed", written: true,
		},
	}
	client := s3.New(s3adapter.NewClient(cloud.Config()).Options(), func(o *s3.Options) {
		o.RetryMaxAttempts, o.Retryer = 1, aws.NopRetryer{}
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			key := "struck/" + t.Name()
			put := &s3.PutObjectInput{Bucket: &bucket, Key: &key}
			if test.conditional {
				put.IfNoneMatch = aws.String("*")
			}
			cloud.fault(t, "PUT", "", test.rule)
			began := time.Now()
			_, err := client.PutObject(t.Context(), put)
			require.GreaterOrEqual(t, time.Since(began), test.least)
			require.Equal(t, test.code, codeOf(t, err))
			cloud.fault(t, "DELETE", "")
			_, err = client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
			require.Equal(t, test.written, err == nil, "%v", err)
			if test.written {
				_, err = client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
				require.NoError(t, err)
			}
		})
	}
}

// A function writes the status of an invalid spec. It is killed before or after it does.
func TestFaultsOfFunctions(t *testing.T) {
	for kind, written := range map[faults.Kind]bool{faults.CrashBefore: false, faults.CrashAfter: true} {
		t.Run(string(kind), func(t *testing.T) {
			cluster := "struck-" + string(kind)
			// Only this test invokes the function for the upload. Objects of other tests in the specs bucket invoke it too: it
			// then writes status/ignored.json.
			crash := string(kind) + " caller=admit action=PutObject count=1 cluster=" + cluster
			cloud.fault(t, "PUT", "", "drop rule=drover-spec-changed", crash)
			cloud.upload(t, cluster, "kind: Nothing\n")
			var event events.Event[events.Object]
			event.Detail.Object.Key = names.ClusterSpec(cluster)
			body, err := json.Marshal(event)
			require.NoError(t, err)
			invoke := func() *lambda.InvokeOutput {
				out, err := lambda.NewFromConfig(cloud.Config()).Invoke(t.Context(), &lambda.InvokeInput{
					FunctionName: aws.String(names.Function("admit")), Payload: body,
				})
				require.NoError(t, err)
				return out
			}
			out := invoke()
			require.Equal(t, "Unhandled", aws.ToString(out.FunctionError))
			require.Contains(t, string(out.Payload), "signal: killed", "its process has ended")
			_, err = cloud.state.Status(t.Context(), cluster)
			if written {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, store.ErrNotFound)
			}
			require.Empty(t, aws.ToString(invoke().FunctionError), "once")
			_, err = cloud.state.Status(t.Context(), cluster)
			require.NoError(t, err)
		})
	}
}

func TestFaultsOfEvents(t *testing.T) {
	tests := map[string]struct {
		rule string
		// got are the deliveries of three events. Each is sent after the previous one that must arrive has arrived.
		sent, got []string
	}{
		"drop":      {"drop rule=struck event=first", []string{"first", "second", "third"}, []string{"second", "third"}},
		"duplicate": {"duplicate rule=struck event=first", []string{"first", "second"}, []string{"first", "first", "second"}},
		"reorder":   {"reorder=1s rule=struck event=first", []string{"first", "second"}, []string{"second", "first"}},
	}
	bus, queues := eventbridge.NewFromConfig(cloud.Config()), sqs.NewFromConfig(cloud.Config())
	queue, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("struck"), Attributes: map[string]string{
		"Policy": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
			`"Action":"sqs:SendMessage","Resource":"*"}]}`,
	}})
	require.NoError(t, err)
	rule := aws.String("struck")
	_, err = bus.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: rule, EventPattern: aws.String(`{"source":["struck"]}`)})
	require.NoError(t, err)
	put, err := bus.PutTargets(t.Context(), &eventbridge.PutTargetsInput{
		Rule: rule, Targets: []eventtypes.Target{{Id: rule, Arn: aws.String("arn:aws:sqs:us-east-1:" + ID + ":struck")}},
	})
	require.NoError(t, err)
	require.Empty(t, put.FailedEntries)
	defer func() {
		_, err := bus.RemoveTargets(t.Context(), &eventbridge.RemoveTargetsInput{Rule: rule, Ids: []string{*rule}})
		require.NoError(t, err)
		_, err = bus.DeleteRule(t.Context(), &eventbridge.DeleteRuleInput{Name: rule})
		require.NoError(t, err)
		_, err = queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: queue.QueueUrl})
		require.NoError(t, err)
	}()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			receive := func(n int) {
				cloud.until(t, func() bool {
					out, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, MaxNumberOfMessages: 10})
					require.NoError(t, err)
					for _, m := range out.Messages {
						var e struct {
							DetailType string `json:"detail-type"`
						}
						require.NoError(t, json.Unmarshal([]byte(*m.Body), &e))
						got = append(got, e.DetailType)
						_, err := queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: queue.QueueUrl, ReceiptHandle: m.ReceiptHandle})
						require.NoError(t, err)
					}
					return len(got) >= n
				}, func() string { return fmt.Sprint(got) })
			}
			cloud.fault(t, "PUT", "", test.rule)
			for i, event := range test.sent {
				_, err := bus.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{{
					Source: rule, DetailType: &event, Detail: aws.String("{}"),
				}}})
				require.NoError(t, err)
				if event != "first" || name == "duplicate" {
					receive(len(test.got) - len(test.sent) + i + 1)
				}
			}
			receive(len(test.got))
			require.Equal(t, test.got, got)
		})
	}
}
