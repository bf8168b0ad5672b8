package waiter_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/waiter"
)

// scene records the calls in order, and fails at one of them.
type scene struct {
	calls   []string
	answer  events.ChangeResult
	fault   string
	status  status.Status
	failing string
	// reason is why CloudFormation failed. refused is why Auto Scaling launched no instance.
	reason, refused string
	// unchanged reports that Auto Scaling replaced no node. resource is the resource that failed, if that is not the group.
	unchanged bool
	resource  string
}

var errBroken = errors.New("broken")

func (s *scene) do(what string) error {
	if s.failing == what {
		return errBroken
	}
	s.calls = append(s.calls, what)
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

// failedResource is the resource that failed.
func (s *scene) failedResource() string {
	if s.resource != "" {
		return s.resource
	}
	return names.GroupResource
}

func (s *scene) WhyFailed(context.Context, string) (stack.Failure, error) {
	return stack.Failure{Resource: s.failedResource(), Reason: s.reason, Began: began, RollbackBegan: began.Add(time.Hour)}, s.do("why")
}

func (s *scene) LaunchFailureReason(_ context.Context, group string, since, until time.Time) (string, error) {
	if group != "drover-demo-pool-a" || !since.Equal(began) || !until.Equal(began.Add(time.Hour)) {
		return "of another group, or at another time", nil
	}
	return s.refused, s.do("refused")
}

func (s *scene) Unchanged(_ context.Context, group string, since time.Time) (bool, error) {
	return s.unchanged && group == "drover-demo-pool-a" && since.Equal(began), s.do("unchanged")
}

var began = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func (s *scene) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	change(&s.status)
	return s.do("record")
}

func (s *scene) DeleteWaiter(context.Context, store.Waiter) error { return s.do("delete") }

func (s *scene) resume(w store.Waiter, stackStatus string) error {
	r := &waiter.Resumer{Tasks: s, Stacks: s, Groups: s, State: s}
	return r.Resume(context.Background(), w, status.StackReport{Status: stackStatus, At: began.Add(time.Minute)})
}

