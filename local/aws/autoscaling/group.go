package autoscaling

// Groups, and the validation of requests about them.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_AutoScalingGroup.html

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// TemplateSpecification names a launch template by id or name, and a version: a number, $Latest or $Default.
type TemplateSpecification struct{ LaunchTemplateId, LaunchTemplateName, Version string }

// MixedInstancesPolicy is a launch template with several instance types and purchase options.
type MixedInstancesPolicy struct {
	LaunchTemplate struct {
		LaunchTemplateSpecification TemplateSpecification
		Overrides                   []Override
	}
	InstancesDistribution *Distribution
}

// Override of a launch template.
type Override struct{ InstanceType, ImageId string }

// Distribution sets the share of on-demand instances. Allocation strategies have no effect, because capacity never runs out.
type Distribution struct {
	OnDemandAllocationStrategy, SpotAllocationStrategy, SpotMaxPrice string
	OnDemandBaseCapacity, OnDemandPercentageAboveBaseCapacity        *int
	SpotInstancePools                                                *int
}

// Settings are the properties of a group, with the names of the API and of the template reference. A pointer is nil if the request does not
// contain the property.
type Settings struct {
	MinSize, MaxSize, DesiredCapacity                              *int
	LaunchTemplate                                                 *TemplateSpecification
	MixedInstancesPolicy                                           *MixedInstancesPolicy
	Subnets                                                        []string // nil if absent
	AvailabilityZones                                              []string
	HealthCheckType                                                string
	HealthCheckGracePeriod, DefaultCooldown, DefaultInstanceWarmup *int
	MaxInstanceLifetime                                            *int
	TerminationPolicies                                            []string
	NewInstancesProtectedFromScaleIn, CapacityRebalance            *bool
	InstanceMaintenancePolicy                                      *struct{ MinHealthyPercentage, MaxHealthyPercentage *int }
	AvailabilityZoneImpairmentPolicy                               *ImpairmentPolicy
}

// ImpairmentPolicy decides about a zonal shift. It is stored without effect: no zone of the local account is shifted.
type ImpairmentPolicy struct {
	ZonalShiftEnabled               *bool
	ImpairedZoneHealthCheckBehavior string
}

// check requires a behavior for a group with zonal shift.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_AvailabilityZoneImpairmentPolicy.html
func (p *ImpairmentPolicy) check() error {
	switch {
	case p == nil:
	case p.ImpairedZoneHealthCheckBehavior == "" && p.ZonalShiftEnabled != nil && *p.ZonalShiftEnabled:
		return invalid("ImpairedZoneHealthCheckBehavior is required when ZonalShiftEnabled is true")
	case !slices.Contains([]string{"", "ReplaceUnhealthy", "IgnoreUnhealthy"}, p.ImpairedZoneHealthCheckBehavior):
		return invalid("ImpairedZoneHealthCheckBehavior must be ReplaceUnhealthy or IgnoreUnhealthy, not %s", p.ImpairedZoneHealthCheckBehavior)
	}
	return nil
}

// Tag of a group.
type Tag struct {
	Key, Value        string
	PropagateAtLaunch bool
}

type group struct {
	name, arn string
	min, max  int
	desired   int
	surge     int // additional instances of an instance refresh
	// rebalances reports that the subnets changed, and that instances may move to other zones. rebalancing is the instance that was
	// launched for that, until it is in service.
	rebalances  bool
	rebalancing *member
	settings    Settings
	subnets     []ec2.Subnet
	tags        []Tag
	hooks       []*Hook
	suspended   map[string]bool
	// suspendedAt has the times of the suspensions.
	suspendedAt  map[string]time.Time
	metrics      []string
	members      []*member
	activities   []*activity // newest last
	refreshes    []*refresh  // newest last
	created      time.Time
	deleting     bool      // "Delete in progress"
	failures     int       // consecutive failed launches
	failingSince time.Time // the time of the first of them; zero if the last launch succeeded
	backoff      bool      // waiting before the next launch
}

// member is an instance of a group.
type member struct {
	id, typ, zone, subnet string
	template              ec2.Template
	spot, protected       bool
	state                 string
	health                string
	launched              time.Time
	actions               []*action
	// activity that launches or terminates the instance.
	activity *activity
	// cancel stops its launch or its health checks, so that its termination can start.
	cancel context.CancelFunc
}

