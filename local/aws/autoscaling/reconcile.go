package autoscaling

// Keeping a group at its desired capacity: which instances to launch in which zone, and which to terminate.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/ec2"
)

// reconcile launches and terminates instances until the group has its desired capacity. The caller holds the lock. cause says which
// request changed the group, as the activity history shows it. It may be empty.
func (s *Service) reconcile(g *group, cause string) {
	if s.closed {
		return
	}
	if cause != "" {
		cause = fmt.Sprintf("At %s %s", stamp(s.now()), cause)
	}
	// Unhealthy instances are terminated first. They no longer count, so their replacements follow.
	if !g.suspended["ReplaceUnhealthy"] && !g.suspended["Terminate"] {
		for _, m := range slices.Clone(g.members) {
			if m.health == unhealthy && !m.leaving() {
				s.startTermination(g, m, fmt.Sprintf("At %s an instance was taken out of service in response to an EC2 health check "+
					"indicating it has been terminated or stopped.", stamp(s.now())))
			}
		}
	}
	want := g.desired + g.surge
	if s.rebalance(g); g.rebalancing != nil {
		want++
	}
	for g.size() > want && !g.suspended["Terminate"] {
		m := g.victim()
		if m == nil {
			break
		}
		s.startTermination(g, m, strings.TrimSpace(cause+fmt.Sprintf("  At %s an instance was taken out of service "+
			"in response to a difference between desired and actual capacity, shrinking the capacity from %d to %d.",
			stamp(s.now()), g.size(), want)))
	}
	for g.size() < want && !g.suspended["Launch"] && !g.backoff && !g.deleting {
		s.start(g, strings.TrimSpace(cause+fmt.Sprintf("  At %s an instance was started in response to a difference between desired "+
			"and actual capacity, increasing the capacity from %d to %d.", stamp(s.now()), g.size(), want)))
	}
	if g.deleting && len(g.members) == 0 {
		s.groups = slices.DeleteFunc(s.groups, func(x *group) bool { return x == g })
		s.deleted = append(s.deleted, g)
		s.changedLocked()
	}
}

// rebalanceSoon lets a group rebalance a moment later: an update that replaces instances suspends that first. The caller holds the lock.
func (s *Service) rebalanceSoon(g *group) {
	s.background(func(ctx context.Context) {
		if s.config.Clock.Work(ctx, rebalanceWork) == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			g.rebalances = true
			s.reconcile(g, "")
		}
	})
}

