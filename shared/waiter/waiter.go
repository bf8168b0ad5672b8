// Package waiter resumes a task that waits for a stack. Three functions call it: stackevent when the stack's event arrives, sweep when that
// event was lost, and change when the operation ended before the task waited. The package calls AWS only through its interfaces.
package waiter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Tasks resumes waiting tasks: a subset of stepfunctions.Executions.
type Tasks interface {
	Succeed(ctx context.Context, token string, output events.ChangeResult) error
	Fail(ctx context.Context, token, fault string, cause events.ChangeResult) error
}

// Stacks finds out why a stack failed: a subset of cloudformation.Stacks.
type Stacks interface {
	WhyFailed(ctx context.Context, stackName string) (stack.Failure, error)
}

// Groups finds out what happened to a pool's group: a subset of autoscaling.Groups.
type Groups interface {
	LaunchFailureReason(ctx context.Context, name string, since, until time.Time) (string, error)
	// Unchanged reports whether the group has launched and terminated no instance since a time.
	Unchanged(ctx context.Context, name string, since time.Time) (bool, error)
}

// State deletes waiters and records stacks in the status: a subset of store.State.
type State interface {
	DeleteWaiter(ctx context.Context, w store.Waiter) error
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Resumer resumes tasks.
type Resumer struct {
	Tasks  Tasks
	Stacks Stacks
	Groups Groups
	State  State
}

// ResumeAfter resumes w's task, so that it checks again after some seconds. What blocks it is not an operation on its stack, so no event
// follows.
func (r *Resumer) ResumeAfter(ctx context.Context, w store.Waiter, stackStatus string, seconds int64) error {
	return r.Tasks.Succeed(ctx, w.TaskToken, events.ChangeResult{
		Stack: w.Stack, Status: stackStatus, Again: true, WaitSeconds: seconds, WaitedSeconds: w.WaitedSeconds + seconds,
		Repeats: repeats(w),
	})
}

// rollPause is the pause before a roll without signals is repeated.
const rollPause = 30 * time.Second

// repeats returns how often a task has repeated its change.
func repeats(w store.Waiter) int64 {
	if w.Repeats == nil {
		return 0
	}
	return *w.Repeats
}

// repeatPause returns the pause before a rolled-back change of a pool is repeated; 0 if it is not. A failure that cannot pass is not
// repeated. If the update or its rollback replaced nodes, the change is repeated once, and only if another resource than the group failed:
// the nodes are not the cause.
func (r *Resumer) repeatPause(ctx context.Context, w store.Waiter, failure stack.Failure) (time.Duration, error) {
	pool, ok := strings.CutPrefix(w.Stack, names.PoolPrefix)
	switch {
	case !ok || w.Repeats == nil:
		return 0, nil
	case failure.MissedSignals():
		if *w.Repeats > 0 {
			return 0, nil
		}
		return rollPause, nil
	case slices.Contains(permanentCodes, errorCode(failure.Reason)) || *w.Repeats >= int64(len(backoff.QuickRetries)):
		return 0, nil
	}
	unchanged, err := r.Groups.Unchanged(ctx, names.Group(w.Cluster, pool), failure.Began)
	if err != nil || !unchanged && (*w.Repeats > 0 || failure.Resource == names.GroupResource) {
		return 0, err
	}
	return backoff.QuickRetries[*w.Repeats], nil
}

// Resume resumes w's task with the result of its stack's operation. The status of the cluster keeps a newer state of the stack. Resume can
// be interrupted anywhere and repeated: it deletes the waiter last.
//
// Resume repeats a roll once if CloudFormation missed signals, and the status has no instance that failed to join. Its new nodes may be
// healthy: drover or Lambda may not have worked during the hour in which CloudFormation waits. See ADR 32. It repeats a change of a pool
// that failed, but not because of its nodes, after growing pauses. See ADR 10.
//
// If the status has a node of the pool whose cluster did not answer, drover plans again instead. The execution then waits until it can
// prepare the cluster, and repeats the roll after that.
func (r *Resumer) Resume(ctx context.Context, w store.Waiter, report status.StackReport) error {
	stackStatus := report.Status
	if stack.InProgress(stackStatus) {
		return nil
	}
	result := events.ChangeResult{Stack: w.Stack, Status: stackStatus, Again: w.Again, WaitedSeconds: w.WaitedSeconds, Repeats: repeats(w)}
	recorded := status.Stack{Name: w.Stack}
	succeeded := stack.Settled(stackStatus) || stack.Absent(stackStatus) || stackStatus == w.Wants
	isForeign := w.ClientRequestToken == "" && w.Again
	missed, unreachable := false, false
	var pause time.Duration // before the change is repeated; 0 if it is not
	if !succeeded {
		failure, err := r.Stacks.WhyFailed(ctx, w.StackName)
		if err != nil {
			return err
		}
		recorded.Resource, recorded.Reason = failure.Resource, failure.Reason
		refused := ""
		if pool, ok := strings.CutPrefix(w.Stack, names.PoolPrefix); ok && !isForeign {
			why, err := r.Groups.LaunchFailureReason(ctx, names.Group(w.Cluster, pool), failure.Began, failure.RollbackBegan)
			if err != nil {
				return err
			}
			switch { // CloudFormation has the same reason, or only reports missing signals
			case why != "" && strings.Contains(failure.Reason, why):
				refused = "\n" + launchAdvice(why)
			case why != "":
				recorded.Reason += "; " + NoInstances(why)
				refused = "\n" + NoInstances(why)
			}
			if statements := keyAdvice(why, failure.StackARN); statements != "" {
				refused += "\n" + statements
			}
		}
		missed = !isForeign && refused == "" && stackStatus == stack.UpdateRollbackComplete && failure.MissedSignals()
		if !isForeign && refused == "" && stackStatus == stack.UpdateRollbackComplete {
			if pause, err = r.repeatPause(ctx, w, failure); err != nil {
				return err
			}
		}
		result.Error = fault.Name(&fault.StackFailed{})
		result.Cause = fmt.Sprintf("stack %s is %s: %s%s", w.StackName, stackStatus, failure, refused) + advice(w.StackName, stackStatus,
			failure, names.IsUpgradeStep(w.Cluster, w.Execution))
	}
	err := r.State.UpdateStatus(ctx, w.Cluster, func(s *status.Status) {
		pool, ok := strings.CutPrefix(w.Stack, names.PoolPrefix)
		mayBeHealthy := ok && len(s.NotJoined(pool, s.Execution)) == 0
		if !mayBeHealthy {
			pause = 0
		}
		unreachable = mayBeHealthy && missed && s.HasUnreachable(pool)
		// The deletion of a stack that the status no longer has is not recorded again.
		deleted := stackStatus == "" || stackStatus == stack.DeleteComplete
		isThis := func(o status.Stack) bool { return o.Name == w.Stack }
		if !deleted || slices.ContainsFunc(s.Stacks, isThis) {
			s.EndStack(recorded, report)
		}
		if stack.Settled(stackStatus) && !w.Again {
			s.RecordChange(w.Stack)
		}
	})
	if err != nil {
		return err
	}
	if unreachable {
		result.Error, pause = fault.Name(&fault.Superseded{}), 0
		logging.From(ctx).Warn("signals missing, cluster unreachable", "cluster", w.Cluster, "stack", w.StackName, "reason", result.Cause)
	}
	if pause > 0 {
		logging.From(ctx).Warn("change of a pool repeated", "cluster", w.Cluster, "stack", w.StackName, "reason", result.Cause)
		result.Again, result.WaitSeconds, result.Repeats = true, int64(pause/time.Second), repeats(w)+1
	}
	// The result of an operation that this task did not start does not matter: the task checks again. Its own operation must have succeeded.
	if succeeded || isForeign || pause > 0 {
		result.Error, result.Cause = "", ""
		err = r.Tasks.Succeed(ctx, w.TaskToken, result)
	} else {
		err = r.Tasks.Fail(ctx, w.TaskToken, result.Error, result)
	}
	if err != nil {
		return err
	}
	return r.State.DeleteWaiter(ctx, w)
}

// Supersede ends w's task because the cluster must be planned again. The operation on its stack continues.
func (r *Resumer) Supersede(ctx context.Context, w store.Waiter, cause string) error {
	result := events.ChangeResult{Stack: w.Stack, Error: fault.Name(&fault.Superseded{}), Cause: cause}
	if err := r.Tasks.Fail(ctx, w.TaskToken, result.Error, result); err != nil {
		return err
	}
	return r.State.DeleteWaiter(ctx, w)
}
