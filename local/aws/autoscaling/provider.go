package autoscaling

// AWS::AutoScaling::AutoScalingGroup. Actions and behaviors follow the resource schema that AWS publishes.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-autoscaling-autoscalinggroup.html

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Resources are the CloudFormation resource types of Auto Scaling.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::AutoScaling::AutoScalingGroup": groupProvider{s}}
}

type groupProvider struct{ *Service }

type properties struct {
	AutoScalingGroupName                                      string
	MinSize, MaxSize, DesiredCapacity                         *int
	LaunchTemplate                                            *TemplateSpecification
	MixedInstancesPolicy                                      *MixedInstancesPolicy
	VPCZoneIdentifier, AvailabilityZones, TerminationPolicies []string
	HealthCheckType                                           string
	Cooldown, HealthCheckGracePeriod, DefaultInstanceWarmup   *int
	MaxInstanceLifetime                                       *int
	NewInstancesProtectedFromScaleIn, CapacityRebalance       *bool
	InstanceMaintenancePolicy                                 *struct{ MinHealthyPercentage, MaxHealthyPercentage *int }
	AvailabilityZoneImpairmentPolicy                          *ImpairmentPolicy
	LifecycleHookSpecificationList                            []Hook
	MetricsCollection                                         []struct {
		Granularity string
		Metrics     []string
	}
	Tags []Tag
}

// settings returns the settings of the group. Without a desired capacity, a group keeps its current one.
func (p *properties) settings() Settings {
	return Settings{
		MinSize: p.MinSize, MaxSize: p.MaxSize, DesiredCapacity: p.DesiredCapacity, LaunchTemplate: p.LaunchTemplate,
		MixedInstancesPolicy: p.MixedInstancesPolicy,
		Subnets:              p.VPCZoneIdentifier, AvailabilityZones: p.AvailabilityZones, HealthCheckType: p.HealthCheckType,
		HealthCheckGracePeriod: p.HealthCheckGracePeriod,
		DefaultCooldown:        p.Cooldown, DefaultInstanceWarmup: p.DefaultInstanceWarmup, MaxInstanceLifetime: p.MaxInstanceLifetime,
		TerminationPolicies: p.TerminationPolicies, NewInstancesProtectedFromScaleIn: p.NewInstancesProtectedFromScaleIn,
		CapacityRebalance:         p.CapacityRebalance,
		InstanceMaintenancePolicy: p.InstanceMaintenancePolicy, AvailabilityZoneImpairmentPolicy: p.AvailabilityZoneImpairmentPolicy,
	}
}

func (groupProvider) Schema() resource.Schema {
	schema := resource.Schema{
		Properties: map[string]resource.UpdateBehavior{}, Required: []string{"MinSize", "MaxSize"}, Attributes: []string{"AutoScalingGroupARN"},
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[properties]()) {
		schema.Properties[field.Name] = resource.InPlace
	}
	schema.Properties["AutoScalingGroupName"] = resource.Replaces
	return schema
}

func decode(r resource.Request, into any) error {
	if err := resource.Decode(r.Properties, into); err != nil {
		return fmt.Errorf("Properties validation failed for resource %s with message: %w", r.LogicalID, err)
	}
	return nil
}

// tags returns the tags of the group. The stack's tags are also applied to the instances.
func (p *properties) tags(r resource.Request) []Tag {
	var tags []Tag
	for _, k := range slices.Sorted(maps.Keys(r.Tags)) {
		if !slices.ContainsFunc(p.Tags, func(t Tag) bool { return t.Key == k }) {
			tags = append(tags, Tag{k, r.Tags[k], true})
		}
	}
	return append(tags, p.Tags...)
}

func mayRead(caller iam.Caller) error {
	for _, action := range []string{"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities"} {
		if err := caller.Authorize(action, "*", nil); err != nil {
			return err
		}
	}
	return nil
}

func (p groupProvider) result(name string) (resource.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, err := p.group(name)
	if err != nil {
		return resource.Result{PhysicalID: name}, err
	}
	return resource.Result{PhysicalID: name, Attributes: map[string]any{"AutoScalingGroupARN": g.arn}}, nil
}

