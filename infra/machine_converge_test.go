package main

// Executions of the converge machine, except deletions.

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
)

func TestConverge(t *testing.T) {
	const (
		begin = "Read the input > Plan > What is planned? > "
		round = "Change the network > Change the control plane > Prepare the cluster > Change the add-ons > " +
			"Did the add-ons change? > Change the pools > Are there " +
			"more pools? > Change the node add-ons > Did every stack succeed? > "
		again  = "Plan > What is planned? > "
		report = "Report > Plan again? > "
		higher = "Are there more pools? > "
		failed = "The cluster did not converge"
	)
	bad := events.ReportResult{Failed: true, Reason: "the network could not be made"}
	for name, c := range map[string]struct {
		script answers
		path   string
		status asl.Status
		// transitions, where the test limits them: creating the example's cluster must take at most 60 with those of its nodes.
		transitions int
		// reported are fields of the last report.
		reported map[string]any
	}{
		"a new cluster is created and planned again": {
			script: good(), path: begin + round + again + report + "Done", status: asl.Succeeded, transitions: 35,
			reported: map[string]any{"error": "", "cause": ""},
		},
		"nothing differs": {
			script: good().but("plan", unchangedPlan), path: begin + report + "Done", status: asl.Succeeded, transitions: 6,
		},
		"another execution converges it": {
			script: answers{"plan": {events.PlanResult{Outcome: events.OutcomeBusy, Stages: noStages}}},
			path:   begin + "Another execution converges this cluster", status: asl.Succeeded, transitions: 4,
		},
		"the cluster does not exist": {
			script: answers{"plan": {events.PlanResult{Outcome: events.OutcomeUnknown, Message: "there is no cluster", Stages: noStages}}},
			path:   begin + "No such cluster", status: asl.Succeeded, transitions: 4,
		},
		"a cluster cannot be reached for a minute": {
			script: good().but("prepare", failedBy("ClusterUnreachable"), map[string]any{}).but("plan", changes, changes, unchangedPlan).
				but("report", events.ReportResult{Again: true, WaitSeconds: 60, Failed: true, Reason: "unreachable"}, events.ReportResult{}),
			path: begin + "Change the network > Change the control plane > Prepare the cluster > " + report + "Back off > " + again +
				round + again + report + "Done", status: asl.Succeeded,
			reported: map[string]any{"error": "", "cause": "", "failed": nil},
		},
		"a function crashes again and again": {
			script: good().but("plan", failedBy("Runtime.ExitError")).but("report", bad),
			path:   "Read the input > Plan > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "Runtime.ExitError", "failed": map[string]any{"state": "Plan", "function": "plan"}},
		},
		"changes are not allowed": {
			script: good().but("plan", events.PlanResult{Outcome: events.OutcomeStopped, Reason: "Paused", Stages: noStages}),
			path:   begin + report + "Done", status: asl.Succeeded,
		},
		"a newer spec arrived": {
			script: good().but("plan", unchangedPlan).but("report", events.ReportResult{Again: true}, events.ReportResult{}),
			path:   begin + report + again + report + "Done", status: asl.Succeeded,
		},
		"planning fails": {
			script: good().but("plan", failedBy("Internal")).but("report", bad),
			path:   "Read the input > Plan > " + report + failed, status: asl.Failed,
			reported: map[string]any{
				"error": "Internal", "cause": "because", "plan": nil, "failed": map[string]any{"state": "Plan", "function": "plan"},
			},
		},
		"planning is throttled for a while": {
			script: good().but("plan", failedBy("Throttled"), failedBy("Transient"), unchangedPlan),
			path:   begin + report + "Done", status: asl.Succeeded,
		},
		"the network fails": {
			script: good().but("change network", failedBy("StackFailed")).but("report", bad),
			path:   begin + "Change the network > " + report + failed, status: asl.Failed,
			reported: map[string]any{
				"error": "StackFailed", "cause": "because", "failed": map[string]any{
					"state": "Change network stack", "function": "change", "stack": "network",
				},
			},
		},
		"the control plane is refused": {
			script: good().but("change control-plane", failedBy("ChangeRefused")).but("report", bad),
			path:   begin + "Change the network > Change the control plane > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "ChangeRefused"},
		},
		"the change function itself fails": {
			script: good().but("change network", callError{failedBy("LeaseLost")}).but("report", bad),
			path:   begin + "Change the network > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "LeaseLost"},
		},
		"a newer spec comes while the network changes": {
			script: good().but("plan", changes, unchangedPlan).but("change control-plane", callError{failedBy("Superseded")}),
			path:   begin + "Change the network > Change the control plane > " + again + report + "Done", status: asl.Succeeded,
			reported: map[string]any{"error": "", "cause": "", "results": []any{}},
		},
		"a newer spec comes before the last pool": {
			script: good().but("change pool-a", failedBy("StackFailed")).but("change pool-b", callError{failedBy("Superseded")}),
			path:   begin + round + again + report + "Done", status: asl.Succeeded,
			reported: map[string]any{"error": "", "results": []any{}},
		},
		"the event of the network never comes": {
			script: good().but("change network", silence{}).but("report", bad),
			path:   begin + "Change the network > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "States.Timeout", "cause": ""},
		},
		"the cluster cannot be reached": {
			script: good().but("prepare", failedBy("ClusterUnreachable")).but("report", bad),
			path:   begin + "Change the network > Change the control plane > Prepare the cluster > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "ClusterUnreachable"},
		},
		"an add-on fails": {
			script: good().but("change addons", failedBy("StackFailed")).but("report", bad),
			path: begin + "Change the network > Change the control plane > Prepare the cluster > Change the add-ons > " +
				"Did the add-ons change? > Did every stack succeed? > " + report + failed,
			status: asl.Failed,
			reported: map[string]any{"error": "", "results": []any{
				result("network"), result("control-plane"),
				map[string]any{"stack": "addons", "again": false, "error": "StackFailed", "cause": "because", "state": "Change add-ons stack"},
			}},
		},
		"identities fail and stop no other stack": {
			script: good().but("plan", planWithIdentities(), unchangedPlan).but("change identities", failedBy("StackFailed")).but("report", bad),
			path:   begin + strings.Replace(round, higher, higher+"Change the pools > "+higher, 1) + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "", "results": []any{
				result("network"), result("control-plane"), result("addons"),
				map[string]any{"stack": "identities", "again": false, "error": "StackFailed", "cause": "because", "state": "Change add-ons stack"},
				result("pool-a"), result("pool-b"), result("node-addons"),
			}},
		},
		"capabilities fail and stop no other stack": {
			script: good().but("plan", planWith("capabilities"), unchangedPlan).but("change capabilities", failedBy("StackFailed")).
				but("report", bad),
			path: begin + strings.Replace(round, higher, higher+"Change the pools > "+higher, 1) + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "", "results": []any{
				result("network"), result("control-plane"), result("addons"),
				map[string]any{"stack": "capabilities", "again": false, "error": "StackFailed", "cause": "because", "state": "Change add-ons stack"},
				result("pool-a"), result("pool-b"), result("node-addons"),
			}},
		},
		"a newer spec comes before the identities": {
			script: good().but("plan", planWithIdentities(), unchangedPlan).but("change identities", callError{failedBy("Superseded")}),
			path: begin + "Change the network > Change the control plane > Prepare the cluster > Change the add-ons > " +
				"Did the add-ons change? > Did every stack succeed? > " + again + report + "Done", status: asl.Succeeded,
			reported: map[string]any{"error": "", "results": []any{}},
		},
		"one pool fails and stops no other stack": {
			script: good().but("change pool-a", failedBy("StackFailed")).but("report", bad),
			path:   begin + round + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "", "results": []any{
				result("network"), result("control-plane"), result("addons"),
				map[string]any{"stack": "pool-a", "again": false, "error": "StackFailed", "cause": "because", "state": "Change pool stack"},
				result("pool-b"), result("node-addons"),
			}},
		},
		"pools are changed in their order": {
			script: good().but("plan", planInOrder("pool-a", "pool-b"), unchangedPlan), status: asl.Succeeded,
			path: begin + strings.Replace(round, higher, higher+"Change the pools > "+higher, 1) + again + report + "Done",
		},
		"a pool of a higher order stays when one of a lower failed": {
			script: good().but("plan", planInOrder("pool-a", "pool-b")).
				but("change pool-a", failedBy("StackFailed"), doneResult("pool-a")).but("report", bad),
			path: begin + round + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "", "results": []any{
				result("network"), result("control-plane"), result("addons"),
				map[string]any{"stack": "pool-a", "again": false, "error": "StackFailed", "cause": "because", "state": "Change pool stack"},
				result("node-addons"),
			}},
		},
		"no pool differs": {
			script: good().but("plan", planInOrder(), unchangedPlan), path: begin + round + again + report + "Done", status: asl.Succeeded,
		},
		"a node add-on fails": {
			script: good().but("change node-addons", failedBy("StackFailed")).but("report", bad),
			path:   begin + strings.TrimSuffix(round, "Did every stack succeed? > ") + report + failed, status: asl.Failed,
		},
		"a stack was blocked": {
			script: good().but("change network",
				events.ChangeResult{Stack: "network", Again: true, Status: "DELETE_COMPLETE"}, doneResult("network")),
			path: begin + round + again + report + "Done", status: asl.Succeeded,
		},
		"nodes of a pool wait for drains": {
			script: good().but("plan", planInOrder("pool-a"), unchangedPlan).but("change pool-a", events.ChangeResult{
				Stack: "pool-a", Again: true, WaitSeconds: 10, WaitedSeconds: 10,
			},
				events.ChangeResult{Stack: "pool-a", Again: true, WaitSeconds: 7200, WaitedSeconds: 7210}, doneResult("pool-a")),
			path: begin + round + again + report + "Done", status: asl.Succeeded,
		},
		"the plan never settles": {
			script: good().but("plan", changes).but("report", bad),
			path:   "Read the input > " + strings.Repeat(again+round, maxRounds) + "The plan never settles > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": notConverged, "cause": "10 rounds of changes did not converge the cluster"},
		},
		"reporting is throttled for a while": {
			script: good().but("plan", unchangedPlan).but("report", failedBy("Throttled"), failedBy("Lambda.TooManyRequestsException"),
				events.ReportResult{}),
			path: begin + report + "Done", status: asl.Succeeded,
		},
		"the status cannot be written": {
			script: good().but("plan", unchangedPlan).but("report", failedBy("Internal")),
			path:   begin + "Report > The status could not be written", status: asl.Failed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, convergeMachine, `{"cluster": "demo"}`, c.script)
			require.Equal(t, c.path, got.path)
			require.Equal(t, c.status, got.Status, "%s: %s", got.Error, got.Cause)
			if c.transitions > 0 {
				require.Equal(t, c.transitions, got.Transitions)
			}
			if c.status == asl.Failed {
				require.Equal(t, notConverged, got.Error)
				require.NotEmpty(t, got.Cause)
			}
			if reports := got.sent["report"]; len(c.reported) > 0 {
				last := reports[len(reports)-1]
				for field, want := range c.reported {
					require.Contains(t, last, field)
					require.Equal(t, want, last[field], field)
				}
			}
		})
	}
}

