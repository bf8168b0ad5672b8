package kms

// The operations of the API.

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/wire"
)

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
	k, err := s.permittedKey(c.Caller, c.Action, *id)
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