// The lifecycle states.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
const (
	pending            = "Pending"
	pendingWait        = "Pending:Wait"
	pendingProceed     = "Pending:Proceed"
	inService          = "InService"
	terminating        = "Terminating"
	terminatingWait    = "Terminating:Wait"
	terminatingProceed = "Terminating:Proceed"
)

// leaving reports whether an instance is terminating and no longer counts for the desired capacity.
func (m *member) leaving() bool { return strings.HasPrefix(m.state, terminating) }

// lifecycle is the state in the API. An instance leaves the wait state when all of its hooks are continued.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
func (m *member) lifecycle() string {
	if m.state == pendingWait && !slices.ContainsFunc(m.actions, func(a *action) bool { return a.result != "CONTINUE" }) {
		return pendingProceed
	}
	return m.state
}

func (g *group) size() int {
	n := 0
	for _, m := range g.members {
		if !m.leaving() {
			n++
		}
	}
	return n
}

func (g *group) inService() int {
	n := 0
	for _, m := range g.members {
		if m.state == inService {
			n++
		}
	}
	return n
}

// template returns the launch template of the group and the instance types that it may launch, in order. "" is the template's own type.
func (g *group) template() (TemplateSpecification, []Override) {
	if mixed := g.settings.MixedInstancesPolicy; mixed != nil {
		overrides := mixed.LaunchTemplate.Overrides
		if len(overrides) == 0 {
			overrides = []Override{{}}
		}
		return mixed.LaunchTemplate.LaunchTemplateSpecification, overrides
	}
	return *g.settings.LaunchTemplate, []Override{{}}
}

// The processes that can be suspended.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-suspend-resume-processes.html
var processes = []string{
	"Launch", "Terminate", "AddToLoadBalancer", "AlarmNotification", "AZRebalance", "HealthCheck", "InstanceRefresh",
	"ReplaceUnhealthy", "ScheduledActions",
}

// groupMetrics are enabled by EnableMetricsCollection if the request names none.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_EnableMetricsCollection.html
var groupMetrics = []string{
	"GroupMinSize", "GroupMaxSize", "GroupDesiredCapacity", "GroupInServiceInstances", "GroupPendingInstances",
	"GroupStandbyInstances", "GroupTerminatingInstances", "GroupTotalInstances",
}

