// Package resume tells a waiting step how its stack ended. The event of the stack does it at once, the sweep does it when
// the event was lost, and the change function when the stack came to rest before anybody could wait.
package resume

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stacks"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Steps is how waiting steps are resumed: a subset of executions.Executions.
type Steps interface {
	Succeed(ctx context.Context, token string, output events.ChangeResult) error
	Fail(ctx context.Context, token, fault string, cause events.ChangeResult) error
}

// Stacks tells why a stack failed: a subset of stacks.Stacks.
type Stacks interface {
	WhyFailed(ctx context.Context, stackName string) (stacks.Failure, error)
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
	State  State
	Now    func() time.Time
}

// Resume tells w's step how its stack ended. It can be repeated, and be interrupted anywhere: the waiter is forgotten
// last.
func (r *Resumer) Resume(ctx context.Context, w store.Waiter, stackStatus string) error {
	if plan.InProgress(stackStatus) {
		return nil
	}
	result := events.ChangeResult{Stack: w.Stack, Status: stackStatus, Again: w.Again}
	told := status.Stack{Name: w.Stack, Status: stackStatus}
	good := plan.Settled(stackStatus) || plan.Absent(stackStatus) || stackStatus == w.Wants
	if !good {
		failure, err := r.Stacks.WhyFailed(ctx, w.StackName)
		if err != nil {
			return err
		}
		told.Resource, told.Reason = failure.Resource, failure.Reason
		result.Error = fault.Name(&fault.StackFailed{})
		result.Cause = fmt.Sprintf("stack %s is %s: %s", w.StackName, stackStatus, failure) + advice(w.StackName, stackStatus, failure)
	}
	if err := r.State.UpdateStatus(ctx, w.Cluster, func(s *status.Status) { s.SetStack(told, r.Now()) }); err != nil {
		return err
	}
	var err error
	// How somebody else's operation ended means nothing to the step: it looks again. Its own must have succeeded.
	if good || w.ClientRequestToken == "" && w.Again {
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
