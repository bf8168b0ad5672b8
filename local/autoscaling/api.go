package autoscaling

// The API.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/Welcome.html

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/local/wire"
)

// Wire is the API.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{Name: "autoscaling", Protocol: wire.Query, Version: "2011-01-01", Operations: map[string]wire.Operation{
		"CreateAutoScalingGroup":              handle(s.apiCreate),
		"UpdateAutoScalingGroup":              handle(s.apiUpdate),
		"DeleteAutoScalingGroup":              handle(s.apiDelete),
		"DescribeAutoScalingGroups":           handle(s.describeGroups),
		"DescribeAutoScalingInstances":        handle(s.describeInstances),
		"SetDesiredCapacity":                  handle(s.apiSetDesired),
		"TerminateInstanceInAutoScalingGroup": handle(s.apiTerminate),
		"SetInstanceHealth":                   handle(s.apiSetHealth),
		"DescribeScalingActivities":           handle(s.describeActivities),
		"PutLifecycleHook":                    handle(s.apiPutHook),
		"DeleteLifecycleHook":                 handle(s.apiDeleteHook),
		"DescribeLifecycleHooks":              handle(s.describeHooks),
		"CompleteLifecycleAction":             handle(s.apiComplete),
		"RecordLifecycleActionHeartbeat":      handle(s.apiHeartbeat),
		"SuspendProcesses":                    handle(s.apiSuspend(true)),
		"ResumeProcesses":                     handle(s.apiSuspend(false)),
		"StartInstanceRefresh":                handle(s.apiStartRefresh),
		"DescribeInstanceRefreshes":           handle(s.describeRefreshes),
		"CancelInstanceRefresh":               handle(s.apiCancelRefresh),
		"CreateOrUpdateTags":                  handle(s.apiTag(true)),
		"DeleteTags":                          handle(s.apiTag(false)),
		"DescribeTags":                        handle(s.describeTags),
		"EnableMetricsCollection":             handle(s.apiMetrics(true)),
		"DisableMetricsCollection":            handle(s.apiMetrics(false)),
	}}
}

// handle decodes the parameters of an operation.
func handle[In any](operation func(c *wire.Call, in In) (any, error)) wire.Operation {
	return func(_ context.Context, c *wire.Call) (any, error) {
		var in In
		if err := c.Decode(&in); err != nil {
			return nil, err
		}
		return operation(c, in)
	}
}

// groupRequest has the parameters of CreateAutoScalingGroup and UpdateAutoScalingGroup.
type groupRequest struct {
	AutoScalingGroupName                                string
	MinSize, MaxSize, DesiredCapacity                   *int
	LaunchTemplate                                      *TemplateSpecification
	MixedInstancesPolicy                                *MixedInstancesPolicy
	VPCZoneIdentifier, HealthCheckType                  string
	AvailabilityZones, TerminationPolicies              []string
	HealthCheckGracePeriod, DefaultCooldown             *int
	DefaultInstanceWarmup, MaxInstanceLifetime          *int
	NewInstancesProtectedFromScaleIn, CapacityRebalance *bool
	InstanceMaintenancePolicy                           *struct{ MinHealthyPercentage, MaxHealthyPercentage *int }
	LifecycleHookSpecificationList                      []Hook
	Tags                                                []tagParameter
}

type tagParameter struct {
	ResourceId, ResourceType, Key, Value string
	PropagateAtLaunch                    *bool
}

func (t tagParameter) tag() Tag {
	return Tag{t.Key, t.Value, t.PropagateAtLaunch == nil || *t.PropagateAtLaunch}
}

func (in groupRequest) settings() Settings {
	settings := Settings{
		MinSize: in.MinSize, MaxSize: in.MaxSize, DesiredCapacity: in.DesiredCapacity, LaunchTemplate: in.LaunchTemplate, MixedInstancesPolicy: in.MixedInstancesPolicy,
		AvailabilityZones: in.AvailabilityZones, HealthCheckType: in.HealthCheckType, HealthCheckGracePeriod: in.HealthCheckGracePeriod,
		DefaultCooldown: in.DefaultCooldown, DefaultInstanceWarmup: in.DefaultInstanceWarmup, MaxInstanceLifetime: in.MaxInstanceLifetime,
		TerminationPolicies: in.TerminationPolicies, NewInstancesProtectedFromScaleIn: in.NewInstancesProtectedFromScaleIn, CapacityRebalance: in.CapacityRebalance,
		InstanceMaintenancePolicy: in.InstanceMaintenancePolicy,
	}
	if in.VPCZoneIdentifier != "" {
		for id := range strings.SplitSeq(in.VPCZoneIdentifier, ",") {
			settings.Subnets = append(settings.Subnets, strings.TrimSpace(id))
		}
	}
	return settings
}

