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

func TestTopics(t *testing.T) {
	identities := iam.New("111122223333", "eu-west-1", &clock.Clock{})
	queues := sqs.New(identities, &clock.Clock{})
	s := sns.New(identities, &clock.Clock{}, queues)
	var published []string
	s.OnPublish = func(_, subject, message string) { published = append(published, subject+"|"+message) }
	e := endpoint.New(identities, nil)
	e.Handle(s.Wire())
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	admin, c := identities.Admin()
	client := awssns.New(awssns.Options{
		Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, ""),
	})
	ctx := t.Context()

	require.NoError(t, queues.Create("inbox", map[string]string{
		"Policy": `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},` +
			`"Action":"sqs:SendMessage","Resource":"*"}}`,
	}, nil))
	require.NoError(t, queues.Create("closed", nil, nil))
	provider := s.Resources()["AWS::SNS::Topic"]
	made, err := provider.Create(ctx, resource.Request{StackName: "drover", LogicalID: "Topic", Caller: admin, Properties: map[string]any{
		"DisplayName": "drover", "Subscription": []any{map[string]any{"Protocol": "sqs", "Endpoint": "arn:aws:sqs:eu-west-1:111122223333:inbox"}},
	}})
	require.NoError(t, err)
	arn := made.PhysicalID
	_, err = client.Subscribe(ctx, &awssns.SubscribeInput{
		TopicArn: &arn, Protocol: aws.String("sqs"), Endpoint: aws.String("arn:aws:sqs:eu-west-1:111122223333:closed"),
	})
	require.NoError(t, err)
	subscriptions, err := client.ListSubscriptionsByTopic(ctx, &awssns.ListSubscriptionsByTopicInput{TopicArn: &arn})
	require.NoError(t, err)
	require.Len(t, subscriptions.Subscriptions, 2)

	sent, err := client.Publish(ctx, &awssns.PublishInput{TopicArn: &arn, Subject: aws.String("demo"), Message: aws.String("Ready")})
	require.NoError(t, err, "one queue that refuses holds up no other")
	require.Equal(t, []string{"demo|Ready"}, published)
	none := time.Duration(0)
	got, err := queues.Receive(ctx, admin, "inbox", 1, &none, nil)
	require.NoError(t, err)
	var notification map[string]string
	require.NoError(t, json.Unmarshal([]byte(got[0].Body), &notification))
	require.Equal(t, "Ready", notification["Message"])
	require.Equal(t, *sent.MessageId, notification["MessageId"])
	require.Equal(t, arn, notification["TopicArn"])
	require.Equal(t, map[string]int{"inbox": 0, "closed": 0}, queues.Depths())

	// A raw message has attributes, but no subject.
	require.NoError(t, queues.Create("raw", map[string]string{
		"Policy": `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},` +
			`"Action":"sqs:SendMessage","Resource":"*"}}`,
	}, nil))
	_, err = client.Subscribe(ctx, &awssns.SubscribeInput{
		TopicArn: &arn, Protocol: aws.String("sqs"), Endpoint: aws.String("arn:aws:sqs:eu-west-1:111122223333:raw"),
		Attributes: map[string]string{"RawMessageDelivery": "true"},
	})
	require.NoError(t, err)
	_, err = client.Publish(ctx, &awssns.PublishInput{
		TopicArn: &arn, Subject: aws.String("demo"), Message: aws.String("Ready"),
		MessageAttributes: map[string]types.MessageAttributeValue{"cluster": {DataType: aws.String("String"), StringValue: aws.String("demo")}},
	})
	require.NoError(t, err)
	got, err = queues.Receive(ctx, admin, "raw", 1, &none, nil)
	require.NoError(t, err)
	require.Equal(t, "Ready", got[0].Body)
	require.Equal(t, map[string]string{"cluster": "demo"}, got[0].Attributes)

	_, err = client.Publish(ctx, &awssns.PublishInput{TopicArn: aws.String(arn + "x"), Message: aws.String("m")})
	require.Equal(t, "NotFound", code(err))
	_, err = client.Subscribe(ctx, &awssns.SubscribeInput{TopicArn: &arn, Protocol: aws.String("email"), Endpoint: aws.String("a@b.c")})
	require.Equal(t, "UnsupportedByLocalAccount", code(err))

	// The default policy lets services publish on the account's behalf. Another policy does not.
	alarms := identities.ServiceCaller("cloudwatch.amazonaws.com", "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:a")
	_, err = s.Publish(ctx, alarms, arn, "", "m")
	require.NoError(t, err)
	policy := resource.Request{StackName: "drover", LogicalID: "Policy", Caller: admin,
		Properties: map[string]any{"Topics": []any{arn}, "PolicyDocument": map[string]any{
			"Version": "2012-10-17", "Statement": []any{
				map[string]any{
					"Effect": "Deny", "Principal": "*", "Action": "sns:Publish", "Resource": arn, "Condition": map[string]any{
						"Bool": map[string]any{"aws:SecureTransport": "false"},
					},
				},
			},
		}}}
	_, err = s.Resources()["AWS::SNS::TopicPolicy"].Create(ctx, policy)
	require.NoError(t, err)
	_, err = s.Publish(ctx, alarms, arn, "", "m")
	require.Equal(t, "AccessDenied", code(err))
	require.NoError(t, s.Resources()["AWS::SNS::TopicPolicy"].Delete(ctx, policy))
	_, err = s.Publish(ctx, alarms, arn, "", "m")
	require.NoError(t, err)
	attributes, err := client.GetTopicAttributes(ctx, &awssns.GetTopicAttributesInput{TopicArn: &arn})
	require.NoError(t, err)
	require.Equal(t, "drover", attributes.Attributes["DisplayName"])
	r := resource.Request{PhysicalID: arn, Caller: admin}
	require.NoError(t, provider.Delete(ctx, r))
	require.NoError(t, provider.Delete(ctx, r), "deleting twice succeeds")
}