// Create creates the group and waits for its instances or their signals.
func (p groupProvider) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	var in properties
	var policy creationPolicy
	if err := errors.Join(decode(r, &in), resource.Decode(r.CreationPolicy, &policy), mayRead(r.Caller)); err != nil {
		return resource.Result{}, err
	}
	name := in.AutoScalingGroupName
	if name == "" {
		sum := sha256.Sum256([]byte(r.StackID + "/" + r.LogicalID))
		name = r.StackName + "-" + r.LogicalID + "-" + hex.EncodeToString(sum[:])[:12]
	}
	settings := in.settings()
	if settings.DesiredCapacity == nil {
		settings.DesiredCapacity = settings.MinSize
	}
	g, err := p.create(r.Caller, name, settings, in.LifecycleHookSpecificationList, in.tags(r))
	if err != nil {
		return resource.Result{}, err
	}
	failed := resource.Result{PhysicalID: name}
	for _, m := range in.MetricsCollection {
		if err := p.collect(r.Caller, g.name, m.Granularity, m.Metrics); err != nil {
			return failed, err
		}
	}
	if policy.ResourceSignal != nil {
		err = p.awaitCreationSignals(ctx, r, policy)
	} else {
		err = p.stabilize(ctx, name)
	}
	if err != nil {
		return failed, err
	}
	return p.result(name)
}

func (s *Service) collect(caller iam.Caller, name, granularity string, metrics []string) error {
	if granularity != "1Minute" {
		return invalid("The only valid Granularity is 1Minute: %s", granularity)
	}
	return s.collectMetrics(caller, name, metrics, true)
}

// Update changes the group and then its instances, as the UpdatePolicy requires.
func (p groupProvider) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	failed := resource.Result{PhysicalID: r.PhysicalID}
	var in, old properties
	var policy updatePolicy
	if err := errors.Join(decode(r, &in), resource.Decode(r.Old, &old), mayRead(r.Caller)); err != nil {
		return failed, err
	}
	if err := resource.Decode(r.UpdatePolicy, &policy); err != nil {
		return failed, wire.Unsupported("autoscaling", "the UpdatePolicy: "+err.Error())
	}
	if policy.AutoScalingRollingUpdate != nil && policy.AutoScalingInstanceRefresh != nil {
		return failed, errors.New("UpdatePolicy has AutoScalingRollingUpdate and AutoScalingInstanceRefresh: only one is possible")
	}
	if refresh := policy.AutoScalingInstanceRefresh; refresh != nil && refresh.Strategy != "" && refresh.Strategy != "Rolling" {
		return failed, wire.Unsupported("autoscaling", "the instance refresh strategy "+refresh.Strategy)
	}
	if rolling := policy.AutoScalingRollingUpdate; rolling != nil && rolling.MinActiveInstancesPercent != nil {
		return failed, wire.Unsupported("autoscaling", "MinActiveInstancesPercent of AutoScalingRollingUpdate")
	}
	settings := in.settings()
	if reflect.DeepEqual(in.LaunchTemplate, old.LaunchTemplate) && reflect.DeepEqual(in.MixedInstancesPolicy, old.MixedInstancesPolicy) {
		settings.LaunchTemplate, settings.MixedInstancesPolicy = nil, nil
	}
	if slices.Equal(in.VPCZoneIdentifier, old.VPCZoneIdentifier) {
		settings.Subnets = nil
	}
	if err := p.changeHooks(r, in.LifecycleHookSpecificationList, old.LifecycleHookSpecificationList); err != nil {
		return failed, err
	}
	if err := p.changeTags(r, in.tags(r)); err != nil {
		return failed, err
	}
	for _, m := range in.MetricsCollection {
		if !reflect.DeepEqual(in.MetricsCollection, old.MetricsCollection) {
			if err := p.collect(r.Caller, r.PhysicalID, m.Granularity, m.Metrics); err != nil {
				return failed, err
			}
		}
	}
	if err := p.update(r.Caller, r.PhysicalID, settings); err != nil {
		return failed, err
	}
	// A policy applies if the launch template or the subnets changed. questions.OtherInstances adds the instances that do not match.
	var err error
	if settings.LaunchTemplate != nil || settings.MixedInstancesPolicy != nil || settings.Subnets != nil ||
		p.config.Readings.Other(questions.OtherInstances) {
		switch {
		case policy.AutoScalingRollingUpdate != nil:
			// Other subnets replace all instances, also those in subnets that stay. AWS does not document an exception. A rollback replaces
			// only what the update launched.
			err = p.rollingUpdate(ctx, r, r.PhysicalID, policy.AutoScalingRollingUpdate, settings.Subnets != nil && !r.Rollback)
		case policy.AutoScalingInstanceRefresh != nil:
			err = p.instanceRefresh(ctx, r, policy.AutoScalingInstanceRefresh.Preferences)
		}
	}
	if err != nil {
		return failed, err
	}
	return p.result(r.PhysicalID)
}

