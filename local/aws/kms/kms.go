// Package kms simulates AWS KMS: keys with their policies and aliases. It has no cryptography, because nothing in the
// local account is encrypted. https://docs.aws.amazon.com/kms/latest/APIReference/Welcome.html
//
// It supports DescribeKey, ListKeys, ListAliases, GetKeyPolicy, GetKeyRotationStatus, ListResourceTags and
// ScheduleKeyDeletion, and the resource types AWS::KMS::Key (symmetric encryption keys) and AWS::KMS::Alias. A deleted
// key is removed immediately, without a waiting period in PendingDeletion. Each use of a key must be allowed by its key
// policy, which may delegate to IAM by naming the account. The tags of a key count for permissions five minutes after they
// were set. facts.KeyTags decides whether that includes the tags of CreateKey.
package kms

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/facts"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// tagDelay is the time until changed tags count for permissions: "up to five minutes".
// https://docs.aws.amazon.com/kms/latest/developerguide/tag-authorization.html
const tagDelay = 5 * time.Minute

// Service has the account's keys.
type Service struct {
	// Readings of open facts: facts.KeyTags.
	Readings facts.Readings

	identities *iam.Service
	clock      *clock.Clock

	mu                      sync.Mutex
	keys                    map[string]*key   // by ID
	aliases                 map[string]string // alias/… -> key ID
	lateRoles, latePolicies time.Duration
}

type key struct {
	id, description string
	enabled, rotate bool
	created         time.Time
	tags            map[string]string
	policy          *iam.Policy
	policyText      string
	// before are the tags that count until tagDelay after retagged.
	before   map[string]string
	retagged time.Time
	// policySet is when the key got its policy.
	policySet time.Time
}

// New returns a service without keys.
func New(identities *iam.Service, c *clock.Clock) *Service {
	return &Service{identities: identities, clock: c, keys: map[string]*key{}, aliases: map[string]string{}}
}

func (s *Service) arn(rest string) string {
	return "arn:" + s.identities.Partition + ":kms:" + s.identities.Region + ":" + s.identities.Account + ":" + rest
}

// find returns a key by ID or ARN, or by an alias' name or ARN. The caller holds the lock.
func (s *Service) find(id string) (*key, error) {
	name := strings.TrimPrefix(id, s.arn(""))
	if target, ok := s.aliases[name]; ok {
		name = target
	}
	k, ok := s.keys[strings.TrimPrefix(name, "key/")]
	if !ok {
		return nil, wire.Errorf("NotFoundException", "Key '%s' does not exist", id)
	}
	return k, nil
}

// permitted returns a key if the caller may perform the action. The key policy may allow the caller, or it may trust the
// account and so delegate to the caller's identity policies. The caller holds the lock.
// https://docs.aws.amazon.com/kms/latest/developerguide/key-policies.html
func (s *Service) permitted(caller iam.Caller, action, id string) (*key, error) {
	return s.permittedIn(caller, action, id, nil)
}

// permittedIn is permitted with condition keys of the request.
func (s *Service) permittedIn(caller iam.Caller, action, id string, conditions map[string]string) (*key, error) {
	k, err := s.find(id)
	if err != nil {
		if denied := caller.Authorize("kms:"+action, s.arn("key/"+strings.TrimPrefix(id, s.arn("key/"))), conditions); denied != nil {
			return nil, denied
		}
		return nil, err
	}
	arn, context := s.arn("key/"+k.id), tagContext("aws:ResourceTag/", s.countingTags(k))
	maps.Copy(context, conditions)
	switch caller.Evaluate(k.policy, "kms:"+action, arn, context) {
	case iam.Delegated:
		return k, caller.Authorize("kms:"+action, arn, context)
	case iam.Allowed:
		return k, caller.AuthorizeWith("kms:"+action, arn, context, k.policy)
	}
	return nil, denied(caller, action, arn)
}

func denied(caller iam.Caller, action, arn string) error {
	return &wire.Error{
		Code: "AccessDenied", Status: 403,
		Message: "User: " + caller.ARN() + " is not authorized to perform: kms:" + action + " on resource: " + arn +
			" because no resource-based policy allows the kms:" + action + " action",
	}
}

