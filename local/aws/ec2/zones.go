package ec2

// Availability zones. AWS maps their names to ids for each account: us-east-1a may be use1-az4.
// https://docs.aws.amazon.com/global-infrastructure/latest/regions/az-ids.html

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// WithoutEKS are the ids of zones in which EKS creates no control plane.
// https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html#network-requirements-subnets
var WithoutEKS = []string{"use1-az3", "usw1-az2", "cac1-az3"}

// zoneIDs returns the ids of a region's zones by name, without those that EKS refuses. Their order is not that of the names, as in
// accounts of AWS, so that code that confuses the two fails.
func zoneIDs(region string, zones []string) map[string]string {
	var short strings.Builder
	for i, part := range strings.Split(region, "-") {
		if i == 0 {
			short.WriteString(part)
		} else {
			short.WriteByte(part[0])
		}
	}
	ids, number := map[string]string{}, 0
	for _, zone := range slices.Backward(zones) {
		for id := ""; id == "" || slices.Contains(WithoutEKS, id); ids[zone] = id {
			number++
			id = fmt.Sprintf("%s-az%d", short.String(), number)
		}
	}
	return ids
}

// zoneID returns the id of a zone, or "".
func (s *Service) zoneID(zone string) string {
	s.zonesMu.Lock()
	defer s.zonesMu.Unlock()
	return s.zones[zone]
}

// SetZoneID changes the id of a zone, as if the account had another mapping.
func (s *Service) SetZoneID(zone, id string) {
	s.zonesMu.Lock()
	defer s.zonesMu.Unlock()
	s.zones[zone] = id
}

// Zones returns the ids of the region's zones by name.
func (s *Service) Zones() map[string]string {
	s.zonesMu.Lock()
	defer s.zonesMu.Unlock()
	return maps.Clone(s.zones)
}
