package render

// The OpenID Connect provider of a cluster.

import (
	"maps"
	"slices"

	"github.com/drover-run/drover/shared/api"
)

// identityProvider is the provider, with its claims sorted by name.
type identityProvider struct {
	*api.IdentityProvider
	Claims []tag
}

func newIdentityProvider(in *api.IdentityProvider) *identityProvider {
	if in == nil {
		return nil
	}
	out := &identityProvider{IdentityProvider: in}
	for _, name := range slices.Sorted(maps.Keys(in.RequiredClaims)) {
		out.Claims = append(out.Claims, tag{name, in.RequiredClaims[name]})
	}
	return out
}