// countingTags returns the tags that count for permissions on a key. The caller holds the lock.
func (s *Service) countingTags(k *key) map[string]string {
	if s.clock.Worked(s.clock.Now().Sub(k.retagged)) < tagDelay {
		return k.before
	}
	return k.tags
}

// retag sets the tags of a key. The caller holds the lock.
func (s *Service) retag(k *key, tags map[string]string) {
	if !maps.Equal(k.tags, tags) {
		k.before, k.retagged = s.countingTags(k), s.clock.Now()
		k.tags = tags
	}
}

// tagContext returns the condition keys of tags: of the request (aws:RequestTag/) or of the key (aws:ResourceTag/).
// https://docs.aws.amazon.com/kms/latest/developerguide/tag-authorization.html
func tagContext(prefix string, tags map[string]string) map[string]string {
	context := map[string]string{}
	for name, value := range tags {
		if !strings.HasPrefix(name, "aws:") {
			context[prefix+name] = value
		}
	}
	return context
}

// Authorize returns an error unless the caller may perform an action such as Decrypt on a key, by ID, ARN or alias.
func (s *Service) Authorize(caller iam.Caller, action, id string) error {
	return s.AuthorizeFor(caller, action, id, nil)
}

// AuthorizeFor is Authorize with an encryption context, whose pairs are condition keys.
// https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html#conditions-kms-encryption-context
func (s *Service) AuthorizeFor(caller iam.Caller, action, id string, encryption map[string]string) error {
	conditions := map[string]string{}
	for name, value := range encryption {
		conditions["kms:EncryptionContext:"+name] = value
	}
	return s.authorizeIn(caller, action, id, conditions)
}

func (s *Service) authorizeIn(caller iam.Caller, action, id string, conditions map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.permittedIn(caller, action, id, conditions)
	return err
}

// AuthorizeCluster returns an error unless the caller may create an EKS cluster with a key, by ARN: EKS describes the key and creates a
// grant on it for the caller. The key policy of another account's key is not simulated. It allows everything here.
// https://docs.aws.amazon.com/eks/latest/userguide/enable-kms.html
func (s *Service) AuthorizeCluster(caller iam.Caller, arn string) error {
	grant := map[string]string{}
	if s.Readings.Other(facts.KeyGrants) {
		grant["kms:GrantIsForAWSResource"] = "true"
	}
	authorize := s.authorizeIn
	if !strings.HasPrefix(arn, s.arn("key/")) {
		authorize = func(caller iam.Caller, action, arn string, conditions map[string]string) error {
			return caller.Authorize("kms:"+action, arn, conditions)
		}
	}
	if err := authorize(caller, "DescribeKey", arn, nil); err != nil {
		return err
	}
	if err := authorize(caller, "CreateGrant", arn, grant); err != nil {
		return err
	}
	if s.isLate(caller, arn) {
		return denied(caller, "CreateGrant", arn)
	}
	return nil
}

// Delay is a bad day: EKS cannot create a grant for a role, or with a key policy, that is newer than roles or policies. Permissions usually
// count within seconds, and in some cases after minutes.
// https://docs.aws.amazon.com/kms/latest/developerguide/programming-eventual-consistency.html
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency
func (s *Service) Delay(roles, policies time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lateRoles, s.latePolicies = roles, policies
}

// isLate reports whether the permissions of a role, or those of a key, do not count yet.
func (s *Service) isLate(caller iam.Caller, arn string) bool {
	role, roleErr := s.identities.RoleByARN(caller.RoleARN())
	s.mu.Lock()
	defer s.mu.Unlock()
	isNew := func(since time.Time, late time.Duration) bool { return s.clock.Worked(s.clock.Now().Sub(since)) < late }
	k, err := s.find(arn)
	return roleErr == nil && isNew(role.Created, s.lateRoles) || err == nil && isNew(k.policySet, s.latePolicies)
}

// KeyARN returns the ARN of a key by ID, ARN or alias, or the error NotFoundException.
func (s *Service) KeyARN(id string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.find(id)
	if err != nil {
		return "", err
	}
	return s.arn("key/" + k.id), nil
}

// Tagged returns the keys with their tags.
func (s *Service) Tagged(context.Context) (list []tagging.Tagged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, k := range s.keys {
		list = append(list, tagging.Tagged{ARN: s.arn("key/" + id), Tags: maps.Clone(k.tags)})
	}
	return list
}

