package notification

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestDiff(t *testing.T) {
	accepted := func(value, reason, message string) func(*status.Status) {
		return func(s *status.Status) {
			s.Set(status.Condition{Type: status.SpecAccepted, Status: value, Reason: reason, Message: message}, now)
		}
	}
	is := func(phase status.Phase, message string) func(*status.Status) {
		return func(s *status.Status) { s.Phase, s.Message = phase, message }
	}
	node := func(instance string, state status.NodeState, message string) func(*status.Status) {
		return func(s *status.Status) {
			s.SetNode(status.Node{Name: "ip-10-0-0-1", Instance: instance, Pool: "workers", State: state, Message: message}, now)
		}
	}
	during := func(execution string, do func(*status.Status)) func(*status.Status) {
		return func(s *status.Status) {
			was, by := s.Phase, s.Execution
			s.Phase, s.Execution = status.Converging, execution
			do(s)
			s.Phase, s.Execution = was, by
		}
	}
	sync := func(value, reason, message string) func(*status.Status) {
		return func(s *status.Status) {
			s.Set(status.Condition{Type: status.InSync, Status: value, Reason: reason, Message: message}, now)
		}
	}
	tests := map[string]struct {
		before, after []func(*status.Status)
		want          []string
	}{
		"nothing": {want: nil},
		"a new cluster": {
			after: []func(*status.Status){
				is(status.Pending, "the spec was accepted"),
			}, want: []string{"drover: demo is Pending: the spec was accepted"},
		},
		"a converge begins": {
			[]func(*status.Status){is(status.Pending, "a")}, []func(*status.Status){is(status.Converging, "changing 5 of 5 stacks")},
			[]string{"drover: demo is Converging: changing 5 of 5 stacks"},
		},
		"progress is not sent": {
			[]func(*status.Status){is(status.Converging, "changing 5")}, []func(*status.Status){is(status.Converging, "changing 4")}, nil,
		},
		"a verdict": {
			[]func(*status.Status){
				is(status.Converging, "a"),
			}, []func(*status.Status){is(status.Ready, "")}, []string{"drover: demo is Ready: Ready"},
		},
		"a verdict for another reason": {
			[]func(*status.Status){
				is(status.Failed, "no capacity"),
			}, []func(*status.Status){is(status.Failed, "quota")}, []string{"drover: demo is Failed: quota"},
		},
		"the same verdict": {
			[]func(*status.Status){
				is(status.Failed, "quota"),
			}, []func(*status.Status){is(status.Failed, "quota"), accepted("True", "Valid", "")}, nil,
		},
		"a rejected spec": {
			[]func(*status.Status){is(status.Ready, "")}, []func(*status.Status){is(status.Ready, ""), accepted("False", "SpecInvalid", "line 3")},
			[]string{"drover: the spec of demo is not used: line 3"},
		},
		"a spec rejected again for the same reason": {
			[]func(*status.Status){
				accepted("False", "SpecInvalid", "line 3"),
			}, []func(*status.Status){accepted("False", "SpecInvalid", "line 3")}, nil,
		},
		"a spec rejected again for another reason": {
			[]func(*status.Status){accepted("False", "SpecInvalid", "line 3")}, []func(*status.Status){accepted("False", "SpecInvalid", "line 4")},
			[]string{"drover: the spec of demo is not used: line 4"},
		},
		"a valid spec": {
			[]func(*status.Status){accepted("False", "SpecInvalid", "line 3")}, []func(*status.Status){accepted("True", "Valid", "")}, nil,
		},
		"a drift": {
			nil, []func(*status.Status){
				sync("False", "Drifted", "stack a is missing"),
			}, []string{"drover: demo is not in sync: stack a is missing"},
		},
		"the same drift": {
			[]func(*status.Status){sync("False", "Drifted", "a")}, []func(*status.Status){sync("False", "Drifted", "a")}, nil,
		},
		"more drift": {
			[]func(*status.Status){sync("False", "Drifted", "a")}, []func(*status.Status){sync("False", "Drifted", "a\nb")},
			[]string{"drover: demo is not in sync: a\nb"},
		},
		"a resolved drift": {
			[]func(*status.Status){
				sync("False", "Drifted", "a"),
			}, []func(*status.Status){
				sync("True", "InSync", ""),
			}, []string{"drover: demo is in sync again: the differences that the audit found are resolved"},
		},
		"an audit without drift": {
			[]func(*status.Status){sync("True", "InSync", "")}, []func(*status.Status){sync("True", "InSync", "")}, nil,
		},
		"a deleted status": {[]func(*status.Status){sync("False", "Drifted", "a")}, nil, nil},
		"an invalid first spec": {
			nil, []func(*status.Status){
				is(status.Stopped, "there is no spec"), accepted("False", "SpecAbsent", ""),
			}, []string{"drover: the spec of demo is not used: SpecAbsent", "drover: demo is Stopped: there is no spec"},
		},
		"a drain is not sent": {nil, []func(*status.Status){node("i-1", status.NodeDraining, "3 pods left")}, nil},
		"a blocked drain": {
			[]func(*status.Status){node("i-1", status.NodeDraining, "")}, []func(*status.Status){node("i-1", status.NodeBlocked, "a budget")},
			[]string{"drover: a node of demo is Blocked: ip-10-0-0-1 of pool workers: a budget"},
		},
		"a blocked drain a minute later": {
			[]func(*status.Status){
				node("i-1", status.NodeBlocked, "a budget, 9 min"),
			}, []func(*status.Status){node("i-1", status.NodeBlocked, "a budget, 8 min")}, nil,
		},
		"an instance that did not join": {
			nil, []func(*status.Status){
				node("i-2", status.NodeNotJoined, ""),
			}, []string{"drover: a node of demo is NotJoined: ip-10-0-0-1 of pool workers: NotJoined"},
		},
		"the next instance that did not join": {
			[]func(*status.Status){
				node("i-0123456789abcdef0", status.NodeNotJoined, "i-0123456789abcdef0 is older"),
			}, []func(*status.Status){
				node("i-0123456789abcdef0", status.NodeNotJoined, "i-0123456789abcdef0 is older"), node("i-0123456789abcdef1", status.NodeNotJoined,
					"i-0123456789abcdef1 is older"),
			}, nil,
		},
		"an instance that did not join after the change": {
			[]func(*status.Status){
				during("x", node("i-2", status.NodeNotJoined, "a")),
			}, []func(*status.Status){during("x", node("i-2", status.NodeNotJoined, "a")), node("i-3", status.NodeNotJoined, "a")},
			[]string{"drover: a node of demo is NotJoined: ip-10-0-0-1 of pool workers: a"},
		},
		"the next instance, for another reason": {
			[]func(*status.Status){
				node("i-2", status.NodeNotJoined, "a"),
			}, []func(*status.Status){
				node("i-2", status.NodeNotJoined, "a"), node("i-3", status.NodeNotJoined, "b"),
			}, []string{"drover: a node of demo is NotJoined: ip-10-0-0-1 of pool workers: b"},
		},
		"a node that recovered": {[]func(*status.Status){node("i-1", status.NodeBlocked, "a budget")}, nil, nil},
		"another blocked node": {
			[]func(*status.Status){
				node("i-1", status.NodeBlocked, "b"),
			}, []func(*status.Status){
				node("i-1", status.NodeBlocked, "b"), node("i-2", status.NodeBlocked, "c"),
			}, []string{"drover: a node of demo is Blocked: ip-10-0-0-1 of pool workers: c"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after status.Status
			for _, f := range test.before {
				f(&before)
			}
			for _, f := range test.after {
				f(&after)
			}
			var got []string
			for _, n := range Diff("demo", &before, &after) {
				got = append(got, n.Subject+": "+n.Message)
				require.Equal(t, "demo", n.Attributes["cluster"])
				require.Len(t, n.Attributes, 3, "the cluster, its phase or state, and the urgency")
			}
			require.Equal(t, test.want, got)
		})
	}
}

