// Package kms simulates AWS KMS: keys with their policies and aliases. It has no cryptography, because nothing in the
// local account is encrypted. https://docs.aws.amazon.com/kms/latest/APIReference/Welcome.html
//
// It supports DescribeKey, ListKeys, ListAliases, GetKeyPolicy, GetKeyRotationStatus, ListResourceTags and
// ScheduleKeyDeletion, and the resource types AWS::KMS::Key (symmetric encryption keys) and AWS::KMS::Alias. A deleted
// key is removed immediately, without a waiting period in PendingDeletion. Each use of a key must be allowed by its key
// policy, which may delegate to IAM by naming the account. The tags of a key count for permissions five minutes after they
// were set. questions.KeyTags decides whether that includes the tags of CreateKey.
package kms

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/wire"
)

// tagDelay is the time until changed tags count for permissions: "up to five minutes".
// https://docs.aws.amazon.com/kms/latest/developerguide/tag-authorization.html
const tagDelay = 5 * time.Minute

// Service has the account's keys.
type Service struct {
	// Readings of open questions: questions.KeyTags.
	Readings questions.Readings

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

// remove deletes a key and its aliases. The caller holds the lock.
func (s *Service) remove(id string) {
	delete(s.keys, id)
	maps.DeleteFunc(s.aliases, func(_, target string) bool { return target == id })
}
