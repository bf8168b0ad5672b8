package waiter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/waiter"
)

// scene records what is done, in order, and fails at the step that it is told.
type scene struct {
	did    []string
	answer events.ChangeResult
	fault  string
	status status.Status
	breaks string
	// reason of CloudFormation's, and Auto Scaling's why.
	reason, refused string
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

func (s *scene) WhyFailed(context.Context, string) (stack.Failure, error) {
	return stack.Failure{Resource: "Group", Reason: s.reason, Began: began, Turned: began.Add(time.Hour)}, s.do("why")
}

func (s *scene) Refused(_ context.Context, group string, since, until time.Time) (string, error) {
	if group != "drover-demo-pool-a" || !since.Equal(began) || !until.Equal(began.Add(time.Hour)) {
		return "of another group, or at another time", nil
	}
	return s.refused, s.do("refused")
}

var began = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func (s *scene) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	change(&s.status)
	return s.do("tell")
}

func (s *scene) DeleteWaiter(context.Context, store.Waiter) error { return s.do("forget") }

func (s *scene) resume(w store.Waiter, stackStatus string) error {
	r := &waiter.Resumer{Steps: s, Stacks: s, Groups: s, State: s, Now: time.Now}
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
		"its own operation succeeded": {
			store.Waiter{ClientRequestToken: "t"}, "UPDATE_COMPLETE", []string{"tell", "succeed", "forget"}, events.ChangeResult{},
		},
		"its stack is gone, as it should": {
			store.Waiter{ClientRequestToken: "t"}, "DELETE_COMPLETE", []string{"tell", "succeed", "forget"}, events.ChangeResult{},
		},
		"what was in the way is gone: look once more": {
			store.Waiter{
				ClientRequestToken: "t", Again: true,
			}, "DELETE_COMPLETE", []string{"tell", "succeed", "forget"}, events.ChangeResult{Again: true},
		},
		"its own operation failed": {
			store.Waiter{
				ClientRequestToken: "t",
			}, "ROLLBACK_COMPLETE", []string{"why", "refused", "tell", "fail", "forget"}, events.ChangeResult{Error: "StackFailed", Cause: cause},
		},
		"its own first half failed: there is no second": {
			store.Waiter{ClientRequestToken: "t", Again: true}, "ROLLBACK_COMPLETE", []string{"why", "refused", "tell", "fail", "forget"},
			events.ChangeResult{Again: true, Error: "StackFailed", Cause: cause},
		},
		"somebody else's operation failed: look all the same": {
			store.Waiter{Again: true}, "ROLLBACK_COMPLETE", []string{"why", "tell", "succeed", "forget"}, events.ChangeResult{Again: true},
		},
		"its rollback was continued, as it wanted": {
			store.Waiter{
				ClientRequestToken: "t", Again: true, Wants: "UPDATE_ROLLBACK_COMPLETE",
			}, "UPDATE_ROLLBACK_COMPLETE", []string{"tell", "succeed", "forget"}, events.ChangeResult{Again: true},
		},
		"nothing is over yet": {store.Waiter{ClientRequestToken: "t"}, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", nil, events.ChangeResult{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scene{reason: "no capacity", status: status.Status{Stacks: []status.Stack{{Name: "pool-a"}}}}
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

// A second update that ends like the first: whoever reads the status sees that it has ended. Told late, when the
// cluster is Ready, it is no news.
func TestSinceWhenAStackIsWhatItIs(t *testing.T) {
	for phase, moves := range map[status.Phase]bool{status.Converging: true, status.Upgrading: true, status.Ready: false} {
		s := &scene{status: status.Status{Phase: phase, Stacks: []status.Stack{{Name: "pool-a", Status: "UPDATE_COMPLETE", Since: began}}}}
		require.NoError(t, s.resume(store.Waiter{Cluster: "demo", Stack: "pool-a", ClientRequestToken: "t"}, "UPDATE_COMPLETE"))
		require.Equal(t, moves, s.status.Stacks[0].Since.After(began), phase)
	}
}

// A step that is to look again later waits for no stack: it is answered, and nothing is told or forgotten.
func TestAStepThatLooksAgainLater(t *testing.T) {
	s := &scene{}
	r := &waiter.Resumer{Steps: s, Stacks: s, Groups: s, State: s, Now: time.Now}
	require.NoError(t, r.Later(t.Context(), store.Waiter{Stack: "pool-a", WaitedSeconds: 30}, "UPDATE_COMPLETE", 12))
	require.Equal(t, []string{"succeed"}, s.did)
	require.Equal(t, events.ChangeResult{
		Stack: "pool-a", Status: "UPDATE_COMPLETE", Again: true, WaitSeconds: 12, WaitedSeconds: 42,
	}, s.answer)
	// What it waits for then does not begin the count anew.
	require.NoError(t, s.resume(store.Waiter{Stack: "pool-a", Again: true, WaitedSeconds: 42}, "UPDATE_COMPLETE"))
	require.Equal(t, int64(42), s.answer.WaitedSeconds)
}

// Whatever breaks on the way, the waiter is still there for the next try: it is forgotten last.
func TestTheWaiterIsForgottenLast(t *testing.T) {
	for _, breaks := range []string{"why", "refused", "tell", "fail", "forget"} {
		s := &scene{breaks: breaks}
		w := store.Waiter{Cluster: "demo", Stack: "pool-a", ClientRequestToken: "t"}
		require.ErrorIs(t, s.resume(w, "UPDATE_FAILED"), errBroken)
		require.NotContains(t, s.did, "forget")
	}
}

// That a stack is gone is told while the status has it, and not once more when it has been left out.
func TestAStackThatIsGoneIsToldOnce(t *testing.T) {
	for _, gone := range []string{"DELETE_COMPLETE", ""} { // as its event says, and as a look at it says
		s := &scene{status: status.Status{Stacks: []status.Stack{{Name: "pool-a", Status: "DELETE_IN_PROGRESS"}}}}
		w := store.Waiter{Cluster: "demo", Stack: "pool-a", ClientRequestToken: "t"}
		require.NoError(t, s.resume(w, gone))
		require.Equal(t, gone, s.status.Stacks[0].Status)
		s.status.Stacks = nil
		require.NoError(t, s.resume(w, gone))
		require.Empty(t, s.status.Stacks)
	}
}

// The control plane is at another version when its own change was made, and not when somebody else's was, or none.
func TestTheVersionIsToldWhenItIsThere(t *testing.T) {
	for name, test := range map[string]struct {
		waiter store.Waiter
		status string
		want   string
	}{
		"it was made":                   {store.Waiter{ClientRequestToken: "t"}, "UPDATE_COMPLETE", "1.36"},
		"it was there already":          {store.Waiter{}, "UPDATE_COMPLETE", "1.36"},
		"it failed, and was taken back": {store.Waiter{ClientRequestToken: "t"}, "UPDATE_ROLLBACK_COMPLETE", "1.35"},
		"a rollback was continued": {
			store.Waiter{ClientRequestToken: "t", Again: true, Wants: "UPDATE_ROLLBACK_COMPLETE"}, "UPDATE_ROLLBACK_COMPLETE", "1.35",
		},
		"what somebody else did was made":   {store.Waiter{Again: true}, "UPDATE_COMPLETE", "1.35"},
		"another stack's change was made":   {store.Waiter{Stack: "pool-a", ClientRequestToken: "t"}, "UPDATE_COMPLETE", "1.35"},
		"it is not over, but for leftovers": {store.Waiter{ClientRequestToken: "t"}, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "1.35"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{
				status: status.Status{
					KubernetesVersion: "1.35", Plan: []status.Change{{Stack: "control-plane", KubernetesVersion: "1.36"}, {Stack: "pool-a"}},
				},
			}
			if test.waiter.Stack == "" {
				test.waiter.Stack = "control-plane"
			}
			require.NoError(t, s.resume(test.waiter, test.status))
			require.Equal(t, test.want, s.status.KubernetesVersion)
		})
	}
}

// CloudFormation tells of signals that did not come; why there were no instances to send them is told besides, once.
func TestWhyAPoolGotNoInstances(t *testing.T) {
	const full = "There is no Spot capacity available that matches your request."
	tests := map[string]struct {
		stack, reason, refused string
		told, cause            string
	}{
		"told by Auto Scaling alone": {"pool-a", "Received 0 SUCCESS signal(s) out of 1", full,
			"Received 0 SUCCESS signal(s) out of 1; Auto Scaling got no instance: There is no Spot capacity",
			"signal(s) out of 1\nAuto Scaling got no instance: There is no Spot capacity"},
		"told by both": {"pool-a", "Group did not stabilize. Failed Scaling Activity: " + full, full,
			"Group did not stabilize. Failed Scaling Activity: " + full, full + "\nEC2 has none of them there now"},
		"told by neither":  {"pool-a", "no such image", "", "no such image", "Group: no such image\nnext:"},
		"not about a pool": {"network", "no such range", full, "no such range", "Group: no such range\nnext:"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scene{reason: test.reason, refused: test.refused}
			w := store.Waiter{Cluster: "demo", Stack: test.stack, StackName: "drover-demo-" + test.stack, ClientRequestToken: "t"}
			require.NoError(t, s.resume(w, "UPDATE_ROLLBACK_COMPLETE"))
			require.Contains(t, s.status.Stacks[0].Reason, test.told)
			require.Contains(t, s.answer.Cause, test.cause)
			require.LessOrEqual(t, strings.Count(s.answer.Cause, full[:20]), 1)
		})
	}
}
