package main

// Executions of the converge machine that delete a cluster.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
)

// deletes is a plan that deletes.
func deletes(d events.Deletion) events.PlanResult {
	if d.Stacks == nil {
		d.Stacks = []string{}
	}
	return events.PlanResult{
		Cluster: "demo", Outcome: events.OutcomeDeletes, Fence: 7, PlanKey: "plans/2.json", Stages: noStages, Deletion: &d,
	}
}

func TestConvergeDeletes(t *testing.T) {
	const (
		begin   = "Read the input > "
		plan    = "Plan > What is planned? > What is deleted first? > "
		stacks  = "Delete the stacks > Was every stack deleted? > "
		list    = "List retained volumes > "
		clean   = "Remove the leftovers > Are the leftovers removed? > "
		pause   = "Wait for the leftovers > "
		retry   = "Wait before the retry > "
		report  = "Report > Plan again? > "
		failed  = "The cluster did not converge"
		whole   = begin + plan + stacks + plan + list + stacks + plan + clean + stacks + plan + clean + report + "Done"
		nothing = plan + clean + report + "Done"
	)
	deleted := func(stack string) any { return events.ChangeResult{Stack: stack, Status: "DELETE_COMPLETE"} }
	pools := deletes(events.Deletion{Stacks: []string{"pool-a", "pool-b"}})
	control := deletes(events.Deletion{ListRetained: true, Stacks: []string{"control-plane"}})
	network := deletes(events.Deletion{Leftovers: true, Stacks: []string{"network"}})
	last := deletes(events.Deletion{Leftovers: true})
	done, waiting := events.CleanResult{
		Outcome: events.CleanDone,
	}, events.CleanResult{Outcome: events.CleanWaiting, Message: "security group sg-1: in use"}
	bad := events.ReportResult{Failed: true, Reason: "as returned"}
	script := func() answers {
		a := answers{"plan": {pools, control, network, last}, "prepare": {map[string]any{}}, "clean": {done}, "report": {events.ReportResult{}}}
		for _, stack := range []string{"pool-a", "pool-b", "control-plane", "network"} {
			a["change "+stack] = []any{deleted(stack)}
		}
		return a
	}
	for name, c := range map[string]struct {
		script   answers
		path     string
		status   asl.Status
		took     time.Duration
		reported map[string]any
	}{
		"step by step, with a final check": {script: script(), path: whole, status: asl.Succeeded},
		"its API does not answer": {
			script: script().but("prepare", failedBy("ClusterUnreachable")), path: whole, status: asl.Succeeded,
		},
		"nothing was deployed": {script: script().but("plan", last), path: begin + nothing, status: asl.Succeeded},
		"leftovers take their time": {
			script: script().but("plan", last).but("clean", waiting, waiting, done),
			path:   begin + plan + clean + pause + clean + pause + clean + report + "Done", status: asl.Succeeded, took: 30 * time.Second,
		},
		"leftovers that remain": {
			script: script().but("plan", network).but("clean", waiting).but("report", bad),
			path:   begin + plan + strings.Repeat(clean+pause, maxChecks-1) + clean + "Leftovers remain > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "LeftoversRemain", "cause": "security group sg-1: in use"},
		},
		"removing them fails": {
			script: script().but("plan", network).but("clean", failedBy("LeaseLost")).but("report", bad),
			path:   begin + plan + "Remove the leftovers > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "LeaseLost"},
		},
		"the spec is restored while they are removed": {
			script: script().but("plan", network, unchangedPlan).but("clean", events.CleanResult{Outcome: events.CleanSuperseded}),
			path:   begin + plan + clean + "Plan > What is planned? > " + report + "Done", status: asl.Succeeded,
		},
		"the spec is restored before a stack is deleted": {
			script: script().but("plan", pools, unchangedPlan).but("change pool-b", callError{failedBy("Superseded")}),
			path:   begin + plan + stacks + "Plan > What is planned? > " + report + "Done", status: asl.Succeeded,
		},
		"a stack fails twice": {
			script: script().but("plan", pools, pools, pools, last).but("change pool-a", failedBy("StackFailed"), failedBy("StackFailed"),
				deleted("pool-a")),
			path: begin + plan + stacks + retry + plan + stacks + retry + plan + stacks + nothing, status: asl.Succeeded, took: 3 * time.Minute,
		},
		"a stack that cannot be deleted": {
			script: script().but("plan", pools).but("change pool-a", failedBy("StackFailed")).but("report", bad),
			path:   begin + strings.Repeat(plan+stacks+retry, maxTries) + plan + stacks + report + failed, status: asl.Failed,
			took: 63 * time.Minute,
			reported: map[string]any{"results": []any{
				map[string]any{"stack": "pool-a", "again": false, "error": "StackFailed", "cause": "because", "state": "Delete the stack"},
				map[string]any{"stack": "pool-b", "again": false, "status": "DELETE_COMPLETE"},
			}},
		},
		"it is deleted already": {
			script: script().but("plan", events.PlanResult{Outcome: events.OutcomeGone, Stages: noStages}),
			path:   begin + "Plan > What is planned? > " + report + "Done", status: asl.Succeeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, convergeMachine, `{"cluster": "demo"}`, c.script)
			require.Equal(t, c.path, got.path)
			require.Equal(t, c.status, got.Status, "%s: %s", got.Error, got.Cause)
			if c.took > 0 {
				require.Equal(t, c.took, got.took)
			}
			for field, want := range c.reported {
				require.Equal(t, want, got.sent["report"][len(got.sent["report"])-1][field], field)
			}
		})
	}
}
