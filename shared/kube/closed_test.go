package kube

import (
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/require"
)

// refusal is the error of a relay.
type refusal struct{ missing bool }

func (r refusal) Error() string { return "relay" }

func (r refusal) WithoutRelay(what string, cause error) error {
	if !r.missing {
		return r
	}
	return errors.New(what + ": " + cause.Error())
}

// failing is a transport that fails.
type failing struct{ error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.error }

func TestClosedEndpoint(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api", nil)
	require.NoError(t, err)
	try := func(err error, is types.VpcConfigResponse) error {
		response, err := withoutRelay{failing{err}, "EKS cluster drover-demo", closedOutside("drover-demo", &is)}.RoundTrip(request)
		if response != nil {
			require.NoError(t, response.Body.Close())
		}
		return err
	}
	const command = "to open the endpoint again, run aws eks update-cluster-config --name drover-demo --resources-vpc-config " +
		"endpointPublicAccess=true,endpointPrivateAccess="
	closed := types.VpcConfigResponse{EndpointPublicAccess: true, PublicAccessCidrs: []string{"198.51.100.0/24"}}
	err = try(refusal{missing: true}, closed)
	require.ErrorContains(t, err, "EKS cluster drover-demo: its endpoint admits only 198.51.100.0/24, and it has no relay")
	require.ErrorContains(t, err, command+"false,publicAccessCidrs=0.0.0.0/0")
	err = try(refusal{missing: true}, types.VpcConfigResponse{EndpointPrivateAccess: true})
	require.ErrorContains(t, err, "admits only its own network")
	require.ErrorContains(t, err, command+"true,")
	require.Equal(t, refusal{}, try(refusal{}, closed), "another reason stays")
	other := errors.New("other")
	require.Equal(t, other, try(other, closed))
}
