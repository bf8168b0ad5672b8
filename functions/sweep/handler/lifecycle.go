package handler

// Instances that nobody works on, and what work on them that was cut off left behind: hooks whose event was lost or whose
// execution was stopped, new nodes of which nobody tells CloudFormation, nodes that stay cordoned, groups whose processes nobody
// resumed.

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/pool"
)

// Groups is Auto Scaling: a subset of autoscaling.Groups.
type Groups interface {
	All(ctx context.Context) ([]pool.Group, error)
	Hook(ctx context.Context, group, hook string) (events.Lifecycle, bool, error)
	Resume(ctx context.Context, group string, processes []string) error
	Unhealthy(ctx context.Context, instance string) error
	Refused(ctx context.Context, name string, since, until time.Time) (string, error)
}

// Machine is one that works on instances: a subset of stepfunctions.Machine.
type Machine interface {
	Start(ctx context.Context, name string, input any) error
	Running(ctx context.Context) ([]string, error)
	Broken(ctx context.Context, since time.Time) ([]string, error)
	Input(ctx context.Context, execution string, into any) error
}

// hooks looks after instances that wait at hooks: those that leave first, for their pods are at stake.
func (h *Handler) hooks(ctx context.Context, all []pool.Group) error {
	joining, leaving := map[string]string{}, map[string]string{}
	for _, group := range all {
		for _, i := range group.Instances {
			switch i.State {
			case pool.PendingWait:
				joining[i.ID] = group.Name
			case pool.TerminatingWait:
				leaving[i.ID] = group.Name
			}
		}
	}
	drains := h.waiting(ctx, h.DrainNode, autoscaling.TerminateHook, leaving)
	return errors.Join(drains, h.waiting(ctx, h.JoinNode, autoscaling.LaunchHook, joining))
}

// lifecycle looks after what is left behind in groups, and of drains: one listing of these when there is nothing to
// find. Changing are stacks that are known to be.
func (h *Handler) lifecycle(ctx context.Context, all []pool.Group, changing map[string]bool) error {
	var failed []error
	for _, group := range all {
		changes, err := h.suspended(ctx, group)
		failed = append(failed, err)
		if changes || changing[group.Name] { // a pool's stack and its group have one name
			failed = append(failed, h.unsignalled(ctx, group))
		}
	}
	return errors.Join(append(failed, h.cutOff(ctx))...)
}

// waiting starts an execution for each instance, by its group, that waits at a hook and has none. One whose event is still on its
// way gets two: they do no harm to each other.
func (h *Handler) waiting(ctx context.Context, machine Machine, hookName string, instances map[string]string) error {
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
		hook, found, err := h.Groups.Hook(ctx, group, hookName)
		if err == nil && found {
			logging.From(ctx).Warn("nobody works on this instance", "instance", instance, "group", group, "hook", hookName)
			hook.EC2InstanceID = instance
			err = machine.Start(ctx, "", hook)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// signal begins the names of executions that unsignalled starts.
const signal = "signal-"

// unsignalled has CloudFormation told of instances in service of a pool whose stack is being changed, if the execution that was to do it
// ended when their hooks were completed already: nobody else would, and after an hour the update would be rolled back. Step
// Functions knows these executions, and by the name of what is started each is looked after once. The stack itself is not asked
// which signals it got: only its events say so, and another of an instance counts for nothing.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_SignalResource.html
func (h *Handler) unsignalled(ctx context.Context, group pool.Group) error {
	since, err := h.Stacks.Since(ctx, group.Name)
	if err != nil || since.IsZero() {
		return err
	}
	broken, err := h.JoinNode.Broken(ctx, since)
	if err != nil {
		return err
	}
	var failed []error
	for _, x := range broken {
		var hook events.Lifecycle
		err := h.JoinNode.Input(ctx, x, &hook)
		if err == nil && hook.AutoScalingGroupName == group.Name && group.Serves(hook.EC2InstanceID) {
			logging.From(ctx).Warn("nobody signals this instance", "instance", hook.EC2InstanceID, "group", group.Name, "after", x)
			err = h.JoinNode.Start(ctx, signal+names.SHA256([]byte(x))[:32], hook)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// lately is how far back drains that were cut off are looked for; each is looked after once, by the name of what it starts.
const (
	lately  = time.Hour
	release = "release-"
)

// cutOff gives back the nodes of drains that were stopped, or failed, and that stay: by hand, or for a spot warning. Those at a hook
// go, and are drained again as long as they wait. Who drains a node anew has it: it is looked at again when that is over. Nothing else
// tells of them, so Step Functions is asked each time.
func (h *Handler) cutOff(ctx context.Context) error {
	broken, err := h.DrainNode.Broken(ctx, h.Now().Add(-lately))
	if err != nil {
		return err
	}
	var failed []error
	running := h.draining(ctx)
	for _, x := range broken {
		if name := x[strings.LastIndex(x, ":")+1:]; strings.HasPrefix(name, release) {
			continue
		}
		var in events.DrainRequest
		err := h.DrainNode.Input(ctx, x, &in)
		if err == nil && in.Lifecycle == nil && drained(in) != "" {
			var drains map[string]bool
			if drains, err = running(); err == nil && !drains[drained(in)] {
				in.Release = true
				err = h.DrainNode.Start(ctx, release+names.SHA256([]byte(x))[:32], in)
			}
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// suspends are the processes that a rolling update suspends: see the pool's template.
var suspends = []string{"HealthCheck", "ReplaceUnhealthy", "AZRebalance", "AlarmNotification", "ScheduledActions"}

// suspended resumes a group's processes that an update left suspended, while nobody changes its stack, and says whether somebody does. An
// update suspends by one call all of them that are not, so they all were when it had. What was suspended before that, or when
// nobody changed the stack, is somebody's own wish.
func (h *Handler) suspended(ctx context.Context, group pool.Group) (changing bool, err error) {
	var last time.Time
	for _, process := range suspends {
		at, known := group.SuspendedAt[process]
		if !known {
			return false, nil
		}
		if at.After(last) {
			last = at
		}
	}
	deployed, err := h.Stacks.Describe(ctx, group.Name)
	if err != nil || stack.InProgress(deployed.Status) {
		return err == nil, err
	}
	left, err := h.Stacks.Changing(ctx, group.Name, last)
	if err != nil || !left {
		return false, err
	}
	processes := slices.DeleteFunc(slices.Clone(suspends), func(p string) bool { return group.SuspendedAt[p].Before(last.Add(-time.Second)) })
	logging.From(ctx).Warn("an update left processes suspended", "group", group.Name, "processes", processes)
	return false, h.Groups.Resume(ctx, group.Name, processes)
}
