package passes

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/pool"
)

// Hooks starts an execution for each instance that waits at a hook without one: its event was lost, or its execution was aborted. It
// abandons the launch hook of an instance that ended: Auto Scaling checks the health of instances in service only, and would wait for the
// hook's timeout.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html
type Hooks struct {
	Groups              HookGroups
	EC2                 EndedInstances
	JoinNode, DrainNode HookMachine
}

// HookGroups reads and completes the hooks of groups: a subset of autoscaling.Groups.
type HookGroups interface {
	Hook(ctx context.Context, group, hook string) (events.Lifecycle, bool, error)
	Complete(ctx context.Context, hook events.Lifecycle, result pool.HookResult) (bool, error)
}

// EndedInstances finds instances that ended: a subset of ec2.Capacity.
type EndedInstances interface {
	Ended(ctx context.Context, ids []string) ([]string, error)
}

// HookMachine handles instances at a hook: a subset of Machine.
type HookMachine interface {
	Start(ctx context.Context, name string, input any) error
	Running(ctx context.Context) ([]string, error)
	Input(ctx context.Context, execution string, into any) error
}

// Run handles instances at the terminate hook first, because their pods wait for them.
func (p Hooks) Run(ctx context.Context, groups []pool.Group) error {
	joining, leaving := map[string]string{}, map[string]string{}
	for _, group := range groups {
		for _, i := range group.Instances {
			switch i.State {
			case pool.PendingWait:
				joining[i.ID] = group.Name
			case pool.TerminatingWait:
				leaving[i.ID] = group.Name
			}
		}
	}
	drains := p.start(ctx, p.DrainNode, pool.TerminateHook, leaving)
	ended := p.abandonEnded(ctx, joining)
	return errors.Join(drains, ended, p.start(ctx, p.JoinNode, pool.LaunchHook, joining))
}

// abandonEnded abandons the launch hooks of instances that ended, and removes them from joining. The status does not count them as failed
// to join: what ends an instance is rarely its configuration.
func (p Hooks) abandonEnded(ctx context.Context, joining map[string]string) error {
	if len(joining) == 0 {
		return nil
	}
	ended, err := p.EC2.Ended(ctx, slices.Sorted(maps.Keys(joining)))
	if err != nil {
		return err
	}
	var failed []error
	for _, instance := range ended {
		hook := events.Lifecycle{
			AutoScalingGroupName: joining[instance], LifecycleHookName: pool.LaunchHook, EC2InstanceID: instance,
		}
		delete(joining, instance)
		logging.From(ctx).Warn("instance ended at its launch hook", "instance", instance, "group", hook.AutoScalingGroupName)
		_, err := p.Groups.Complete(ctx, hook, pool.Abandon)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// start starts an execution for each instance, by its group, that has none. An instance whose event is late gets two: they do not harm each
// other.
func (p Hooks) start(ctx context.Context, machine HookMachine, hookName string, instances map[string]string) error {
	if len(instances) == 0 {
		return nil
	}
	running, err := machine.Running(ctx)
	if err != nil {
		return err
	}
	for _, x := range running {
		if len(instances) == 0 {
			return nil
		}
		var hook events.Lifecycle
		if err := machine.Input(ctx, x, &hook); err != nil {
			return err
		}
		delete(instances, hook.EC2InstanceID)
	}
	var failed []error
	for _, instance := range slices.Sorted(maps.Keys(instances)) {
		group := instances[instance]
		hook, found, err := p.Groups.Hook(ctx, group, hookName)
		if err == nil && found {
			logging.From(ctx).Warn("instance waits at its hook without an execution", "instance", instance, "group", group, "hook", hookName)
			hook.EC2InstanceID = instance
			err = machine.Start(ctx, "", hook)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
