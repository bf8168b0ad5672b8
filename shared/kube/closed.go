package kube

// Endpoints that were closed outside drover: they are not open to everyone, and the cluster's stack made no relay.

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/drover-run/drover/shared/api"
)

// withoutRelay is the transport to such an endpoint. It uses the relay, because a stack may be creating it.
type withoutRelay struct {
	next  http.RoundTripper
	what  string
	cause error
}

// RoundTrip makes a call.
func (w withoutRelay) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(r)
	var failed interface {
		WithoutRelay(what string, cause error) error
	}
	if errors.As(err, &failed) {
		err = failed.WithoutRelay(w.what, w.cause)
	}
	return response, err
}

// closedOutside says whom the endpoint of an EKS cluster admits, and how to open it. A cluster without a relay has an open endpoint in its
// spec.
func closedOutside(eksCluster string, is *types.VpcConfigResponse) error {
	now := api.Access{Public: is.EndpointPublicAccess, Private: is.EndpointPrivateAccess, CIDRs: is.PublicAccessCidrs}
	open := api.Endpoint{}.Access()
	open.Private = now.Private
	return fmt.Errorf("its endpoint admits only %s, and it has no relay: the access was changed outside drover; to open the endpoint again, "+
		"run %s", now, open.Command(eksCluster))
}
