package plan_test

// Rolls that a time in the spec or an operator requests.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

func dues(t *testing.T, a *harness.Account) []string {
	entries, err := a.State().List(t.Context(), names.Dues)
	require.NoError(t, err)
	var keys []string
	for _, entry := range entries {
		keys = append(keys, entry.Key)
	}
	return keys
}

// version returns the launch template version of a pool's only node.
func version(t *testing.T, a *harness.Account) string {
	group := a.Group("demo", "a")
	require.Len(t, group.Instances, 1)
	return group.Instances[0].TemplateVersion
}

// recordDrained converges again, which records that the replaced nodes have left. The report of the roll may have been before that.
func recordDrained(a *harness.Account) {
	a.Converge("demo")
	a.Settle()
}

func TestRollByHand(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	before := a.Group("demo", "a").Instances[0].ID
	x := a.Converge("demo", "a")
	a.Settle()
	require.Equal(t, "SUCCEEDED", a.Execution(x).Status)
	require.NotEqual(t, before, a.Group("demo", "a").Instances[0].ID)
	require.Equal(t, "2", version(t, a))
	require.Equal(t, a.Execution(x).Started.UTC().Format(time.RFC3339), a.Stack("demo", "pool-a").Tags[names.TagRollAt])
	require.Equal(t, status.Ready, a.Status("demo").Phase)

	recordDrained(a)
	mark := a.Calls.Mark()
	a.Converge("demo")
	a.Settle()
	require.Empty(t, mutatingCalls(a, mark), "once")
	require.Equal(t, "2", version(t, a))
}

// refusal starts an execution by hand that requests a roll, and expects that it is refused: the execution does not fail, its output and
// the status have the answer, and nothing else is written.
func refusal(t *testing.T, a *harness.Account, message string, pools ...string) {
	t.Helper()
	before, mark := a.Status("demo"), a.Calls.Mark()
	x := a.Converge("demo", pools...)
	a.Settle()
	require.Equal(t, "SUCCEEDED", a.Execution(x).Status, "a failed execution sets off the alarm of clusters that do not converge")
	var answer events.PlanResult
	require.NoError(t, json.Unmarshal([]byte(a.Execution(x).Output), &answer))
	require.Equal(t, events.OutcomeRefused, answer.Outcome)
	require.Equal(t, status.ReasonRollRefused, answer.Reason)
	require.Contains(t, answer.Message, message)
	after := a.Status("demo")
	require.Equal(t, &status.Condition{
		Type: status.RequestAccepted, Status: "False", Reason: status.ReasonRollRefused, Message: answer.Message,
		LastTransitionTime: after.Condition(status.RequestAccepted).LastTransitionTime,
	}, after.Condition(status.RequestAccepted))
	require.False(t, after.Condition(status.RequestAccepted).LastTransitionTime.Before(a.Execution(x).Started),
		"it is the answer to this request")
	calls := mutatingCalls(a, mark)
	require.Len(t, calls, 1)
	require.True(t, strings.HasSuffix(calls[0], "/"+names.Status("demo")), calls[0])
	for _, s := range []*status.Status{before, after} {
		s.Unset(status.RequestAccepted)
		s.UpdatedAt = time.Time{}
	}
	require.Equal(t, before, after)
	preview, err := (&planner.Planner{Specs: a.Functions.Planner.Specs, State: a.State()}).RollRefusal(t.Context(), "demo", pools)
	require.NoError(t, err)
	require.Equal(t, answer.Message, preview, "the check before a request returns the same message")
}

func TestRollOfAnUnknownPoolIsRefused(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	refusal(t, a, "nothing was rolled: cluster demo has no pool b, c: its pools are a", "b", "a", "c")
	require.Equal(t, "1", version(t, a))
	a.Converge("demo", "a")
	a.Settle()
	require.Equal(t, "2", version(t, a))
	require.Nil(t, a.Status("demo").Condition(status.RequestAccepted), "the next request was accepted")
}

func TestRollThatTheSpecForbidsIsRefused(t *testing.T) {
	a := harness.Start(t)
	a.Upload("clusters/demo.yaml", "kind: Cluster")
	a.Settle()
	refusal(t, a, "nothing was rolled: clusters/demo.yaml", "a")
	a.Cluster("demo", "")
	require.Nil(t, a.Status("demo").Condition(status.RequestAccepted), "it was about an earlier spec")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  paused: true\n"))
	a.Settle()
	refusal(t, a, "nothing was rolled: cluster demo is paused: spec.paused is true; upload its spec with paused: false, then roll again", "a")
	refusal(t, a, "cluster demo is paused", "a")
	a.Cluster("demo", "")
	require.Equal(t, "1", version(t, a), "the refused request stays refused")
	require.Nil(t, a.Status("demo").Condition(status.RequestAccepted))
}

// The name of a cluster that never existed, or was deleted, gets no new status. A status would appear in lists of clusters.
func TestRollOfNoCluster(t *testing.T) {
	a := harness.Start(t)
	x := a.Converge("demo", "a")
	a.Settle()
	require.Equal(t, "SUCCEEDED", a.Execution(x).Status)
	require.Contains(t, a.Execution(x).Output, "nothing was rolled: cluster demo has no spec clusters/demo.yaml: it was deleted, "+
		"or never uploaded")
	_, err := a.State().Status(t.Context(), "demo")
	require.ErrorIs(t, err, store.ErrNotFound)
}