func TestResume(t *testing.T) {
	const cause = "stack drover-demo-pool-a is ROLLBACK_COMPLETE: Group: no capacity\nnext: drover deletes and recreates the " +
		"stack on the next retry"
	tests := map[string]struct {
		waiter store.Waiter
		status string
		calls  []string
		answer events.ChangeResult
	}{
		"its own operation succeeded": {
			store.Waiter{ClientRequestToken: "t"}, "UPDATE_COMPLETE", []string{"record", "succeed", "delete"}, events.ChangeResult{},
		},
		"its stack is deleted, as requested": {
			store.Waiter{ClientRequestToken: "t"}, "DELETE_COMPLETE", []string{"record", "succeed", "delete"}, events.ChangeResult{},
		},
		"what blocked it is deleted: check again": {
			store.Waiter{
				ClientRequestToken: "t", Again: true,
			}, "DELETE_COMPLETE", []string{"record", "succeed", "delete"}, events.ChangeResult{Again: true},
		},
		"its own operation failed": {
			store.Waiter{
				ClientRequestToken: "t",
			}, "ROLLBACK_COMPLETE", []string{"why", "refused", "record", "fail", "delete"}, events.ChangeResult{Error: "StackFailed", Cause: cause},
		},
		"the first half of its operation failed: no second half": {
			store.Waiter{ClientRequestToken: "t", Again: true}, "ROLLBACK_COMPLETE", []string{"why", "refused", "record", "fail", "delete"},
			events.ChangeResult{Again: true, Error: "StackFailed", Cause: cause},
		},
		"a foreign operation failed: check anyway": {
			store.Waiter{Again: true}, "ROLLBACK_COMPLETE", []string{"why", "record", "succeed", "delete"}, events.ChangeResult{Again: true},
		},
		"its rollback was continued, as requested": {
			store.Waiter{
				ClientRequestToken: "t", Again: true, Wants: "UPDATE_ROLLBACK_COMPLETE",
			}, "UPDATE_ROLLBACK_COMPLETE", []string{"record", "succeed", "delete"}, events.ChangeResult{Again: true},
		},
		"the operation is in flight": {store.Waiter{ClientRequestToken: "t"}, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", nil, events.ChangeResult{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scene{reason: "no capacity", status: status.Status{Stacks: []status.Stack{{Name: "pool-a"}}}}
			test.waiter.Stack, test.waiter.StackName, test.waiter.Cluster = "pool-a", "drover-demo-pool-a", "demo"
			require.NoError(t, s.resume(test.waiter, test.status))
			require.Equal(t, test.calls, s.calls)
			if test.calls == nil {
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

// Events arrive late: the stack may already be changed by another operation. The task ends, and the status keeps the newer state.
func TestResumeKeepsANewerState(t *testing.T) {
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	deleting := status.Stack{Name: "pool-a", Status: "DELETE_IN_PROGRESS", Since: at(20), ReportedAt: at(20), External: true}
	for name, report := range map[string]status.StackReport{
		"a late event does not replace it":              {Status: "CREATE_COMPLETE", At: at(6), Event: true},
		"a slow read does not replace it":               {Status: "CREATE_COMPLETE", At: at(19.9)},
		"a read of the same second does not replace it": {Status: "CREATE_COMPLETE", At: at(20.9)},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{status: status.Status{Phase: status.Converging, Stacks: []status.Stack{deleting}}}
			r := &waiter.Resumer{Tasks: s, Stacks: s, Groups: s, State: s}
			require.NoError(t, r.Resume(t.Context(), store.Waiter{Stack: "pool-a", ClientRequestToken: "t"}, report))
			require.Equal(t, []status.Stack{deleting}, s.status.Stacks)
			require.Equal(t, []string{"record", "succeed", "delete"}, s.calls)
		})
	}
	t.Run("a late event does not replace the state after it", func(t *testing.T) {
		s := &scene{status: status.Status{Phase: status.Converging, Stacks: []status.Stack{{Name: "pool-a", Status: "CREATE_IN_PROGRESS"}}}}
		r := &waiter.Resumer{Tasks: s, Stacks: s, Groups: s, State: s}
		report := status.StackReport{Status: "CREATE_COMPLETE", At: at(6), Event: true}
		require.NoError(t, r.Resume(t.Context(), store.Waiter{Stack: "pool-a", ClientRequestToken: "t"}, report))
		require.Equal(t, []status.Stack{{Name: "pool-a", Status: "CREATE_COMPLETE", Since: at(6), ReportedAt: at(6)}}, s.status.Stacks)
		later := status.StackEvent{Stack: "pool-a", Status: "DELETE_IN_PROGRESS", At: at(20), External: true}
		require.True(t, s.status.RecordStack(later), "its event arrived after the late one")
	})
}

// A second update with the same result as the first: the status shows that it has ended. A late report about a Ready cluster changes
// nothing.
func TestResumeRecordsWhenAStackEnded(t *testing.T) {
	for phase, records := range map[status.Phase]bool{status.Converging: true, status.Upgrading: true, status.Ready: false} {
		s := &scene{status: status.Status{Phase: phase, Stacks: []status.Stack{{Name: "pool-a", Status: "UPDATE_COMPLETE", Since: began}}}}
		require.NoError(t, s.resume(store.Waiter{Cluster: "demo", Stack: "pool-a", ClientRequestToken: "t"}, "UPDATE_COMPLETE"))
		require.Equal(t, records, s.status.Stacks[0].Since.After(began), phase)
	}
}

// A task that checks again later waits for no stack. It is resumed, and the call records and deletes nothing.
func TestLater(t *testing.T) {
	s := &scene{}
	r := &waiter.Resumer{Tasks: s, Stacks: s, Groups: s, State: s}
	require.NoError(t, r.ResumeAfter(t.Context(), store.Waiter{Stack: "pool-a", WaitedSeconds: 30}, "UPDATE_COMPLETE", 12))
	require.Equal(t, []string{"succeed"}, s.calls)
	require.Equal(t, events.ChangeResult{
		Stack: "pool-a", Status: "UPDATE_COMPLETE", Again: true, WaitSeconds: 12, WaitedSeconds: 42,
	}, s.answer)
	// The total wait continues afterwards.
	require.NoError(t, s.resume(store.Waiter{Stack: "pool-a", Again: true, WaitedSeconds: 42}, "UPDATE_COMPLETE"))
	require.Equal(t, int64(42), s.answer.WaitedSeconds)
}

// After any error the waiter still exists for the next attempt.
func TestResumeDeletesTheWaiterLast(t *testing.T) {
	for _, failing := range []string{"why", "refused", "record", "fail", "delete"} {
		s := &scene{failing: failing}
		w := store.Waiter{Cluster: "demo", Stack: "pool-a", ClientRequestToken: "t"}
		require.ErrorIs(t, s.resume(w, "UPDATE_FAILED"), errBroken)
		require.NotContains(t, s.calls, "delete")
	}
}

// The deletion of a stack is recorded while the status has the stack, and not again afterwards.
func TestResumeRecordsADeletionOnce(t *testing.T) {
	for _, deleted := range []string{"DELETE_COMPLETE", ""} { // from its event, and from a description
		s := &scene{status: status.Status{Stacks: []status.Stack{{Name: "pool-a", Status: "DELETE_IN_PROGRESS"}}}}
		w := store.Waiter{Cluster: "demo", Stack: "pool-a", ClientRequestToken: "t"}
		require.NoError(t, s.resume(w, deleted))
		require.Equal(t, deleted, s.status.Stacks[0].Status)
		s.status.Stacks = nil
		require.NoError(t, s.resume(w, deleted))
		require.Empty(t, s.status.Stacks)
	}
}

// The version of the control plane changes after its own successful change only.
func TestResumeRecordsTheVersion(t *testing.T) {
	for name, test := range map[string]struct {
		waiter store.Waiter
		status string
		want   string
	}{
		"changed":                {store.Waiter{ClientRequestToken: "t"}, "UPDATE_COMPLETE", "1.36"},
		"already deployed":       {store.Waiter{}, "UPDATE_COMPLETE", "1.36"},
		"failed and rolled back": {store.Waiter{ClientRequestToken: "t"}, "UPDATE_ROLLBACK_COMPLETE", "1.35"},
		"a rollback was continued": {
			store.Waiter{ClientRequestToken: "t", Again: true, Wants: "UPDATE_ROLLBACK_COMPLETE"}, "UPDATE_ROLLBACK_COMPLETE", "1.35",
		},
		"a foreign operation succeeded": {store.Waiter{Again: true}, "UPDATE_COMPLETE", "1.35"},
		"another stack changed":         {store.Waiter{Stack: "pool-a", ClientRequestToken: "t"}, "UPDATE_COMPLETE", "1.35"},
		"the cleanup is in flight":      {store.Waiter{ClientRequestToken: "t"}, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "1.35"},
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

// CloudFormation reports missing signals. The status also shows, once, why no instances could send them.
func TestResumeRecordsLaunchFailures(t *testing.T) {
	const full = "There is no Spot capacity available that matches your request."
	tests := map[string]struct {
		stack, reason, refused string
		recorded, cause        string
	}{
		"from Auto Scaling alone": {stack: "pool-a", reason: "Received 0 SUCCESS signal(s) out of 1", refused: full,
			recorded: "Received 0 SUCCESS signal(s) out of 1; Auto Scaling could not launch an instance: There is no Spot capacity",
			cause:    "signal(s) out of 1\nAuto Scaling could not launch an instance: There is no Spot capacity"},
		"from both": {stack: "pool-a", reason: "Group did not stabilize. Failed Scaling Activity: " + full, refused: full,
			recorded: "Group did not stabilize. Failed Scaling Activity: " + full, cause: full + "\nEC2 has no capacity for them there now"},
		"from neither": {stack: "pool-a", reason: "no such image", recorded: "no such image", cause: "Group: no such image\nnext:"},
		"not about a pool": {
			stack: "network", reason: "no such range", refused: full, recorded: "no such range", cause: "Group: no such range\nnext:",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scene{reason: test.reason, refused: test.refused}
			w := store.Waiter{Cluster: "demo", Stack: test.stack, StackName: "drover-demo-" + test.stack, ClientRequestToken: "t"}
			require.NoError(t, s.resume(w, "UPDATE_ROLLBACK_COMPLETE"))
			require.Contains(t, s.status.Stacks[0].Reason, test.recorded)
			require.Contains(t, s.answer.Cause, test.cause)
			require.LessOrEqual(t, strings.Count(s.answer.Cause, full[:20]), 1)
		})
	}
}

// A roll whose nodes sent no verdict is repeated once.
func TestResumeRepeatsARoll(t *testing.T) {
	const missing = `Resource handler returned message: "Received 1 SUCCESS signal(s) out of 2." (HandlerErrorCode: GeneralServiceException)`
	const failed = "Received 1 FAILURE signal(s) out of 2"
	never, once := int64(0), int64(1)
	notJoined := status.Node{Instance: "i-1", Pool: "a", State: status.NodeNotJoined}
	for name, test := range map[string]struct {
		waiter  store.Waiter
		reason  string
		status  string
		nodes   []status.Node
		refused string
		want    bool
	}{
		"repeats a roll without signals": {
			waiter: store.Waiter{Repeats: &never}, reason: missing, status: "UPDATE_ROLLBACK_COMPLETE", want: true,
		},
		"not after a failed rollback":       {waiter: store.Waiter{Repeats: &never}, reason: missing, status: "UPDATE_ROLLBACK_FAILED"},
		"not twice":                         {waiter: store.Waiter{Repeats: &once}, reason: missing, status: "UPDATE_ROLLBACK_COMPLETE"},
		"not for steps of earlier versions": {waiter: store.Waiter{}, reason: missing, status: "UPDATE_ROLLBACK_COMPLETE"},
		"not after a creation":              {waiter: store.Waiter{Repeats: &never}, reason: missing, status: "ROLLBACK_COMPLETE"},
		"not for another stack": {
			waiter: store.Waiter{Repeats: &never, Stack: "network"}, reason: missing, status: "UPDATE_ROLLBACK_COMPLETE",
		},
		"not after a failure signal": {waiter: store.Waiter{Repeats: &never}, reason: failed, status: "UPDATE_ROLLBACK_COMPLETE"},
		"not when a node did not join": {
			waiter: store.Waiter{Repeats: &never}, reason: missing, status: "UPDATE_ROLLBACK_COMPLETE", nodes: []status.Node{notJoined},
		},
		"not when no instance could be launched": {
			waiter: store.Waiter{Repeats: &never}, reason: missing, status: "UPDATE_ROLLBACK_COMPLETE", refused: "no capacity",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{reason: test.reason, refused: test.refused, status: status.Status{Nodes: test.nodes}}
			if test.waiter.Stack == "" {
				test.waiter.Stack = "pool-a"
			}
			test.waiter.Cluster, test.waiter.StackName, test.waiter.ClientRequestToken = "demo", "drover-demo-"+test.waiter.Stack, "t"
			require.NoError(t, s.resume(test.waiter, test.status))
			require.Equal(t, test.reason, strings.Split(s.status.Stacks[0].Reason, ";")[0], "the status has the reason")
			if !test.want {
				require.Equal(t, "StackFailed", s.fault)
				require.False(t, s.answer.Again)
				return
			}
			require.Equal(t, events.ChangeResult{Stack: "pool-a", Status: test.status, Again: true, WaitSeconds: 30, Repeats: 1}, s.answer)
		})
	}
}

// While the cluster does not answer, repeating the roll would only replace more nodes that cannot be checked. The execution plans again,
// and its next step waits for the cluster.
func TestResumePlansAgainWithoutTheCluster(t *testing.T) {
	const missing = `Resource handler returned message: "Received 1 SUCCESS signal(s) out of 2." (HandlerErrorCode: GeneralServiceException)`
	once := int64(1)
	unreachable := status.Node{Instance: "i-1", Pool: "a", State: status.NodeUnreachable}
	notJoined := status.Node{Instance: "i-2", Pool: "a", State: status.NodeNotJoined}
	other := status.Node{Instance: "i-3", Pool: "b", State: status.NodeUnreachable}
	for name, test := range map[string]struct {
		reason string
		nodes  []status.Node
		fault  string
	}{
		"with a node that cannot be checked":           {missing, []status.Node{unreachable, other}, "Superseded"},
		"not with a node that did not join":            {missing, []status.Node{unreachable, notJoined}, "StackFailed"},
		"not with a node of another pool":              {missing, []status.Node{other}, "StackFailed"},
		"not after a failure that an instance reports": {"Received 1 FAILURE signal(s) out of 2", []status.Node{unreachable}, "StackFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{reason: test.reason, status: status.Status{Nodes: test.nodes}}
			w := store.Waiter{Cluster: "demo", Stack: "pool-a", StackName: "drover-demo-pool-a", ClientRequestToken: "t", Repeats: &once}
			require.NoError(t, s.resume(w, "UPDATE_ROLLBACK_COMPLETE"))
			require.Equal(t, test.fault, s.fault)
			require.False(t, s.answer.Again)
			s.calls = slices.DeleteFunc(s.calls, func(call string) bool { return call == "unchanged" }) // a read
			require.Equal(t, []string{"why", "refused", "record", "fail", "delete"}, s.calls)
		})
	}
}

func TestSupersede(t *testing.T) {
	for _, failing := range []string{"", "fail", "delete"} {
		s := &scene{failing: failing}
		r := &waiter.Resumer{Tasks: s, State: s}
		err := r.Supersede(t.Context(), store.Waiter{Stack: "pool-a"}, "the relay was deleted")
		require.Equal(t, failing != "", errors.Is(err, errBroken))
		require.Equal(t, "Superseded", s.fault)
		require.Equal(t, events.ChangeResult{Stack: "pool-a", Error: "Superseded", Cause: "the relay was deleted"}, s.answer)
		if failing == "fail" {
			require.Empty(t, s.calls, "the waiter stays for the next attempt")
		}
	}
}

func TestResumeRepeatsAChangeWithoutReplacedNodes(t *testing.T) {
	internal := "struck (HandlerErrorCode: ServiceInternalError)"
	invalid := "the image does not exist (HandlerErrorCode: InvalidRequest)"
	repeated := func(n int64) store.Waiter { return store.Waiter{Repeats: &n} }
	notJoined := []status.Node{{Instance: "i-1", Pool: "a", State: status.NodeNotJoined}}
	for name, test := range map[string]struct {
		waiter    store.Waiter
		reason    string
		unchanged bool
		nodes     []status.Node
		failing   string
		resource  string
		want      time.Duration
	}{
		"repeats after a minute":           {waiter: repeated(0), reason: internal, unchanged: true, want: time.Minute},
		"repeats again after two minutes":  {waiter: repeated(1), reason: internal, unchanged: true, want: 2 * time.Minute},
		"repeats again after five minutes": {waiter: repeated(2), reason: internal, unchanged: true, want: 5 * time.Minute},
		"not after a third repeat":         {waiter: repeated(3), reason: internal, unchanged: true},
		"repeats once if nodes were replaced for another resource": {
			waiter: repeated(0), reason: internal, resource: "LaunchTemplate", want: time.Minute,
		},
		"not twice if nodes were replaced for another resource": {waiter: repeated(1), reason: internal, resource: "LaunchTemplate"},
		"not after nodes were replaced":                         {waiter: repeated(0), reason: internal},
		"not if the change is invalid":                          {waiter: repeated(0), reason: invalid, unchanged: true},
		"not for steps of earlier versions":                     {reason: internal, unchanged: true},
		"not while instances fail to join":                      {waiter: repeated(0), reason: internal, unchanged: true, nodes: notJoined},
		"fails when Auto Scaling cannot be asked":               {waiter: repeated(0), reason: internal, unchanged: true, failing: "unchanged"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{
				reason: test.reason, unchanged: test.unchanged, failing: test.failing, resource: test.resource,
				status: status.Status{Nodes: test.nodes},
			}
			w := test.waiter
			w.Cluster, w.Stack, w.StackName, w.ClientRequestToken = "demo", "pool-a", "drover-demo-pool-a", "t"
			err := s.resume(w, stack.UpdateRollbackComplete)
			if test.failing != "" {
				require.ErrorIs(t, err, errBroken)
				return
			}
			require.NoError(t, err)
			if test.want == 0 {
				require.Equal(t, "StackFailed", s.fault)
				return
			}
			require.Equal(t, events.ChangeResult{
				Stack: "pool-a", Status: stack.UpdateRollbackComplete, Again: true, WaitSeconds: int64(test.want.Seconds()), Repeats: *w.Repeats + 1,
			}, s.answer)
		})
	}
}
