package api

import (
	"fmt"
	"net/netip"
	"slices"
)

// sharedRanges are not on the internet either: the shared address space (RFC 6598) and the range for benchmarks (RFC 2544), which AWS
// allows in a VPC. https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html
var sharedRanges = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15")}

// publicRanges warns of VPC ranges with addresses of the internet. AWS allows them and routes them within the VPC. Nodes and pods then
// cannot reach the hosts with those addresses.
func publicRanges(n *Network) (warnings []string) {
	for i, cidr := range n.ranges() {
		p, ok := parseRange(cidr)
		within := func(large netip.Prefix) bool { return large.Bits() <= p.Bits() && large.Contains(p.Addr()) }
		if !ok || slices.ContainsFunc(privateRanges, within) || slices.ContainsFunc(sharedRanges, within) {
			continue
		}
		field := "spec.network.cidr"
		if i > 0 {
			field = fmt.Sprintf("spec.network.secondaryCIDRs[%d]", i-1)
		}
		warnings = append(warnings, fmt.Sprintf("%s: %s holds public addresses: nodes and pods cannot reach the internet hosts that have them; "+
			"use a range of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10", field, cidr))
	}
	return warnings
}
