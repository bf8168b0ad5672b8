// Package sns simulates Amazon SNS: standard topics, with topic policies and subscriptions of queues.
// https://docs.aws.amazon.com/sns/latest/api/welcome.html
//
// It supports CreateTopic, DeleteTopic, ListTopics, GetTopicAttributes, Subscribe, Unsubscribe, ListSubscriptions,
// ListSubscriptionsByTopic, ListTagsForResource and Publish, and the resource types AWS::SNS::Topic and
// AWS::SNS::TopicPolicy. Subscriptions have the protocol sqs, with RawMessageDelivery. There are no FIFO topics, message
// structures, filters, delivery policies or retries. Messages are not encrypted, but a publisher must be allowed to use the
// topic's key.
package sns

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/wire"
)

// Queues receive the messages of subscriptions: sqs.Service.
type Queues interface {
	Send(ctx context.Context, caller iam.Caller, queueARN, body string, attributes map[string]string) (messageID string, err error)
}

// Keys authorize the use of a key: kms.Service.
type Keys interface {
	Authorize(caller iam.Caller, action, id string) error
}

// Service has the account's topics.
type Service struct {
	// OnPublish, if set before use, receives each message.
	OnPublish func(topicARN, subject, message string)
	// Keys, if set before use, are the keys with which topics are encrypted. A publisher must be allowed to use the topic's
	// key. https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html#sns-what-permissions-for-sse
	Keys Keys

	identities *iam.Service
	clock      *clock.Clock
	queues     Queues

	mu     sync.Mutex
	topics map[string]*topic // by ARN
}

type topic struct {
	name, displayName, key string
	tags                   map[string]string
	policy                 *iam.Policy
	policyText             string
	subscriptions          []subscription
}

type subscription struct {
	arn, protocol, endpoint string
	raw                     bool
	// declared by the topic's own Subscription property
	declared bool
}

// New returns a service without topics.
func New(identities *iam.Service, c *clock.Clock, queues Queues) *Service {
	return &Service{identities: identities, clock: c, queues: queues, topics: map[string]*topic{}}
}

func (s *Service) arn(name string) string {
	return "arn:" + s.identities.Partition + ":sns:" + s.identities.Region + ":" + s.identities.Account + ":" + name
}

var errNoTopic = &wire.Error{Code: "NotFound", Message: "Topic does not exist", Status: 404}

// permittedTopic returns a topic if the caller may perform the action on it. The caller holds the lock.
func (s *Service) permittedTopic(caller iam.Caller, action, arn string) (*topic, error) {
	t, ok := s.topics[arn]
	var policy *iam.Policy
	if ok {
		policy = t.policy
	}
	// The default policy trusts the owner's account by this key.
	if err := caller.AuthorizeWith("sns:"+action, arn, map[string]string{"AWS:SourceOwner": s.identities.Account}, policy); err != nil {
		return nil, err
	}
	if !ok {
		return nil, errNoTopic
	}
	return t, nil
}

// defaultPolicy is the policy of a topic that has no other: the account may use the topic, and services on its behalf
// too. https://docs.aws.amazon.com/sns/latest/dg/sns-access-policy-use-cases.html
func (s *Service) defaultPolicy(arn string) string {
	text, _ := json.Marshal(map[string]any{ // strings always encode
		"Version": "2008-10-17", "Id": "__default_policy_ID", "Statement": []any{map[string]any{
			"Sid": "__default_statement_ID", "Effect": "Allow", "Principal": map[string]any{"AWS": "*"},
			"Action": []string{
				"SNS:GetTopicAttributes", "SNS:SetTopicAttributes", "SNS:AddPermission", "SNS:RemovePermission", "SNS:DeleteTopic", "SNS:Subscribe",
				"SNS:ListSubscriptionsByTopic", "SNS:Publish",
			},
			"Resource": arn, "Condition": map[string]any{"StringEquals": map[string]any{"AWS:SourceOwner": s.identities.Account}},
		}},
	})
	return string(text)
}

// setPolicy replaces a topic's policy. An empty text restores the default. The caller holds the lock.
func (s *Service) setPolicy(t *topic, text string) error {
	if text == "" {
		text = s.defaultPolicy(s.arn(t.name))
	}
	policy, err := iam.ParsePolicy(text, true)
	if err != nil {
		return wire.Errorf("InvalidParameter", "Invalid parameter: Policy Error: %v", err)
	}
	t.policy, t.policyText = policy, text
	return nil
}