// result is a successful result in the payload of a report.
func result(stack string) map[string]any {
	return map[string]any{"stack": stack, "again": false, "status": "CREATE_COMPLETE"}
}

func TestConvergeChangesEachStackOnceWithItsLease(t *testing.T) {
	got := execute(t, convergeMachine, `{"cluster": "demo"}`, good())
	for _, stack := range []string{"network", "control-plane", "addons", "pool-a", "pool-b", "node-addons"} {
		sent := got.sent["change "+stack]
		require.Len(t, sent, 1)
		require.NotEmpty(t, sent[0]["taskToken"])
		delete(sent[0], "taskToken")
		want := map[string]any{
			"cluster": "demo", "execution": "arn:aws:states:eu-central-1:111122223333:execution:drover-converge:test",
			"fence": 7.0, "planKey": "plans/1.json", "stack": stack,
		}
		if strings.HasPrefix(stack, "pool-") {
			want["waitedSeconds"], want["repeats"] = 0.0, 0.0
		}
		require.Equal(t, want, sent[0])
	}
}

// After a wait for drains, the machine invokes change again with the total time waited.
func TestConvergeWaitsForDrains(t *testing.T) {
	later := func(pause, waited int64) events.ChangeResult {
		return events.ChangeResult{Stack: "pool-a", Again: true, WaitSeconds: pause, WaitedSeconds: waited}
	}
	others := later(0, 7210) // another caller's update ended
	got := execute(t, convergeMachine, `{"cluster": "demo"}`, good().but("change pool-a", later(10, 10), later(7200, 7210),
		others, doneResult("pool-a")))
	require.Equal(t, asl.Succeeded, got.Status, got.Cause)
	var waited []any
	for _, sent := range got.sent["change pool-a"] {
		require.Equal(t, "pool-a", sent["stack"])
		waited = append(waited, sent["waitedSeconds"])
	}
	require.Equal(t, []any{0.0, 10.0, 7210.0, 7210.0}, waited)
	require.InDelta(t, 7210, got.took.Seconds(), 5)
}

