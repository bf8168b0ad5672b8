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

func TestAccess(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		endpoint api.Endpoint
		whom     string
		command  string
	}{
		{api.Endpoint{}, "0.0.0.0/0 and its own network", "endpointPublicAccess=true,endpointPrivateAccess=true,publicAccessCidrs=0.0.0.0/0"},
		{
			api.Endpoint{Private: &no, PublicCIDRs: []string{"203.0.113.0/24", "0.0.0.0/0"}}, "0.0.0.0/0, 203.0.113.0/24",
			"endpointPublicAccess=true,endpointPrivateAccess=false,publicAccessCidrs=203.0.113.0/24,0.0.0.0/0",
		},
		{
			api.Endpoint{Public: &no, Private: &yes, PublicCIDRs: []string{"198.51.100.0/24"}}, "its own network",
			"endpointPublicAccess=false,endpointPrivateAccess=true",
		},
	} {
		access := c.endpoint.Access()
		require.Equal(t, c.whom, access.String())
		require.Equal(t, "aws eks update-cluster-config --name drover-demo --resources-vpc-config "+c.command, access.Command("drover-demo"))
	}
	two := api.Access{Public: true, CIDRs: []string{"a", "b"}}
	require.True(t, two.Equal(api.Access{Public: true, CIDRs: []string{"b", "a"}}), "the order does not matter")
	require.False(t, two.Equal(api.Access{Public: true, CIDRs: []string{"a"}}))
	require.False(t, two.Equal(api.Access{Public: true, Private: true, CIDRs: []string{"a", "b"}}))
	require.True(t, api.Access{Private: true}.Equal(api.Access{Private: true, CIDRs: []string{"a"}}), "no public address may connect")
}
