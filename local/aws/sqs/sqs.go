// Package sqs simulates Amazon SQS: standard queues with message attributes, visibility timeouts, long polling,
// retention, redrive to dead-letter queues, and queue policies.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/Welcome.html
//
// It supports CreateQueue, DeleteQueue, GetQueueUrl, ListQueues, GetQueueAttributes, SetQueueAttributes, PurgeQueue,
// ListQueueTags, SendMessage, ReceiveMessage, DeleteMessage and ChangeMessageVisibility, in the JSON and Query
// protocols, and the resource types AWS::SQS::Queue and AWS::SQS::QueuePolicy. There are no FIFO queues, delays,
// batches, binary attributes or message move tasks. Encryption settings are stored without effect.
package sqs

import (
	"context"
	"crypto/md5" // the digest in SQS's answers
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/wire"
)

// Service has the account's queues.
type Service struct {
	identities *iam.Service
	clock      *clock.Clock

	mu     sync.Mutex
	queues map[string]*queue
	// arrived is closed and replaced when a queue gets a message.
	arrived chan struct{}
}

// New returns a service without queues.
func New(identities *iam.Service, c *clock.Clock) *Service {
	return &Service{identities: identities, clock: c, queues: map[string]*queue{}, arrived: make(chan struct{})}
}

type queue struct {
	name       string
	attributes map[string]string
	tags       map[string]string
	policy     *iam.Policy
	redrive    *redrivePolicy
	created    time.Time
	changed    time.Time
	messages   []*message
}

type redrivePolicy struct {
	DeadLetterTargetArn string `json:"deadLetterTargetArn"`
	MaxReceiveCount     any    `json:"maxReceiveCount"` // a number or its text
}

type message struct {
	id, body   string
	attributes map[string]string
	sent       time.Time
	sender     string
	visible    time.Time
	receipt    string
	received   int
	first      time.Time
}

// Message is a message as ReceiveMessage returns it.
type Message struct {
	ID, Body, ReceiptHandle string
	// Attributes are message attributes of type String.
	Attributes map[string]string
	Received   int
}

// settable has the attributes of a queue that can be set, with their defaults and maximums. A maximum of 0 means text.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
var settable = map[string]struct {
	initial  string
	greatest int
}{
	"DelaySeconds":                  {"0", 900},
	"MaximumMessageSize":            {"1048576", 1048576},
	"MessageRetentionPeriod":        {"345600", 1209600},
	"ReceiveMessageWaitTimeSeconds": {"0", 20},
	"VisibilityTimeout":             {"30", 43200},
	"SqsManagedSseEnabled":          {"true", 0},
	"KmsMasterKeyId":                {"", 0},
	"KmsDataKeyReusePeriodSeconds":  {"", 86400},
	"Policy":                        {"", 0},
	"RedrivePolicy":                 {"", 0},
	"RedriveAllowPolicy":            {"", 0},
}

func (s *Service) arn(name string) string {
	return "arn:" + s.identities.Partition + ":sqs:" + s.identities.Region + ":" + s.identities.Account + ":" + name
}

// url returns the URL of a queue on AWS. Requests use it only as a parameter.
func (s *Service) url(name string) string {
	return "https://sqs." + s.identities.Region + ".amazonaws.com/" + s.identities.Account + "/" + name
}

var errNoQueue = &wire.Error{Code: "QueueDoesNotExist", Message: "The specified queue does not exist.", Status: 400}

// find returns a queue by ARN, URL or name. The caller holds the lock.
func (s *Service) find(id string) (*queue, error) {
	if arn, ok := strings.CutPrefix(id, s.arn("")); ok {
		id = arn
	}
	q, ok := s.queues[id[strings.LastIndex(id, "/")+1:]]
	if !ok {
		return nil, errNoQueue
	}
	return q, nil
}

// permittedQueue returns a queue if the caller may perform the action on it. The caller holds the lock.
func (s *Service) permittedQueue(caller iam.Caller, action, id string) (*queue, error) {
	q, err := s.find(id)
	if err != nil {
		// A caller without permission does not learn that the queue is absent.
		name := id[strings.LastIndexAny(id, "/:")+1:]
		if denied := caller.Authorize("sqs:"+action, s.arn(name), nil); denied != nil {
			return nil, denied
		}
		return nil, err
	}
	return q, caller.AuthorizeWith("sqs:"+action, s.arn(q.name), nil, q.policy)
}