// create creates a group. Its hooks exist before the first instance starts.
func (s *Service) create(caller iam.Caller, name string, settings Settings, hooks []Hook, tags []Tag) (*group, error) {
	g := &group{
		name: name, arn: s.arn("*", name), settings: settings, tags: sortTags(tags), suspended: map[string]bool{},
		suspendedAt: map[string]time.Time{}, created: s.now(),
	}
	switch {
	case name == "" || len(name) > 255 || strings.ContainsAny(name, "/\\:"):
		return nil, invalid("1 validation error detected: Value '%s' at 'autoScalingGroupName' failed to satisfy constraint: "+
			"Member must have length between 1 and 255 without slashes and colons", name)
	case settings.MinSize == nil || settings.MaxSize == nil:
		return nil, invalid("MinSize and MaxSize are required")
	case (settings.LaunchTemplate == nil) == (settings.MixedInstancesPolicy == nil):
		return nil, invalid("Valid requests must contain either launchTemplate, LaunchConfigurationName, " +
			"InstanceId or MixedInstancesPolicy parameter.")
	case len(settings.Subnets) == 0:
		return nil, invalid("At least one Availability Zone or VPC Subnet is required.")
	}
	// IAM authorizes the caller on the future group: its tags are request tags, and not resource tags.
	unmade := *g
	unmade.tags = nil
	if err := s.allow(caller, "CreateAutoScalingGroup", &unmade, s.conditions(settings, tags)); err != nil {
		return nil, err
	}
	if err := s.serviceLinkedRole(caller); err != nil {
		return nil, err
	}
	desired := *settings.MinSize
	if settings.DesiredCapacity != nil {
		desired = *settings.DesiredCapacity
	}
	g.min, g.max, g.desired = *settings.MinSize, *settings.MaxSize, desired
	if err := g.checkSizes(); err != nil {
		return nil, err
	}
	if err := g.checkSettings(); err != nil {
		return nil, err
	}
	for i := range hooks {
		if err := g.putHook(hooks[i]); err != nil {
			return nil, err
		}
	}
	if err := s.findSubnets(g); err != nil {
		return nil, err
	}
	if err := s.checkTemplate(caller, g); err != nil {
		return nil, err
	}
	g.arn = s.arn(newID(), name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.group(name); err == nil {
		return nil, wire.Errorf("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists", name)
	}
	s.groups = append(s.groups, g)
	s.changedLocked()
	s.reconcile(g, "a user request created an AutoScalingGroup changing the desired capacity from 0 to "+strconv.Itoa(g.desired)+".")
	return g, nil
}

// update applies settings to a group.
func (s *Service) update(caller iam.Caller, name string, settings Settings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(name)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "UpdateAutoScalingGroup", g, s.conditions(settings, nil)); err != nil {
		return err
	}
	if g.deleting {
		return wire.Errorf("ScalingActivityInProgress", "AutoScalingGroup %s is being deleted", name)
	}
	if settings.LaunchTemplate != nil && settings.MixedInstancesPolicy != nil {
		return invalid("Only one of LaunchTemplate and MixedInstancesPolicy is allowed.")
	}
	changed := *g
	changed.settings = g.settings.over(settings)
	old := g.desired
	if settings.MinSize != nil {
		changed.min = *settings.MinSize
	}
	if settings.MaxSize != nil {
		changed.max = *settings.MaxSize
	}
	if settings.DesiredCapacity != nil {
		changed.desired = *settings.DesiredCapacity
	} else if changed.min <= changed.max {
		// Without a desired capacity in the request, the current one moves into the new bounds.
		changed.desired = min(max(changed.desired, changed.min), changed.max)
	}
	if err := changed.checkSizes(); err != nil {
		return err
	}
	if err := changed.checkSettings(); err != nil {
		return err
	}
	if settings.Subnets != nil {
		if err := s.findSubnets(&changed); err != nil {
			return err
		}
	}
	if settings.LaunchTemplate != nil || settings.MixedInstancesPolicy != nil || settings.Subnets != nil {
		if err := s.checkTemplate(caller, &changed); err != nil {
			return err
		}
		g.failures, g.failingSince = 0, time.Time{}
	}
	if settings.Subnets != nil {
		s.rebalanceSoon(g)
	}
	g.min, g.max, g.desired, g.settings, g.subnets = changed.min, changed.max, changed.desired, changed.settings, changed.subnets
	s.changedLocked()
	s.reconcile(g, "a user request update of AutoScalingGroup constraints to min: "+strconv.Itoa(g.min)+", max: "+strconv.Itoa(g.max)+
		", desired: "+strconv.Itoa(g.desired)+
		" changing the desired capacity from "+strconv.Itoa(old)+" to "+strconv.Itoa(g.desired)+".")
	return nil
}

// over returns the settings after a request. A launch template replaces a mixed instances policy, and the other way round.
func (old Settings) over(changes Settings) Settings {
	merged := old
	if changes.LaunchTemplate != nil || changes.MixedInstancesPolicy != nil {
		merged.LaunchTemplate, merged.MixedInstancesPolicy = changes.LaunchTemplate, changes.MixedInstancesPolicy
	}
	if changes.Subnets != nil {
		merged.Subnets = changes.Subnets
	}
	if changes.TerminationPolicies != nil {
		merged.TerminationPolicies = changes.TerminationPolicies
	}
	merged.HealthCheckType = cmp.Or(changes.HealthCheckType, old.HealthCheckType)
	merged.HealthCheckGracePeriod = cmp.Or(changes.HealthCheckGracePeriod, old.HealthCheckGracePeriod)
	merged.DefaultCooldown = cmp.Or(changes.DefaultCooldown, old.DefaultCooldown)
	merged.DefaultInstanceWarmup = cmp.Or(changes.DefaultInstanceWarmup, old.DefaultInstanceWarmup)
	merged.MaxInstanceLifetime = cmp.Or(changes.MaxInstanceLifetime, old.MaxInstanceLifetime)
	merged.NewInstancesProtectedFromScaleIn = cmp.Or(changes.NewInstancesProtectedFromScaleIn, old.NewInstancesProtectedFromScaleIn)
	merged.CapacityRebalance = cmp.Or(changes.CapacityRebalance, old.CapacityRebalance)
	merged.AvailabilityZoneImpairmentPolicy = cmp.Or(changes.AvailabilityZoneImpairmentPolicy, old.AvailabilityZoneImpairmentPolicy)
	merged.InstanceMaintenancePolicy = cmp.Or(changes.InstanceMaintenancePolicy, old.InstanceMaintenancePolicy)
	return merged
}

