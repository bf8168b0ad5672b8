package sns

// CloudFormation resource types. https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_SNS.html

import (
	"context"
	"errors"
	"slices"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Resources returns the providers by resource type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::SNS::Topic": topics{s}, "AWS::SNS::TopicPolicy": policies{s}}
}

type topics struct{ s *Service }

func (topics) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"TopicName": resource.Replaces, "DisplayName": resource.InPlace, "KmsMasterKeyId": resource.InPlace, "Subscription": resource.InPlace,
			"Tags": resource.InPlace,
		},
		Attributes: []string{"TopicArn", "TopicName"},
	}
}

type topicProperties struct {
	TopicName, DisplayName, KmsMasterKeyId string // the properties' names
	Subscription                           []struct{ Endpoint, Protocol string }
	Tags                                   []resource.Tag
}

func (p topics) result(t *topic) resource.Result {
	arn := p.s.arn(t.name)
	return resource.Result{PhysicalID: arn, Attributes: map[string]any{"TopicArn": arn, "TopicName": t.name}}
}

func (p topics) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	var in topicProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	if in.TopicName == "" {
		in.TopicName = r.GeneratedName(256)
	}
	arn := p.s.arn(in.TopicName)
	if err := r.Caller.Authorize("sns:CreateTopic", arn, nil); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if _, ok := p.s.topics[arn]; ok {
		return resource.Result{}, wire.Errorf("AlreadyExists", "Resource of type 'AWS::SNS::Topic' with identifier '%s' already exists.", arn)
	}
	t, err := p.s.create(in.TopicName, in.DisplayName, in.KmsMasterKeyId, tagging.Merge(r.Tags, in.Tags))
	if err != nil {
		return resource.Result{}, err
	}
	for _, sub := range in.Subscription {
		if _, err := p.s.subscribe(t, sub.Protocol, sub.Endpoint, false, true); err != nil {
			delete(p.s.topics, arn)
			return resource.Result{}, err
		}
	}
	return p.result(t), nil
}

func (p topics) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	var in topicProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	t, err := p.s.permittedTopic(r.Caller, "SetTopicAttributes", r.PhysicalID)
	if err != nil {
		return resource.Result{}, err
	}
	t.subscriptions = slices.DeleteFunc(t.subscriptions, func(have subscription) bool {
		return have.declared && !slices.Contains(in.Subscription, struct{ Endpoint, Protocol string }{have.endpoint, have.protocol})
	})
	for _, sub := range in.Subscription {
		if _, err := p.s.subscribe(t, sub.Protocol, sub.Endpoint, false, true); err != nil {
			return resource.Result{}, err
		}
	}
	t.displayName, t.key, t.tags = in.DisplayName, in.KmsMasterKeyId, tagging.Merge(r.Tags, in.Tags)
	return p.result(t), nil
}

func (p topics) Delete(_ context.Context, r resource.Request) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	_, err := p.s.permittedTopic(r.Caller, "DeleteTopic", r.PhysicalID)
	if errors.Is(err, errNoTopic) {
		return nil
	}
	if err == nil {
		delete(p.s.topics, r.PhysicalID)
	}
	return err
}

type policies struct{ s *Service }

func (policies) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{"Topics": resource.InPlace, "PolicyDocument": resource.InPlace},
		Required:   []string{"Topics", "PolicyDocument"},
		Attributes: []string{"Id"},
	}
}

func decodePolicy(properties map[string]any) (topics []string, text string, err error) {
	var in struct {
		Topics         []string
		PolicyDocument any
	}
	if err := resource.Decode(properties, &in); err != nil {
		return nil, "", err
	}
	_, text, err = iam.ParsePolicyValue(in.PolicyDocument, true)
	return in.Topics, text, err
}

// put sets the policy of topics. An empty text restores the default policy, and then ignores topics that no longer
// exist.
func (p policies) put(r resource.Request, arns []string, text string) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, arn := range arns {
		t, err := p.s.permittedTopic(r.Caller, "SetTopicAttributes", arn)
		if errors.Is(err, errNoTopic) && text == "" {
			continue
		}
		if err != nil {
			return err
		}
		if err := p.s.setPolicy(t, text); err != nil {
			return err
		}
	}
	return nil
}

func (p policies) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	arns, text, err := decodePolicy(r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	id := r.GeneratedName(80)
	return resource.Result{PhysicalID: id, Attributes: map[string]any{"Id": id}}, p.put(r, arns, text)
}

func (p policies) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	old, _, err := decodePolicy(r.Old)
	if err != nil {
		return resource.Result{}, err
	}
	arns, text, err := decodePolicy(r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.put(r, old, ""); err != nil {
		return resource.Result{}, err
	}
	return resource.Result{PhysicalID: r.PhysicalID, Attributes: map[string]any{"Id": r.PhysicalID}}, p.put(r, arns, text)
}

func (p policies) Delete(_ context.Context, r resource.Request) error {
	arns, _, err := decodePolicy(r.Properties)
	if err != nil {
		return err
	}
	return p.put(r, arns, "")
}
