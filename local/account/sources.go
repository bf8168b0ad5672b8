package account

// Where callers connect to the endpoints of clusters from.

import (
	"net/netip"

	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/iam"
)

// The public addresses of users, and of functions outside of VPCs. Both are reserved for documentation, so no host has them: TEST-NET-3 and
// TEST-NET-1. A function calls from any address of its block, and from another one later. https://www.rfc-editor.org/rfc/rfc5737
var (
	UserAddress       = netip.MustParsePrefix("203.0.113.10/32")
	FunctionAddresses = netip.MustParsePrefix("192.0.2.0/24")
)

// functionSource returns the source of a function in a VPC, or outside of one without subnets.
func functionSource(subnets, groups []string) eks.Source {
	if len(subnets) == 0 {
		return eks.Source{Public: FunctionAddresses}
	}
	return eks.Source{SubnetIDs: subnets, SecurityGroupIDs: groups}
}

// sourceOf returns from where a caller connects.
func (a *Account) sourceOf(caller iam.Caller) eks.Source {
	if subnets, groups, isFunction := a.Lambda.SourceOf(caller); isFunction {
		return functionSource(subnets, groups)
	}
	return eks.Source{Public: a.user}
}
