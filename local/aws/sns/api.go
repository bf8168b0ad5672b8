package sns

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Wire returns the service's API for the endpoint.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "sns", Protocol: wire.Query, Version: "2010-03-31",
		Operations: map[string]wire.Operation{
			"CreateTopic":              s.createTopic,
			"DeleteTopic":              s.deleteTopic,
			"ListTopics":               s.listTopics,
			"GetTopicAttributes":       s.getTopicAttributes,
			"ListTagsForResource":      s.listTags,
			"Subscribe":                s.subscribeCall,
			"Unsubscribe":              s.unsubscribe,
			"ListSubscriptions":        s.listSubscriptions,
			"ListSubscriptionsByTopic": s.listSubscriptionsByTopic,
			"Publish":                  s.publish,
		},
	}
}

func (s *Service) createTopic(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Name       string
		Attributes map[string]string
		Tags       []resource.Tag
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	for k := range in.Attributes {
		if k != "DisplayName" && k != "KmsMasterKeyId" {
			return nil, wire.Unsupported("sns", "the topic attribute "+k)
		}
	}
	arn := s.arn(in.Name)
	if err := c.Authorize(arn); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.topics[arn]; !ok {
		if _, err := s.create(in.Name, in.Attributes["DisplayName"], in.Attributes["KmsMasterKeyId"], tagging.Merge(nil, in.Tags)); err != nil {
			return nil, err
		}
	}
	return struct{ TopicArn string }{arn}, nil
}

func (s *Service) deleteTopic(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ TopicArn string }
	return s.onTopic(c, &in, &in.TopicArn, func(*topic) (any, error) {
		delete(s.topics, in.TopicArn)
		return nil, nil
	})
}

// onTopic decodes the parameters, authorizes the action, and calls do with the topic under the lock.
func (s *Service) onTopic(c *wire.Call, in any, arn *string, do func(*topic) (any, error)) (any, error) {
	if err := c.Decode(in); err != nil {
		return nil, err
	}
	c.Resource = *arn
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.permittedTopic(c.Caller, c.Action, *arn)
	if err != nil {
		return nil, err
	}
	return do(t)
}

func (s *Service) listTopics(_ context.Context, c *wire.Call) (any, error) {
	if err := c.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	type entry struct{ TopicArn string }
	out := struct{ Topics []entry }{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, arn := range slices.Sorted(maps.Keys(s.topics)) {
		out.Topics = append(out.Topics, entry{arn})
	}
	return out, nil
}

func (s *Service) getTopicAttributes(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ TopicArn string }
	return s.onTopic(c, &in, &in.TopicArn, func(t *topic) (any, error) {
		attributes := map[string]string{
			"TopicArn": in.TopicArn, "Owner": s.identities.Account, "DisplayName": t.displayName, "Policy": t.policyText,
			"SubscriptionsConfirmed": strconv.Itoa(len(t.subscriptions)), "SubscriptionsPending": "0",
		}
		if t.key != "" {
			attributes["KmsMasterKeyId"] = t.key
		}
		return struct{ Attributes map[string]string }{attributes}, nil
	})
}

func (s *Service) listTags(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ ResourceArn string }
	return s.onTopic(c, &in, &in.ResourceArn, func(t *topic) (any, error) {
		return struct{ Tags []resource.Tag }{tagging.List(t.tags)}, nil
	})
}

func (s *Service) subscribeCall(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		TopicArn, Protocol, Endpoint string
		Attributes                   map[string]string
		ReturnSubscriptionArn        bool
	}
	return s.onTopic(c, &in, &in.TopicArn, func(t *topic) (any, error) {
		for k := range in.Attributes {
			if k != "RawMessageDelivery" {
				return nil, wire.Unsupported("sns", "the subscription attribute "+k)
			}
		}
		arn, err := s.subscribe(t, in.Protocol, in.Endpoint, in.Attributes["RawMessageDelivery"] == "true", false)
		return struct{ SubscriptionArn string }{arn}, err
	})
}

func (s *Service) unsubscribe(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ SubscriptionArn string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	topicARN := in.SubscriptionArn[:max(strings.LastIndex(in.SubscriptionArn, ":"), 0)]
	if err := c.Authorize(topicARN); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.topics[topicARN]; ok {
		t.subscriptions = slices.DeleteFunc(t.subscriptions, func(sub subscription) bool { return sub.arn == in.SubscriptionArn })
	}
	return nil, nil
}

type shownSubscription struct{ SubscriptionArn, Owner, Protocol, Endpoint, TopicArn string }

func (s *Service) views(t *topic) (list []shownSubscription) {
	for _, sub := range t.subscriptions {
		list = append(list, shownSubscription{sub.arn, s.identities.Account, sub.protocol, sub.endpoint, s.arn(t.name)})
	}
	return list
}

func (s *Service) listSubscriptions(_ context.Context, c *wire.Call) (any, error) {
	if err := c.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	out := struct{ Subscriptions []shownSubscription }{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, arn := range slices.Sorted(maps.Keys(s.topics)) {
		out.Subscriptions = append(out.Subscriptions, s.views(s.topics[arn])...)
	}
	return out, nil
}

func (s *Service) listSubscriptionsByTopic(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ TopicArn string }
	return s.onTopic(c, &in, &in.TopicArn, func(t *topic) (any, error) {
		return struct{ Subscriptions []shownSubscription }{s.views(t)}, nil
	})
}

func (s *Service) publish(ctx context.Context, c *wire.Call) (any, error) {
	var in struct {
		TopicArn, Subject, Message string
		MessageAttributes          map[string]struct{ DataType, StringValue string }
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	attributes := map[string]string{}
	for name, value := range in.MessageAttributes {
		if value.DataType != "String" {
			return nil, wire.Unsupported("sns", "message attributes of the type "+value.DataType)
		}
		attributes[name] = value.StringValue
	}
	c.Resource = in.TopicArn
	id, err := s.PublishWith(ctx, c.Caller, in.TopicArn, in.Subject, in.Message, attributes)
	if err != nil {
		return nil, err
	}
	return struct {
		MessageID string `xml:"MessageId"`
	}{id}, nil
}