func (s *Service) apiCreate(c *wire.Call, in groupRequest) (any, error) {
	c.Resource = s.arn("*", in.AutoScalingGroupName)
	var tags []Tag
	for _, t := range in.Tags {
		if strings.HasPrefix(t.Key, "aws:") {
			return nil, invalid("Tags starting with aws: are reserved for AWS use: %s", t.Key)
		}
		tags = append(tags, t.tag())
	}
	_, err := s.create(c.Caller, in.AutoScalingGroupName, in.settings(), in.LifecycleHookSpecificationList, tags)
	return nil, err
}

func (s *Service) apiUpdate(c *wire.Call, in groupRequest) (any, error) {
	if len(in.LifecycleHookSpecificationList)+len(in.Tags) > 0 {
		return nil, wire.Unsupported("autoscaling", "hooks and tags in UpdateAutoScalingGroup")
	}
	return nil, s.update(c.Caller, in.AutoScalingGroupName, in.settings())
}

func (s *Service) apiDelete(c *wire.Call, in struct {
	AutoScalingGroupName string
	ForceDelete          bool
}) (any, error) {
	return nil, s.delete(c.Caller, in.AutoScalingGroupName, in.ForceDelete)
}

func (s *Service) apiSetDesired(c *wire.Call, in struct {
	AutoScalingGroupName string
	DesiredCapacity      int
	HonorCooldown        bool
}) (any, error) {
	return nil, s.setDesired(c.Caller, in.AutoScalingGroupName, in.DesiredCapacity)
}

func (s *Service) apiTerminate(c *wire.Call, in struct {
	InstanceId                     string
	ShouldDecrementDesiredCapacity *bool
}) (any, error) {
	if in.ShouldDecrementDesiredCapacity == nil {
		return nil, invalid("1 validation error detected: Value null at 'shouldDecrementDesiredCapacity' failed to satisfy constraint: Member must not be null")
	}
	a, err := s.terminateInstance(c.Caller, in.InstanceId, *in.ShouldDecrementDesiredCapacity)
	if err != nil {
		return nil, err
	}
	return struct{ Activity *activity }{a}, nil
}

func (s *Service) apiSetHealth(c *wire.Call, in struct {
	InstanceId, HealthStatus string
	ShouldRespectGracePeriod *bool
}) (any, error) {
	return nil, s.setHealth(c.Caller, in.InstanceId, in.HealthStatus)
}

func (s *Service) apiPutHook(c *wire.Call, in struct {
	AutoScalingGroupName string
	Hook
}) (any, error) {
	return nil, s.changeHook(c.Caller, in.AutoScalingGroupName, in.Hook, false)
}

func (s *Service) apiDeleteHook(c *wire.Call, in struct{ AutoScalingGroupName, LifecycleHookName string }) (any, error) {
	return nil, s.changeHook(c.Caller, in.AutoScalingGroupName, Hook{LifecycleHookName: in.LifecycleHookName}, true)
}

type actionRequest struct {
	AutoScalingGroupName, LifecycleHookName, LifecycleActionToken, InstanceId string
	LifecycleActionResult                                                     *string
}

func (s *Service) apiComplete(c *wire.Call, in actionRequest) (any, error) {
	if in.LifecycleActionResult == nil || *in.LifecycleActionResult == "" {
		return nil, invalid("1 validation error detected: Value null at 'lifecycleActionResult' failed to satisfy constraint: Member must not be null")
	}
	return nil, s.answer(c.Caller, in.AutoScalingGroupName, in.LifecycleHookName, in.LifecycleActionToken, in.InstanceId, *in.LifecycleActionResult)
}

