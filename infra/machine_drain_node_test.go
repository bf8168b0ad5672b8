package main

// Executions of the drain-node machine.

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	drains "github.com/drover-run/drover/shared/drain"
)

func TestDrainNode(t *testing.T) {
	const (
		begin  = "Begin > "
		drain  = "Drain the node > Is the node drained? > "
		wait   = "Wait for the next slice > "
		failed = "Drain the node > Try again? > Back off > "
		kept   = "Drain the node > Try again? > Keep the hook open > Back off > "
		end    = "The node was not drained"
		hook   = `{"AutoScalingGroupName": "drover-demo-pool-a", "LifecycleHookName": "terminate", "EC2InstanceId": "i-1",
			"LifecycleActionToken": "t"}`
		manual = `{"cluster": "demo", "node": "n1"}`
		spot   = `{"instance-id": "i-1", "instance-action": "terminate"}`
	)
	says := func(outcome drains.Outcome, seconds int64, forced ...string) any {
		return events.DrainResult{DrainReport: drains.Report{Outcome: outcome, Message: "as returned", Forced: forced}, WaitSeconds: seconds}
	}
	for name, c := range map[string]struct {
		input       string
		script      answers
		path        string
		status      asl.Status
		cause       string
		took        time.Duration
		completions int
		// forced are the pods in the output.
		forced []any
	}{
		"drained at once": {
			input: hook, script: answers{"drain": {says(drains.Done, 0)}}, path: begin + drain + "The node has been drained", status: asl.Succeeded,
		},
		"drained in slices, each after as long as the last one says": {
			input: hook, script: answers{"drain": {says(drains.Remaining, 1), says(drains.Remaining, 120), says(drains.Done, 0)}},
			path: begin + drain + wait + drain + wait + drain + "The node has been drained", status: asl.Succeeded, took: 121 * time.Second,
		},
		"nothing to drain": {
			input: spot, script: answers{"drain": {says(drains.Gone, 0)}}, path: begin + drain + "The node has been drained", status: asl.Succeeded,
		},
		"its time limit is over": {
			input: hook, script: answers{"drain": {says(drains.TimedOut, 0)}}, path: begin + drain + "The node has been drained",
			status: asl.Succeeded,
		},
		"every pod that was forced is named": {
			input: hook, script: answers{
				"drain": {says(drains.Remaining, 1, "a/b"), says(drains.Remaining, 1), says(drains.Remaining, 1, "c/d", "e/f"), says(drains.Done, 0)},
			},
			path: begin + strings.Repeat(drain+wait, 3) + drain + "The node has been drained", status: asl.Succeeded, took: 3 * time.Second,
			forced: []any{"a/b", "c/d", "e/f"},
		},
		"the input names no node": {
			input: `{}`, script: answers{"drain": {says(events.DrainRefused, 0)}}, path: begin + drain + end,
			status: asl.Failed, cause: "as returned",
		},
		"the function fails for a while": {
			input: hook, script: answers{
				"drain": {failedBy("Internal"), failedBy("Internal"), says(drains.Done, 0)}, "recordLifecycleActionHeartbeat": {map[string]any{}},
			},
			path: begin + kept + kept + drain + "The node has been drained", status: asl.Succeeded, took: 150 * time.Second,
		},
		"the function fails for two days: the hook is completed": {
			input: hook, script: answers{
				"drain": {failedBy("Internal")}, "recordLifecycleActionHeartbeat": {map[string]any{}}, "completeLifecycleAction": {map[string]any{}},
			},
			path:   begin + strings.Repeat(kept, maxHookTroubles-1) + "Drain the node > Try again? > Is there a hook? > Complete the hook > " + end,
			status: asl.Failed, cause: "Internal: because", took: troubles(maxHookTroubles - 1), completions: 1,
		},
		"a success resets the failures": {
			input: manual, script: answers{
				"drain": append(append(repeat(failedBy("Internal"), maxTroubles-1), says(drains.Remaining, 1)),
					append(repeat(failedBy("Internal"), maxTroubles-1), says(drains.Done, 0))...),
			},
			path: begin + strings.Repeat(failed, maxTroubles-1) + drain + wait + strings.Repeat(failed, maxTroubles-1) + drain +
				"The node has been drained",
			status: asl.Succeeded, took: 2*troubles(maxTroubles-1) + time.Second,
		},
		"Auto Scaling fails, too: the hook has time": {
			input: hook, script: answers{
				"drain": {failedBy("Internal"), says(drains.Done, 0)}, "recordLifecycleActionHeartbeat": {failedBy("AutoScaling.AutoScalingException")},
			},
			path: begin + "Drain the node > Try again? > Keep the hook open > Is the hook open? > Back off > " + drain +
				"The node has been drained", status: asl.Succeeded,
		},
		"the hook ended during a failure": {
			input: hook, script: answers{"drain": {failedBy("Internal")}, "recordLifecycleActionHeartbeat": {map[string]any{}, &asl.Failure{
				Name:  "AutoScaling.AutoScalingException",
				Cause: "No active Lifecycle Action found with instance ID i-1 (Service: AutoScaling, Status Code: 400)",
			}}},
			path:   begin + kept + "Drain the node > Try again? > Keep the hook open > Is the hook open? > " + end,
			status: asl.Failed, cause: "Internal: because",
		},
		"the hook ended just before it is completed": {
			input: hook, script: answers{
				"drain": {says("Perhaps", 0)}, "completeLifecycleAction": {failedBy("AutoScaling.AutoScalingException")},
			},
			path: begin + drain + "Is there a hook? > Complete the hook > " + end, status: asl.Failed, cause: "as returned", completions: 6,
		},
		"a manual drain fails permanently: the node is restored": {
			input: manual, script: answers{"drain": append(repeat(failedBy("Internal"), maxTroubles), says(drains.Done, 0))},
			path:   begin + strings.Repeat(failed, maxTroubles-1) + "Drain the node > Try again? > Is there a hook? > Restore the node > " + end,
			status: asl.Failed, cause: "Internal: because", took: troubles(maxTroubles - 1),
		},
		"restoring the node fails too": {
			input: manual, script: answers{"drain": {failedBy("Internal")}},
			path:   begin + strings.Repeat(failed, maxTroubles-1) + "Drain the node > Try again? > Is there a hook? > Restore the node > " + end,
			status: asl.Failed, cause: "Internal: because", took: troubles(maxTroubles - 1),
		},
		"the function returns an unknown outcome": {
			input: hook, script: answers{"drain": {says("Perhaps", 0)}, "completeLifecycleAction": {map[string]any{}}},
			path: begin + drain + "Is there a hook? > Complete the hook > " + end, status: asl.Failed, cause: "as returned", completions: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, drainMachine, c.input, c.script)
			require.Equal(t, c.path, got.path)
			require.Equal(t, c.status, got.Status, "%s: %s", got.Error, got.Cause)
			require.Equal(t, c.cause, got.Cause)
			if c.took > 0 {
				require.Equal(t, c.took, got.took)
			}
			first, last := got.sent["drain"][0], got.sent["drain"][len(got.sent["drain"])-1]
			require.NotEmpty(t, first["started"])
			require.Equal(t, first["started"], last["started"])
			require.Equal(t, strings.Contains(c.path, "Restore"), last["restore"] == true)
			require.Len(t, got.sent["completeLifecycleAction"], c.completions)
			if c.completions > 0 {
				require.Equal(t, map[string]any{
					"AutoScalingGroupName": "drover-demo-pool-a", "LifecycleHookName": "terminate", "InstanceId": "i-1",
					"LifecycleActionResult": "CONTINUE",
				}, got.sent["completeLifecycleAction"][0])
			}
			if c.forced != nil {
				var output map[string]any
				require.NoError(t, json.Unmarshal(got.Output, &output))
				require.Equal(t, c.forced, output["forced"])
			}
		})
	}
}

