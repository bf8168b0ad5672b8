package stackevent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// mutatingCalls returns the mutating calls of drover since a mark.
func mutatingCalls(a *harness.Account, mark int) []string {
	var calls []string
	for _, call := range a.Calls.Since(mark) {
		if by := harness.CalledBy(call); call.Mutating && by != "admin" && by != "drain" { // whom the pool's instances called
			calls = append(calls, harness.CalledBy(call)+" "+call.Action)
		}
	}
	return calls
}

// stackEvent is CloudFormation's event about a stack.
func stackEvent(stackName, status, token string) harness.Event {
	var detail events.StackStatus
	detail.StackID = "arn:aws:cloudformation:" + harness.Region + ":" + harness.ID + ":stack/" + stackName + "/1"
	detail.StatusDetails.Status, detail.ClientRequestToken = status, token
	body, _ := json.Marshal(detail)
	return harness.Event{ID: "1", DetailType: "CloudFormation Stack Status Change", Source: "aws.cloudformation", Detail: body}
}

func TestEventsThatComeTwice(t *testing.T) {
	a := harness.Start(t)
	a.Events.Decide(func(harness.Event) harness.Fate { return harness.Twice })
	a.Cluster("demo", "")
	a.Cluster("demo", "  tags: {team: b}\n")
	for _, x := range a.StepFunctions.Executions() {
		require.Equal(t, "SUCCEEDED", x.Status)
	}
	mark := a.Calls.Mark()
	for _, stack := range a.CloudFormation.Stacks() {
		a.Events.Deliver(stackEvent(stack.StackName, stack.StackStatus, "update-1"))
	}
	require.Empty(t, mutatingCalls(a, mark))
}

// All events of a creation are repeated, newest first, while an update waits for its own.
func TestEventsOfEarlierOperationsResumeNoStep(t *testing.T) {
	a := harness.Start(t)
	var earlier []harness.Event
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" {
			earlier = append(earlier, e) // CloudFormation sends one after the other
		}
		return harness.Delivered
	})
	a.Cluster("demo", "")
	require.NotEmpty(t, earlier)
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" {
			return harness.Held
		}
		return harness.Delivered
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {team: b}\n"))
	held := 0
	for range 6 { // five stacks; the first update of the pool switches the replacement of nodes off
		a.Until("an event is held", func() bool { return len(a.Events.Held()) > held && a.Idle() })
		mark := a.Calls.Mark()
		for _, e := range slices.Backward(earlier) {
			a.Events.Deliver(e)
		}
		require.Empty(t, mutatingCalls(a, mark))
		for _, e := range a.Events.Held()[held:] {
			a.Events.Deliver(e)
			held++
		}
	}
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	for stack, state := range a.Stacks("demo") {
		require.Equal(t, "UPDATE_COMPLETE", state, stack)
	}
}

func TestEventsThatSayNothingFinal(t *testing.T) {
	a := harness.Start(t)
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" {
			return harness.Held
		}
		return harness.Delivered
	})
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Until("the network's event is held", func() bool { return len(a.Events.Held()) == 1 && a.Idle() })
	w, err := a.State().Waiter(t.Context(), "drover-demo-network")
	require.NoError(t, err)
	mark := a.Calls.Mark()
	for _, e := range []harness.Event{
		stackEvent(w.StackName, "CREATE_IN_PROGRESS", w.ClientRequestToken), stackEvent(w.StackName, "ROLLBACK_IN_PROGRESS",
			w.ClientRequestToken),
		stackEvent(w.StackName, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", w.ClientRequestToken),
		stackEvent(w.StackName, "CREATE_COMPLETE", ""), stackEvent(w.StackName, "CREATE_COMPLETE", "another"),
		stackEvent("drover-other-network", "CREATE_COMPLETE", w.ClientRequestToken),
	} {
		_, err := a.Functions.Call("stackevent", e)
		require.NoError(t, err)
	}
	require.Empty(t, mutatingCalls(a, mark))
}

func TestStackWithoutACluster(t *testing.T) {
	a := harness.Start(t)
	for _, name := range []string{"drover-", "drover-x", "drover-demo-network-of-another-owner", "drover"} {
		_, err := a.Functions.Call("stackevent", stackEvent(name, "CREATE_COMPLETE", "t"))
		require.NoError(t, err, name)
	}
	entries, err := a.State().List(t.Context(), names.Statuses)
	require.NoError(t, err)
	require.Empty(t, entries)
	require.False(t, strings.Contains(a.Log(), "ERROR"))
}
