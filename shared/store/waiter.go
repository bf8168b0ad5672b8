package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
)

// Waiter is an execution that waits for a stack to come to rest.
type Waiter struct {
	Cluster string `json:"cluster"`
	// Stack without the cluster's prefix.
	Stack     string `json:"stack"`
	StackName string `json:"stackName"`
	// ClientRequestToken of the operation that is waited for: CloudFormation echoes it in every event. Empty means
	// whatever operation is under way: somebody else's.
	ClientRequestToken string `json:"clientRequestToken,omitempty"`
	// Again is passed on: whether the step must look once more when this operation is over.
	Again bool `json:"again,omitempty"`
	// WaitedSeconds is passed on, too: for how long the step has waited for drains.
	WaitedSeconds int64 `json:"waitedSeconds,omitempty"`
	// Wants is the status that the operation is to end in, when that is not one of a change that succeeded.
	Wants string `json:"wants,omitempty"`
	// Fence is the number of the holder whose step waits.
	Fence int64 `json:"fence"`
	// TaskToken resumes the step of Execution: when that is over, nobody waits.
	TaskToken string `json:"taskToken"`
	Execution string `json:"execution"`

	etag string
}

// PutWaiter registers who waits for a stack. A stack has one operation at a time, and a later holder's waiter replaces an
// earlier one's, whose token is void; never the other way round: that is *fault.LeaseLost.
func (s *State) PutWaiter(ctx context.Context, w Waiter) (Waiter, error) {
	const attempts = 4
	body, err := json.Marshal(w)
	if err != nil {
		return w, fmt.Errorf("writing the waiter of %s: %w", w.StackName, err)
	}
	var now Waiter // mostly there is none: it is read only if there is one
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
				Cause: fmt.Errorf("stack %s is waited for by %s (%d), a later holder of the lease than %d", w.StackName, now.Execution,
					now.Fence, w.Fence),
			}
		}
	}
	return w, &fault.Transient{Cause: fmt.Errorf("writing the waiter of %s: lost against other writers %d times", w.StackName, attempts)}
}

// Waiter reads who waits for a stack; nobody is ErrNotFound.
func (s *State) Waiter(ctx context.Context, stackName string) (Waiter, error) {
	var w Waiter
	etag, err := s.GetJSON(ctx, names.Waiter(stackName), &w)
	w.etag = etag
	return w, err
}

// DeleteWaiter forgets a waiter, as it was read or written. If a later step waits for the stack by now, that one stays. One
// that was never written needs no forgetting.
func (s *State) DeleteWaiter(ctx context.Context, w Waiter) error {
	if w.etag == "" {
		return nil
	}
	return s.DeleteIf(ctx, names.Waiter(w.StackName), w.etag)
}
