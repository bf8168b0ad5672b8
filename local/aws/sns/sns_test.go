package sns_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/sns"
	"github.com/drover-run/drover/local/aws/sqs"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
)

func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

// openQueue is the policy of a queue to which topics may send.
const openQueue = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},` +
	`"Action":"sqs:SendMessage","Resource":"*"}}`

// world has a topic with a subscription of the queue inbox.
type world struct {
	identities *iam.Service
	queues     *sqs.Service
	topics     *sns.Service
	admin      iam.Caller
	client     *awssns.Client
	topic      string
}

func newWorld(t *testing.T) *world {
	identities := iam.New("111122223333", "eu-west-1", &clock.Clock{})
	queues := sqs.New(identities, &clock.Clock{})
	s := sns.New(identities, &clock.Clock{}, queues)
	e := endpoint.New(identities, nil)
	e.Handle(s.Wire())
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	admin, c := identities.Admin()
	client := awssns.New(awssns.Options{
		Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, ""),
	})
	require.NoError(t, queues.Create("inbox", map[string]string{"Policy": openQueue}, nil))
	topic, err := s.Resources()["AWS::SNS::Topic"].Create(t.Context(), resource.Request{
		StackName: "drover", LogicalID: "Topic", Caller: admin, Properties: map[string]any{
			"DisplayName":  "drover",
			"Subscription": []any{map[string]any{"Protocol": "sqs", "Endpoint": "arn:aws:sqs:eu-west-1:111122223333:inbox"}},
		},
	})
	require.NoError(t, err)
	return &world{identities: identities, queues: queues, topics: s, admin: admin, client: client, topic: topic.PhysicalID}
}

// subscribe subscribes a queue to the topic.
func (w *world) subscribe(t *testing.T, queue string, attributes map[string]string) {
	t.Helper()
	_, err := w.client.Subscribe(t.Context(), &awssns.SubscribeInput{
		TopicArn: &w.topic, Protocol: aws.String("sqs"), Endpoint: aws.String("arn:aws:sqs:eu-west-1:111122223333:" + queue),
		Attributes: attributes,
	})
	require.NoError(t, err)
}

// receive returns the first message of a queue.
func (w *world) receive(t *testing.T, queue string) sqs.Message {
	t.Helper()
	none := time.Duration(0)
	got, err := w.queues.Receive(t.Context(), w.admin, queue, 1, &none, nil)
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0]
}

func TestDelivery(t *testing.T) {
	w := newWorld(t)
	var published []string
	w.topics.OnPublish = func(_, subject, message string) { published = append(published, subject+"|"+message) }
	require.NoError(t, w.queues.Create("closed", nil, nil))
	w.subscribe(t, "closed", nil)
	subscriptions, err := w.client.ListSubscriptionsByTopic(t.Context(), &awssns.ListSubscriptionsByTopicInput{TopicArn: &w.topic})
	require.NoError(t, err)
	require.Len(t, subscriptions.Subscriptions, 2)

	sent, err := w.client.Publish(t.Context(), &awssns.PublishInput{
		TopicArn: &w.topic, Subject: aws.String("demo"), Message: aws.String("Ready"),
	})
	require.NoError(t, err, "a queue that refuses the message does not delay the others")
	require.Equal(t, []string{"demo|Ready"}, published)
	var notification map[string]string
	require.NoError(t, json.Unmarshal([]byte(w.receive(t, "inbox").Body), &notification))
	require.Equal(t, "Ready", notification["Message"])
	require.Equal(t, *sent.MessageId, notification["MessageId"])
	require.Equal(t, w.topic, notification["TopicArn"])
	require.Equal(t, map[string]int{"inbox": 0, "closed": 0}, w.queues.Depths())
}

// A raw message has attributes, but no subject.
func TestRawDelivery(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.queues.Create("raw", map[string]string{"Policy": openQueue}, nil))
	w.subscribe(t, "raw", map[string]string{"RawMessageDelivery": "true"})
	_, err := w.client.Publish(t.Context(), &awssns.PublishInput{
		TopicArn: &w.topic, Subject: aws.String("demo"), Message: aws.String("Ready"),
		MessageAttributes: map[string]types.MessageAttributeValue{"cluster": {DataType: aws.String("String"), StringValue: aws.String("demo")}},
	})
	require.NoError(t, err)
	got := w.receive(t, "raw")
	require.Equal(t, "Ready", got.Body)
	require.Equal(t, map[string]string{"cluster": "demo"}, got.Attributes)
}

func TestErrors(t *testing.T) {
	w := newWorld(t)
	_, err := w.client.Publish(t.Context(), &awssns.PublishInput{TopicArn: aws.String(w.topic + "x"), Message: aws.String("m")})
	require.Equal(t, "NotFound", code(err))
	_, err = w.client.Subscribe(t.Context(), &awssns.SubscribeInput{
		TopicArn: &w.topic, Protocol: aws.String("email"), Endpoint: aws.String("a@b.c"),
	})
	require.Equal(t, "UnsupportedByLocalAccount", code(err))
}

// The default policy lets services publish on the account's behalf. Another policy does not.
func TestTopicPolicy(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	alarms := w.identities.ServiceCaller("cloudwatch.amazonaws.com", "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:a")
	_, err := w.topics.Publish(ctx, alarms, w.topic, "", "m")
	require.NoError(t, err)
	policy := resource.Request{StackName: "drover", LogicalID: "Policy", Caller: w.admin,
		Properties: map[string]any{"Topics": []any{w.topic}, "PolicyDocument": map[string]any{
			"Version": "2012-10-17", "Statement": []any{
				map[string]any{
					"Effect": "Deny", "Principal": "*", "Action": "sns:Publish", "Resource": w.topic, "Condition": map[string]any{
						"Bool": map[string]any{"aws:SecureTransport": "false"},
					},
				},
			},
		}}}
	provider := w.topics.Resources()["AWS::SNS::TopicPolicy"]
	_, err = provider.Create(ctx, policy)
	require.NoError(t, err)
	_, err = w.topics.Publish(ctx, alarms, w.topic, "", "m")
	require.Equal(t, "AccessDenied", code(err))
	require.NoError(t, provider.Delete(ctx, policy))
	_, err = w.topics.Publish(ctx, alarms, w.topic, "", "m")
	require.NoError(t, err)
}

func TestTopicResource(t *testing.T) {
	w := newWorld(t)
	attributes, err := w.client.GetTopicAttributes(t.Context(), &awssns.GetTopicAttributesInput{TopicArn: &w.topic})
	require.NoError(t, err)
	require.Equal(t, "drover", attributes.Attributes["DisplayName"])
	provider, r := w.topics.Resources()["AWS::SNS::Topic"], resource.Request{PhysicalID: w.topic, Caller: w.admin}
	require.NoError(t, provider.Delete(t.Context(), r))
	require.NoError(t, provider.Delete(t.Context(), r), "deleting twice succeeds")
}
