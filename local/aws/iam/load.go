package iam

// Definitions of identities, for accounts in which no stack creates them.

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Definitions are policies and roles, as JSON.
type Definitions struct {
	// Policies are the documents of managed policies by name.
	Policies map[string]json.RawMessage
	// Roles are roles by name.
	Roles map[string]RoleDefinition
}

// RoleDefinition is a role: its trust policy, its inline policies by name, and the names of its managed policies in
// Definitions.
type RoleDefinition struct {
	Trust   json.RawMessage
	Inline  map[string]json.RawMessage
	Managed []string
}

// Load creates the defined policies and roles.
func (s *Service) Load(w Definitions) error {
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