// rebalance launches an instance in the zone with the fewest instances, if another zone has at least two more. The group has one instance
// too many until that one is in service. Then the scale-in terminates an instance in the zone with the most. It follows changes of
// subnets only. The caller holds the lock.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-benefits.html#AutoScalingBehavior.InstanceUsage
func (s *Service) rebalance(g *group) {
	if m := g.rebalancing; m != nil && m.state != pending && m.state != pendingWait {
		g.rebalancing = nil // it is in service, or it failed
	}
	stable := g.rebalancing == nil && g.surge == 0 && g.activeRefresh() == nil && len(g.members) == g.desired && g.inService() == g.desired
	if !g.rebalances || !stable || g.backoff || g.deleting || g.suspended["AZRebalance"] || g.suspended["Launch"] || g.suspended["Terminate"] {
		return
	}
	zones := map[string]int{}
	for _, subnet := range g.subnets {
		zones[subnet.Zone] = 0
	}
	for _, m := range g.members {
		zones[m.zone]++
	}
	names := slices.SortedFunc(maps.Keys(zones), func(a, b string) int { return cmp.Or(zones[a]-zones[b], cmp.Compare(a, b)) })
	fewest, most := names[0], names[len(names)-1]
	if zones[most]-zones[fewest] < 2 {
		g.rebalances = false
		return
	}
	before := len(g.members)
	s.start(g, fmt.Sprintf("At %s instances were launched to balance instances in zones %s with other zones resulting in more than "+
		"desired number of instances in the group.", stamp(s.now()), fewest))
	// Without capacity in that zone, the group does not change.
	if g.rebalances = len(g.members) > before && g.members[before].zone == fewest; len(g.members) > before {
		g.rebalancing = g.members[before]
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// onDemand reports whether the next instance is an on-demand instance: all up to the base, then the percentage above it.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/mixed-instances-groups-set-up-overview.html
func (g *group) onDemand() bool {
	mixed := g.settings.MixedInstancesPolicy
	if mixed == nil || mixed.InstancesDistribution == nil {
		return true
	}
	base, percentage := 0, 100
	if d := mixed.InstancesDistribution; d.OnDemandBaseCapacity != nil {
		base = *d.OnDemandBaseCapacity
	}
	if p := mixed.InstancesDistribution.OnDemandPercentageAboveBaseCapacity; p != nil {
		percentage = *p
	}
	onDemand, total := 0, 1
	for _, m := range g.members {
		if !m.leaving() {
			total++
			if !m.spot {
				onDemand++
			}
		}
	}
	// Percentages are rounded up, in favor of on-demand instances.
	wanted := min(total, base) + (max(0, total-base)*percentage+99)/100
	return onDemand < wanted
}

// start launches an instance in the zone with the fewest instances of the group. The caller holds the lock.
func (s *Service) start(g *group, cause string) {
	a := s.newActivity(g, "Launching a new EC2 instance", cause)
	specification, overrides := g.template()
	template, err := s.config.Instances.LaunchTemplate(specification.LaunchTemplateId, specification.LaunchTemplateName, specification.Version)
	var launched ec2.Instance
	spot := !g.onDemand()
	if err == nil {
		if spot {
			err = s.spotRole()
		}
		if err == nil {
			launched, err = s.launchSomewhere(g, template, overrides, spot)
		}
	}
	if err != nil {
		a.Description = "Launching a new EC2 instance.  Status Reason: " + message(err) + " Launching EC2 instance failed."
		s.endActivity(g, a, nil, "Failed", message(err)+" Launching EC2 instance failed.")
		s.backOff(g)
		return
	}
	a.Description, a.instance, a.zone, a.subnet = "Launching a new EC2 instance: "+launched.ID, launched.ID, launched.Zone, launched.SubnetID
	m := &member{
		id: launched.ID, typ: launched.Type, zone: launched.Zone, subnet: launched.SubnetID, template: template, spot: spot,
		protected: g.settings.NewInstancesProtectedFromScaleIn != nil && *g.settings.NewInstancesProtectedFromScaleIn,
		state:     pending, health: healthy, launched: s.now(), activity: a,
	}
	g.members = append(g.members, m)
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(s.ctx)
	s.changedLocked()
	s.background(func(context.Context) { s.runInstance(ctx, g, m) })
}

// launchSomewhere tries the zones, beginning with the fewest instances of the group, and in each zone the instance types in order.
func (s *Service) launchSomewhere(g *group, template ec2.Template, overrides []Override, spot bool) (ec2.Instance, error) {
	tags := map[string]string{"aws:autoscaling:groupName": g.name}
	for _, t := range g.tags {
		if t.PropagateAtLaunch {
			tags[t.Key] = t.Value
		}
	}
	inZoneOf := func(sub ec2.Subnet) (n int) {
		for _, m := range g.members {
			if !m.leaving() && m.zone == sub.Zone {
				n++
			}
		}
		return n
	}
	subnets := slices.Clone(g.subnets)
	slices.SortStableFunc(subnets, func(a, b ec2.Subnet) int { return cmp.Compare(inZoneOf(a), inZoneOf(b)) })
	var first error
	for _, sub := range subnets {
		for _, o := range overrides {
			i, err := s.config.Instances.Launch(ec2.LaunchRequest{
				Template: template, InstanceType: o.InstanceType, ImageID: o.ImageId, SubnetID: sub.ID, Spot: spot, Tags: tags,
				RoleARN: s.linkedRoleARN(), Principal: "autoscaling.amazonaws.com",
			})
			if err == nil {
				return i, nil
			}
			if first == nil {
				first = err
			}
		}
	}
	return ec2.Instance{}, first
}

// countFailure counts a failed launch. The caller holds the lock.
func (s *Service) countFailure(g *group) {
	if g.failures++; g.failingSince.IsZero() {
		g.failingSince = s.now()
	}
	s.changedLocked()
}

// backOff delays the next launch, and longer after each consecutive failure.
func (s *Service) backOff(g *group) {
	s.countFailure(g)
	g.backoff = true
	wait := min(retryLimit, retryWork<<min(g.failures-1, 10))
	s.background(func(ctx context.Context) {
		if s.config.Clock.Work(ctx, wait) == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			g.backoff = false
			s.reconcile(g, "")
		}
	})
}

// victim returns the instance that scale-in terminates next: an unprotected one in the zone with the most instances of
// the group, by the group's policies.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-instance-termination.html
func (g *group) victim() *member {
	zones := map[string]int{}
	var candidates []*member
	for _, m := range g.members {
		if !m.leaving() {
			zones[m.zone]++
			if !m.protected || g.deleting {
				candidates = append(candidates, m)
			}
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	most := 0
	for _, m := range candidates {
		most = max(most, zones[m.zone])
	}
	candidates = slices.DeleteFunc(candidates, func(m *member) bool { return zones[m.zone] < most })
	policies := g.settings.TerminationPolicies
	if len(policies) == 0 {
		policies = []string{"Default"}
	}
	for _, policy := range policies {
		candidates = narrow(candidates, policy)
	}
	return candidates[0]
}

// narrow returns the candidates that a policy would terminate first.
func narrow(candidates []*member, policy string) []*member {
	var order func(m *member) int64
	switch policy {
	case "OldestInstance":
		order = func(m *member) int64 { return m.launched.UnixNano() }
	case "NewestInstance":
		order = func(m *member) int64 { return -m.launched.UnixNano() }
	case "OldestLaunchTemplate", "Default":
		// Instances of other templates count as older than any version of the newest instance's template.
		newest := slices.MaxFunc(candidates, func(a, b *member) int { return a.launched.Compare(b.launched) }).template.ID
		order = func(m *member) int64 {
			if m.template.ID != newest {
				return -1
			}
			return int64(m.template.Version)
		}
	default:
		return candidates
	}
	lowest := order(slices.MinFunc(candidates, func(a, b *member) int { return cmp.Compare(order(a), order(b)) }))
	return slices.DeleteFunc(slices.Clone(candidates), func(m *member) bool { return order(m) != lowest })
}