// Create creates a queue, or returns without an error if a queue with equal attributes exists.
func (s *Service) Create(name string, attributes, tags map[string]string) error {
	ok := name != "" && len(name) <= 80
	for _, r := range name {
		ok = ok && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_')
	}
	if strings.HasSuffix(name, ".fifo") || attributes["FifoQueue"] == "true" {
		return wire.Unsupported("sqs", "FIFO queues")
	}
	if !ok {
		return wire.Errorf("InvalidParameterValue", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, ok := s.queues[name]; ok {
		for k, v := range attributes {
			if q.attributes[k] != v {
				return wire.Errorf("QueueNameExists", "A queue already exists with the same name and a different value for attribute %s", k)
			}
		}
		return nil
	}
	q := &queue{name: name, attributes: map[string]string{}, tags: maps.Clone(tags), created: s.clock.Now()}
	for k, a := range settable {
		if a.initial != "" {
			q.attributes[k] = a.initial
		}
	}
	if err := s.set(q, attributes); err != nil {
		return err
	}
	s.queues[name] = q
	return nil
}

// set validates all attributes before it sets any. An empty value restores the default. The caller holds the lock.
func (s *Service) set(q *queue, attributes map[string]string) error {
	policy, redrive := q.policy, q.redrive
	for k, v := range attributes {
		setting, ok := settable[k]
		if !ok {
			return wire.Errorf("InvalidAttributeName", "Unknown Attribute %s.", k)
		}
		if setting.greatest > 0 && v != "" {
			if n, err := strconv.Atoi(v); err != nil || n < 0 || n > setting.greatest {
				return wire.Errorf("InvalidAttributeValue", "Invalid value for the parameter %s.", k)
			}
		}
		switch {
		case k == "DelaySeconds" && v != "0" && v != "":
			return wire.Unsupported("sqs", "delays")
		case k == "Policy" && v == "":
			policy = nil
		case k == "Policy":
			parsed, err := iam.ParsePolicy(v, true)
			if err != nil {
				return wire.Errorf("InvalidAttributeValue", "Invalid value for the parameter Policy: %v", err)
			}
			policy = parsed
		case k == "RedrivePolicy" && v == "":
			redrive = nil
		case k == "RedrivePolicy":
			redrive = &redrivePolicy{}
			if err := json.Unmarshal([]byte(v), redrive); err != nil || redrive.most() < 1 || redrive.DeadLetterTargetArn == "" {
				return wire.Errorf("InvalidParameterValue", "Value %s for parameter RedrivePolicy is invalid. Reason: it needs deadLetterTargetArn "+
					"and maxReceiveCount.", v)
			}
			if _, err := s.find(redrive.DeadLetterTargetArn); err != nil {
				return wire.Errorf("InvalidParameterValue", "Value %s for parameter RedrivePolicy is invalid. Reason: Dead letter target "+
					"does not exist.", v)
			}
		}
	}
	for k, v := range attributes {
		if v == "" {
			v = settable[k].initial
		}
		if v == "" {
			delete(q.attributes, k)
			continue
		}
		q.attributes[k] = v
	}
	q.policy, q.redrive, q.changed = policy, redrive, s.clock.Now()
	return nil
}

func (p *redrivePolicy) most() int {
	switch n := p.MaxReceiveCount.(type) {
	case float64:
		return int(n)
	case string:
		parsed, _ := strconv.Atoi(n) // 0 is rejected like text
		return parsed
	}
	return 0
}

func (q *queue) seconds(attribute string) time.Duration {
	n, _ := strconv.Atoi(q.attributes[attribute]) // set has validated it
	return time.Duration(n) * time.Second
}

// Send sends a message to a queue, by ARN, URL or name, as the caller. A service that calls on its own behalf needs the
// permission of the queue policy. attributes are message attributes of type String.
func (s *Service) Send(_ context.Context, caller iam.Caller, queueID, body string, attributes map[string]string) (messageID string,
	err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.permittedQueue(caller, "SendMessage", queueID)
	if err != nil {
		return "", err
	}
	size := len(body)
	for k, v := range attributes {
		size += len(k) + len("String") + len(v)
	}
	if limit, _ := strconv.Atoi(q.attributes["MaximumMessageSize"]); size > limit {
		return "", wire.Errorf("InvalidParameterValue", "One or more parameters are invalid. Reason: Message must be shorter "+
			"than %d bytes.", limit)
	}
	if body == "" {
		return "", wire.Errorf("MissingParameter", "The request must contain the parameter MessageBody.")
	}
	m := &message{id: uuid.NewString(), body: body, attributes: maps.Clone(attributes), sent: s.clock.Now(), sender: caller.ARN()}
	s.add(q, m)
	return m.id, nil
}

func (s *Service) add(q *queue, m *message) {
	q.messages = append(q.messages, m)
	close(s.arrived)
	s.arrived = make(chan struct{})
}

// Receive returns up to most messages and waits up to wait for the first. Each is hidden for the visibility timeout. A
// nil timeout or wait means the queue's own.
func (s *Service) Receive(ctx context.Context, caller iam.Caller, queueID string, most int, wait, visibility *time.Duration) ([]Message,
	error) {
	var timeout <-chan time.Time
	for {
		s.mu.Lock()
		q, err := s.permittedQueue(caller, "ReceiveMessage", queueID)
		if err != nil {
			s.mu.Unlock()
			return nil, err
		}
		hide := q.seconds("VisibilityTimeout")
		if visibility != nil {
			hide = *visibility
		}
		got := s.take(q, most, hide)
		arrived := s.arrived
		if timeout == nil {
			limit := q.seconds("ReceiveMessageWaitTimeSeconds")
			if wait != nil {
				limit = *wait
			}
			timer := time.NewTimer(limit)
			defer timer.Stop()
			timeout = timer.C
		}
		next := s.nextVisible(q)
		s.mu.Unlock()
		if len(got) > 0 {
			return got, nil
		}
		visible := time.NewTimer(next)
		select {
		case <-arrived:
		case <-visible.C:
		case <-timeout:
			visible.Stop()
			return nil, nil
		case <-ctx.Done():
			visible.Stop()
			return nil, ctx.Err()
		}
		visible.Stop()
	}
}

// nextVisible returns the time until a hidden message becomes visible.
func (s *Service) nextVisible(q *queue) time.Duration {
	next := time.Minute
	for _, m := range q.messages {
		if d := m.visible.Sub(s.clock.Now()); d < next {
			next = max(d, time.Millisecond)
		}
	}
	return next
}

// take returns visible messages. It moves those that were received too often to the dead-letter queue, and drops expired
// ones.
func (s *Service) take(q *queue, most int, hide time.Duration) (got []Message) {
	now := s.clock.Now()
	var keep []*message
	for _, m := range q.messages {
		if now.Sub(m.sent) > q.seconds("MessageRetentionPeriod") {
			continue
		}
		if m.visible.After(now) || len(got) == most {
			keep = append(keep, m)
			continue
		}
		if q.redrive != nil && m.received >= q.redrive.most() {
			if dead, err := s.find(q.redrive.DeadLetterTargetArn); err == nil {
				m.received, m.visible, m.receipt = 0, time.Time{}, ""
				s.add(dead, m)
				continue
			}
		}
		m.received++
		if m.first.IsZero() {
			m.first = now
		}
		m.visible, m.receipt = now.Add(hide), uuid.NewString()
		keep = append(keep, m)
		got = append(got, Message{ID: m.id, Body: m.body, ReceiptHandle: m.receipt, Attributes: m.attributes, Received: m.received})
	}
	q.messages = keep
	return got
}

// Delete deletes a received message. Deleting one that does not exist succeeds.
func (s *Service) Delete(_ context.Context, caller iam.Caller, queueID, receipt string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.permittedQueue(caller, "DeleteMessage", queueID)
	if err != nil {
		return err
	}
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return receipt != "" && m.receipt == receipt })
	return nil
}

// Depths returns the number of visible messages by queue name, for the metric ApproximateNumberOfMessagesVisible.
func (s *Service) Depths() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	depths := map[string]int{}
	for name, q := range s.queues {
		depths[name] = 0
		for _, m := range q.messages {
			if !m.visible.After(s.clock.Now()) {
				depths[name]++
			}
		}
	}
	return depths
}

// Tagged returns the queues with their tags.
func (s *Service) Tagged(context.Context) (list []tagging.Tagged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, q := range s.queues {
		list = append(list, tagging.Tagged{ARN: s.arn(name), Tags: maps.Clone(q.tags)})
	}
	return list
}

func digest(body string) string {
	sum := md5.Sum([]byte(body)) // the digest in SQS's answers
	return hex.EncodeToString(sum[:])
}