// Wire returns the service's API for the endpoint.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "kms", Protocol: wire.JSON11, TargetPrefix: "TrentService",
		Operations: map[string]wire.Operation{
			"DescribeKey":          s.describeKey,
			"ListKeys":             s.listKeys,
			"ListAliases":          s.listAliases,
			"GetKeyPolicy":         s.getKeyPolicy,
			"GetKeyRotationStatus": s.getKeyRotationStatus,
			"ListResourceTags":     s.listResourceTags,
			"ScheduleKeyDeletion":  s.scheduleKeyDeletion,
		},
	}
}

// onKey decodes the parameters, authorizes the action, and calls do with the key under the lock.
func (s *Service) onKey(c *wire.Call, in any, id *string, do func(*key) any) (any, error) {
	if err := c.Decode(in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Resource = *id
	k, err := s.permitted(c.Caller, c.Action, *id)
	if err != nil {
		return nil, err
	}
	return do(k), nil
}

func (s *Service) describeKey(_ context.Context, c *wire.Call) (any, error) {
	type metadata struct {
		AWSAccountID                                                      string `json:"AWSAccountId"`
		KeyID                                                             string `json:"KeyId"`
		Arn, Description, KeyManager, KeySpec, KeyState, KeyUsage, Origin string
		CustomerMasterKeySpec                                             string
		EncryptionAlgorithms                                              []string
		Enabled, MultiRegion                                              bool
		CreationDate                                                      time.Time
	}
	var in struct{ KeyID string }
	return s.onKey(c, &in, &in.KeyID, func(k *key) any {
		state := "Disabled"
		if k.enabled {
			state = "Enabled"
		}
		return struct{ KeyMetadata metadata }{metadata{
			AWSAccountID: s.identities.Account, KeyID: k.id, Arn: s.arn("key/" + k.id), Description: k.description, KeyManager: "CUSTOMER",
			KeySpec:               "SYMMETRIC_DEFAULT",
			CustomerMasterKeySpec: "SYMMETRIC_DEFAULT", KeyState: state, KeyUsage: "ENCRYPT_DECRYPT", Origin: "AWS_KMS",
			EncryptionAlgorithms: []string{"SYMMETRIC_DEFAULT"},
			Enabled:              k.enabled, CreationDate: k.created,
		}}
	})
}

// scheduleKeyDeletion deletes a key immediately: see the package comment.
func (s *Service) scheduleKeyDeletion(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		KeyID               string
		PendingWindowInDays *int
	}
	type scheduled struct {
		KeyID           string `json:"KeyId"`
		KeyState        string
		DeletionDate    time.Time
		PendingWindowIn int `json:"PendingWindowInDays"`
	}
	return s.onKey(c, &in, &in.KeyID, func(k *key) any {
		days := 30
		if in.PendingWindowInDays != nil {
			days = *in.PendingWindowInDays
		}
		s.remove(k.id)
		return scheduled{s.arn("key/" + k.id), "PendingDeletion", s.clock.Now().AddDate(0, 0, days), days}
	})
}

// remove deletes a key and its aliases. The caller holds the lock.
func (s *Service) remove(id string) {
	delete(s.keys, id)
	maps.DeleteFunc(s.aliases, func(_, target string) bool { return target == id })
}

func (s *Service) listKeys(_ context.Context, c *wire.Call) (any, error) {
	if err := c.Decode(&struct{ Limit *int }{}); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	type entry struct {
		KeyID  string `json:"KeyId"`
		KeyArn string
	}
	out := struct {
		Keys      []entry
		Truncated bool
	}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.keys)) {
		out.Keys = append(out.Keys, entry{id, s.arn("key/" + id)})
	}
	return out, nil
}

func (s *Service) listAliases(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		KeyID string
		Limit *int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	type entry struct {
		AliasName, AliasArn string
		TargetKeyID         string `json:"TargetKeyId"`
	}
	out := struct {
		Aliases   []entry
		Truncated bool
	}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.aliases)) {
		if in.KeyID == "" || in.KeyID == s.aliases[name] || in.KeyID == s.arn("key/"+s.aliases[name]) {
			out.Aliases = append(out.Aliases, entry{name, s.arn(name), s.aliases[name]})
		}
	}
	return out, nil
}

