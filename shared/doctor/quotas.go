package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/render"
)

// Quota is a quota that new clusters take from.
type Quota struct {
	// Check reports it.
	Check string
	// Service and Code name it in Service Quotas.
	Service, Code string
	// Zone is the availability zone of a quota that holds in each zone, or "".
	Zone string
	// unit is what it counts, in words.
	unit string
}

// Key returns the key of the quota's usage in Facts.Used.
func (q Quota) Key() string {
	if q.Zone == "" {
		return q.Code
	}
	return q.Code + "/" + q.Zone
}

// The quotas of networks and clusters.
// https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
// https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html
var (
	VPCs             = Quota{Check: VPCQuota, Service: "vpc", Code: "L-F678F1CE", unit: "VPCs"}
	InternetGateways = Quota{Check: GatewayQuota, Service: "vpc", Code: "L-A4707A72", unit: "internet gateways"}
	Addresses        = Quota{Check: AddressQuota, Service: "ec2", Code: "L-0263D0A3", unit: "Elastic IP addresses"}
	EKSClusters      = Quota{Check: ClusterQuota, Service: "eks", Code: preflight.ClusterQuotaCode, unit: "EKS clusters"}
	// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
	Roles         = Quota{Check: RoleQuota, Service: "iam", Code: "L-FE177D64", unit: "IAM roles"}
	OIDCProviders = Quota{Check: ProviderQuota, Service: "iam", Code: "L-858F3967", unit: "OIDC providers"}
)

// NATGatewaysIn returns the quota of NAT gateways in a zone.
func NATGatewaysIn(zone string) Quota {
	return Quota{Check: NATGatewayQuota, Service: "vpc", Code: "L-FE5A380F", Zone: zone, unit: "NAT gateways"}
}

// Need is what new clusters take of a quota.
type Need struct {
	Quota
	// Least is taken at once, Most when the pools have grown to their maximum.
	Least, Most int
}

// Needs returns what clusters take, in the order of the checks. The types are those of their pools: a type that is absent counts as 0.
// Without clusters, it returns what a small one would take.
func Needs(clusters []Cluster, types map[string]preflight.InstanceType) []Need {
	sums := map[Quota]Need{}
	add := func(q Quota, least, most int) {
		n := sums[q]
		sums[q] = Need{q, n.Least + least, n.Most + most}
	}
	if len(clusters) == 0 {
		for _, q := range []Quota{VPCs, InternetGateways, Addresses, EKSClusters} {
			add(q, 0, 1)
		}
		add(Roles, 0, render.Roles(&api.Cluster{}))
	}
	for _, c := range clusters {
		add(EKSClusters, 1, 1)
		roles := render.Roles(c.Resolved)
		add(Roles, roles, roles)
		if c.Resolved.Spec.ControlPlane.OIDCProvider {
			add(OIDCProviders, 1, 1)
		}
		for q, n := range networkNeeds(c.Resolved.Spec.Network) {
			add(q, n, n)
		}
		for _, pool := range c.Resolved.Spec.Pools {
			poolNeeds(pool, types, add)
		}
	}
	order := func(check string) int { return slices.Index(names, check) }
	return slices.SortedFunc(maps.Values(sums), func(a, b Need) int {
		return cmp.Or(order(a.Check)-order(b.Check), cmp.Compare(a.Key(), b.Key()))
	})
}

// networkNeeds returns what the network stack of a cluster creates.
func networkNeeds(n api.Network) map[Quota]int {
	if n.Existing != nil {
		return nil
	}
	needs := map[Quota]int{VPCs: 1, InternetGateways: 1}
	zones := n.Zones
	switch n.NATGateways {
	case api.NATNone:
		return needs
	case api.NATSingle:
		zones = zones[:1]
	}
	if made := len(zones) - len(n.NATAddresses); made > 0 {
		needs[Addresses] = made
	}
	for _, zone := range zones {
		needs[NATGatewaysIn(zone)] = 1
	}
	return needs
}

// poolNeeds adds the vCPUs of a pool. At once it needs minSize nodes of its smallest type. It can grow to maxSize nodes of its largest.
func poolNeeds(pool api.Pool, types map[string]preflight.InstanceType, add func(q Quota, least, most int)) {
	type sizes struct{ smallest, largest int }
	codes := map[string]sizes{}
	for _, spot := range []bool{false, true} {
		minimum, maximum := nodes(pool, pool.MinSize, spot), nodes(pool, pool.MaxSize, spot)
		if maximum == 0 {
			continue
		}
		clear(codes)
		for _, name := range pool.InstanceTypes {
			code := preflight.QuotaCode(name, spot)
			vcpus := types[name].VCPUs
			if code == "" || vcpus == 0 {
				continue
			}
			s, found := codes[code]
			if !found {
				s.smallest = vcpus
			}
			codes[code] = sizes{min(s.smallest, vcpus), max(s.largest, vcpus)}
		}
		for code, s := range codes {
			least := minimum * s.smallest
			if len(codes) > 1 {
				least = 0 // a type of another quota may serve
			}
			q := Quota{Check: OnDemandQuota, Service: "ec2", Code: code, unit: "vCPUs of on-demand instances"}
			if spot {
				q.Check, q.unit = SpotQuota, "vCPUs of spot instances"
			}
			add(q, least, maximum*s.largest)
		}
	}
}

