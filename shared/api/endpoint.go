package api

import "slices"

// everyone is the range of all IPv4 addresses. drover's functions call from unknown ones.
const everyone = "0.0.0.0/0"

// IsOpen reports whether everyone may connect to an API endpoint. drover reaches any other endpoint through a relay function in the
// cluster's network. public and cidrs are what EKS calls endpointPublicAccess and publicAccessCidrs.
func IsOpen(public bool, cidrs []string) bool { return public && slices.Contains(cidrs, everyone) }

// NeedsRelay reports whether drover reaches the cluster's API through a relay. By default everyone may connect.
func (e Endpoint) NeedsRelay() bool {
	cidrs := e.PublicCIDRs
	if cidrs == nil {
		cidrs = []string{everyone}
	}
	return !IsOpen(e.Public == nil || *e.Public, cidrs)
}
