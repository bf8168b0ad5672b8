package sqs

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/local/engine/wire"
)

// Wire returns the service's API for the endpoint.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "sqs", Protocol: wire.JSON10, TargetPrefix: "AmazonSQS", Version: "2012-11-05",
		Flat: map[string]string{
			"Attribute": "Attributes", "AttributeName": "AttributeNames", "MessageAttribute": "MessageAttributes",
			"MessageAttributeName": "MessageAttributeNames", "MessageSystemAttributeName": "MessageSystemAttributeNames", "Tag": "Tags",
		},
		Operations: map[string]wire.Operation{
			"CreateQueue":             s.createQueue,
			"DeleteQueue":             s.deleteQueue,
			"GetQueueUrl":             s.getQueueURL,
			"ListQueues":              s.listQueues,
			"GetQueueAttributes":      s.getQueueAttributes,
			"SetQueueAttributes":      s.setQueueAttributes,
			"PurgeQueue":              s.purgeQueue,
			"ListQueueTags":           s.listQueueTags,
			"SendMessage":             s.sendMessage,
			"ReceiveMessage":          s.receiveMessage,
			"DeleteMessage":           s.deleteMessage,
			"ChangeMessageVisibility": s.changeMessageVisibility,
		},
	}
}

func (s *Service) createQueue(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		QueueName        string
		Attributes, Tags map[string]string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(s.arn(in.QueueName)); err != nil {
		return nil, err
	}
	if err := s.Create(in.QueueName, in.Attributes, in.Tags); err != nil {
		return nil, err
	}
	return struct{ QueueUrl string }{s.url(in.QueueName)}, nil // the member's name
}

// onQueue decodes the parameters, authorizes the action, and calls do with the queue under the lock.
func (s *Service) onQueue(c *wire.Call, in any, url *string, do func(q *queue) (any, error)) (any, error) {
	if err := c.Decode(in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Resource = s.arn((*url)[strings.LastIndex(*url, "/")+1:])
	q, err := s.permittedQueue(c.Caller, c.Action, *url)
	if err != nil {
		return nil, err
	}
	return do(q)
}

func (s *Service) deleteQueue(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ QueueURL string }
	return s.onQueue(c, &in, &in.QueueURL, func(q *queue) (any, error) {
		delete(s.queues, q.name)
		return nil, nil
	})
}

func (s *Service) getQueueURL(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ QueueName, QueueOwnerAWSAccountID string }
	return s.onQueue(c, &in, &in.QueueName, func(q *queue) (any, error) {
		return struct{ QueueUrl string }{s.url(q.name)}, nil // the member's name
	})
}

func (s *Service) listQueues(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		QueueNamePrefix string
		MaxResults      *int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	out := struct {
		QueueUrls []string `xml:"QueueUrl,flat"` // the member's name
	}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		if strings.HasPrefix(name, in.QueueNamePrefix) {
			out.QueueUrls = append(out.QueueUrls, s.url(name))
		}
	}
	return out, nil
}

func (s *Service) getQueueAttributes(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		QueueURL       string
		AttributeNames []string
	}
	return s.onQueue(c, &in, &in.QueueURL, func(q *queue) (any, error) {
		all := maps.Clone(q.attributes)
		visible, hidden := 0, 0
		for _, m := range q.messages {
			if m.visible.After(s.clock.Now()) {
				hidden++
			} else {
				visible++
			}
		}
		maps.Copy(all, map[string]string{
			"QueueArn": s.arn(q.name), "CreatedTimestamp": strconv.FormatInt(q.created.Unix(), 10),
			"LastModifiedTimestamp":       strconv.FormatInt(q.changed.Unix(), 10),
			"ApproximateNumberOfMessages": strconv.Itoa(visible), "ApproximateNumberOfMessagesNotVisible": strconv.Itoa(hidden),
			"ApproximateNumberOfMessagesDelayed": "0",
		})
		if !slices.Contains(in.AttributeNames, "All") {
			for _, name := range in.AttributeNames {
				if _, ok := settable[name]; !ok && all[name] == "" {
					return nil, wire.Errorf("InvalidAttributeName", "Unknown Attribute %s.", name)
				}
			}
			maps.DeleteFunc(all, func(k, _ string) bool { return !slices.Contains(in.AttributeNames, k) })
		}
		return struct {
			Attributes map[string]string `xml:"Attribute,flat"`
		}{all}, nil
	})
}

func (s *Service) setQueueAttributes(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		QueueURL   string
		Attributes map[string]string
	}
	return s.onQueue(c, &in, &in.QueueURL, func(q *queue) (any, error) { return nil, s.set(q, in.Attributes) })
}

func (s *Service) purgeQueue(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ QueueURL string }
	return s.onQueue(c, &in, &in.QueueURL, func(q *queue) (any, error) {
		q.messages = nil
		return nil, nil
	})
}

func (s *Service) listQueueTags(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ QueueURL string }
	return s.onQueue(c, &in, &in.QueueURL, func(q *queue) (any, error) {
		type tag struct{ Key, Value string }
		out := struct {
			Tags map[string]string `xml:"-"`
			List []tag             `json:"-" xml:"Tag,flat"` // the Query protocol's form
		}{Tags: maps.Clone(q.tags)}
		for _, key := range slices.Sorted(maps.Keys(q.tags)) {
			out.List = append(out.List, tag{key, q.tags[key]})
		}
		return out, nil
	})
}

