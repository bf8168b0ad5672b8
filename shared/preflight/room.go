package preflight

// Room for what an upgrade adds temporarily: surge nodes, and the control plane's additional network interfaces.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/pool"
)

// surge returns how many nodes of a pool may be added at once.
func (f *Facts) surge(pool *api.Pool) int {
	desired := max(f.Groups[pool.Name].Desired, pool.MinSize)
	if desired == 0 {
		return 0
	}
	_, surge := pool.Update.Bounds(desired)
	return surge
}

// together returns the pools whose nodes are replaced at the same time: those with the same update.order.
func together(p *Plan) [][]api.Pool {
	by := map[int][]api.Pool{}
	var orders []int
	for _, pool := range p.After.Spec.Pools {
		if len(by[pool.Update.Order]) == 0 {
			orders = append(orders, pool.Update.Order)
		}
		by[pool.Update.Order] = append(by[pool.Update.Order], pool)
	}
	slices.Sort(orders)
	var all [][]api.Pool
	for _, order := range orders {
		all = append(all, by[order])
	}
	return all
}

// controlPlaneAddresses is how many free addresses EKS needs to update a control plane, in each of its original subnets. The page states
// up to five in all. The message with which EKS rejects an update states "at least 5 IPs in each subnet".
// https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html (Considerations)
const controlPlaneAddresses = 5

// freeAddresses checks subnets. Without addresses for its new interfaces, EKS cannot update a control plane. Without one, no instance
// starts. With fewer than an interface needs, a node starts and may have none for its pods.
func freeAddresses(r *report, f *Facts, p *Plan) {
	const next = "Free addresses in these subnets: remove unused interfaces and load balancers, or give the cluster more subnets."
	var none, few []string
	if full := f.full(); len(full) > 0 && len(p.Versions()) > 0 {
		none = append(none, fmt.Sprintf("EKS needs %d free addresses in each subnet of the control plane to update it: %s",
			controlPlaneAddresses, list(full)))
	}
	if p.After != nil && p.replaces() {
		for _, pools := range together(p) {
			before := len(none) + len(few)
			for _, pool := range pools {
				f.room(&none, &few, pool)
			}
			if len(none)+len(few) == before {
				f.room(&none, &few, pools...) // each pool alone has room, but most pools share subnets
			}
		}
	}
	if len(none) > 0 {
		r.block(next, "%s", list(none))
	}
	if len(few) > 0 {
		r.warn(next, "%s", list(few))
	}
}

// full returns the control plane's subnets with too few free addresses for EKS.
func (f *Facts) full() []string {
	var full []string
	for _, id := range f.ControlPlane.Subnets {
		if free := f.Subnets[id].Free; free < controlPlaneAddresses {
			full = append(full, fmt.Sprintf("%s has %d", id, free))
		}
	}
	return full
}

// room adds findings if the subnets of pools that are replaced together have too few addresses for the surge nodes: none for some nodes,
// or few for their pods.
func (f *Facts) room(none, few *[]string, pools ...api.Pool) {
	var names, subnets []string
	nodes, addresses := 0, 0
	for _, pool := range pools {
		surge, each := f.surge(&pool), 1
		if _, ok := f.Groups[pool.Name]; !ok || surge == 0 {
			continue
		}
		for _, name := range pool.InstanceTypes {
			each = max(each, f.InstanceTypes[name].Addresses)
		}
		nodes, addresses = nodes+surge, addresses+surge*each
		names, subnets = append(names, pool.Name), append(subnets, f.Groups[pool.Name].Subnets...)
	}
	slices.Sort(subnets)
	free, where := f.free(slices.Compact(subnets))
	switch {
	case free < nodes:
		*none = append(*none, fmt.Sprintf("%s of pool %s would be added, and %d addresses are free: %s", count(nodes, "node"), list(names),
			free, where))
	case free < addresses:
		*few = append(*few, fmt.Sprintf("%s of pool %s would be added and may need %d addresses, with those for pods, and %d are free: %s",
			count(nodes, "node"), list(names), addresses, free, where))
	}
}

// free returns the free addresses of subnets, and where they are. A subnet that no longer exists has none.
func (f *Facts) free(ids []string) (sum int, where string) {
	var each []string
	for _, id := range ids {
		sum += f.Subnets[id].Free
		each = append(each, fmt.Sprintf("%s %d", id, f.Subnets[id].Free))
	}
	return sum, list(each)
}