// The function receives how often its step has repeated the change, also after a wait for drains.
func TestConvergeRepeatsAChange(t *testing.T) {
	got := execute(t, convergeMachine, `{"cluster": "demo"}`, good().but("change pool-a",
		events.ChangeResult{Stack: "pool-a", Again: true, WaitSeconds: 60, Repeats: 1},
		events.ChangeResult{Stack: "pool-a", Again: true, WaitSeconds: 10, WaitedSeconds: 10, Repeats: 1}, doneResult("pool-a")))
	require.Equal(t, asl.Succeeded, got.Status, got.Cause)
	var repeats []any
	for _, sent := range got.sent["change pool-a"] {
		repeats = append(repeats, sent["repeats"])
	}
	require.Equal(t, []any{0.0, 1.0, 1.0}, repeats)
}

// planInOrder is a plan of pools that are changed in sequence.
func planInOrder(pools ...string) events.PlanResult {
	plan := changes
	plan.Stages.Pools = [][]string{}
	for _, pool := range pools {
		plan.Stages.Pools = append(plan.Stages.Pools, []string{pool})
	}
	return plan
}

// planWithIdentities is a plan with identities, and with pools of two orders.
func planWithIdentities() events.PlanResult { return planWith("identities") }

// planWith is a plan with a stack of the stage of add-ons, and with pools of two orders.
func planWith(stack string) events.PlanResult {
	plan := planInOrder("pool-a", "pool-b")
	plan.Stages.Addons = []string{"addons", stack}
	return plan
}

