package kms

// The resource types of CloudFormation.

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Resources returns the providers by resource type.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_KMS.html
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::KMS::Key": keyProvider{s}, "AWS::KMS::Alias": aliasProvider{s}}
}

type keyProvider struct{ s *Service }

func (keyProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"Description": resource.InPlace, "EnableKeyRotation": resource.InPlace, "Enabled": resource.InPlace, "KeyPolicy": resource.InPlace,
			"KeySpec":  resource.InPlace,
			"KeyUsage": resource.InPlace, "PendingWindowInDays": resource.InPlace, "RotationPeriodInDays": resource.InPlace,
			"Tags": resource.InPlace,
		},
		Attributes: []string{"Arn", "KeyId"},
	}
}

// wantedKey returns the key that the properties describe, without an ID.
func (p keyProvider) wantedKey(r resource.Request) (*key, error) {
	var in struct {
		Description, KeySpec, KeyUsage            string
		EnableKeyRotation                         bool
		Enabled                                   *bool
		KeyPolicy                                 any
		PendingWindowInDays, RotationPeriodInDays int
		Tags                                      []resource.Tag
	}
	if err := resource.Decode(r.Properties, &in); err != nil {
		return nil, err
	}
	if in.KeySpec != "" && in.KeySpec != "SYMMETRIC_DEFAULT" || in.KeyUsage != "" && in.KeyUsage != "ENCRYPT_DECRYPT" {
		return nil, wire.Unsupported("kms", "keys other than symmetric encryption keys")
	}
	if in.KeyPolicy == nil { // the default key policy delegates to IAM
		in.KeyPolicy = map[string]any{"Version": "2012-10-17", "Id": "key-default-1", "Statement": []any{map[string]any{
			"Sid": "Enable IAM User Permissions", "Effect": "Allow", "Action": "kms:*", "Resource": "*",
			"Principal": map[string]any{"AWS": "arn:" + p.s.identities.Partition + ":iam::" + p.s.identities.Account + ":root"},
		}}}
	}
	policy, text, err := iam.ParsePolicyValue(in.KeyPolicy, true)
	if err != nil {
		return nil, wire.Errorf("MalformedPolicyDocumentException", "%v", err)
	}
	return &key{
		description: in.Description, enabled: in.Enabled == nil || *in.Enabled, rotate: in.EnableKeyRotation,
		tags:   tagging.Merge(r.Tags, in.Tags),
		policy: policy, policyText: text,
	}, nil
}

func (p keyProvider) result(id string) resource.Result {
	return resource.Result{PhysicalID: id, Attributes: map[string]any{"Arn": p.s.arn("key/" + id), "KeyId": id}}
}

// Create makes a key as the handler of AWS::KMS::Key does. Its calls after CreateKey are those that it needs for the properties and for the
// attributes. https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html#schema-properties-handlers
func (p keyProvider) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	created, err := p.wantedKey(r)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.s.authorizeCreation(r.Caller, created); err != nil {
		return resource.Result{}, err
	}
	if err := p.s.checkPrincipals(created.policy); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	created.id, created.created = uuid.NewString(), p.s.clock.Now()
	created.policySet = created.created
	if !p.s.Readings.Other(questions.KeyTags) {
		created.retagged = created.created
	}
	p.s.keys[created.id] = created
	// KMS rejects a policy that locks out its creator, unless the call bypasses the check. CloudFormation's calls do not.
	if _, err := p.s.permittedKey(r.Caller, "PutKeyPolicy", created.id); err != nil {
		delete(p.s.keys, created.id)
		return resource.Result{}, wire.Errorf("MalformedPolicyDocumentException",
			"The new key policy will not allow you to update the key policy in the future.")
	}
	actions := []string{}
	if created.rotate {
		actions = append(actions, "EnableKeyRotation")
	}
	// The key exists now. Errors also return its ID, so that a rollback deletes it.
	return p.result(created.id), p.s.permittedAll(r.Caller, created.id, append(actions, readActions...)...)
}

func (p keyProvider) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	want, err := p.wantedKey(r)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.s.checkPrincipals(want.policy); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	have, err := p.s.find(r.PhysicalID)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.s.permittedAll(r.Caller, r.PhysicalID, append(changes(have, want), readActions...)...); err != nil {
		return resource.Result{}, err
	}
	if have.policyText != want.policyText {
		have.policySet = p.s.clock.Now()
	}
	have.description, have.enabled, have.rotate = want.description, want.enabled, want.rotate
	have.policy, have.policyText = want.policy, want.policyText
	p.s.retag(have, want.tags)
	return p.result(have.id), nil
}

// changes returns the actions that change a key.
func changes(have, want *key) (actions []string) {
	add := func(changed bool, action string) {
		if changed {
			actions = append(actions, action)
		}
	}
	add(have.policyText != want.policyText, "PutKeyPolicy")
	add(have.description != want.description, "UpdateKeyDescription")
	add(!have.enabled && want.enabled, "EnableKey")
	add(have.enabled && !want.enabled, "DisableKey")
	add(!have.rotate && want.rotate, "EnableKeyRotation")
	add(have.rotate && !want.rotate, "DisableKeyRotation")
	removed, set := false, false
	for name := range have.tags {
		_, kept := want.tags[name]
		removed = removed || !kept
	}
	for name, value := range want.tags {
		was, had := have.tags[name]
		set = set || !had || was != value
	}
	add(removed, "UntagResource")
	add(set, "TagResource")
	return actions
}

func (p keyProvider) Delete(_ context.Context, r resource.Request) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if _, ok := p.s.keys[r.PhysicalID]; !ok {
		return nil
	}
	if _, err := p.s.permittedKey(r.Caller, "ScheduleKeyDeletion", r.PhysicalID); err != nil {
		return err
	}
	p.s.remove(r.PhysicalID)
	return nil
}

type aliasProvider struct{ s *Service }

func (aliasProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{"AliasName": resource.Replaces, "TargetKeyId": resource.InPlace},
		Required:   []string{"AliasName", "TargetKeyId"},
	}
}

func (p aliasProvider) set(r resource.Request, action string) (resource.Result, error) {
	var in struct{ AliasName, TargetKeyId string } // the properties' names
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	if !strings.HasPrefix(in.AliasName, "alias/") || strings.HasPrefix(in.AliasName, "alias/aws/") {
		return resource.Result{}, wire.Errorf("ValidationException",
			"Alias must start with the prefix \"alias/\" and not with \"alias/aws/\". %s", in.AliasName)
	}
	if err := r.Caller.Authorize("kms:"+action, p.s.arn(in.AliasName), nil); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if _, ok := p.s.aliases[in.AliasName]; ok && action == "CreateAlias" {
		return resource.Result{}, wire.Errorf("AlreadyExistsException", "An alias with the name %s already exists", p.s.arn(in.AliasName))
	}
	k, err := p.s.permittedKey(r.Caller, action, in.TargetKeyId)
	if err != nil {
		return resource.Result{}, err
	}
	p.s.aliases[in.AliasName] = k.id
	return resource.Result{PhysicalID: in.AliasName}, nil
}

func (p aliasProvider) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	return p.set(r, "CreateAlias")
}

func (p aliasProvider) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	return p.set(r, "UpdateAlias")
}

func (p aliasProvider) Delete(_ context.Context, r resource.Request) error {
	if err := r.Caller.Authorize("kms:DeleteAlias", p.s.arn(r.PhysicalID), nil); err != nil {
		return err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	delete(p.s.aliases, r.PhysicalID)
	return nil
}
