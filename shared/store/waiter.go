package store

import (
	"context"
	"encoding/json"
	"fmt"

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
	// TaskToken resumes the step.
	TaskToken string `json:"taskToken"`
}

// PutWaiter registers who waits for a stack; a stack has one operation at a time, and a later step's waiter replaces an
// earlier one's, whose token is void.
func (s *State) PutWaiter(ctx context.Context, w Waiter) error {
	body, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("writing the waiter of %s: %w", w.StackName, err)
	}
	return s.Put(ctx, names.Waiter(w.StackName), body)
}

// Waiter reads who waits for a stack; nobody is ErrNotFound.
func (s *State) Waiter(ctx context.Context, stackName string) (Waiter, error) {
	var w Waiter
	_, err := s.GetJSON(ctx, names.Waiter(stackName), &w)
	return w, err
}

// DeleteWaiter forgets who waited for a stack.
func (s *State) DeleteWaiter(ctx context.Context, stackName string) error {
	return s.Delete(ctx, names.Waiter(stackName))
}
