package eks

// OpenID Connect providers of clusters. A provider is stored with its states. The API server does not accept its tokens.
// https://docs.aws.amazon.com/eks/latest/userguide/authenticate-oidc-identity-provider.html

import (
	"context"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
)

// providerWork is how long EKS associates a provider, or removes one: it restarts the API servers.
const providerWork = 10 * time.Minute

// OIDCProvider is the provider of a cluster.
type OIDCProvider struct {
	Name, IssuerURL, ClientID, UsernameClaim, UsernamePrefix, GroupsClaim, GroupsPrefix string
	RequiredClaims                                                                      map[string]string
	Tags                                                                                map[string]string
	Status, ARN                                                                         string
}

// IdentityProvider returns the provider of a cluster, or nil.
func (s *Service) IdentityProvider(name string) *OIDCProvider {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(name)
	if err != nil || c.provider == nil {
		return nil
	}
	provider := *c.provider
	return &provider
}

// associateProvider adds a provider to a cluster. EKS allows one.
func (s *Service) associateProvider(caller iam.Caller, cluster string, p OIDCProvider) (*OIDCProvider, error) {
	if err := caller.Authorize("eks:AssociateIdentityProviderConfig", s.clusterARN(cluster), nil); err != nil {
		return nil, err
	}
	p.ARN = s.arn("identityproviderconfig/" + cluster + "/oidc/" + p.Name + "/" + uuid())
	if len(p.Tags) > 0 {
		if err := caller.Authorize("eks:TagResource", p.ARN, nil); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.findActive(cluster)
	switch {
	case err != nil:
		return nil, err
	case c.provider != nil:
		return nil, inUse("Identity provider config is already associated with cluster %s", cluster)
	case !strings.HasPrefix(p.IssuerURL, "https://") || p.ClientID == "":
		return nil, invalid("issuerUrl must begin with https://, and clientId is required")
	case strings.Contains(p.UsernamePrefix, "system:") || strings.Contains(p.GroupsPrefix, "system:"):
		return nil, invalid("A prefix cannot contain system:")
	}
	p.Status = creating
	c.provider = &p
	s.changes.Announce()
	s.background(func(ctx context.Context) {
		if s.config.Clock.Work(ctx, providerWork) == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			p.Status = active
			s.changes.Announce()
		}
	})
	return &p, nil
}

type identityProviderProvider struct{ s *Service }

func (p identityProviderProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"ClusterName": resource.Replaces, "Type": resource.Replaces, "IdentityProviderConfigName": resource.Replaces, "Oidc": resource.Replaces,
			"Tags": resource.InPlace,
		},
		Required:   []string{"ClusterName", "Type"},
		Attributes: []string{"IdentityProviderConfigArn"},
	}
}

type identityProviderProperties struct {
	ClusterName, Type, IdentityProviderConfigName string
	Oidc                                          struct {
		IssuerUrl, ClientId, UsernameClaim, UsernamePrefix, GroupsClaim, GroupsPrefix string
		RequiredClaims                                                                []resource.Tag
	}
	Tags []resource.Tag
}

// providerID is the identifier of a provider: its cluster, type and name.
func providerID(cluster, name string) string { return cluster + "/oidc/" + name }

func (p identityProviderProvider) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	var in identityProviderProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	claims := map[string]string{}
	for _, claim := range in.Oidc.RequiredClaims {
		claims[claim.Key] = claim.Value
	}
	made, err := p.s.associateProvider(r.Caller, in.ClusterName, OIDCProvider{
		Name: in.IdentityProviderConfigName, IssuerURL: in.Oidc.IssuerUrl, ClientID: in.Oidc.ClientId, UsernameClaim: in.Oidc.UsernameClaim,
		UsernamePrefix: in.Oidc.UsernamePrefix, GroupsClaim: in.Oidc.GroupsClaim, GroupsPrefix: in.Oidc.GroupsPrefix, RequiredClaims: claims,
		Tags: tagging.Merge(r.Tags, in.Tags),
	})
	if err != nil {
		return resource.Result{}, err
	}
	result := resource.Result{
		PhysicalID: providerID(in.ClusterName, in.IdentityProviderConfigName), Attributes: map[string]any{"IdentityProviderConfigArn": made.ARN},
	}
	if err := r.Caller.Authorize("eks:DescribeIdentityProviderConfig", made.ARN, nil); err != nil {
		return result, err
	}
	return result, p.s.wait(ctx, func() (bool, error) {
		_, err := p.s.find(in.ClusterName)
		return made.Status == active, err
	})
}

func (p identityProviderProvider) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	var in identityProviderProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	provider := p.s.IdentityProvider(in.ClusterName)
	if provider == nil {
		return resource.Result{}, notFound("No identity provider config found for cluster %s", in.ClusterName)
	}
	result := resource.Result{PhysicalID: r.PhysicalID, Attributes: map[string]any{"IdentityProviderConfigArn": provider.ARN}}
	return result, p.s.changeTags(ctx, r.Caller, provider.ARN, tagging.Merge(r.Tags, in.Tags))
}

func (p identityProviderProvider) Delete(ctx context.Context, r resource.Request) error {
	cluster, _, _ := strings.Cut(r.PhysicalID, "/")
	provider := p.s.IdentityProvider(cluster)
	if provider == nil {
		return nil
	}
	if err := r.Caller.Authorize("eks:DisassociateIdentityProviderConfig", provider.ARN, nil); err != nil {
		return err
	}
	if err := p.s.config.Clock.Work(ctx, providerWork); err != nil {
		return err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if c, err := p.s.find(cluster); err == nil {
		c.provider = nil
		p.s.changes.Announce()
	}
	return nil
}
