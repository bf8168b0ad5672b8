package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The tags by which load balancers find their subnets. drover sets them in the networks that it creates.
// https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html#network-requirements-subnets
const (
	tagInternal = "kubernetes.io/role/internal-elb"
	tagPublic   = "kubernetes.io/role/elb"
)

// networkTags finds subnets of existing networks that load balancers would not find. The cluster itself works without them.
func (r *report) networkTags(clusters []Cluster) {
	checked := false
	for _, c := range clusters {
		existing := c.Resolved.Spec.Network.Existing
		if existing == nil {
			continue
		}
		checked = true
		var untagged, others []string
		for _, id := range existing.Subnets {
			subnet, found := r.facts.Subnets[id]
			if _, tagged := subnet.Tags[tagInternal]; found && !tagged {
				untagged = append(untagged, id)
			}
		}
		if len(untagged) > 0 {
			r.warn(r.tag(untagged, tagInternal), "%s: subnets without the tag %s, which internal load balancers need: %s", c.name(), tagInternal,
				list(untagged))
		}
		public := false
		for _, id := range slices.Sorted(maps.Keys(r.facts.Subnets)) {
			subnet := r.facts.Subnets[id]
			if subnet.VPC != existing.VPCID || slices.Contains(existing.Subnets, id) {
				continue
			}
			_, tagged := subnet.Tags[tagPublic]
			public, others = public || tagged, append(others, id)
		}
		if !public && len(others) > 0 {
			r.warn("tag those of them that are public: "+r.tag(others, tagPublic),
				"%s: no subnet of %s has the tag %s, which internet-facing load balancers need", c.name(), existing.VPCID, tagPublic)
		}
	}
	if checked && len(r.found) == 0 {
		r.ok("the subnets of existing networks have the tags for load balancers")
	}
}

// tag returns the command that tags subnets.
func (r *report) tag(subnets []string, key string) string {
	return fmt.Sprintf("aws ec2 create-tags --region %s --resources %s --tags Key=%s,Value=1", r.facts.Region, strings.Join(subnets, " "), key)
}
