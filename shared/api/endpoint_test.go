package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestNeedsRelay(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		endpoint api.Endpoint
		relay    bool
	}{
		{api.Endpoint{}, false},
		{api.Endpoint{Public: &yes, PublicCIDRs: []string{"0.0.0.0/0"}}, false},
		{api.Endpoint{PublicCIDRs: []string{"198.51.100.0/24", "0.0.0.0/0"}}, false},
		{api.Endpoint{PublicCIDRs: []string{"198.51.100.0/24"}}, true},
		{api.Endpoint{Public: &no}, true},
		{api.Endpoint{Public: &no, PublicCIDRs: []string{"0.0.0.0/0"}}, true},
	} {
		require.Equal(t, c.relay, c.endpoint.NeedsRelay(), "%+v", c.endpoint)
	}
}
