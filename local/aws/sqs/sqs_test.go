package sqs_test

import (
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/sqs"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
)

func newService() (*sqs.Service, *iam.Service) {
	identities := iam.New("111122223333", "eu-west-1", &clock.Clock{})
	return sqs.New(identities, &clock.Clock{}), identities
}

func newClient(t *testing.T) (*awssqs.Client, *sqs.Service, *iam.Service) {
	t.Helper()
	s, identities := newService()
	e := endpoint.New(identities, nil)
	e.Handle(s.Wire())
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	_, c := identities.Admin()
	return awssqs.New(awssqs.Options{
		Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, ""),
	}), s, identities
}

func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

func TestMessages(t *testing.T) {
	c, s, identities := newClient(t)
	ctx := t.Context()
	created, err := c.CreateQueue(ctx, &awssqs.CreateQueueInput{
		QueueName: aws.String("q"), Attributes: map[string]string{"VisibilityTimeout": "60"}, Tags: map[string]string{"a": "b"},
	})
	require.NoError(t, err)
	sent, err := c.SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: created.QueueUrl, MessageBody: aws.String("hello"),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"ERROR_CODE": {DataType: aws.String("String"), StringValue: aws.String("NO_PERMISSIONS")},
		}})
	require.NoError(t, err)
	got, err := c.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{
		QueueUrl: created.QueueUrl, MessageAttributeNames: []string{
			"All",
		}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
	})
	require.NoError(t, err)
	require.Len(t, got.Messages, 1)
	require.Equal(t, *sent.MessageId, *got.Messages[0].MessageId)
	require.Equal(t, "hello", *got.Messages[0].Body)
	require.Equal(t, "NO_PERMISSIONS", *got.Messages[0].MessageAttributes["ERROR_CODE"].StringValue)
	require.Equal(t, "1", got.Messages[0].Attributes["ApproximateReceiveCount"])
	again, err := c.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: created.QueueUrl})
	require.NoError(t, err)
	require.Empty(t, again.Messages, "hidden while someone works on it")
	attributes, err := c.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
		QueueUrl: created.QueueUrl, AttributeNames: []types.QueueAttributeName{"All"},
	})
	require.NoError(t, err)
	require.Equal(t, "1", attributes.Attributes["ApproximateNumberOfMessagesNotVisible"])
	require.Equal(t, "arn:aws:sqs:eu-west-1:111122223333:q", attributes.Attributes["QueueArn"])
	_, err = c.ChangeMessageVisibility(ctx, &awssqs.ChangeMessageVisibilityInput{
		QueueUrl: created.QueueUrl, ReceiptHandle: got.Messages[0].ReceiptHandle,
	})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"q": 1}, s.Depths())
	_, err = c.DeleteMessage(ctx, &awssqs.DeleteMessageInput{QueueUrl: created.QueueUrl, ReceiptHandle: got.Messages[0].ReceiptHandle})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"q": 0}, s.Depths())

	_, err = c.SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: aws.String(*created.QueueUrl + "x"), MessageBody: aws.String("x")})
	var missing *types.QueueDoesNotExist
	require.ErrorAs(t, err, &missing)
	_, err = c.CreateQueue(ctx, &awssqs.CreateQueueInput{QueueName: aws.String("q.fifo"), Attributes: map[string]string{"FifoQueue": "true"}})
	require.Equal(t, "UnsupportedByLocalAccount", code(err))
	_, err = c.SetQueueAttributes(ctx, &awssqs.SetQueueAttributesInput{
		QueueUrl: created.QueueUrl, Attributes: map[string]string{"VisibilityTimeout": "-1"},
	})
	require.Equal(t, "InvalidAttributeValue", code(err))

	// A service may send only what the queue policy allows.
	events := identities.ServiceCaller("events.amazonaws.com", "arn:aws:events:eu-west-1:111122223333:rule/r")
	_, err = s.Send(ctx, events, "arn:aws:sqs:eu-west-1:111122223333:q", "x", nil)
	require.Equal(t, "AccessDenied", code(err))
	caller, _ := identities.Admin()
	policy := resource.Request{StackName: "s", LogicalID: "P", Caller: caller, Properties: map[string]any{"Queues": []any{*created.QueueUrl},
		"PolicyDocument": map[string]any{
			"Version": "2012-10-17", "Statement": []any{
				map[string]any{
					"Effect": "Allow", "Principal": map[string]any{"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": "*",
				},
			},
		}}}
	_, err = s.Resources()["AWS::SQS::QueuePolicy"].Create(ctx, policy)
	require.NoError(t, err)
	_, err = s.Send(ctx, events, "arn:aws:sqs:eu-west-1:111122223333:q", "x", nil)
	require.NoError(t, err)
	require.NoError(t, s.Resources()["AWS::SQS::QueuePolicy"].Delete(ctx, policy))
	_, err = s.Send(ctx, events, "arn:aws:sqs:eu-west-1:111122223333:q", "x", nil)
	require.Equal(t, "AccessDenied", code(err))
}

func TestVisibilityAndRedrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, identities := newService()
		caller, _ := identities.Admin()
		provider := s.Resources()["AWS::SQS::Queue"]
		dead, err := provider.Create(t.Context(), resource.Request{
			StackName: "drover", LogicalID: "Dead", Caller: caller, Properties: map[string]any{"MessageRetentionPeriod": 1209600.0},
		})
		require.NoError(t, err)
		q, err := provider.Create(t.Context(), resource.Request{StackName: "drover", LogicalID: "Queue", Caller: caller,
			Properties: map[string]any{
				"VisibilityTimeout": "10", "MessageRetentionPeriod": 3600.0, "RedrivePolicy": map[string]any{
					"deadLetterTargetArn": dead.Attributes["Arn"], "maxReceiveCount": 2.0,
				},
			}})
		require.NoError(t, err)
		receive := func(queue string, wait time.Duration) []sqs.Message {
			got, err := s.Receive(t.Context(), caller, queue, 10, &wait, nil)
			require.NoError(t, err)
			return got
		}
		start := time.Now()
		require.Empty(t, receive(q.PhysicalID, 20*time.Second))
		require.Equal(t, 20*time.Second, time.Since(start), "waits as long as asked")
		go func() {
			time.Sleep(3 * time.Second)
			_, _ = s.Send(t.Context(), caller, q.PhysicalID, "poison", nil)
		}()
		start = time.Now()
		require.Len(t, receive(q.PhysicalID, 20*time.Second), 1)
		require.Equal(t, 3*time.Second, time.Since(start), "a message ends the wait")
		require.Len(t, receive(q.PhysicalID, 20*time.Second), 1, "shows again after the visibility timeout")
		require.Equal(t, 13*time.Second, time.Since(start))
		require.Empty(t, receive(q.PhysicalID, 20*time.Second), "after two receives it is a dead letter")
		got := receive(dead.PhysicalID, 0)
		require.Len(t, got, 1)
		require.Equal(t, "poison", got[0].Body)

		_, err = s.Send(t.Context(), caller, q.PhysicalID, "old", nil)
		require.NoError(t, err)
		time.Sleep(61 * time.Minute)
		require.Empty(t, receive(q.PhysicalID, 0), "retention is over")

		_, err = provider.Create(t.Context(), resource.Request{
			StackName: "drover", LogicalID: "Queue", Caller: caller, Properties: map[string]any{
				"RedrivePolicy": map[string]any{"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:111122223333:none", "maxReceiveCount": 1.0},
			},
		})
		require.ErrorContains(t, err, "Dead letter target does not exist")
		r := resource.Request{PhysicalID: dead.PhysicalID, Caller: caller}
		require.NoError(t, provider.Delete(t.Context(), r))
		require.NoError(t, provider.Delete(t.Context(), r), "deleting twice succeeds")
	})
}