// create creates a topic. The caller holds the lock.
func (s *Service) create(name, displayName, key string, tags map[string]string) (*topic, error) {
	ok := name != "" && len(name) <= 256
	for _, r := range name {
		ok = ok && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_')
	}
	if strings.HasSuffix(name, ".fifo") {
		return nil, wire.Unsupported("sns", "FIFO topics")
	}
	if !ok {
		return nil, wire.Errorf("InvalidParameter", "Invalid parameter: Topic Name")
	}
	t := &topic{name: name, displayName: displayName, key: key, tags: tags}
	if err := s.setPolicy(t, ""); err != nil {
		return nil, err
	}
	s.topics[s.arn(name)] = t
	return t, nil
}

// subscribe adds a subscription, or returns the existing one. The caller holds the lock.
func (s *Service) subscribe(t *topic, protocol, endpoint string, raw, declared bool) (string, error) {
	if protocol != "sqs" {
		return "", wire.Unsupported("sns", "subscriptions by "+protocol)
	}
	if !strings.HasPrefix(endpoint, "arn:") {
		return "", wire.Errorf("InvalidParameter", "Invalid parameter: SQS endpoint ARN")
	}
	for _, have := range t.subscriptions {
		if have.protocol == protocol && have.endpoint == endpoint {
			return have.arn, nil
		}
	}
	created := subscription{s.arn(t.name) + ":" + uuid.NewString(), protocol, endpoint, raw, declared}
	t.subscriptions = append(t.subscriptions, created)
	return created.arn, nil
}

// Publish sends a message to a topic's subscribers as the caller. A message that a queue rejects is lost, as on AWS
// without a dead-letter queue.
func (s *Service) Publish(ctx context.Context, caller iam.Caller, topicARN, subject, message string) (messageID string, err error) {
	return s.PublishWith(ctx, caller, topicARN, subject, message, nil)
}

// PublishWith is Publish with attributes, which subscribers receive. Filter policies are not supported.
func (s *Service) PublishWith(ctx context.Context, caller iam.Caller, topicARN, subject, message string,
	attributes map[string]string) (messageID string, err error) {
	switch {
	case message == "":
		return "", wire.Errorf("InvalidParameter", "Invalid parameter: Empty message")
	case len(message) > 256<<10:
		return "", wire.Errorf("InvalidParameter", "Invalid parameter: Message too long")
	case len(subject) > 100 || strings.ContainsAny(subject, "\n\r"):
		return "", wire.Errorf("InvalidParameter", "Invalid parameter: Subject")
	}
	s.mu.Lock()
	t, err := s.permittedTopic(caller, "Publish", topicARN)
	if err != nil {
		s.mu.Unlock()
		return "", err
	}
	subscriptions, key := slices.Clone(t.subscriptions), t.key
	s.mu.Unlock()
	if s.Keys != nil && key != "" {
		for _, action := range []string{"GenerateDataKey", "Decrypt"} {
			if err := s.Keys.Authorize(caller, action, key); err != nil {
				return "", &wire.Error{Code: "KMSAccessDenied", Message: err.Error(), Status: 400}
			}
		}
	}
	id := uuid.NewString()
	notification := map[string]any{
		"Type": "Notification", "MessageId": id, "TopicArn": topicARN, "Message": message,
		"Timestamp": s.clock.Now().Format("2006-01-02T15:04:05.000Z"),
	}
	if subject != "" {
		notification["Subject"] = subject
	}
	if len(attributes) > 0 {
		type attribute struct{ Type, Value string }
		shown := map[string]attribute{}
		for name, value := range attributes {
			shown[name] = attribute{"String", value}
		}
		notification["MessageAttributes"] = shown
	}
	wrapped, err := json.Marshal(notification)
	if err != nil {
		return "", err
	}
	for _, sub := range subscriptions {
		// Raw delivery passes a message's attributes to the queue's message. Otherwise they are in the body.
		// https://docs.aws.amazon.com/sns/latest/dg/sns-large-payload-raw-message-delivery.html
		body, own := string(wrapped), map[string]string(nil)
		if sub.raw {
			body, own = message, attributes
		}
		if _, err := s.queues.Send(ctx, s.identities.ServiceCaller("sns.amazonaws.com", topicARN), sub.endpoint, body, own); err != nil {
			slog.Warn("a notification was not delivered", "topic", topicARN, "endpoint", sub.endpoint, "error", err)
		}
	}
	if s.OnPublish != nil {
		s.OnPublish(topicARN, subject, message)
	}
	return id, nil
}

// Tagged returns the topics with their tags.
func (s *Service) Tagged(context.Context) (list []tagging.Tagged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for arn, t := range s.topics {
		list = append(list, tagging.Tagged{ARN: arn, Tags: maps.Clone(t.tags)})
	}
	return list
}
