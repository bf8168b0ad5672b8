package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// refusedZones are the ids of zones in which EKS creates no control plane.
// https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html#network-requirements-subnets
var refusedZones = []string{"use1-az3", "usw1-az2", "cac1-az3"}

// RefusedZone reports whether EKS creates no control plane in a zone with this id.
func RefusedZone(id string) bool { return slices.Contains(refusedZones, id) }

// leastZones is how many zones a control plane needs.
const leastZones = 2

// zones finds zones that the region does not have, or that EKS refuses.
func (r *report) zones(clusters []Cluster) {
	good := true
	for _, c := range clusters {
		network := c.Resolved.Spec.Network
		var problem, fix string
		if network.Existing == nil {
			fix = "use other zones, for example " + list(AcceptedZones(r.facts.Zones))
			problem = ZoneProblem(network.Zones, r.facts.Zones)
		} else {
			fix = "name private subnets of that VPC in two of these zones: " + list(AcceptedZones(r.facts.Zones))
			problem = r.subnetProblem(network.Existing.VPCID, network.Existing.Subnets)
		}
		if problem != "" {
			good = false
			r.block(fix, "%s: %s", c.name(), problem)
		}
	}
	if good && len(clusters) > 0 {
		r.ok("EKS accepts the zones of the networks")
	}
}

// AcceptedZones returns the names of a region's zones that EKS accepts, given the ids of the zones by name.
func AcceptedZones(ids map[string]string) (accepted []string) {
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		if !RefusedZone(ids[name]) {
			accepted = append(accepted, name)
		}
	}
	return accepted
}

// ZoneProblem returns which zones a network cannot have, given the ids of the region's zones by name. It returns "" if it can have all.
func ZoneProblem(zones []string, ids map[string]string) string {
	var problems []string
	for _, zone := range zones {
		switch id, found := ids[zone]; {
		case !found:
			problems = append(problems, fmt.Sprintf("zone %s does not exist or is not available", zone))
		case RefusedZone(id):
			problems = append(problems, fmt.Sprintf("EKS creates no control plane in zone %s (%s)", zone, id))
		}
	}
	return strings.Join(problems, "; ")
}

func (r *report) subnetProblem(vpc string, subnets []string) string {
	var problems []string
	zones := map[string]bool{}
	for _, id := range subnets {
		subnet, found := r.facts.Subnets[id]
		switch zones[subnet.Zone] = true; {
		case !found || subnet.VPC != vpc:
			problems = append(problems, fmt.Sprintf("%s has no subnet %s", vpc, id))
		case RefusedZone(subnet.ZoneID):
			problems = append(problems, fmt.Sprintf("EKS creates no control plane in zone %s (%s) of subnet %s", subnet.Zone, subnet.ZoneID, id))
		case r.facts.Zones[subnet.Zone] == "":
			problems = append(problems, fmt.Sprintf("EKS creates no control plane in zone %s of subnet %s: it is a Local Zone, a Wavelength Zone "+
				"or not available", subnet.Zone, id))
		}
	}
	if len(problems) == 0 && len(zones) < leastZones {
		problems = append(problems, "its subnets are in one zone; EKS needs two")
	}
	return strings.Join(problems, "; ")
}