// troubles is the total pause after n failed slices.
func troubles(n int) time.Duration {
	var sum time.Duration
	for i := 1; i <= n; i++ {
		sum += min(200*time.Second, time.Minute+time.Duration(i)*10*time.Second)
	}
	return sum
}

// Failing slices end an instance only at the limit of its hook. The events of their attempts, heartbeats and pauses stay below the quota.
func TestDrainKeepsTheHookOpen(t *testing.T) {
	require.Greater(t, troubles(maxHookTroubles), 47*time.Hour+30*time.Minute)
	const eventsPerRound = 3*(drainAttempts+1) + 2 + 2 + 5 + 2
	require.Less(t, maxHookTroubles*eventsPerRound, 25000)
	const hook = 30 * time.Minute // as in the pool's template
	require.Less(t, (drainAttempts+1)*2*time.Minute+200*time.Second, hook/2)
}

// The events of a drain of 48 hours stay below the quota of an execution.
// https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
func TestLongDrainFitsIntoAnExecution(t *testing.T) {
	var slices []any
	for elapsed := int64(0); elapsed < 48*3600; {
		wait := max(1, min(300, elapsed/20))
		slices = append(slices, events.DrainResult{DrainReport: drains.Report{Outcome: drains.Remaining}, WaitSeconds: wait})
		elapsed += 50 + wait
	}
	slices = append(slices, events.DrainResult{DrainReport: drains.Report{Outcome: drains.Done}})
	const eventsPerRound = 12 // task 5, choice 2, wait 2, and what retries add now and then
	require.Less(t, len(slices)*eventsPerRound, 25000)
	got := execute(t, drainMachine, `{"cluster": "demo", "node": "n1"}`, answers{"drain": slices})
	require.Equal(t, asl.Succeeded, got.Status)
	require.Len(t, got.sent["drain"], len(slices))
}
