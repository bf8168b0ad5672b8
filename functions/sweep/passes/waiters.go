package passes

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Waiters resumes the tasks whose stacks are idle: the event about the stack was lost.
type Waiters struct {
	State      WaiterState
	Executions work.Executions
	Stacks     WaiterStacks
	Groups     work.LaunchFailures
	Resume     Resumer
	Now        func() time.Time
}

// WaiterState holds waiters: a subset of store.State.
type WaiterState interface {
	List(ctx context.Context, prefix string) ([]store.Entry, error)
	Waiter(ctx context.Context, stackName string) (store.Waiter, error)
	DeleteWaiter(ctx context.Context, w store.Waiter) error
	work.StatusWriter
}

// WaiterStacks reads the stack that a task waits for: a subset of cloudformation.Stacks.
type WaiterStacks interface {
	Describe(ctx context.Context, stackName string) (stack.Deployed, error)
	HasBegun(ctx context.Context, stackName, token string) (bool, error)
}

// Resumer resumes the task that waits for a stack: waiter.Resumer.
type Resumer interface {
	Resume(ctx context.Context, w store.Waiter, report status.StackReport) error
}

// Run returns the stacks that have an operation in flight.
func (p Waiters) Run(ctx context.Context) (changing map[string]bool, err error) {
	changing = map[string]bool{}
	entries, err := p.State.List(ctx, names.Waiters)
	if err != nil {
		return changing, err
	}
	var failed []error
	for _, entry := range entries {
		stackName := strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.Waiters), ".json")
		changes, err := p.resume(ctx, stackName, entry.Modified)
		if err != nil {
			failed = append(failed, err)
		}
		if changes {
			changing[stackName] = true
		}
	}
	return changing, errors.Join(failed...)
}

// startLimit is the longest time from writing a waiter to the start of its operation: no function runs longer.
const startLimit = 15 * time.Minute

// resume resumes one waiter if its stack is idle.
func (p Waiters) resume(ctx context.Context, stackName string, since time.Time) (changing bool, err error) {
	w, err := p.State.Waiter(ctx, stackName)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if running, err := p.Executions.Running(ctx, w.Execution); err != nil {
		return false, err
	} else if !running {
		// The execution died before the operation started, or was aborted.
		return false, p.State.DeleteWaiter(ctx, w)
	}
	read := p.Now()
	deployed, err := p.Stacks.Describe(ctx, stackName)
	if err == nil && stack.InProgress(deployed.Status) {
		return true, p.recordLaunchFailure(ctx, w, status.StackReport{Status: deployed.Status, At: read}, since)
	}
	if err != nil || deployed.Status == stack.InReview {
		// In review, the awaited creation is about to start.
		return err == nil && stack.InProgress(deployed.Status), err
	}
	if w.ClientRequestToken != "" && !stack.Absent(deployed.Status) {
		began, err := p.Stacks.HasBegun(ctx, stackName, w.ClientRequestToken)
		// The awaited operation may be about to start: the stack is idle after an earlier one.
		if err != nil || !began && p.Now().Sub(since) < startLimit {
			return false, err
		}
		if !began {
			// It never will: an external operation came first, or the function died. The task checks the stack again.
			w.ClientRequestToken, w.Again = "", true
		}
	}
	logging.From(ctx).Warn("stack event lost", "stack", stackName, "status", deployed.Status)
	return false, p.Resume.Resume(ctx, w, status.StackReport{Status: deployed.Status, At: read})
}
