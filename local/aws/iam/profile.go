package iam

// Instance profiles and OpenID Connect providers.

import (
	"maps"
	"slices"
	"strings"
)

// CreateInstanceProfile creates an instance profile from Name, Path and Tags.
func (s *Service) CreateInstanceProfile(p InstanceProfile) (InstanceProfile, error) {
	if err := checkName("instanceProfileName", p.Name, 128); err != nil {
		return InstanceProfile{}, err
	}
	if p.Path == "" {
		p.Path = "/"
	}
	p.ID, p.Created = "AIPA"+randomText(upper, 17), s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.profiles[p.Name]; ok {
		return InstanceProfile{}, errorf(409, "EntityAlreadyExists", "Instance Profile %s already exists.", p.Name)
	}
	s.profiles[p.Name] = &p
	return p, nil
}

// InstanceProfile returns an instance profile by name or ARN, or the error NoSuchEntity.
func (s *Service) InstanceProfile(nameOrARN string) (InstanceProfile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.profiles[nameOrARN[strings.LastIndex(nameOrARN, "/")+1:]]
	if !ok || strings.HasPrefix(nameOrARN, "arn:") && s.ProfileARN(*p) != nameOrARN {
		return InstanceProfile{}, errorf(404, "NoSuchEntity", "Instance Profile %s cannot be found.", nameOrARN)
	}
	return *p, nil
}

// InstanceProfiles returns the instance profiles of the account by name.
func (s *Service) InstanceProfiles() []InstanceProfile {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []InstanceProfile
	for _, name := range slices.Sorted(maps.Keys(s.profiles)) {
		list = append(list, *s.profiles[name])
	}
	return list
}

// SetProfileRole sets the role of an instance profile. An empty name removes it.
func (s *Service) SetProfileRole(profile, role string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.profiles[profile]
	if !ok {
		return errorf(404, "NoSuchEntity", "Instance Profile %s cannot be found.", profile)
	}
	if role != "" {
		if _, err := s.role(role); err != nil {
			return err
		}
		if p.Role != "" && p.Role != role {
			return errorf(409, "LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
		}
	}
	p.Role = role
	return nil
}

// DeleteInstanceProfile deletes an instance profile that has no role.
func (s *Service) DeleteInstanceProfile(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.profiles[name]
	if !ok {
		return errorf(404, "NoSuchEntity", "Instance Profile %s cannot be found.", name)
	}
	if p.Role != "" {
		return errorf(409, "DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
	}
	delete(s.profiles, name)
	return nil
}

// CreateOIDCProvider creates a provider from URL, ClientIDs, Thumbprints and Tags.
func (s *Service) CreateOIDCProvider(p OIDCProvider) (OIDCProvider, error) {
	host, ok := strings.CutPrefix(p.URL, "https://")
	if !ok || host == "" {
		return OIDCProvider{}, errorf(400, "InvalidInput", "Invalid Open ID Connect Provider URL %q: it must begin with https://", p.URL)
	}
	p.URL = host
	p.ARN, p.Created = s.OIDCProviderARN(p.URL), s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.providers[p.ARN]; ok {
		return OIDCProvider{}, errorf(409, "EntityAlreadyExists", "Provider with url https://%s already exists.", host)
	}
	if quota := s.OIDCProvidersQuota(); len(s.providers) >= quota {
		return OIDCProvider{}, errorf(409, "LimitExceeded", "Cannot exceed quota for OpenIdConnectProvidersPerAccount: %d", quota)
	}
	s.providers[p.ARN] = &p
	return p, nil
}

// OIDCProvider returns a provider by ARN, or the error NoSuchEntity.
func (s *Service) OIDCProvider(arn string) (OIDCProvider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.providers[arn]
	if !ok {
		return OIDCProvider{}, errorf(404, "NoSuchEntity", "OpenIDConnect Provider not found for arn %s", arn)
	}
	return *p, nil
}

// OIDCProviders returns the providers of the account by ARN.
func (s *Service) OIDCProviders() []OIDCProvider {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []OIDCProvider
	for _, arn := range slices.Sorted(maps.Keys(s.providers)) {
		list = append(list, *s.providers[arn])
	}
	return list
}

// ChangeOIDCProvider calls change, which may modify a provider's client IDs, thumbprints or tags.
func (s *Service) ChangeOIDCProvider(arn string, change func(*OIDCProvider)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.providers[arn]
	if !ok {
		return errorf(404, "NoSuchEntity", "OpenIDConnect Provider not found for arn %s", arn)
	}
	change(p)
	return nil
}

// DeleteOIDCProvider deletes a provider. Deleting one that does not exist succeeds.
func (s *Service) DeleteOIDCProvider(arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.providers, arn)
}