// Only the first plan receives the requested roll and the start of the execution. A request may name one or several pools.
func TestConvergeRolls(t *testing.T) {
	for input, want := range map[string][]any{
		`{"cluster": "demo"}`: {}, `{"cluster": "demo", "roll": []}`: {}, `{"cluster": "demo", "roll": "a"}`: {"a"},
		`{"cluster": "demo", "roll": ["a"]}`: {"a"}, `{"cluster": "demo", "roll": ["a", "b"]}`: {"a", "b"},
	} {
		got := execute(t, convergeMachine, input, good())
		require.Equal(t, asl.Succeeded, got.Status, "%s: %s", input, got.Cause)
		require.Len(t, got.sent["plan"], 2)
		require.Equal(t, want, got.sent["plan"][0]["roll"], input)
		require.Equal(t, []any{}, got.sent["plan"][1]["roll"], input)
		started, err := time.Parse(time.RFC3339, got.sent["plan"][0]["started"].(string))
		require.NoError(t, err)
		require.False(t, started.IsZero())
	}
}

// A refused request does not fail the execution: a failed execution would raise the alarm of clusters that do not converge.
func TestRefusedRoll(t *testing.T) {
	refused := events.PlanResult{
		Cluster: "demo", Outcome: events.OutcomeRefused, Reason: "RollRefused", Message: "no pool b", Stages: noStages,
	}
	got := execute(t, convergeMachine, `{"cluster": "demo", "roll": ["b"]}`, good().but("plan", refused))
	require.Equal(t, asl.Succeeded, got.Status, got.Cause)
	var answer events.PlanResult
	require.NoError(t, json.Unmarshal([]byte(got.Output), &answer))
	require.Equal(t, refused, answer)
	require.Empty(t, got.sent["report"], "the cluster's own verdict stays")
}

func TestConvergeWithoutAClusterFails(t *testing.T) {
	got := execute(t, convergeMachine, `{}`, good())
	require.Equal(t, asl.Failed, got.Status)
	require.Empty(t, got.sent)
}

// The timeout of the machine must be longer than those of its tasks.
func TestMachinesOutliveWhatTheyWaitFor(t *testing.T) {
	got := execute(t, convergeMachine, `{"cluster": "demo"}`, good().but("change pool-a", silence{}).but("report", events.ReportResult{
		Failed: true, Reason: "late",
	}))
	require.Equal(t, "late", got.Cause, "the machine's own timeout came first")
	require.GreaterOrEqual(t, got.took, 24*time.Hour)
}
