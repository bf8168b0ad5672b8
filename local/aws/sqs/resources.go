package sqs

// CloudFormation resource types. https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_SQS.html

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Resources returns the providers by resource type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::SQS::Queue": queues{s}, "AWS::SQS::QueuePolicy": policies{s}}
}

type queues struct{ s *Service }

func (queues) Schema() resource.Schema {
	schema := resource.Schema{
		Properties: map[string]resource.UpdateBehavior{"QueueName": resource.Replaces, "Tags": resource.InPlace},
		Attributes: []string{"Arn", "QueueName", "QueueUrl"},
	}
	for name := range settable {
		if name != "Policy" {
			schema.Properties[name] = resource.InPlace
		}
	}
	return schema
}

type queueProperties struct {
	QueueName                                                          string
	DelaySeconds, MaximumMessageSize, MessageRetentionPeriod           *string
	ReceiveMessageWaitTimeSeconds, VisibilityTimeout                   *string
	SqsManagedSseEnabled, KmsMasterKeyId, KmsDataKeyReusePeriodSeconds *string // the properties' names
	RedrivePolicy, RedriveAllowPolicy                                  any
	Tags                                                               []resource.Tag
}

// wantedQueue reads the properties. An attribute that is not set is empty, which restores its default.
func (p queues) wantedQueue(properties map[string]any) (queueProperties, map[string]string, error) {
	var in queueProperties
	if err := resource.Decode(properties, &in); err != nil {
		return in, nil, err
	}
	attributes := map[string]string{}
	for name, value := range map[string]*string{
		"DelaySeconds": in.DelaySeconds, "MaximumMessageSize": in.MaximumMessageSize, "MessageRetentionPeriod": in.MessageRetentionPeriod,
		"ReceiveMessageWaitTimeSeconds": in.ReceiveMessageWaitTimeSeconds, "VisibilityTimeout": in.VisibilityTimeout,
		"SqsManagedSseEnabled": in.SqsManagedSseEnabled, "KmsMasterKeyId": in.KmsMasterKeyId,
		"KmsDataKeyReusePeriodSeconds": in.KmsDataKeyReusePeriodSeconds,
	} {
		attributes[name] = ""
		if value != nil {
			attributes[name] = *value
		}
	}
	for name, value := range map[string]any{"RedrivePolicy": in.RedrivePolicy, "RedriveAllowPolicy": in.RedriveAllowPolicy} {
		attributes[name] = ""
		if value == nil {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return in, nil, err
		}
		attributes[name] = string(text)
	}
	return in, attributes, nil
}

func (p queues) result(name string) resource.Result {
	return resource.Result{
		PhysicalID: p.s.url(name), Attributes: map[string]any{"Arn": p.s.arn(name), "QueueName": name, "QueueUrl": p.s.url(name)},
	}
}

func (p queues) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	in, attributes, err := p.wantedQueue(r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	if in.QueueName == "" {
		in.QueueName = r.GeneratedName(80)
	}
	if err := r.Caller.Authorize("sqs:CreateQueue", p.s.arn(in.QueueName), nil); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	_, taken := p.s.queues[in.QueueName]
	p.s.mu.Unlock()
	if taken {
		return resource.Result{}, wire.Errorf("QueueAlreadyExists", "Resource of type 'AWS::SQS::Queue' with identifier '%s' already exists.",
			in.QueueName)
	}
	if err := p.s.Create(in.QueueName, attributes, tagging.Merge(r.Tags, in.Tags)); err != nil {
		return resource.Result{}, err
	}
	return p.result(in.QueueName), nil
}

func (p queues) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	in, attributes, err := p.wantedQueue(r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	q, err := p.s.permittedQueue(r.Caller, "SetQueueAttributes", r.PhysicalID)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.s.set(q, attributes); err != nil {
		return resource.Result{}, err
	}
	q.tags = tagging.Merge(r.Tags, in.Tags)
	return p.result(q.name), nil
}

func (p queues) Delete(_ context.Context, r resource.Request) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	q, err := p.s.permittedQueue(r.Caller, "DeleteQueue", r.PhysicalID)
	if errors.Is(err, errNoQueue) {
		return nil
	}
	if err != nil {
		return err
	}
	delete(p.s.queues, q.name)
	return nil
}

type policies struct{ s *Service }

func (policies) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{"Queues": resource.InPlace, "PolicyDocument": resource.InPlace},
		Required:   []string{"Queues", "PolicyDocument"},
		Attributes: []string{"Id"},
	}
}

// put sets the policy of queues. An empty policy removes it, and then ignores queues that no longer exist.
func (p policies) put(r resource.Request, urls []string, policy string) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, url := range urls {
		q, err := p.s.permittedQueue(r.Caller, "SetQueueAttributes", url)
		if errors.Is(err, errNoQueue) && policy == "" {
			continue
		}
		if err != nil {
			return err
		}
		if err := p.s.set(q, map[string]string{"Policy": policy}); err != nil {
			return err
		}
	}
	return nil
}

func decodePolicy(properties map[string]any) (urls []string, text string, err error) {
	var in struct {
		Queues         []string
		PolicyDocument any
	}
	if err := resource.Decode(properties, &in); err != nil {
		return nil, "", err
	}
	_, text, err = iam.ParsePolicyValue(in.PolicyDocument, true)
	return in.Queues, text, err
}

func (p policies) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	urls, text, err := decodePolicy(r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	id := r.GeneratedName(80)
	return resource.Result{PhysicalID: id, Attributes: map[string]any{"Id": id}}, p.put(r, urls, text)
}

func (p policies) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	old, _, err := decodePolicy(r.Old)
	if err != nil {
		return resource.Result{}, err
	}
	urls, text, err := decodePolicy(r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.put(r, old, ""); err != nil {
		return resource.Result{}, err
	}
	return resource.Result{PhysicalID: r.PhysicalID, Attributes: map[string]any{"Id": r.PhysicalID}}, p.put(r, urls, text)
}

func (p policies) Delete(_ context.Context, r resource.Request) error {
	urls, _, err := decodePolicy(r.Properties)
	if err != nil {
		return err
	}
	return p.put(r, urls, "")
}