func (s *Service) apiHeartbeat(c *wire.Call, in actionRequest) (any, error) {
	if in.LifecycleActionResult != nil {
		return nil, wire.Unsupported("autoscaling", "LifecycleActionResult of RecordLifecycleActionHeartbeat")
	}
	return nil, s.answer(c.Caller, in.AutoScalingGroupName, in.LifecycleHookName, in.LifecycleActionToken, in.InstanceId, "")
}

type processesRequest struct {
	AutoScalingGroupName string
	ScalingProcesses     []string
}

func (s *Service) apiSuspend(suspend bool) func(c *wire.Call, in processesRequest) (any, error) {
	return func(c *wire.Call, in processesRequest) (any, error) {
		return nil, s.suspend(c.Caller, in.AutoScalingGroupName, in.ScalingProcesses, suspend)
	}
}

func (s *Service) apiStartRefresh(c *wire.Call, in struct {
	AutoScalingGroupName, Strategy string
	Preferences                    Preferences
}) (any, error) {
	if in.Strategy != "" && in.Strategy != "Rolling" {
		return nil, wire.Unsupported("autoscaling", "the instance refresh strategy "+in.Strategy)
	}
	r, err := s.startRefresh(c.Caller, in.AutoScalingGroupName, in.Preferences)
	if err != nil {
		return nil, err
	}
	return struct{ InstanceRefreshId string }{r.id}, nil
}

