// Package notify tells who listens: an SNS topic.
package notify

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sns"
)

// Topic is an SNS topic.
type Topic struct {
	client *sns.Client
	arn    string
}

// New returns the topic with that ARN.
func New(client *sns.Client, arn string) *Topic { return &Topic{client, arn} }

// maxMessage bounds a message, in bytes; SNS takes 256 KiB, people less.
const maxMessage = 32 << 10

// Publish sends a message. The subject must be one line of ASCII, at most 100 characters.
func (t *Topic) Publish(ctx context.Context, subject, message string) error {
	if len(message) > maxMessage {
		message = message[:maxMessage] + "\n…"
	}
	if _, err := t.client.Publish(ctx, &sns.PublishInput{TopicArn: &t.arn, Subject: &subject, Message: &message}); err != nil {
		return fmt.Errorf("publishing to %s: %w", t.arn, err)
	}
	return nil
}
