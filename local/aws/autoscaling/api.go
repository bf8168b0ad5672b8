package autoscaling

// The API.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/Welcome.html

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/engine/wire"
)

// Wire returns the API.
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
	AvailabilityZoneImpairmentPolicy                    *ImpairmentPolicy
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
		MinSize: in.MinSize, MaxSize: in.MaxSize, DesiredCapacity: in.DesiredCapacity, LaunchTemplate: in.LaunchTemplate,
		MixedInstancesPolicy: in.MixedInstancesPolicy,
		AvailabilityZones:    in.AvailabilityZones, HealthCheckType: in.HealthCheckType, HealthCheckGracePeriod: in.HealthCheckGracePeriod,
		DefaultCooldown: in.DefaultCooldown, DefaultInstanceWarmup: in.DefaultInstanceWarmup, MaxInstanceLifetime: in.MaxInstanceLifetime,
		TerminationPolicies: in.TerminationPolicies, NewInstancesProtectedFromScaleIn: in.NewInstancesProtectedFromScaleIn,
		CapacityRebalance:         in.CapacityRebalance,
		InstanceMaintenancePolicy: in.InstanceMaintenancePolicy, AvailabilityZoneImpairmentPolicy: in.AvailabilityZoneImpairmentPolicy,
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
		return nil, invalid("1 validation error detected: Value null at 'shouldDecrementDesiredCapacity' failed to satisfy constraint: " +
			"Member must not be null")
	}
	a, err := s.terminateInstance(c.Caller, in.InstanceId, *in.ShouldDecrementDesiredCapacity)
	if err != nil {
		return nil, err
	}
	return struct{ Activity activity }{a}, nil
}

func (s *Service) apiSetHealth(c *wire.Call, in struct {
	InstanceId, HealthStatus string
	ShouldRespectGracePeriod *bool
}) (any, error) {
	s.mu.Lock()
	if g, _, err := s.member(in.InstanceId); err == nil {
		c.Resource = g.arn
	}
	s.mu.Unlock()
	return nil, s.setHealth(c.Caller, in.InstanceId, in.HealthStatus)
}

// empty is the result of operations whose response has no members.
type empty struct{}

func (s *Service) apiPutHook(c *wire.Call, in struct {
	AutoScalingGroupName string
	Hook
}) (any, error) {
	return empty{}, s.changeHook(c.Caller, in.AutoScalingGroupName, in.Hook, false)
}

func (s *Service) apiDeleteHook(c *wire.Call, in struct{ AutoScalingGroupName, LifecycleHookName string }) (any, error) {
	return empty{}, s.changeHook(c.Caller, in.AutoScalingGroupName, Hook{LifecycleHookName: in.LifecycleHookName}, true)
}

type actionRequest struct {
	AutoScalingGroupName, LifecycleHookName, LifecycleActionToken, InstanceId string
	LifecycleActionResult                                                     *string
}

func (s *Service) apiComplete(c *wire.Call, in actionRequest) (any, error) {
	if in.LifecycleActionResult == nil || *in.LifecycleActionResult == "" {
		return nil, invalid("1 validation error detected: Value null at 'lifecycleActionResult' failed to satisfy constraint: " +
			"Member must not be null")
	}
	return empty{}, s.answer(c.Caller, in.AutoScalingGroupName, in.LifecycleHookName, in.LifecycleActionToken, in.InstanceId,
		*in.LifecycleActionResult)
}

func (s *Service) apiHeartbeat(c *wire.Call, in actionRequest) (any, error) {
	if in.LifecycleActionResult != nil {
		return nil, wire.Unsupported("autoscaling", "LifecycleActionResult of RecordLifecycleActionHeartbeat")
	}
	return empty{}, s.answer(c.Caller, in.AutoScalingGroupName, in.LifecycleHookName, in.LifecycleActionToken, in.InstanceId, "")
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

func (s *Service) apiCancelRefresh(c *wire.Call, in struct {
	AutoScalingGroupName          string
	WaitForTransitioningInstances *bool // default true
}) (any, error) {
	id, err := s.cancelRefresh(c.Caller, in.AutoScalingGroupName, in.WaitForTransitioningInstances == nil || *in.WaitForTransitioningInstances)
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