// changeHooks applies the template's changes of hooks. Hooks that others added stay.
func (p groupProvider) changeHooks(r resource.Request, want, old []Hook) error {
	for _, h := range want {
		if !slices.ContainsFunc(old, func(o Hook) bool { return reflect.DeepEqual(o, h) }) {
			if err := p.changeHook(r.Caller, r.PhysicalID, h, false); err != nil {
				return err
			}
		}
	}
	for _, o := range old {
		if !slices.ContainsFunc(want, func(h Hook) bool { return h.LifecycleHookName == o.LifecycleHookName }) {
			if err := p.changeHook(r.Caller, r.PhysicalID, o, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeTags sets the tags that differ and removes those that the stack does not want. All tags of a group belong to its stack.
func (p groupProvider) changeTags(r resource.Request, want []Tag) error {
	p.mu.Lock()
	g, err := p.group(r.PhysicalID)
	if err != nil {
		p.mu.Unlock()
		return err
	}
	now := slices.Clone(g.tags)
	p.mu.Unlock()
	set := slices.DeleteFunc(slices.Clone(want), func(t Tag) bool { return slices.Contains(now, t) })
	var remove []string
	for _, t := range now {
		if !slices.ContainsFunc(want, func(x Tag) bool { return x.Key == t.Key }) {
			remove = append(remove, t.Key)
		}
	}
	if len(set)+len(remove) == 0 {
		return nil
	}
	return p.tag(r.Caller, r.PhysicalID, set, remove)
}

// instanceRefresh starts a refresh and waits for its end. A cancelled update ends the refresh, so that the rollback can start its own.
// questions.RefreshRollback selects the permission for both.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
func (p groupProvider) instanceRefresh(ctx context.Context, r resource.Request, preferences Preferences) error {
	if err := r.Caller.Authorize("autoscaling:DescribeInstanceRefreshes", "*", nil); err != nil {
		return err
	}
	if r.Rollback && !p.config.Readings.Other(questions.RefreshRollback) {
		if err := p.mayCall(r.Caller, "RollbackInstanceRefresh", r.PhysicalID); err != nil {
			return err
		}
	}
	refresh, err := p.startRefresh(r.Caller, r.PhysicalID, preferences)
	if err != nil {
		return err
	}
	r.Progress("Instance refresh " + refresh.id + " started. Replacing " + strconv.Itoa(refresh.total) + " instance(s).")
	ended := func() (bool, error) { return refresh.end != nil, nil }
	if err := p.await(ctx, ended); err != nil {
		action := "RollbackInstanceRefresh"
		if p.config.Readings.Other(questions.RefreshRollback) {
			action = "CancelInstanceRefresh"
		}
		_, cancelled := p.endRefresh(r.Caller, action, r.PhysicalID, false)
		return errors.Join(err, cancelled, p.await(p.ctx, ended))
	}
	if refresh.status != "Successful" {
		return fmt.Errorf("Instance refresh %s ended with status %s. %s", refresh.id, refresh.status,
			cmp.Or(refresh.reason, "No reason was given."))
	}
	return nil
}

// Delete terminates the group's instances, waits until they have passed their hooks and ended, and removes the group.
func (p groupProvider) Delete(ctx context.Context, r resource.Request) error {
	if err := mayRead(r.Caller); err != nil {
		return err
	}
	p.mu.Lock()
	_, err := p.group(r.PhysicalID)
	p.mu.Unlock()
	if err != nil {
		return nil // deleted already
	}
	zero := 0
	if err := p.update(r.Caller, r.PhysicalID, Settings{MinSize: &zero, MaxSize: &zero, DesiredCapacity: &zero}); err != nil {
		return err
	}
	err = p.await(ctx, func() (bool, error) {
		g, err := p.group(r.PhysicalID)
		if err != nil {
			return true, nil // another caller deleted it
		}
		return len(g.members) == 0, nil
	})
	if err != nil {
		return err
	}
	if err := p.delete(r.Caller, r.PhysicalID, false); err != nil {
		var known *wire.Error
		if errors.As(err, &known) && known.Code == "ValidationError" {
			return nil
		}
		return err
	}
	return nil
}
