package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
)

// Waiter is an execution that waits for the end of a stack operation.
type Waiter struct {
	Cluster string `json:"cluster"`
	// Stack without the cluster's prefix.
	Stack     string `json:"stack"`
	StackName string `json:"stackName"`
	// ClientRequestToken of the operation. CloudFormation returns it in every event. Empty means any operation in flight,
	// started outside drover.
	ClientRequestToken string `json:"clientRequestToken,omitempty"`
	// Again is passed on: the task must check the stack again after this operation.
	Again bool `json:"again,omitempty"`
	// WaitedSeconds is passed on, too: how long the task has waited for drains.
	WaitedSeconds int64 `json:"waitedSeconds,omitempty"`
	// Repeats is how often the step has made its change again, after a failure that may pass. It is nil if the step cannot.
	Repeats *int64 `json:"repeats,omitempty"`
	// Wants is the expected final status of the stack, if it is not that of a successful change.
	Wants string `json:"wants,omitempty"`
	// Fence is the lease number of the task that waits.
	Fence int64 `json:"fence"`
	// TaskToken resumes the task of Execution, while that runs.
	TaskToken string `json:"taskToken"`
	Execution string `json:"execution"`

	etag string
}

// PutWaiter registers a waiter for a stack. A stack has one operation at a time, so a later holder's waiter replaces an
// earlier one's, whose token is void. In the reverse case PutWaiter returns *fault.LeaseLost.
func (s *State) PutWaiter(ctx context.Context, w Waiter) (Waiter, error) {
	const attempts = 4
	body, err := json.Marshal(w)
	if err != nil {
		return w, fmt.Errorf("writing the waiter of %s: %w", w.StackName, err)
	}
	var now Waiter // read only if there is one
	for range attempts {
		w.etag, err = s.Replace(ctx, names.Waiter(w.StackName), body, now.etag)
		if !errors.Is(err, ErrConflict) {
			return w, err
		}
		now, err = s.Waiter(ctx, w.StackName)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return w, err
		}
		if now.Fence > w.Fence {
			return w, &fault.LeaseLost{
				Cause: fmt.Errorf("stack %s already has a waiter of %s (%d), a later holder of the lease than %d", w.StackName, now.Execution,
					now.Fence, w.Fence),
			}
		}
	}
	return w, &fault.Transient{Cause: fmt.Errorf("writing the waiter of %s: conflicted with other writers %d times", w.StackName, attempts)}
}

// Waiter reads the waiter of a stack. Without one it returns ErrNotFound.
func (s *State) Waiter(ctx context.Context, stackName string) (Waiter, error) {
	var w Waiter
	etag, err := s.GetJSON(ctx, names.Waiter(stackName), &w)
	w.etag = etag
	return w, err
}

// DeleteWaiter deletes a waiter if it still is what was read or written. A waiter of a later task stays. A waiter that was never written
// is ignored.
func (s *State) DeleteWaiter(ctx context.Context, w Waiter) error {
	if w.etag == "" {
		return nil
	}
	return s.DeleteIf(ctx, names.Waiter(w.StackName), w.etag)
}
