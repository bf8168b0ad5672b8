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

// Hooks starts an execution for each instance that waits at a hook without one: its event was lost, or its execution was aborted.
type Hooks struct {
	Groups              HookReader
	JoinNode, DrainNode HookMachine
}

// HookReader reads the hooks of groups: a subset of autoscaling.Groups.
type HookReader interface {
	Hook(ctx context.Context, group, hook string) (events.Lifecycle, bool, error)
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
	return errors.Join(drains, p.start(ctx, p.JoinNode, pool.LaunchHook, joining))
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