// Operators on call subscribe to problems. The result of a request is no problem.
func TestUrgencies(t *testing.T) {
	for phase, urgency := range map[status.Phase]string{
		status.Pending: Progress, status.Converging: Progress, status.Upgrading: Progress, status.Deleting: Progress,
		status.Ready: Result, status.Deleted: Result, status.Stopped: Problem, status.Failed: Problem,
	} {
		notices := Diff("demo", &status.Status{Phase: "Before"}, &status.Status{Phase: phase})
		require.Len(t, notices, 1, phase)
		require.Equal(t, urgency, notices[0].Attributes["urgency"], phase)
	}
}

func TestDetails(t *testing.T) {
	before, after := status.Status{Phase: status.Converging}, status.Status{
		Phase: status.Failed, Message: "no capacity", PlannedVersion: "v1", ObservedVersion: "v2", Release: "1.36-1", KubernetesVersion: "1.36",
		Execution: "arn",
	}
	after.Set(status.Condition{Type: status.Converged, Status: "False", Reason: "StackFailed"}, now)
	after.Set(status.Condition{Type: status.SpecAccepted, Status: "False", Reason: "SpecInvalid", Message: "line 3"}, now)
	after.Set(status.Condition{Type: status.InSync, Status: "False", Reason: "Drifted", Message: "stack pool-p is missing"}, now)
	blocked := []events.BlockedPod{{Pod: "shop/web-1", Why: "a budget", Budgets: []string{"web"}}}
	after.SetNode(status.Node{Name: "n", Instance: "i", Pool: "p", State: status.NodeBlocked, Message: "m", Blocked: blocked}, now)
	var got []any
	for _, n := range Diff("demo", &before, &after) {
		got = append(got, n.DetailType, n.Detail)
	}
	require.Equal(t, []any{
		events.ClusterSpecRejected, events.SpecRejected{Cluster: "demo", SpecVersion: "v2", Reason: "SpecInvalid", Message: "line 3"},
		events.ClusterStatusChange, events.StatusChange{
			Cluster: "demo", Phase: "Failed", PreviousPhase: "Converging", Reason: "StackFailed", Message: "no capacity", SpecVersion: "v1",
			Release: "1.36-1", KubernetesVersion: "1.36", Execution: "arn",
		},
		events.ClusterDrift, events.Drift{Cluster: "demo", Message: "stack pool-p is missing"},
		events.ClusterNodeChange, events.NodeChange{
			Cluster: "demo", Pool: "p", Node: "n", Instance: "i", State: "Blocked", Message: "m", Blocked: blocked,
		},
	}, got)
}
