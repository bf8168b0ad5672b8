package iam

// Identities written down: what a stack would make, for accounts without that stack.

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Written are policies and roles as JSON has them.
type Written struct {
	// Policies are documents of managed policies by name.
	Policies map[string]json.RawMessage
	// Roles by name.
	Roles map[string]WrittenRole
}

// WrittenRole is a role: its trust policy, its inline policies by name, and the names of the managed ones of Written.
type WrittenRole struct {
	Trust   json.RawMessage
	Inline  map[string]json.RawMessage
	Managed []string
}

// Load makes what is written.
func (s *Service) Load(w Written) error {
	for _, name := range slices.Sorted(maps.Keys(w.Policies)) {
		if _, err := s.CreatePolicy(ManagedPolicy{Name: name, Document: string(w.Policies[name])}); err != nil {
			return fmt.Errorf("policy %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Roles)) {
		role := w.Roles[name]
		_, err := s.CreateRole(Role{Name: name, TrustDocument: string(role.Trust)})
		for _, policy := range slices.Sorted(maps.Keys(role.Inline)) {
			if err == nil {
				err = s.PutRolePolicy(name, policy, string(role.Inline[policy]))
			}
		}
		for _, policy := range role.Managed {
			if err == nil {
				err = s.AttachRolePolicy(name, s.PolicyARN(ManagedPolicy{Name: policy}))
			}
		}
		if err != nil {
			return fmt.Errorf("role %s: %w", name, err)
		}
	}
	return nil
}
