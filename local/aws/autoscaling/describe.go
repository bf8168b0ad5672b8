package autoscaling

// The Describe operations, and the shapes of groups in the API.

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/wire"
)

// page returns a page of a list. A token is the position of the next item.
func page[T any](list []T, token string, maximum *int, byDefault, limit int) ([]T, string, error) {
	start, size := 0, byDefault
	if token != "" {
		decoded, err := base64.StdEncoding.DecodeString(token)
		if err == nil {
			start, err = strconv.Atoi(string(decoded))
		}
		if err != nil || start < 0 {
			return nil, "", wire.Errorf("InvalidNextToken", "The token '%s' is invalid.", token)
		}
	}
	if maximum != nil {
		size = *maximum
	}
	if size < 1 || size > limit {
		return nil, "", invalid("MaxRecords must be between 1 and %d: %d", limit, size)
	}
	start = min(start, len(list))
	end := min(start+size, len(list))
	next := ""
	if end < len(list) {
		next = base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return list[start:end], next, nil
}

// Descriptions, as the API has them.
type (
	describedInstance struct {
		InstanceId, InstanceType, AvailabilityZone, LifecycleState, HealthStatus string
		LaunchTemplate                                                           TemplateSpecification
		ProtectedFromScaleIn                                                     bool
	}
	describedMember struct {
		describedInstance
		AutoScalingGroupName string
	}
	describedTag struct {
		ResourceId, ResourceType, Key, Value string
		PropagateAtLaunch                    bool
	}
	suspendedProcess struct{ ProcessName, SuspensionReason string }
	enabledMetric    struct{ Metric, Granularity string }
	describedGroup   struct {
		AutoScalingGroupName, AutoScalingGroupARN             string
		MinSize, MaxSize, DesiredCapacity                     int
		DefaultCooldown                                       int
		AvailabilityZones, LoadBalancerNames, TargetGroupARNs []string
		HealthCheckType                                       string
		HealthCheckGracePeriod                                int
		Instances                                             []describedInstance
		CreatedTime                                           time.Time
		SuspendedProcesses                                    []suspendedProcess
		VPCZoneIdentifier                                     string
		EnabledMetrics                                        []enabledMetric
		Status                                                string `xml:",omitempty"`
		Tags                                                  []describedTag
		TerminationPolicies                                   []string
		NewInstancesProtectedFromScaleIn                      bool
		ServiceLinkedRoleARN                                  string
		CapacityRebalance                                     bool
		LaunchTemplate                                        *TemplateSpecification
		MixedInstancesPolicy                                  *MixedInstancesPolicy
		DefaultInstanceWarmup, MaxInstanceLifetime            *int
		InstanceMaintenancePolicy                             *struct{ MinHealthyPercentage, MaxHealthyPercentage *int }
		AvailabilityZoneImpairmentPolicy                      *ImpairmentPolicy
	}
)

func (m *member) describe() describedInstance {
	return describedInstance{
		InstanceId: m.id, InstanceType: m.typ, AvailabilityZone: m.zone, LifecycleState: m.lifecycle(), HealthStatus: m.health,
		ProtectedFromScaleIn: m.protected,
		LaunchTemplate:       TemplateSpecification{m.template.ID, m.template.Name, strconv.Itoa(m.template.Version)},
	}
}

func (g *group) describeTags() []describedTag {
	tags := []describedTag{}
	for _, t := range g.tags {
		tags = append(tags, describedTag{g.name, "auto-scaling-group", t.Key, t.Value, t.PropagateAtLaunch})
	}
	return tags
}

func (s *Service) describe(g *group) describedGroup {
	d := describedGroup{
		AutoScalingGroupName: g.name, AutoScalingGroupARN: g.arn, MinSize: g.min, MaxSize: g.max, DesiredCapacity: g.desired,
		DefaultCooldown: 300, LoadBalancerNames: []string{}, TargetGroupARNs: []string{}, HealthCheckType: "EC2",
		Instances:   []describedInstance{},
		CreatedTime: g.created, VPCZoneIdentifier: strings.Join(g.settings.Subnets, ","), Tags: g.describeTags(),
		TerminationPolicies:              g.settings.TerminationPolicies,
		NewInstancesProtectedFromScaleIn: g.settings.NewInstancesProtectedFromScaleIn != nil && *g.settings.NewInstancesProtectedFromScaleIn,
		ServiceLinkedRoleARN:             s.linkedRoleARN(),
		CapacityRebalance:                g.settings.CapacityRebalance != nil && *g.settings.CapacityRebalance,
		LaunchTemplate:                   g.settings.LaunchTemplate, MixedInstancesPolicy: g.settings.MixedInstancesPolicy,
		DefaultInstanceWarmup: g.settings.DefaultInstanceWarmup, MaxInstanceLifetime: g.settings.MaxInstanceLifetime,
		InstanceMaintenancePolicy:        g.settings.InstanceMaintenancePolicy,
		AvailabilityZoneImpairmentPolicy: g.settings.AvailabilityZoneImpairmentPolicy,
	}
	if g.settings.DefaultCooldown != nil {
		d.DefaultCooldown = *g.settings.DefaultCooldown
	}
	if g.settings.HealthCheckGracePeriod != nil {
		d.HealthCheckGracePeriod = *g.settings.HealthCheckGracePeriod
	}
	if len(d.TerminationPolicies) == 0 {
		d.TerminationPolicies = []string{"Default"}
	}
	if g.deleting {
		d.Status = "Delete in progress"
	}
	for _, sub := range g.subnets {
		if !slices.Contains(d.AvailabilityZones, sub.Zone) {
			d.AvailabilityZones = append(d.AvailabilityZones, sub.Zone)
		}
	}
	slices.Sort(d.AvailabilityZones)
	for _, m := range g.members {
		d.Instances = append(d.Instances, m.describe())
	}
	for _, p := range slices.Sorted(maps.Keys(g.suspended)) {
		d.SuspendedProcesses = append(d.SuspendedProcesses, suspendedProcess{p, "User suspended at " + stamp(g.suspendedAt[p])})
	}
	for _, m := range g.metrics {
		d.EnabledMetrics = append(d.EnabledMetrics, enabledMetric{m, "1Minute"})
	}
	return d
}

type filter struct {
	Name   string
	Values []string
}

// checkFilters rejects unknown filters. tag-key, tag-value and tag:<key> are known.
func checkFilters(filters []filter) error {
	for _, f := range filters {
		if f.Name != "tag-key" && f.Name != "tag-value" && !strings.HasPrefix(f.Name, "tag:") {
			return invalid("Filter type %s is not correct. Allowed Filter types are: tag-key, tag-value and tag:<key>", f.Name)
		}
	}
	return nil
}

func (f filter) matches(tags []Tag) bool {
	key, byKey := strings.CutPrefix(f.Name, "tag:")
	return slices.ContainsFunc(tags, func(t Tag) bool {
		switch {
		case byKey:
			return t.Key == key && slices.Contains(f.Values, t.Value)
		case f.Name == "tag-key":
			return slices.Contains(f.Values, t.Key)
		}
		return slices.Contains(f.Values, t.Value)
	})
}

func (s *Service) describeGroups(c *wire.Call, in struct {
	AutoScalingGroupNames []string
	Filters               []filter
	NextToken             string
	MaxRecords            *int
	IncludeInstances      *bool
}) (any, error) {
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	if err := checkFilters(in.Filters); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []describedGroup{}
	for _, g := range s.groups {
		if len(in.AutoScalingGroupNames) > 0 && !slices.Contains(in.AutoScalingGroupNames, g.name) {
			continue
		}
		if !slices.ContainsFunc(in.Filters, func(f filter) bool { return !f.matches(g.tags) }) {
			d := s.describe(g)
			if in.IncludeInstances != nil && !*in.IncludeInstances {
				d.Instances = []describedInstance{}
			}
			found = append(found, d)
		}
	}
	list, next, err := page(found, in.NextToken, in.MaxRecords, 50, 100)
	if err != nil {
		return nil, err
	}
	return struct {
		AutoScalingGroups []describedGroup
		NextToken         string `xml:",omitempty"`
	}{list, next}, nil
}

func (s *Service) describeInstances(c *wire.Call, in struct {
	InstanceIds []string
	NextToken   string
	MaxRecords  *int
}) (any, error) {
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []describedMember{}
	for _, g := range s.groups {
		for _, m := range g.members {
			if len(in.InstanceIds) == 0 || slices.Contains(in.InstanceIds, m.id) {
				d := describedMember{m.describe(), g.name}
				d.HealthStatus = strings.ToUpper(d.HealthStatus)
				found = append(found, d)
			}
		}
	}
	list, next, err := page(found, in.NextToken, in.MaxRecords, 50, 50)
	if err != nil {
		return nil, err
	}
	return struct {
		AutoScalingInstances []describedMember
		NextToken            string `xml:",omitempty"`
	}{list, next}, nil
}

// describeActivities lists running activities first, then the newest.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeScalingActivities.html
func (s *Service) describeActivities(c *wire.Call, in struct {
	AutoScalingGroupName string
	ActivityIds          []string
	IncludeDeletedGroups *bool
	NextToken            string
	MaxRecords           *int
}) (any, error) {
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []activity{}
	all := s.groups
	if in.IncludeDeletedGroups != nil && *in.IncludeDeletedGroups {
		all = append(slices.Clone(all), s.deleted...)
	}
	for _, g := range all {
		if in.AutoScalingGroupName != "" && g.name != in.AutoScalingGroupName {
			continue
		}
		for _, a := range slices.Backward(g.activities) {
			if len(in.ActivityIds) == 0 || slices.Contains(in.ActivityIds, a.ActivityId) {
				found = append(found, *a)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b activity) int {
		if under := a.EndTime == nil; under != (b.EndTime == nil) {
			if under {
				return -1
			}
			return 1
		}
		return b.StartTime.Compare(a.StartTime)
	})
	list, next, err := page(found, in.NextToken, in.MaxRecords, 100, 100)
	if err != nil {
		return nil, err
	}
	return struct {
		Activities []activity
		NextToken  string `xml:",omitempty"`
	}{list, next}, nil
}

func (s *Service) describeHooks(c *wire.Call, in struct {
	AutoScalingGroupName string
	LifecycleHookNames   []string
}) (any, error) {
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	type described struct {
		AutoScalingGroupName string
		Hook
		GlobalTimeout int
	}
	out := struct{ LifecycleHooks []described }{[]described{}}
	for _, h := range g.hooks {
		if len(in.LifecycleHookNames) == 0 || slices.Contains(in.LifecycleHookNames, h.LifecycleHookName) {
			out.LifecycleHooks = append(out.LifecycleHooks, described{g.name, *h, int(h.globalTimeout().Seconds())})
		}
	}
	return out, nil
}

func (s *Service) describeRefreshes(c *wire.Call, in struct {
	AutoScalingGroupName string
	InstanceRefreshIds   []string
	NextToken            string
	MaxRecords           *int
}) (any, error) {
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	type described struct {
		InstanceRefreshId, AutoScalingGroupName, Status string
		StatusReason                                    string `xml:",omitempty"`
		StartTime                                       time.Time
		EndTime                                         *time.Time
		PercentageComplete, InstancesToUpdate           int
		Preferences                                     Preferences
	}
	found := []described{}
	for _, r := range slices.Backward(g.refreshes) {
		if len(in.InstanceRefreshIds) > 0 && !slices.Contains(in.InstanceRefreshIds, r.id) {
			continue
		}
		percentage := 100
		if r.total > 0 {
			percentage = 100 * (r.total - r.left) / r.total
		}
		found = append(found, described{r.id, g.name, r.status, r.reason, r.start, r.end, percentage, r.left, r.preferences})
	}
	list, next, err := page(found, in.NextToken, in.MaxRecords, 50, 100)
	if err != nil {
		return nil, err
	}
	return struct {
		InstanceRefreshes []described
		NextToken         string `xml:",omitempty"`
	}{list, next}, nil
}

func (s *Service) describeTags(c *wire.Call, in struct {
	Filters    []filter
	NextToken  string
	MaxRecords *int
}) (any, error) {
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []describedTag{}
	for _, g := range s.groups {
		for _, t := range g.describeTags() {
			ok := true
			for _, f := range in.Filters {
				value, found := map[string]string{
					"auto-scaling-group": g.name, "key": t.Key, "value": t.Value, "propagate-at-launch": strconv.FormatBool(t.PropagateAtLaunch),
				}[f.Name]
				if !found {
					return nil, invalid("Filter type %s is not correct. Allowed Filter types are: auto-scaling-group key value propagate-at-launch",
						f.Name)
				}
				ok = ok && slices.Contains(f.Values, value)
			}
			if ok {
				found = append(found, t)
			}
		}
	}
	list, next, err := page(found, in.NextToken, in.MaxRecords, 50, 100)
	if err != nil {
		return nil, err
	}
	return struct {
		Tags      []describedTag
		NextToken string `xml:",omitempty"`
	}{list, next}, nil
}

// Tagged lists the groups with tags, for the tagging API.
func (s *Service) Tagged(context.Context) []tagging.Tagged {
	s.mu.Lock()
	defer s.mu.Unlock()
	var tagged []tagging.Tagged
	for _, g := range s.groups {
		if len(g.tags) > 0 {
			tags := map[string]string{}
			for _, t := range g.tags {
				tags[t.Key] = t.Value
			}
			tagged = append(tagged, tagging.Tagged{ARN: g.arn, Tags: tags})
		}
	}
	return tagged
}

// linkedRoleARN is the ARN of the service-linked role.
func (s *Service) linkedRoleARN() string {
	return "arn:" + s.config.Partition + ":iam::" + s.config.Account +
		":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
}