// quotaCodes of EC2 for the vCPUs of running instances, by the first letters of instance types: on-demand, then spot.
// https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html
var quotaCodes = []struct {
	families       []string
	onDemand, spot string
}{
	{[]string{"a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"}, "L-1216C47A", "L-34B43A08"},
	{[]string{"dl"}, "L-6E869C2A", "L-85EED4F7"},
	{[]string{"f"}, "L-74FC7D96", "L-88CF9481"},
	{[]string{"g", "gr", "vt"}, "L-DB2E81BA", "L-3819A6DF"},
	{[]string{"hpc"}, "L-F7808C92", ""},
	{[]string{"inf"}, "L-1945791B", "L-B5D1601B"},
	{[]string{"p"}, "L-417A185B", "L-7212CCBC"},
	{[]string{"trn"}, "L-2C3B7624", "L-6B0D517C"},
	{[]string{"u"}, "L-43DA4232", ""},
	{[]string{"x"}, "L-7295265B", "L-E3A00192"},
}

// volumeQuotaCodes of EBS for the storage of volumes, by type.
// https://docs.aws.amazon.com/general/latest/gr/ebs-service.html
var volumeQuotaCodes = map[string]string{"gp2": "L-D18FCD1D", "gp3": "L-7A658B76", "io1": "L-FD252861", "io2": "L-09BD8365"}

// VolumeQuotaCode returns the quota of volumes of a type, or "" if drover knows none.
func VolumeQuotaCode(volumeType string) string { return volumeQuotaCodes[volumeType] }

// p5Spot is the quota for spot instances of P5 alone.
const p5Spot = "L-C4BD4855"

// QuotaCode returns the quota of instances of a type, or "" if drover knows none.
func QuotaCode(instanceType string, spot bool) string {
	if spot && strings.HasPrefix(instanceType, "p5") {
		return p5Spot
	}
	family := instanceType[:max(0, strings.IndexAny(instanceType, "-0123456789"))]
	for _, q := range quotaCodes {
		switch {
		case !slices.Contains(q.families, family):
		case spot:
			return q.spot
		default:
			return q.onDemand
		}
	}
	return ""
}

// QuotasNeeded returns the maximum of vCPUs that the upgrade adds at the same time, by quota. A pool with several instance types counts
// with its largest. One with spot instances counts for both quotas.
func QuotasNeeded(f *Facts, p *Plan) map[string]int { return f.addedUsage(p, f.largest) }

// VolumesNeeded returns the maximum GiB of root volumes that the upgrade adds at the same time, by quota.
func VolumesNeeded(f *Facts, p *Plan) map[string]int {
	return f.addedUsage(p, func(pool *api.Pool) map[string]int {
		if code := VolumeQuotaCode(pool.RootVolume.Type); code != "" {
			return map[string]int{code: pool.RootVolume.SizeGiB}
		}
		return nil
	})
}

// addedUsage returns the maximum that the surge nodes use at the same time, by quota. node returns the use of one node of a pool.
func (f *Facts) addedUsage(p *Plan, node func(*api.Pool) map[string]int) map[string]int {
	most := map[string]int{}
	if p.After == nil || !p.replaces() {
		return most
	}
	for _, pools := range together(p) {
		needed := map[string]int{}
		for _, pool := range pools {
			if nodes := f.surge(&pool); nodes > 0 {
				for code, each := range node(&pool) {
					needed[code] += nodes * each
				}
			}
		}
		for code, sum := range needed {
			most[code] = max(most[code], sum)
		}
	}
	return most
}

// largest returns the vCPUs of a pool's largest instance type, by quota.
func (f *Facts) largest(pool *api.Pool) map[string]int {
	onDemand := pool.Spot == nil || pool.Spot.OnDemandBase > 0 || pool.Spot.OnDemandPercentage > 0
	spot := pool.Spot != nil && pool.Spot.OnDemandPercentage < 100
	out := map[string]int{}
	for _, name := range pool.InstanceTypes {
		for _, kind := range []struct{ counts, spot bool }{{counts: onDemand}, {counts: spot, spot: true}} {
			if code := QuotaCode(name, kind.spot); kind.counts && code != "" {
				out[code] = max(out[code], f.InstanceTypes[name].VCPUs)
			}
		}
	}
	return out
}

// instanceQuota checks the quota of instances. EC2 launches none beyond it, and a pool without its new node keeps its old one.
func instanceQuota(r *report, f *Facts, p *Plan) { enough(r, f, QuotasNeeded(f, p), "ec2", "vCPUs") }

// volumeQuota checks the quota of volumes. An instance whose volume exceeds it is terminated right after its launch.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html
func volumeQuota(r *report, f *Facts, p *Plan) { enough(r, f, VolumesNeeded(f, p), "ebs", "GiB") }

// enough compares the need with what the account has left of a service.
func enough(r *report, f *Facts, needed map[string]int, service, unit string) {
	var short, unknown []string
	for _, code := range sortedKeys(needed) {
		quota, found := f.Quotas[code]
		switch {
		case !found:
			unknown = append(unknown, code)
		case quota.Used+needed[code] > quota.Limit:
			short = append(short, fmt.Sprintf("%s (%s): %d of %d %s are used, and the new nodes need up to %d", quota.Name, code, quota.Used,
				quota.Limit, unit, needed[code]))
		}
	}
	if len(short) > 0 {
		r.block("Request an increase: `aws service-quotas request-service-quota-increase --service-code "+service+
			" --quota-code …`, or set maxSurge to 0 and maxUnavailable to 1.",
			"%s", list(short))
	}
	if len(unknown) > 0 {
		r.warn("Check them yourself: `aws service-quotas list-service-quotas --service-code "+service+"`.",
			"Service Quotas has no value for %s", list(unknown))
	}
}

