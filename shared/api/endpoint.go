package api

import (
	"fmt"
	"slices"
	"strings"
)

// everyone is the range of all IPv4 addresses. drover's functions call from unknown ones.
const everyone = "0.0.0.0/0"

// IsOpen reports whether everyone may connect to an API endpoint. drover reaches any other endpoint through a relay function in the
// cluster's network. public and cidrs are what EKS calls endpointPublicAccess and publicAccessCidrs.
func IsOpen(public bool, cidrs []string) bool { return public && slices.Contains(cidrs, everyone) }

// Access is who may connect to an API endpoint, in EKS's terms. CIDRs has no meaning unless Public is true.
type Access struct {
	Public, Private bool
	CIDRs           []string
}

// Access returns the access that EKS has for the endpoint. By default everyone may connect, and the cluster's network.
func (e Endpoint) Access() Access {
	a := Access{Public: e.Public == nil || *e.Public, Private: e.Private == nil || *e.Private, CIDRs: e.PublicCIDRs}
	if a.CIDRs == nil {
		a.CIDRs = []string{everyone}
	}
	return a
}

// Equal reports whether both admit the same addresses.
func (a Access) Equal(b Access) bool {
	return a.Public == b.Public && a.Private == b.Private &&
		(!a.Public || slices.Equal(slices.Sorted(slices.Values(a.CIDRs)), slices.Sorted(slices.Values(b.CIDRs))))
}

// String is who may connect.
func (a Access) String() string {
	var whom []string
	if a.Public {
		whom = append(whom, strings.Join(slices.Sorted(slices.Values(a.CIDRs)), ", "))
	}
	if a.Private {
		whom = append(whom, "its own network")
	}
	return strings.Join(whom, " and ")
}

// Command is the command that gives the endpoint of an EKS cluster this access.
// https://docs.aws.amazon.com/eks/latest/userguide/config-cluster-endpoint.html
func (a Access) Command(eksCluster string) string {
	settings := fmt.Sprintf("endpointPublicAccess=%t,endpointPrivateAccess=%t", a.Public, a.Private)
	if a.Public {
		settings += ",publicAccessCidrs=" + strings.Join(a.CIDRs, ",")
	}
	return fmt.Sprintf("aws eks update-cluster-config --name %s --resources-vpc-config %s", eksCluster, settings)
}

// NeedsRelay reports whether drover reaches the cluster's API through a relay.
func (e Endpoint) NeedsRelay() bool {
	a := e.Access()
	return !IsOpen(a.Public, a.CIDRs)
}
