package passes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/store"
)

func TestWaiters(t *testing.T) {
	const resumed = `resume "token" false UPDATE_COMPLETE`
	for name, test := range map[string]struct {
		given    func(*sweeptest.Account)
		age      time.Duration
		changing bool
		err      error
		want     []string
	}{
		"resumes a task whose operation is over": {func(s *sweeptest.Account) { s.OperationBegan = true }, 0, false, nil, []string{resumed}},
		"leaves one alone whose operation runs": {func(s *sweeptest.Account) {
			s.Deployed.Status = "UPDATE_IN_PROGRESS"
		}, 0, true, nil, nil},
		"leaves one alone whose operation may still begin": {func(*sweeptest.Account) {}, startLimit - 1, false, nil, nil},
		"has one look again whose operation never began": {
			func(*sweeptest.Account) {}, startLimit, false, nil, []string{`resume "" true UPDATE_COMPLETE`},
		},
		"resumes one that waits for any operation": {func(s *sweeptest.Account) {
			s.Waiting.ClientRequestToken = ""
		}, 0, false, nil, []string{`resume "" false UPDATE_COMPLETE`}},
		"resumes one whose stack is deleted": {func(s *sweeptest.Account) {
			s.Deployed.Status = "DELETE_COMPLETE"
		}, 0, false, nil, []string{`resume "token" false DELETE_COMPLETE`}},
		"leaves one alone whose stack is about to be created": {func(s *sweeptest.Account) {
			s.Deployed.Status, s.OperationBegan = stack.InReview, true
		}, startLimit, false, nil, nil},
		"forgets one whose execution is over": {func(s *sweeptest.Account) { s.Runs = false }, 0, false, nil, []string{"forget"}},
		"leaves one alone that was deleted":   {func(s *sweeptest.Account) { s.Waiting = store.Waiter{} }, 0, false, nil, nil},
		"leaves one alone when it cannot be read": {func(s *sweeptest.Account) {
			s.Failing["waiter"] = errThrottled
		}, 0, false, errThrottled, nil},
		"leaves one alone when its execution cannot be read": {func(s *sweeptest.Account) {
			s.Failing["running"] = errThrottled
		}, 0, false, errThrottled, nil},
		"leaves one alone when its stack cannot be read": {func(s *sweeptest.Account) {
			s.Failing["describe"] = errThrottled
		}, 0, false, errThrottled, nil},
		"leaves one alone when the stack's events cannot be read": {func(s *sweeptest.Account) {
			s.Failing["began"] = errThrottled
		}, startLimit, false, errThrottled, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Runs: true, Deployed: stack.Deployed{Status: "UPDATE_COMPLETE"}, Failing: map[string]error{}}
			s.Waiting = store.Waiter{
				Cluster: demo, Stack: names.Addons, StackName: names.Stack(demo, names.Addons), ClientRequestToken: "token", Execution: "x",
			}
			test.given(s)
			changing, err := depsOf(s).waiters().resume(t.Context(), s.Waiting.StackName, noon.Add(-test.age))
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.changing, changing)
			require.Equal(t, test.want, s.Calls)
		})
	}
}

func TestSweepGoesOnAfterAFailure(t *testing.T) {
	t.Run("of a waiter", func(t *testing.T) {
		s := &sweeptest.Account{
			Runs: true, OperationBegan: true, Deployed: stack.Deployed{Status: "UPDATE_COMPLETE"}, Failing: map[string]error{"resume": errThrottled},
		}
		h := depsOf(s)
		h.State = sweeptest.ListedState{
			State: sweeptest.State{
				Account: s,
			}, Listed: sweeptest.Listed{names.Waiters: {{Key: names.Waiters + "a.json"}, {Key: names.Waiters + "b.json"}}},
		}
		_, err := h.waiters().Run(t.Context())
		require.ErrorIs(t, err, errThrottled)
		require.Len(t, s.Calls, 2)
	})
}