// recent is how long a failed launch is reported for a group that has its desired capacity.
const recent = time.Hour

// surgeCapacity finds groups that cannot launch instances. Where no node is added, the pods of a leaving node need room on the others.
func surgeCapacity(r *report, f *Facts, p *Plan) {
	if p.After == nil || !p.replaces() {
		return
	}
	var stuck, failed, doubtful, tight, unknown []string
	for _, pool := range p.After.Spec.Pools {
		group, found := f.Groups[pool.Name]
		if !found {
			continue
		}
		if !slices.ContainsFunc(pool.InstanceTypes, func(name string) bool { return f.InstanceTypes[name].VCPUs > 0 }) {
			unknown = append(unknown, fmt.Sprintf("pool %s: %s", pool.Name, list(pool.InstanceTypes)))
		}
		if off := suspendedProcesses(group); len(off) > 0 {
			stuck = append(stuck, fmt.Sprintf("pool %s: %s", pool.Name, list(off)))
		}
		finding := fmt.Sprintf("pool %s at %s: %s", pool.Name, group.FailedAt.UTC().Format(time.RFC3339), group.Failure)
		switch {
		case group.Failure == "":
		case group.InService+len(group.Outdated) < group.Desired:
			failed = append(failed, finding)
		case f.ReadAt.Sub(group.FailedAt) < recent:
			doubtful = append(doubtful, finding)
		}
		if finding := f.crowdedFinding(&pool); finding != "" {
			tight = append(tight, finding)
		}
	}
	const next = "Fix what Auto Scaling reports, or give the pool other instance types or zones."
	if len(unknown) > 0 {
		r.block("Give the pool other instance types.", "EC2 has none of these instance types in this region: %s", list(unknown))
	}
	if len(stuck) > 0 {
		r.block("Resume them: `aws autoscaling resume-processes --auto-scaling-group-name …`.", "processes of Auto Scaling are suspended: %s",
			list(stuck))
	}
	if len(failed) > 0 {
		r.block(next, "groups have fewer instances than desired, and their last launch failed: %s", list(failed))
	}
	if len(doubtful) > 0 {
		r.warn(next, "the last launch failed: %s", list(doubtful))
	}
	if len(tight) > 0 {
		r.warn("Set the pool's maxSurge to 1, or raise its size: otherwise pods wait for the new node.", "%s", list(tight))
	}
}

// suspendedProcesses returns the suspended processes that a group needs.
func suspendedProcesses(g Group) []string {
	var off []string
	for _, process := range g.Suspended {
		if slices.Contains(pool.NeededToReplace, process) {
			off = append(off, process)
		}
	}
	return off
}

// crowdedFinding returns a finding if the pods of the nodes that leave at once have no room on the pool's others. It returns "" if they
// have, or if nodes are added first.
func (f *Facts) crowdedFinding(pool *api.Pool) string {
	if f.surge(pool) > 0 {
		return ""
	}
	var nodes []Node
	var free Resources
	for _, n := range f.Survey.Nodes {
		if n.Pool == pool.Name && n.Ready && !n.Cordoned {
			nodes = append(nodes, n)
			free = free.plus(n.Allocatable).minus(n.Requested)
		}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return int(min(1, max(-1, b.Requested.MilliCPU-a.Requested.MilliCPU))) })
	var leaving Resources
	for _, n := range nodes[:min(len(nodes), pool.Update.MaxUnavailable.Of(len(nodes), false))] {
		leaving = leaving.plus(n.Requested)
		free = free.minus(n.Allocatable).plus(n.Requested)
	}
	if leaving.MilliCPU <= free.MilliCPU && leaving.Memory <= free.Memory && leaving.Pods <= free.Pods {
		return ""
	}
	return fmt.Sprintf("pool %s adds no node before it replaces one: "+
		"the pods of its fullest node request %s, and its other nodes have %s free",
		pool.Name, leaving, free)
}

func (a Resources) plus(b Resources) Resources {
	return Resources{a.MilliCPU + b.MilliCPU, a.Memory + b.Memory, a.Pods + b.Pods}
}

func (a Resources) minus(b Resources) Resources {
	return Resources{a.MilliCPU - b.MilliCPU, a.Memory - b.Memory, a.Pods - b.Pods}
}

func (a Resources) String() string {
	return fmt.Sprintf("%.1f CPUs, %.1f GiB and %s", float64(a.MilliCPU)/1000, float64(a.Memory)/(1<<30), count(int(a.Pods), "pod"))
}
