// Package waiter tells a waiting step how its stack ended. The event of the stack does it at once, the sweep does it when
// the event was lost, and the change function when the stack came to rest before anybody could wait.
package waiter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"

	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Steps is how waiting steps are resumed: a subset of stepfunctions.Executions.
type Steps interface {
	Succeed(ctx context.Context, token string, output events.ChangeResult) error
	Fail(ctx context.Context, token, fault string, cause events.ChangeResult) error
}

// Stacks tells why a stack failed: a subset of cloudformation.Stacks.
type Stacks interface {
	WhyFailed(ctx context.Context, stackName string) (stack.Failure, error)
}

// Groups tells why a pool's group got no instances: a subset of autoscaling.Groups.
type Groups interface {
	Refused(ctx context.Context, name string, since, until time.Time) (string, error)
}

// State forgets who waited and tells people: a subset of store.State.
type State interface {
	DeleteWaiter(ctx context.Context, w store.Waiter) error
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Resumer resumes steps.
type Resumer struct {
	Steps  Steps
	Stacks Stacks
	Groups Groups
	State  State
	Now    func() time.Time
}

// Later tells w's step to look again after so many seconds: what is in its way is no operation on its stack, of whose
// end an event would tell.
func (r *Resumer) Later(ctx context.Context, w store.Waiter, stackStatus string, seconds int64) error {
	return r.Steps.Succeed(ctx, w.TaskToken, events.ChangeResult{
		Stack: w.Stack, Status: stackStatus, Again: true, WaitSeconds: seconds, WaitedSeconds: w.WaitedSeconds + seconds,
	})
}

// Resume tells w's step how its stack ended. It can be repeated, and be interrupted anywhere: the waiter is forgotten
// last.
func (r *Resumer) Resume(ctx context.Context, w store.Waiter, stackStatus string) error {
	if stack.InProgress(stackStatus) {
		return nil
	}
	result := events.ChangeResult{Stack: w.Stack, Status: stackStatus, Again: w.Again, WaitedSeconds: w.WaitedSeconds}
	told := status.Stack{Name: w.Stack, Status: stackStatus}
	good := stack.Settled(stackStatus) || stack.Absent(stackStatus) || stackStatus == w.Wants
	others := w.ClientRequestToken == "" && w.Again
	if !good {
		failure, err := r.Stacks.WhyFailed(ctx, w.StackName)
		if err != nil {
			return err
		}
		told.Resource, told.Reason = failure.Resource, failure.Reason
		refused := ""
		if pool, is := strings.CutPrefix(w.Stack, names.PoolPrefix); is && !others {
			why, err := r.Groups.Refused(ctx, names.Group(w.Cluster, pool), failure.Began, failure.Turned)
			if err != nil {
				return err
			}
			switch { // CloudFormation says the same, or tells only of signals that did not come
			case why != "" && strings.Contains(failure.Reason, why):
				refused = "\n" + cause(why)
			case why != "":
				told.Reason += "; " + NoInstances(why)
				refused = "\n" + NoInstances(why)
			}
		}
		result.Error = fault.Name(&fault.StackFailed{})
		result.Cause = fmt.Sprintf("stack %s is %s: %s%s", w.StackName, stackStatus, failure, refused) + advice(w.StackName, stackStatus,
			failure, names.MakesUpgrade(w.Cluster, w.Execution))
	}
	err := r.State.UpdateStatus(ctx, w.Cluster, func(s *status.Status) {
		// Told again when the cluster is Ready without it, that a stack is gone is no news.
		gone := stackStatus == "" || stackStatus == "DELETE_COMPLETE"
		known := func(o status.Stack) bool { return o.Name == w.Stack }
		switch {
		case gone && !slices.ContainsFunc(s.Stacks, known):
		case s.Converges():
			s.EndStack(told, r.Now())
		default: // it comes late: that operation was told
			s.SetStack(told, r.Now())
		}
		if stack.Settled(stackStatus) && !w.Again {
			s.Made(w.Stack)
		}
	})
	if err != nil {
		return err
	}
	// How somebody else's operation ended means nothing to the step: it looks again. Its own must have succeeded.
	if good || others {
		result.Error, result.Cause = "", ""
		err = r.Steps.Succeed(ctx, w.TaskToken, result)
	} else {
		err = r.Steps.Fail(ctx, w.TaskToken, result.Error, result)
	}
	if err != nil {
		return err
	}
	return r.State.DeleteWaiter(ctx, w)
}
