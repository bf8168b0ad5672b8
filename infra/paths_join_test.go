package main

// The paths of join-node.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/states/asl"
)

const lifecycle = `{"AutoScalingGroupName": "drover-demo-pool-a", "LifecycleHookName": "launch", "EC2InstanceId": "i-1", "LifecycleActionToken": "t"}`

func TestJoinNode(t *testing.T) {
	const (
		wait    = "Wait for the node > Has it joined? > "
		abandon = "Abandon the instance > Tell of the instance > The node did not join"
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
		// paused is what the last call is told of the pool's pause, told what it is told of an instance that was given up.
		paused float64
		told   any
	}{
		"Ready at once": {
			script: answers{"join": {says(events.JoinReady)}}, path: wait + "The node is Ready", status: asl.Succeeded, transitions: 3,
		},
		"Ready after a while": {
			script: answers{"join": {says(events.JoinWaiting), says(events.JoinWaiting), says(events.JoinReady)}},
			path:   wait + wait + wait + "The node is Ready", status: asl.Succeeded, transitions: 7,
		},
		"drains take long, and then comes the pool's pause": {
			script: answers{"join": {says(events.JoinWaiting), later(60, 0), later(300, 300), says(events.JoinReady)}},
			path:   wait + wait + "Wait > " + wait + "Wait > " + wait + "The node is Ready", status: asl.Succeeded, transitions: 11,
			took: 6 * time.Minute, paused: 300,
		},
		"nothing waits any more": {
			script: answers{"join": {says(events.JoinGone)}}, path: wait + "Nothing waits", status: asl.Succeeded,
		},
		"hopeless": {
			script: answers{"join": {says(events.JoinAbandoned)}}, path: wait + "The node did not join", status: asl.Failed, cause: "as it is",
		},
		"the function fails": {
			script: answers{"join": {failedBy("ClusterUnreachable"), says(events.JoinAbandoned)}, "completeLifecycleAction": {map[string]any{}}},
			path:   "Wait for the node > " + abandon, status: asl.Failed, cause: "ClusterUnreachable: because", abandons: 1,
			told: "ClusterUnreachable: because",
		},
		"the function answers what nobody knows": {
			script: answers{"join": {says("Perhaps")}, "completeLifecycleAction": {map[string]any{}}},
			path:   wait + abandon, status: asl.Failed, cause: "as it is", abandons: 1, told: "as it is",
		},
		"not even abandoning works": {
			script: answers{"join": {failedBy("Internal")}, "completeLifecycleAction": {failedBy("AutoScaling.AutoScalingException")}},
			path:   "Wait for the node > " + abandon, status: asl.Failed, cause: "Internal: because", abandons: 6, told: "Internal: because",
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
			asked, last := got.sent["join"][0], got.sent["join"][len(got.sent["join"])-1]
			require.Equal(t, "i-1", asked["EC2InstanceId"])
			require.Equal(t, c.told, last["givenUp"])
			if c.told == nil {
				require.Equal(t, c.paused, last["pausedSeconds"])
			}
			require.NotEmpty(t, asked["started"])
			require.Len(t, got.sent["completeLifecycleAction"], c.abandons)
			for _, sent := range got.sent["completeLifecycleAction"] {
				require.Equal(t, map[string]any{
					"AutoScalingGroupName": "drover-demo-pool-a", "LifecycleHookName": "launch", "InstanceId": "i-1", "LifecycleActionResult": "ABANDON",
				}, sent)
			}
		})
	}
}