func (g *group) checkSizes() error {
	switch {
	case g.min < 0 || g.max < 0:
		return invalid("Min bound, %d, and max bound, %d, must not be negative", g.min, g.max)
	case g.min > g.max:
		return invalid("Min bound, %d, must be less than or equal to max bound, %d", g.min, g.max)
	case g.desired < g.min:
		return invalid("Desired capacity:%d must be between the specified min size:%d and max size:%d", g.desired, g.min, g.max)
	case g.desired > g.max:
		return invalid("Desired capacity:%d must be between the specified min size:%d and max size:%d", g.desired, g.min, g.max)
	}
	return nil
}

// terminationPolicies that are supported. The allocation strategy and the next instance hour have no effect here.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-termination-policies.html
var terminationPolicies = []string{
	"Default", "AllocationStrategy", "OldestInstance", "NewestInstance", "OldestLaunchTemplate", "OldestLaunchConfiguration",
	"ClosestToNextInstanceHour",
}

func (g *group) checkSettings() error {
	if err := g.settings.AvailabilityZoneImpairmentPolicy.check(); err != nil {
		return err
	}
	for _, p := range g.settings.TerminationPolicies {
		if !slices.Contains(terminationPolicies, p) {
			return invalid("Unsupported termination policy: %s", p)
		}
	}
	if t := g.settings.HealthCheckType; t != "" && t != "EC2" {
		return wire.Unsupported("autoscaling", "the health check type "+t)
	}
	template, _ := g.template()
	if (template.LaunchTemplateId == "") == (template.LaunchTemplateName == "") {
		return invalid("Valid requests must contain either launchTemplateId or LaunchTemplateName")
	}
	if mixed := g.settings.MixedInstancesPolicy; mixed != nil && mixed.InstancesDistribution != nil {
		d := mixed.InstancesDistribution
		if p := d.OnDemandPercentageAboveBaseCapacity; p != nil && (*p < 0 || *p > 100) {
			return invalid("OnDemandPercentageAboveBaseCapacity must be between 0 and 100: %d", *p)
		}
		if b := d.OnDemandBaseCapacity; b != nil && *b < 0 {
			return invalid("OnDemandBaseCapacity must not be negative: %d", *b)
		}
		if !slices.Contains([]string{"", "lowest-price", "prioritized"}, d.OnDemandAllocationStrategy) {
			return invalid("Invalid OnDemandAllocationStrategy: %s", d.OnDemandAllocationStrategy)
		}
		if !slices.Contains([]string{"", "lowest-price", "capacity-optimized", "capacity-optimized-prioritized", "price-capacity-optimized"},
			d.SpotAllocationStrategy) {
			return invalid("Invalid SpotAllocationStrategy: %s", d.SpotAllocationStrategy)
		}
	}
	return nil
}

func (s *Service) findSubnets(g *group) error {
	subnets, err := s.config.Instances.Subnets(g.settings.Subnets...)
	if err != nil {
		return invalid("The subnet ID '%s' does not exist: %v", strings.Join(g.settings.Subnets, ","), message(err))
	}
	for _, sub := range subnets {
		if sub.VPCID != subnets[0].VPCID {
			return invalid("The subnets are in different VPCs")
		}
		if len(g.settings.AvailabilityZones) > 0 && !slices.Contains(g.settings.AvailabilityZones, sub.Zone) {
			return invalid("The availability zones of the specified subnets and the AutoScalingGroup do not match")
		}
	}
	g.subnets = subnets
	return nil
}

