package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// The tags by which load balancers find their subnets. drover sets them in the networks that it creates.
// https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html#network-requirements-subnets
const (
	tagInternal = "kubernetes.io/role/internal-elb"
	tagPublic   = "kubernetes.io/role/elb"
)

// networkTags finds subnets of existing networks that load balancers would not find, or that would get the wrong ones. The cluster itself
// works without them, so only the command checks this.
func (r *report) networkTags(clusters []Cluster) {
	if r.facts.PublicSubnets == nil {
		return
	}
	checked := false
	for _, c := range clusters {
		if existing := c.Resolved.Spec.Network.Existing; existing != nil {
			checked = true
			r.subnetTags(c.name(), existing)
		}
	}
	if checked && len(r.found) == 0 {
		r.ok("the subnets of existing networks have the tags for load balancers")
	}
}

// SubnetTags returns what is missing of the tags of one existing network, each with its command. subnets are those of the VPC, and public
// says which have a route to the internet.
func SubnetTags(region, cluster string, existing *api.ExistingNetwork, subnets map[string]Subnet, public map[string]bool) []Finding {
	r := report{name: NetworkTags, facts: &Facts{Region: region, Subnets: subnets, PublicSubnets: public}}
	r.subnetTags(cluster, existing)
	return r.found
}

// subnetTags checks the tags of one network. Private subnets outside the spec are left to their owners.
func (r *report) subnetTags(cluster string, existing *api.ExistingNetwork) {
	var untagged, public, reversed []string
	tagged := false
	for _, id := range slices.Sorted(maps.Keys(r.facts.Subnets)) {
		subnet := r.facts.Subnets[id]
		if subnet.VPC != existing.VPCID {
			continue
		}
		_, internal := subnet.Tags[tagInternal]
		_, external := subnet.Tags[tagPublic]
		switch {
		case r.facts.PublicSubnets[id]:
			public, tagged = append(public, id), tagged || external
		case external:
			reversed = append(reversed, id)
		case !internal && slices.Contains(existing.Subnets, id):
			untagged = append(untagged, id)
		}
	}
	if len(untagged) > 0 {
		r.warn(r.tag(untagged, tagInternal), "%s: subnets without the tag %s, which internal load balancers need: %s", cluster, tagInternal,
			list(untagged))
	}
	if !tagged && len(public) > 0 {
		r.warn(r.tag(public, tagPublic), "%s: no public subnet of %s has the tag %s, which internet-facing load balancers need", cluster,
			existing.VPCID, tagPublic)
	}
	if len(reversed) > 0 {
		r.warn(fmt.Sprintf("aws ec2 delete-tags --region %s --resources %s --tags Key=%s", r.facts.Region, strings.Join(reversed, " "),
			tagPublic),
			"%s: private subnets with the tag %s, in which the internet does not reach load balancers: %s", cluster, tagPublic, list(reversed))
	}
}

// tag returns the command that tags subnets.
func (r *report) tag(subnets []string, key string) string {
	return fmt.Sprintf("aws ec2 create-tags --region %s --resources %s --tags Key=%s,Value=1", r.facts.Region, strings.Join(subnets, " "), key)
}