func (s *Service) apiCancelRefresh(c *wire.Call, in struct{ AutoScalingGroupName string }) (any, error) {
	id, err := s.cancelRefresh(c.Caller, in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	return struct{ InstanceRefreshId string }{id}, nil
}

func (s *Service) apiTag(set bool) func(c *wire.Call, in struct{ Tags []tagParameter }) (any, error) {
	return func(c *wire.Call, in struct{ Tags []tagParameter }) (any, error) {
		byGroup := map[string][]tagParameter{}
		for _, t := range in.Tags {
			if strings.HasPrefix(t.Key, "aws:") {
				return nil, invalid("Tags starting with aws: are reserved for AWS use: %s", t.Key)
			}
			if t.ResourceType != "" && t.ResourceType != "auto-scaling-group" {
				return nil, invalid("Invalid ResourceType: %s", t.ResourceType)
			}
			byGroup[t.ResourceId] = append(byGroup[t.ResourceId], t)
		}
		for _, name := range slices.Sorted(maps.Keys(byGroup)) {
			var tags []Tag
			var keys []string
			for _, t := range byGroup[name] {
				tags, keys = append(tags, t.tag()), append(keys, t.Key)
			}
			if set {
				keys = nil
			} else {
				tags = nil
			}
			if err := s.tag(c.Caller, name, tags, keys); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

type metricsRequest struct {
	AutoScalingGroupName, Granularity string
	Metrics                           []string
}

func (s *Service) apiMetrics(enable bool) func(c *wire.Call, in metricsRequest) (any, error) {
	return func(c *wire.Call, in metricsRequest) (any, error) {
		if enable {
			return nil, s.collect(c.Caller, in.AutoScalingGroupName, in.Granularity, in.Metrics)
		}
		return nil, s.collectMetrics(c.Caller, in.AutoScalingGroupName, in.Metrics, false)
	}
}

// page cuts a list; tokens are the position of the next item.
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
		AutoScalingGroupName                                                     string `xml:",omitempty"`
		LaunchTemplate                                                           TemplateSpecification
		ProtectedFromScaleIn                                                     bool
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
	}
)

func (m *member) describe() describedInstance {
	return describedInstance{
		InstanceId: m.id, InstanceType: m.typ, AvailabilityZone: m.zone, LifecycleState: m.state, HealthStatus: m.health, ProtectedFromScaleIn: m.protected,
		LaunchTemplate: TemplateSpecification{m.template.ID, m.template.Name, strconv.Itoa(m.template.Version)},
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
		DefaultCooldown: 300, LoadBalancerNames: []string{}, TargetGroupARNs: []string{}, HealthCheckType: "EC2", Instances: []describedInstance{},
		CreatedTime: g.created, VPCZoneIdentifier: strings.Join(g.settings.Subnets, ","), Tags: g.describeTags(), TerminationPolicies: g.settings.TerminationPolicies,
		NewInstancesProtectedFromScaleIn: g.settings.NewInstancesProtectedFromScaleIn != nil && *g.settings.NewInstancesProtectedFromScaleIn,
		ServiceLinkedRoleARN:             "arn:" + s.config.Partition + ":iam::" + s.config.Account + ":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
		CapacityRebalance:                g.settings.CapacityRebalance != nil && *g.settings.CapacityRebalance,
		LaunchTemplate:                   g.settings.LaunchTemplate, MixedInstancesPolicy: g.settings.MixedInstancesPolicy,
		DefaultInstanceWarmup: g.settings.DefaultInstanceWarmup, MaxInstanceLifetime: g.settings.MaxInstanceLifetime, InstanceMaintenancePolicy: g.settings.InstanceMaintenancePolicy,
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
		d.SuspendedProcesses = append(d.SuspendedProcesses, suspendedProcess{p, "User suspended at " + stamp(s.now())})
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

// matchesTags filters groups: tag-key, tag-value and tag:<key>.
func matchesTags(tags []Tag, filters []filter) (bool, error) {
	for _, f := range filters {
		key, byKey := strings.CutPrefix(f.Name, "tag:")
		match := func(t Tag) bool {
			switch {
			case byKey:
				return t.Key == key && slices.Contains(f.Values, t.Value)
			case f.Name == "tag-key":
				return slices.Contains(f.Values, t.Key)
			}
			return slices.Contains(f.Values, t.Value)
		}
		if !byKey && f.Name != "tag-key" && f.Name != "tag-value" {
			return false, invalid("Filter type %s is not correct. Allowed Filter types are: tag-key, tag-value and tag:<key>", f.Name)
		}
		if !slices.ContainsFunc(tags, match) {
			return false, nil
		}
	}
	return true, nil
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
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []describedGroup{}
	for _, g := range s.groups {
		if len(in.AutoScalingGroupNames) > 0 && !slices.Contains(in.AutoScalingGroupNames, g.name) {
			continue
		}
		ok, err := matchesTags(g.tags, in.Filters)
		if err != nil {
			return nil, err
		}
		if ok {
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
	found := []describedInstance{}
	for _, g := range s.groups {
		for _, m := range g.members {
			if len(in.InstanceIds) == 0 || slices.Contains(in.InstanceIds, m.id) {
				d := m.describe()
				d.AutoScalingGroupName, d.HealthStatus = g.name, strings.ToUpper(d.HealthStatus)
				found = append(found, d)
			}
		}
	}
	list, next, err := page(found, in.NextToken, in.MaxRecords, 50, 50)
	if err != nil {
		return nil, err
	}
	return struct {
		AutoScalingInstances []describedInstance
		NextToken            string `xml:",omitempty"`
	}{list, next}, nil
}

func (s *Service) describeActivities(c *wire.Call, in struct {
	AutoScalingGroupName string
	ActivityIds          []string
	NextToken            string
	MaxRecords           *int
}) (any, error) {
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []activity{}
	for _, g := range s.groups {
		if in.AutoScalingGroupName != "" && g.name != in.AutoScalingGroupName {
			continue
		}
		for _, a := range slices.Backward(g.activities) {
			if len(in.ActivityIds) == 0 || slices.Contains(in.ActivityIds, a.ActivityId) {
				found = append(found, *a)
			}
		}
	}
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
				value, known := map[string]string{
					"auto-scaling-group": g.name, "key": t.Key, "value": t.Value, "propagate-at-launch": strconv.FormatBool(t.PropagateAtLaunch),
				}[f.Name]
				if !known {
					return nil, invalid("Filter type %s is not correct. Allowed Filter types are: auto-scaling-group key value propagate-at-launch", f.Name)
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

// TaggedResource is a group with its tags, for the tagging API.
type TaggedResource struct {
	ARN  string
	Tags map[string]string
}

// TaggedResources are the groups that have tags.
func (s *Service) TaggedResources() []TaggedResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	var tagged []TaggedResource
	for _, g := range s.groups {
		if len(g.tags) > 0 {
			tags := map[string]string{}
			for _, t := range g.tags {
				tags[t.Key] = t.Value
			}
			tagged = append(tagged, TaggedResource{g.arn, tags})
		}
	}
	return tagged
}