// checkTemplate checks with EC2 that the caller could launch the group's instances.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-launch-template-permissions.html
func (s *Service) checkTemplate(caller iam.Caller, g *group) error {
	specification, overrides := g.template()
	template, err := s.config.Instances.LaunchTemplate(specification.LaunchTemplateId, specification.LaunchTemplateName, specification.Version)
	if err != nil {
		return invalid("%s", message(err))
	}
	for _, sub := range g.subnets {
		for _, o := range overrides {
			err := s.config.Instances.CheckLaunch(caller, ec2.LaunchRequest{
				Template: template, InstanceType: o.InstanceType, ImageID: o.ImageId, SubnetID: sub.ID,
			})
			var known *wire.Error
			switch {
			case err == nil:
			case asError(err, &known) && known.Status == 403:
				return &wire.Error{
					Code: "AccessDenied", Message: "You are not authorized to use launch template: " + template.ID + ". " + known.Message, Status: 403,
				}
			default:
				return invalid("You must use a valid fully-formed launch template. %s", message(err))
			}
		}
	}
	return nil
}

// conditions returns the condition keys of a request.
func (s *Service) conditions(settings Settings, tags []Tag) map[string]string {
	keys := map[string]string{}
	var names []string
	for _, t := range tags {
		if !strings.HasPrefix(t.Key, "aws:") {
			keys["aws:RequestTag/"+t.Key] = t.Value
			names = append(names, t.Key)
		}
	}
	if len(names) > 0 {
		keys["aws:TagKeys"] = iam.Values(names...)
	}
	for key, n := range map[string]*int{"autoscaling:MinSize": settings.MinSize, "autoscaling:MaxSize": settings.MaxSize} {
		if n != nil {
			keys[key] = strconv.Itoa(*n)
		}
	}
	if len(settings.Subnets) > 0 {
		keys["autoscaling:VPCZoneIdentifiers"] = iam.Values(settings.Subnets...)
	}
	template := settings.LaunchTemplate
	if settings.MixedInstancesPolicy != nil {
		template = &settings.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification
		var types []string
		for _, o := range settings.MixedInstancesPolicy.LaunchTemplate.Overrides {
			types = append(types, o.InstanceType)
		}
		if len(types) > 0 {
			keys["autoscaling:InstanceTypes"] = iam.Values(types...)
		}
	}
	if template != nil {
		_, err := strconv.Atoi(template.Version)
		keys["autoscaling:LaunchTemplateVersionSpecified"] = strconv.FormatBool(err == nil)
	}
	return keys
}

// setDesired changes the desired capacity.
func (s *Service) setDesired(caller iam.Caller, name string, desired int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(name)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "SetDesiredCapacity", g, nil); err != nil {
		return err
	}
	switch {
	case desired > g.max:
		return invalid("New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", desired, g.max)
	case desired < g.min:
		return invalid("New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", desired, g.min)
	}
	old := g.desired
	g.desired = desired
	s.changedLocked()
	s.reconcile(g, "a user request "+explicitlySet+" changing the desired capacity from "+strconv.Itoa(old)+" to "+
		strconv.Itoa(desired)+".")
	return nil
}

// delete removes a group without instances. With force, it also terminates the instances without waiting for their hooks.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DeleteAutoScalingGroup.html
func (s *Service) delete(caller iam.Caller, name string, force bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(name)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "DeleteAutoScalingGroup", g, nil); err != nil {
		return err
	}
	if g.deleting {
		return nil
	}
	if !force && len(g.members) > 0 {
		return wire.Errorf("ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances "+
			"or pending Spot instance request(s) still in the group.")
	}
	g.deleting, g.min, g.desired = true, 0, 0
	g.hooks = nil
	for _, m := range g.members {
		for _, a := range m.actions {
			a.complete("CONTINUE", "the group was deleted by force")
		}
	}
	s.changedLocked()
	s.reconcile(g, "a user request force-deleted AutoScalingGroup changing the desired capacity to 0.")
	return nil
}

func sortTags(tags []Tag) []Tag {
	tags = slices.Clone(tags)
	slices.SortFunc(tags, func(a, b Tag) int { return strings.Compare(a.Key, b.Key) })
	return tags
}
