package passes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
)

// Instances handles what interrupted executions and updates left behind: instances that CloudFormation got no signal for, nodes that stay
// cordoned, and groups with suspended processes.
type Instances struct {
	Stacks              InstanceStacks
	Groups              ProcessResumer
	JoinNode, DrainNode Machine
	Now                 func() time.Time
}

// InstanceStacks reads the operations of pools' stacks: a subset of cloudformation.Stacks.
type InstanceStacks interface {
	Describe(ctx context.Context, stackName string) (stack.Deployed, error)
	Changing(ctx context.Context, stackName string, then time.Time) (bool, error)
	LastChangeBegan(ctx context.Context, stackName string) (time.Time, error)
}

// ProcessResumer resumes the processes of groups: a subset of autoscaling.Groups.
type ProcessResumer interface {
	Resume(ctx context.Context, group string, processes []string) error
}

// Run checks all groups. changing are stacks that are known to have an operation in flight.
func (p Instances) Run(ctx context.Context, groups []pool.Group, changing map[string]bool) error {
	var failed []error
	for _, group := range groups {
		changes, err := p.resumeProcesses(ctx, group)
		failed = append(failed, err)
		if changes || changing[group.Name] { // a pool's stack and its group have one name
			failed = append(failed, p.startMissingSignals(ctx, group))
		}
	}
	return errors.Join(append(failed, p.uncordon(ctx))...)
}

// signalPrefix begins the names of executions that startMissingSignals starts.
const signalPrefix = "signal-"

// startMissingSignals starts an execution for each instance in service whose signal CloudFormation may not have received. The pool's stack
// is being changed, and the execution that should have signalled ended after it completed the hook. Without a signal the update would be
// rolled back after an hour. Step Functions lists these executions. The name of the started execution makes sure that each is handled once.
// drover does not ask the stack which signals it received, because only the text of its events shows them. CloudFormation ignores a second
// signal for the same instance.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_SignalResource.html
func (p Instances) startMissingSignals(ctx context.Context, group pool.Group) error {
	since, err := p.Stacks.LastChangeBegan(ctx, group.Name)
	if err != nil || since.IsZero() {
		return err
	}
	unsuccessful, err := p.JoinNode.Unsuccessful(ctx, since)
	if err != nil {
		return err
	}
	var failed []error
	for _, execution := range unsuccessful {
		var hook events.Lifecycle
		err := p.JoinNode.Input(ctx, execution, &hook)
		if err == nil && hook.AutoScalingGroupName == group.Name && group.IsInService(hook.EC2InstanceID) {
			logging.From(ctx).Warn("instance was not signalled", "instance", hook.EC2InstanceID, "group", group.Name, "execution", execution)
			err = p.JoinNode.Start(ctx, signalPrefix+names.SHA256([]byte(execution))[:32], hook)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

const (
	// drainLookback is how far back the sweep searches for interrupted drains.
	drainLookback = time.Hour
	// restorePrefix begins the names of executions that uncordon starts.
	restorePrefix = "restore-"
)

// uncordon starts an execution that uncordons the node of each interrupted drain that an operator or a spot warning
// started. Nodes at a hook are terminated: they are drained again while they wait. A node that is drained again
// belongs to that drain, so it is checked when that drain has ended. The name of the started execution makes sure
// that each is handled once. No other record exists, so every sweep asks Step Functions.
func (p Instances) uncordon(ctx context.Context) error {
	unsuccessful, err := p.DrainNode.Unsuccessful(ctx, p.Now().Add(-drainLookback))
	if err != nil {
		return err
	}
	var failed []error
	running := work.RunningDrains(ctx, p.DrainNode)
	for _, execution := range unsuccessful {
		if name := execution[strings.LastIndex(execution, ":")+1:]; strings.HasPrefix(name, restorePrefix) {
			continue
		}
		var in events.DrainRequest
		err := p.DrainNode.Input(ctx, execution, &in)
		if err == nil && in.Lifecycle == nil && in.Target() != "" {
			var drains map[string]bool
			if drains, err = running(); err == nil && !drains[in.Target()] {
				in.Restore = true
				err = p.DrainNode.Start(ctx, restorePrefix+names.SHA256([]byte(execution))[:32], in)
			}
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// resumeProcesses resumes the processes of a group that an update left suspended, if its stack is idle. It returns
// whether an operation is in flight. An update suspends all of pool.SuspendedByUpdate that are not suspended, in one
// call. So a process that was suspended earlier, or without an update, was suspended outside drover, and stays
// suspended.
func (p Instances) resumeProcesses(ctx context.Context, group pool.Group) (changing bool, err error) {
	var last time.Time
	for _, process := range pool.SuspendedByUpdate {
		at, found := group.SuspendedAt[process]
		if !found {
			return false, nil
		}
		if at.After(last) {
			last = at
		}
	}
	deployed, err := p.Stacks.Describe(ctx, group.Name)
	if err != nil || stack.InProgress(deployed.Status) {
		return err == nil, err
	}
	byUpdate, err := p.Stacks.Changing(ctx, group.Name, last)
	if err != nil || !byUpdate {
		return false, err
	}
	processes := slices.DeleteFunc(slices.Clone(pool.SuspendedByUpdate), func(process string) bool {
		return group.SuspendedAt[process].Before(last.Add(-time.Second))
	})
	logging.From(ctx).Warn("processes left suspended", "group", group.Name, "processes", processes)
	return false, p.Groups.Resume(ctx, group.Name, processes)
}
