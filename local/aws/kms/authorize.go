package kms

// Who may use a key: key policies, IAM, tags, and grants for clusters.

import (
	"maps"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/wire"
)

// permittedKey returns a key if the caller may perform the action. The key policy may allow the caller, or it may trust the
// account and so delegate to the caller's identity policies. The caller holds the lock.
// https://docs.aws.amazon.com/kms/latest/developerguide/key-policies.html
func (s *Service) permittedKey(caller iam.Caller, action, id string) (*key, error) {
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
	return nil, deniedError(caller, action, arn)
}

func deniedError(caller iam.Caller, action, arn string) error {
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
	if s.Readings.Other(questions.KeyGrants) {
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
		return deniedError(caller, "CreateGrant", arn)
	}
	return nil
}

// AuthorizeVolume returns an error unless a caller may have EBS volumes encrypted with a key, by ARN: EBS creates data keys by a grant,
// which the caller creates. The key policy of another account's key is not simulated. It allows everything here.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/key-policy-requirements-EBS-encryption.html
// https://docs.aws.amazon.com/ebs/latest/userguide/how-ebs-encryption-works.html
func (s *Service) AuthorizeVolume(caller iam.Caller, arn string) error {
	if !strings.HasPrefix(arn, s.arn("key/")) {
		return nil
	}
	s.mu.Lock()
	k, err := s.find(arn)
	enabled := err == nil && k.enabled
	s.mu.Unlock()
	switch {
	case err != nil:
		return err
	case !enabled:
		return wire.Errorf("DisabledException", "%s is disabled.", arn)
	}
	for _, action := range []string{"DescribeKey", "Decrypt", "GenerateDataKeyWithoutPlaintext"} {
		if err := s.authorizeIn(caller, action, arn, nil); err != nil {
			return err
		}
	}
	return s.authorizeIn(caller, "CreateGrant", arn, map[string]string{"kms:GrantIsForAWSResource": "true"})
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
		if _, err := s.permittedKey(caller, action, id); err != nil {
			return err
		}
	}
	return nil
}

// readActions are the calls by which the handler reads a key.
var readActions = []string{"DescribeKey", "GetKeyPolicy", "GetKeyRotationStatus", "ListResourceTags"}