// While the newest spec is invalid the last good one is in effect: a roll is accepted by that one, also of a busy cluster.
func TestRollWhileTheNewestSpecIsInvalid(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Upload("clusters/demo.yaml", "kind: Cluster")
	a.Settle()
	why, err := (&planner.Planner{Specs: a.Functions.Planner.Specs, State: a.State()}).RollRefusal(t.Context(), "demo", []string{"a"})
	require.NoError(t, err)
	require.Empty(t, why)
	x := a.Converge("demo", "a")
	a.Settle()
	require.Equal(t, "SUCCEEDED", a.Execution(x).Status)
	require.Equal(t, "2", version(t, a))
}

// The first round records the requested roll. Later rounds follow the spec.
func TestPoolIsRemovedBeforeItsRoll(t *testing.T) {
	a := harness.Start(t)
	two := strings.Replace(harness.Spec("demo", ""), "  pools:\n", "  pools:\n    - {name: b, instanceTypes: [m7i.large], minSize: "+
		"1, maxSize: 3}\n", 1)
	require.NotEqual(t, harness.Spec("demo", ""), two)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", two)
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	fate := harness.Held
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" {
			return fate
		}
		return harness.Delivered
	})
	x := a.Converge("demo", "b")
	a.Until("a stack's event is held", func() bool { return len(a.Events.Held()) > 0 })
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	fate = harness.Delivered
	for _, e := range a.Events.Held() {
		a.Events.Deliver(e)
	}
	a.Settle()
	require.Equal(t, "SUCCEEDED", a.Execution(x).Status, a.Execution(x).Cause)
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

// An operator requests a roll after another execution has planned. The sweep starts the roll once that execution has ended.
func TestRollOfABusyClusterIsKept(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" {
			return harness.Held
		}
		return harness.Delivered
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {a: b}\n"))
	a.Until("a stack's event is held", func() bool { return len(a.Events.Held()) > 0 })
	refused := a.Converge("demo", "b")
	x := a.Converge("demo", "a")
	a.Until("the executions are over", func() bool { return a.Execution(x).Status != "RUNNING" && a.Execution(refused).Status != "RUNNING" })
	require.Equal(t, "SUCCEEDED", a.Execution(x).Status)
	require.Contains(t, a.Execution(refused).Output, `"outcome":"Refused"`)
	require.Len(t, dues(t, a), 1)
	require.True(t, strings.HasSuffix(dues(t, a)[0], "/demo"), dues(t, a)[0])
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.s3" {
			return harness.Delivered
		}
		return harness.Delivered
	})
	for _, e := range a.Events.Held() {
		a.Events.Deliver(e)
	}
	a.Settle()
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Empty(t, dues(t, a))
	require.Equal(t, a.Execution(x).Started.UTC().Format(time.RFC3339), a.Stack("demo", "pool-a").Tags[names.TagRollAt])
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

func TestRollAtATime(t *testing.T) {
	a := harness.Start(t)
	now := time.Now()
	a.Functions.Plan.Now = func() time.Time { return now }
	a.Functions.Sweep.Now = func() time.Time { return now }
	at := now.Add(8 * time.Hour).UTC().Truncate(time.Second)
	with := func(more string) string {
		return strings.Replace(harness.Spec("demo", ""), "maxSize: 3}", "maxSize: 3"+more+"}", 1)
	}
	upload := func(spec string) {
		a.Upload("releases/r1.yaml", harness.Release())
		a.Upload("clusters/demo.yaml", spec)
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	}
	later := with(fmt.Sprintf(", rollAt: %s", at.Format(time.RFC3339)))
	upload(later)
	require.Equal(t, []string{"due/" + at.Format(time.RFC3339) + "/demo"}, dues(t, a))
	mark := a.Calls.Mark()
	a.Converge("demo")
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Empty(t, mutatingCalls(a, mark), "the time is scheduled and not reached")
	require.Equal(t, "1", version(t, a))

	now = at.Add(time.Minute)
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Empty(t, dues(t, a))
	require.Equal(t, "2", version(t, a))
	require.Contains(t, fmt.Sprint(a.Stack("demo", "pool-a").Tags), at.Format(time.RFC3339))

	for _, spec := range []string{later, with(""), with(", rollAt: 2026-01-01T00:00:00Z")} {
		upload(spec)
		require.Equal(t, "2", version(t, a), "no time, or one that is not later, rolls nothing")
	}
	upload(with(fmt.Sprintf(", rollAt: %s", now.UTC().Format(time.RFC3339))))
	require.Equal(t, "3", version(t, a), "a later time rolls")
}

// A pool that is created after its time is not rolled.
func TestNewPoolIsNotRolled(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", ""), "maxSize: 3}", "maxSize: 3, rollAt: 2026-01-01T00:00:00Z}", 1))
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase)
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-a"])
	require.Equal(t, "1", version(t, a))
}

func TestPausedClusterIsNotRolled(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  paused: true\n"))
	a.Settle()
	a.Converge("demo", "a")
	a.Settle()
	require.Equal(t, status.ReasonPaused, a.Status("demo").Condition(status.Converged).Reason)
	require.Equal(t, "1", version(t, a))
}
