package notify

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
)

// Topic is an SNS topic.
type Topic struct {
	client *sns.Client
	arn    string
}

// NewTopic returns the topic with that ARN.
func NewTopic(client *sns.Client, arn string) *Topic { return &Topic{client, arn} }

// maxMessage bounds a message, in bytes; SNS takes 256 KiB, people less.
const maxMessage = 32 << 10

// maxSubject bounds a subject, in characters of ASCII.
// https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
const maxSubject = 99

// Publish sends a message with attributes that subscribers can filter by. What SNS does not take in a subject is replaced by
// question marks.
func (t *Topic) Publish(ctx context.Context, subject, message string, attributes map[string]string) error {
	subject = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, subject)
	subject = subject[:min(len(subject), maxSubject)]
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "\n…"
	}
	in := &sns.PublishInput{
		TopicArn: &t.arn, Subject: &subject, Message: &message, MessageAttributes: map[string]types.MessageAttributeValue{},
	}
	for name, value := range attributes {
		in.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	if _, err := t.client.Publish(ctx, in); err != nil {
		return fmt.Errorf("publishing to %s: %w", t.arn, err)
	}
	return nil
}
