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
		"resumes a task whose operation is over": {given: func(s *sweeptest.Account) { s.OperationBegan = true }, want: []string{resumed}},
		"leaves one alone whose operation runs": {given: func(s *sweeptest.Account) {
			s.Deployed.Status = "UPDATE_IN_PROGRESS"
		}, changing: true},
		"leaves one alone whose operation may still begin": {given: func(*sweeptest.Account) {}, age: startLimit - 1},
		"has one look again whose operation never began": {
			given: func(*sweeptest.Account) {}, age: startLimit, want: []string{`resume "" true UPDATE_COMPLETE`},
		},
		"resumes one that waits for any operation": {given: func(s *sweeptest.Account) {
			s.Waiting.ClientRequestToken = ""
		}, want: []string{`resume "" false UPDATE_COMPLETE`}},
		"resumes one whose stack is deleted": {given: func(s *sweeptest.Account) {
			s.Deployed.Status = "DELETE_COMPLETE"
		}, want: []string{`resume "token" false DELETE_COMPLETE`}},
		"leaves one alone whose stack is about to be created": {given: func(s *sweeptest.Account) {
			s.Deployed.Status, s.OperationBegan = stack.InReview, true
		}, age: startLimit},
		"forgets one whose execution is over": {given: func(s *sweeptest.Account) { s.Runs = false }, want: []string{"forget"}},
		"leaves one alone that was deleted":   {given: func(s *sweeptest.Account) { s.Waiting = store.Waiter{} }},
		"leaves one alone when it cannot be read": {given: func(s *sweeptest.Account) {
			s.Failing["waiter"] = errThrottled
		}, err: errThrottled},
		"leaves one alone when its execution cannot be read": {given: func(s *sweeptest.Account) {
			s.Failing["running"] = errThrottled
		}, err: errThrottled},
		"leaves one alone when its stack cannot be read": {given: func(s *sweeptest.Account) {
			s.Failing["describe"] = errThrottled
		}, err: errThrottled},
		"leaves one alone when the stack's events cannot be read": {given: func(s *sweeptest.Account) {
			s.Failing["began"] = errThrottled
		}, age: startLimit, err: errThrottled},
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
