package main

// Executions of the join-node machine.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/states/asl"
)

const lifecycle = `{"AutoScalingGroupName": "drover-demo-pool-a", "LifecycleHookName": "launch", "EC2InstanceId": "i-1",
	"LifecycleActionToken": "t"}`

func TestJoinNode(t *testing.T) {
	const (
		wait    = "Wait for the node > Did the node join? > "
		pause   = "Wait for the next check > "
		abandon = "Abandon the instance > Record the failed join > The node did not join"
	)
	says := func(outcome events.JoinOutcome) any { return events.JoinResult{Outcome: outcome, Message: "as it is"} }
	later := func(seconds, paused int64) any {
		return events.JoinResult{Outcome: events.JoinWaiting, Message: "as it is", WaitSeconds: seconds, PausedSeconds: paused}
	}
	for name, c := range map[string]struct {
		script      answers
		path        string
		status      asl.Status
		cause       string
		transitions int
		abandons    int
		took        time.Duration
		// paused and reason are in the last payload: the pool's pause so far, and the reason of an abandoned instance.
		paused float64
		reason any
	}{
		"Ready at once": {
			script: answers{"join": {says(events.JoinReady)}}, path: wait + "The node is Ready", status: asl.Succeeded, transitions: 3,
		},
		"Ready after a while": {
			script: answers{"join": {says(events.JoinWaiting), says(events.JoinWaiting), says(events.JoinReady)}},
			path:   wait + wait + wait + "The node is Ready", status: asl.Succeeded, transitions: 7,
		},
		"long drains are followed by the pool's pause": {
			script: answers{"join": {says(events.JoinWaiting), later(60, 0), later(300, 300), says(events.JoinReady)}},
			path:   wait + wait + pause + wait + pause + wait + "The node is Ready", status: asl.Succeeded, transitions: 11,
			took: 6 * time.Minute, paused: 300,
		},
		"no hook is open": {
			script: answers{"join": {says(events.JoinGone)}}, path: wait + "No hook to complete", status: asl.Succeeded,
		},
		"the function abandons the instance": {
			script: answers{"join": {says(events.JoinAbandoned)}}, path: wait + "The node did not join", status: asl.Failed, cause: "as it is",
		},
		"the function fails": {
			script: answers{"join": {failedBy("ClusterUnreachable"), says(events.JoinAbandoned)}, "completeLifecycleAction": {map[string]any{}}},
			path:   "Wait for the node > " + abandon, status: asl.Failed, cause: "ClusterUnreachable: because", abandons: 1,
			reason: "ClusterUnreachable: because",
		},
		"the function returns an unknown outcome": {
			script: answers{"join": {says("Perhaps")}, "completeLifecycleAction": {map[string]any{}}},
			path:   wait + abandon, status: asl.Failed, cause: "as it is", abandons: 1, reason: "as it is",
		},
		"abandoning fails too": {
			script: answers{"join": {failedBy("Internal")}, "completeLifecycleAction": {failedBy("AutoScaling.AutoScalingException")}},
			path:   "Wait for the node > " + abandon, status: asl.Failed, cause: "Internal: because", abandons: 6, reason: "Internal: because",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, joinMachine, lifecycle, c.script)
			require.Equal(t, c.path, got.path)
			require.Equal(t, c.status, got.Status, "%s: %s", got.Error, got.Cause)
			require.Equal(t, c.cause, got.Cause)
			if c.transitions > 0 {
				require.Equal(t, c.transitions, got.Transitions)
			}
			if c.took > 0 {
				require.Equal(t, c.took, got.took)
			}
			first, last := got.sent["join"][0], got.sent["join"][len(got.sent["join"])-1]
			require.Equal(t, "i-1", first["EC2InstanceId"])
			require.Equal(t, c.reason, last["givenUp"])
			if c.reason == nil {
				require.Equal(t, c.paused, last["pausedSeconds"])
			}
			require.NotEmpty(t, first["started"])
			require.Len(t, got.sent["completeLifecycleAction"], c.abandons)
			for _, sent := range got.sent["completeLifecycleAction"] {
				require.Equal(t, map[string]any{
					"AutoScalingGroupName": "drover-demo-pool-a", "LifecycleHookName": "launch", "InstanceId": "i-1", "LifecycleActionResult": "ABANDON",
				}, sent)
			}
		})
	}
}