func (s *Service) getKeyPolicy(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ KeyID, PolicyName string }
	return s.onKey(c, &in, &in.KeyID, func(k *key) any { return struct{ Policy, PolicyName string }{k.policyText, "default"} })
}

func (s *Service) getKeyRotationStatus(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ KeyID string }
	return s.onKey(c, &in, &in.KeyID, func(k *key) any { return struct{ KeyRotationEnabled bool }{k.rotate} })
}

func (s *Service) listResourceTags(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		KeyID string
		Limit *int
	}
	type tag struct{ TagKey, TagValue string }
	return s.onKey(c, &in, &in.KeyID, func(k *key) any {
		out := struct {
			Tags      []tag
			Truncated bool
		}{}
		for _, t := range tagging.List(k.tags) {
			out.Tags = append(out.Tags, tag{t.Key, t.Value})
		}
		return out
	})
}

// Resources returns the providers by resource type.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_KMS.html
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::KMS::Key": keyProvider{s}, "AWS::KMS::Alias": aliasProvider{s}}
}

type keyProvider struct{ s *Service }

func (keyProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehaviour{
			"Description": resource.InPlace, "EnableKeyRotation": resource.InPlace, "Enabled": resource.InPlace, "KeyPolicy": resource.InPlace,
			"KeySpec":  resource.InPlace,
			"KeyUsage": resource.InPlace, "PendingWindowInDays": resource.InPlace, "RotationPeriodInDays": resource.InPlace,
			"Tags": resource.InPlace,
		},
		Attributes: []string{"Arn", "KeyId"},
	}
}

// wanted returns the key that the properties describe, without an ID.
func (p keyProvider) wanted(r resource.Request) (*key, error) {
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
	created, err := p.wanted(r)
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
	if !p.s.Readings.Other(facts.KeyTags) {
		created.retagged = created.created
	}
	p.s.keys[created.id] = created
	// KMS rejects a policy that locks out its creator, unless the call bypasses the check. CloudFormation's calls do not.
	if _, err := p.s.permitted(r.Caller, "PutKeyPolicy", created.id); err != nil {
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

// readActions are the calls by which the handler reads a key.
var readActions = []string{"DescribeKey", "GetKeyPolicy", "GetKeyRotationStatus", "ListResourceTags"}

// authorizeCreation checks the permissions for a key that does not exist yet.
// https://docs.aws.amazon.com/kms/latest/developerguide/tag-permissions.html
func (s *Service) authorizeCreation(caller iam.Caller, k *key) error {
	tags := tagContext("aws:RequestTag/", k.tags)
	if err := caller.Authorize("kms:CreateKey", "*", tags); err != nil {
		return err
	}
	if len(k.tags) == 0 {
		return nil
	}
	return caller.Authorize("kms:TagResource", s.arn("key/*"), tags)
}

// checkPrincipals rejects a key policy that names a role of the account that does not exist.
// https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-overview.html
func (s *Service) checkPrincipals(policy *iam.Policy) error {
	for _, statement := range policy.Statements {
		if statement.Principals == nil {
			continue
		}
		for _, arn := range statement.Principals.AWS {
			if !strings.Contains(arn, "::"+s.identities.Account+":role/") {
				continue
			}
			if _, err := s.identities.RoleByARN(arn); err != nil {
				return wire.Errorf("MalformedPolicyDocumentException", "Policy contains a statement with one or more invalid principals.")
			}
		}
	}
	return nil
}

// permittedAll returns the error of the first action that the caller may not perform on a key. The caller holds the lock.
func (s *Service) permittedAll(caller iam.Caller, id string, actions ...string) error {
	for _, action := range actions {
		if _, err := s.permitted(caller, action, id); err != nil {
			return err
		}
	}
	return nil
}

func (p keyProvider) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	want, err := p.wanted(r)
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
	if _, err := p.s.permitted(r.Caller, "ScheduleKeyDeletion", r.PhysicalID); err != nil {
		return err
	}
	p.s.remove(r.PhysicalID)
	return nil
}

type aliasProvider struct{ s *Service }

func (aliasProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehaviour{"AliasName": resource.Replaces, "TargetKeyId": resource.InPlace},
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
	k, err := p.s.permitted(r.Caller, action, in.TargetKeyId)
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
