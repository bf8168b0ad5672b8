// Package sns publishes to drover's SNS topic. Topic implements notification.Topic.
package sns

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/drover-run/drover/shared/aws/internal/call"
	"github.com/drover-run/drover/shared/notification"
)

// Topic is an SNS topic.
type Topic struct {
	publish call.Operation[awssns.PublishInput, awssns.PublishOutput, awssns.Options]
	arn     string
}

var _ notification.Topic = &Topic{}

// NewTopic returns the topic with that ARN.
func NewTopic(cfg aws.Config, arn string) *Topic {
	return &Topic{awssns.NewFromConfig(cfg).Publish, arn}
}

// maxMessage limits a message to what a reader can use, in bytes. SNS allows 256 KiB.
const maxMessage = 32 << 10

// maxSubject limits a subject, in ASCII characters.
// https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
const maxSubject = 99

// Publish sends a message with attributes that subscribers can filter by. It replaces characters that SNS does not allow in a subject by
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
	in := &awssns.PublishInput{
		TopicArn: &t.arn, Subject: &subject, Message: &message, MessageAttributes: map[string]types.MessageAttributeValue{},
	}
	for name, value := range attributes {
		in.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	if _, err := t.publish(ctx, in); err != nil {
		return fmt.Errorf("publishing to %s: %w", t.arn, err)
	}
	return nil
}
