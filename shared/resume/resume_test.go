package resume_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/resume"
	"github.com/drover-run/drover/shared/stacks"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// scene records what is done, in order, and fails at the step that it is told.
type scene struct {
	did    []string
	answer events.ChangeResult
	fault  string
	status status.Status
	breaks string
}

var errBroken = errors.New("broken")

func (s *scene) do(what string) error {
	if s.breaks == what {
		return errBroken
	}
	s.did = append(s.did, what)
	return nil
}

func (s *scene) Succeed(_ context.Context, _ string, output events.ChangeResult) error {
	s.answer = output
	return s.do("succeed")
}

func (s *scene) Fail(_ context.Context, _, fault string, cause events.ChangeResult) error {
	s.fault, s.answer = fault, cause
	return s.do("fail")
}

func (s *scene) WhyFailed(context.Context, string) (stacks.Failure, error) {
	return stacks.Failure{Resource: "Group", Reason: "no capacity"}, s.do("why")
}

func (s *scene) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	change(&s.status)
	return s.do("tell")
}

func (s *scene) DeleteWaiter(context.Context, store.Waiter) error { return s.do("forget") }

func (s *scene) resume(w store.Waiter, stackStatus string) error {
	r := &resume.Resumer{Steps: s, Stacks: s, State: s, Now: time.Now}
	return r.Resume(context.Background(), w, stackStatus)
}

func TestHowAStepIsResumed(t *testing.T) {
	const cause = "stack drover-demo-pool-a is ROLLBACK_COMPLETE: Group: no capacity\nnext: it is deleted and created anew with the next try"
	tests := map[string]struct {
		waiter store.Waiter
		status string
		did    []string
		answer events.ChangeResult
	}{
		"its own operation succeeded":                         {store.Waiter{ClientRequestToken: "t"}, "UPDATE_COMPLETE", []string{"tell", "succeed", "forget"}, events.ChangeResult{}},
		"its stack is gone, as it should":                     {store.Waiter{ClientRequestToken: "t"}, "DELETE_COMPLETE", []string{"tell", "succeed", "forget"}, events.ChangeResult{}},
		"what was in the way is gone: look once more":         {store.Waiter{ClientRequestToken: "t", Again: true}, "DELETE_COMPLETE", []string{"tell", "succeed", "forget"}, events.ChangeResult{Again: true}},
		"its own operation failed":                            {store.Waiter{ClientRequestToken: "t"}, "ROLLBACK_COMPLETE", []string{"why", "tell", "fail", "forget"}, events.ChangeResult{Error: "StackFailed", Cause: cause}},
		"its own first half failed: there is no second":       {store.Waiter{ClientRequestToken: "t", Again: true}, "ROLLBACK_COMPLETE", []string{"why", "tell", "fail", "forget"}, events.ChangeResult{Again: true, Error: "StackFailed", Cause: cause}},
		"somebody else's operation failed: look all the same": {store.Waiter{Again: true}, "ROLLBACK_COMPLETE", []string{"why", "tell", "succeed", "forget"}, events.ChangeResult{Again: true}},
		"its rollback was continued, as it wanted":            {store.Waiter{ClientRequestToken: "t", Again: true, Wants: "UPDATE_ROLLBACK_COMPLETE"}, "UPDATE_ROLLBACK_COMPLETE", []string{"tell", "succeed", "forget"}, events.ChangeResult{Again: true}},
		"nothing is over yet":                                 {store.Waiter{ClientRequestToken: "t"}, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", nil, events.ChangeResult{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scene{}
			test.waiter.Stack, test.waiter.StackName, test.waiter.Cluster = "pool-a", "drover-demo-pool-a", "demo"
			require.NoError(t, s.resume(test.waiter, test.status))
			require.Equal(t, test.did, s.did)
			if test.did == nil {
				return
			}
			test.answer.Stack, test.answer.Status = "pool-a", test.status
			require.Empty(t, cmp.Diff(test.answer, s.answer))
			require.Equal(t, test.answer.Error, s.fault)
			require.Equal(t, test.status, s.status.Stacks[0].Status)
			if test.answer.Error != "" {
				require.Equal(t, "no capacity", s.status.Stacks[0].Reason)
			}
		})
	}
}

// Whatever breaks on the way, the waiter is still there for the next try: it is forgotten last.
func TestTheWaiterIsForgottenLast(t *testing.T) {
	for _, breaks := range []string{"why", "tell", "fail", "forget"} {
		s := &scene{breaks: breaks}
		require.ErrorIs(t, s.resume(store.Waiter{ClientRequestToken: "t"}, "UPDATE_FAILED"), errBroken)
		require.NotContains(t, s.did, "forget")
	}
}