type attributeValue struct {
	DataType    string
	StringValue string
}

func (s *Service) sendMessage(ctx context.Context, c *wire.Call) (any, error) {
	var in struct {
		QueueURL, MessageBody string
		DelaySeconds          int
		MessageAttributes     map[string]attributeValue
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.DelaySeconds != 0 {
		return nil, wire.Unsupported("sqs", "delays")
	}
	attributes := map[string]string{}
	for k, v := range in.MessageAttributes {
		if v.DataType != "String" {
			return nil, wire.Unsupported("sqs", "message attributes of type "+v.DataType)
		}
		attributes[k] = v.StringValue
	}
	c.Resource = s.arn(in.QueueURL[strings.LastIndex(in.QueueURL, "/")+1:])
	id, err := s.Send(ctx, c.Caller, in.QueueURL, in.MessageBody, attributes)
	if err != nil {
		return nil, err
	}
	return struct {
		MessageID string `json:"MessageId" xml:"MessageId"`
		Digest    string `json:"MD5OfMessageBody" xml:"MD5OfMessageBody"`
	}{id, digest(in.MessageBody)}, nil
}

func (s *Service) receiveMessage(ctx context.Context, c *wire.Call) (any, error) {
	var in struct {
		QueueURL                                                           string
		MaxNumberOfMessages, WaitTimeSeconds, VisibilityTimeout            *int
		AttributeNames, MessageSystemAttributeNames, MessageAttributeNames []string
		ReceiveRequestAttemptID                                            string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	most := 1
	if in.MaxNumberOfMessages != nil {
		most = *in.MaxNumberOfMessages
	}
	if most < 1 || most > 10 {
		return nil, wire.Errorf("InvalidParameterValue", "Value %d for parameter MaxNumberOfMessages is invalid. "+
			"Reason: Must be between 1 and 10, if provided.", most)
	}
	if in.WaitTimeSeconds != nil && (*in.WaitTimeSeconds < 0 || *in.WaitTimeSeconds > 20) {
		return nil, wire.Errorf("InvalidParameterValue", "Value %d for parameter WaitTimeSeconds is invalid. "+
			"Reason: Must be >= 0 and <= 20, if provided.", *in.WaitTimeSeconds)
	}
	c.Resource = s.arn(in.QueueURL[strings.LastIndex(in.QueueURL, "/")+1:])
	got, err := s.Receive(ctx, c.Caller, in.QueueURL, most, duration(in.WaitTimeSeconds), duration(in.VisibilityTimeout))
	if err != nil {
		return nil, err
	}
	type message struct {
		MessageID         string `json:"MessageId" xml:"MessageId"`
		ReceiptHandle     string
		Body              string
		Digest            string                    `json:"MD5OfBody" xml:"MD5OfBody"`
		Attributes        map[string]string         `json:",omitempty" xml:"Attribute,flat"`
		MessageAttributes map[string]attributeValue `json:",omitempty" xml:"MessageAttribute,flat"`
	}
	out := struct {
		Messages []message `xml:"Message,flat"`
	}{}
	system := append(in.AttributeNames, in.MessageSystemAttributeNames...)
	for _, m := range got {
		shown := message{MessageID: m.ID, ReceiptHandle: m.ReceiptHandle, Body: m.Body, Digest: digest(m.Body)}
		if slices.Contains(system, "All") || slices.Contains(system, "ApproximateReceiveCount") {
			shown.Attributes = map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.Received)}
		}
		for k, v := range m.Attributes {
			if slices.Contains(in.MessageAttributeNames, k) || slices.Contains(in.MessageAttributeNames, "All") ||
				slices.Contains(in.MessageAttributeNames, ".*") {
				if shown.MessageAttributes == nil {
					shown.MessageAttributes = map[string]attributeValue{}
				}
				shown.MessageAttributes[k] = attributeValue{"String", v}
			}
		}
		out.Messages = append(out.Messages, shown)
	}
	return out, nil
}

func duration(seconds *int) *time.Duration {
	if seconds == nil {
		return nil
	}
	d := time.Duration(*seconds) * time.Second
	return &d
}

func (s *Service) deleteMessage(ctx context.Context, c *wire.Call) (any, error) {
	var in struct{ QueueURL, ReceiptHandle string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.arn(in.QueueURL[strings.LastIndex(in.QueueURL, "/")+1:])
	return nil, s.Delete(ctx, c.Caller, in.QueueURL, in.ReceiptHandle)
}

func (s *Service) changeMessageVisibility(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		QueueURL, ReceiptHandle string
		VisibilityTimeout       int
	}
	return s.onQueue(c, &in, &in.QueueURL, func(q *queue) (any, error) {
		for _, m := range q.messages {
			if m.receipt == in.ReceiptHandle {
				m.visible = s.clock.Now().Add(time.Duration(in.VisibilityTimeout) * time.Second)
				return nil, nil
			}
		}
		return nil, wire.Errorf("ReceiptHandleIsInvalid", "The input receipt handle %q is not a valid receipt handle.", in.ReceiptHandle)
	})
}