// nodes returns how many of a pool's nodes are spot, or on-demand, instances.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/mixed-instances-groups-set-up-overview.html
func nodes(pool api.Pool, size int, spot bool) int {
	onDemand := size
	if pool.Spot != nil {
		base := min(size, pool.Spot.OnDemandBase)
		onDemand = base + ((size-base)*pool.Spot.OnDemandPercentage+99)/100
	}
	if spot {
		return size - onDemand
	}
	return onDemand
}

// quotas compares what new clusters take with what the account has left.
func (r *report) quotas(clusters []Cluster) {
	for _, need := range Needs(clusters, r.facts.InstanceTypes) {
		if need.Check == r.name {
			r.compare(need)
		}
	}
}

// compare reports on one quota.
func (r *report) compare(n Need) {
	where := n.unit
	if n.Zone != "" {
		where += " in " + n.Zone
	}
	limit, found := r.facts.Limits[n.Code]
	if !found {
		fix := "check it yourself, or ask AWS Support for the quota"
		if region := n.Region(r.facts.Region); region != "" {
			fix = "check it yourself: `aws service-quotas list-service-quotas --service-code " + n.Service + " --region " + region + "`"
		}
		r.warn(fix, "Service Quotas has no value for %s (%s)", where, n.Code)
		return
	}
	used := r.facts.Used[n.Key()]
	state := fmt.Sprintf("%d of %d %s are used", used, limit, where)
	switch {
	case used+n.Least > limit:
		r.block(r.increase(n.Quota, used+n.Least), "%s; needed: %d", state, n.Least)
	case used+n.Most > limit && n.Least == 0:
		r.warn(r.increase(n.Quota, used+n.Most), "%s; a cluster may need %d", state, n.Most)
	case used+n.Most > limit:
		r.warn(r.increase(n.Quota, used+n.Most), "%s; needed: %d now, %d at the maximum size", state, n.Least, n.Most)
	case n.Least == n.Most:
		r.ok("%s; needed: %d", state, n.Most)
	default:
		r.ok("%s; needed: up to %d", state, n.Most)
	}
}

// increase returns the command that requests a higher quota. AWS raises that of internet gateways with that of VPCs. Quotas of IAM are in
// one region of each partition.
func (r *report) increase(q Quota, value int) string {
	region := q.Region(r.facts.Region)
	switch {
	case q == InternetGateways:
		q = VPCs
	case region == "":
		return fmt.Sprintf("request a quota of %d %s from AWS Support, or delete unused ones", value, q.unit)
	}
	return fmt.Sprintf("aws service-quotas request-service-quota-increase --region %s --service-code %s --quota-code %s --desired-value %d",
		region, q.Service, q.Code, value)
}

// Region returns the region whose Service Quotas has the quota, for a cluster in a region. It is "" for quotas of IAM where AWS documents
// none. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
func (q Quota) Region(region string) string {
	switch {
	case q.Service != "iam":
		return region
	case strings.HasPrefix(region, "cn-"), strings.HasPrefix(region, "us-gov-"):
		return ""
	}
	return "us-east-1"
}

// instanceTypes finds pools of whose types the region offers none.
func (r *report) instanceTypes(clusters []Cluster) {
	missing := false
	for _, c := range clusters {
		for _, pool := range c.Resolved.Spec.Pools {
			var absent []string
			for _, name := range pool.InstanceTypes {
				if r.facts.InstanceTypes[name].VCPUs == 0 {
					absent = append(absent, name)
				}
			}
			switch missing = missing || len(absent) > 0; {
			case len(absent) == 0:
			case len(absent) == len(pool.InstanceTypes):
				r.block("give the pool other instance types", "pool %s of %s: this region has none of its instance types: %s", pool.Name, c.name(),
					list(absent))
			default:
				r.warn("remove them from the pool", "pool %s of %s: this region does not have some of its instance types: %s", pool.Name, c.name(),
					list(absent))
			}
		}
	}
	if !missing && len(clusters) > 0 {
		r.ok("the region has every instance type of the pools")
	}
}
