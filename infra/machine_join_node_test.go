package main

// Executions of the join-node machine.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
)

const lifecycle = `{"AutoScalingGroupName": "drover-demo-pool-a", "LifecycleHookName": "launch", "EC2InstanceId": "i-1",
	"LifecycleActionToken": "t"}`

func TestJoinNode(t *testing.T) {
	const (
		wait    = "Check the node > Did the node join? > "
		pause   = "Wait for the next check > "
		trouble = "Has the hook time left? > Keep the hook open > Back off > "
		abandon = "Abandon the instance > Record the failed join > The node did not join"
	)
	says := func(outcome events.JoinOutcome) any {
		return events.JoinResult{Outcome: outcome, Message: "as returned"}
	}
	later := func(seconds, paused int64) any {
		return events.JoinResult{
			Outcome: events.JoinWaiting, Message: "as returned", WaitSeconds: seconds, PausedSeconds: paused, Node: "n1",
			MissingSince: time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC),
		}
	}
	for name, c := range map[string]struct {
		script      answers
		path        string
		status      asl.Status
		cause       string
		transitions int
		abandons    int
		took        time.Duration
		// paused and reason are in the last payload: the pool's pause so far, and the reason of an abandoned instance. known is what the
		// function returned about the node before.
		paused float64
		known  []any
		reason any
	}{
		"Ready at once": {
			script: answers{"join": {says(events.JoinReady)}}, path: wait + "The node is Ready", status: asl.Succeeded, transitions: 3,
		},
		"Ready after a while": {
			script: answers{"join": {later(3, 0), later(3, 0), says(events.JoinReady)}},
			path:   wait + pause + wait + pause + wait + "The node is Ready", status: asl.Succeeded, transitions: 9, took: 6 * time.Second,
			known: []any{"n1", "2026-01-01T00:01:00Z"},
		},
		"long drains are followed by the pool's pause": {
			script: answers{"join": {later(3, 0), later(60, 0), later(300, 300), says(events.JoinReady)}},
			path:   wait + pause + wait + pause + wait + pause + wait + "The node is Ready", status: asl.Succeeded, transitions: 12,
			took: 6*time.Minute + 3*time.Second, paused: 300,
		},
		"no hook is open": {
			script: answers{"join": {says(events.JoinGone)}}, path: wait + "No hook to complete", status: asl.Succeeded,
		},
		"the function abandons the instance": {
			script: answers{"join": {says(events.JoinAbandoned)}}, path: wait + "The node did not join", status: asl.Failed, cause: "as returned",
		},
		"the function fails once": {
			script: answers{
				"join": {later(3, 300), failedBy("Internal"), says(events.JoinReady)}, "recordLifecycleActionHeartbeat": {map[string]any{}},
			},
			path: wait + pause + "Check the node > " + trouble + wait + "The node is Ready", status: asl.Succeeded, took: 18 * time.Second,
			paused: 300,
			known:  []any{nil, nil},
		},
		"the heartbeat fails too": {
			script: answers{
				"join": {failedBy("Internal"), says(events.JoinReady)}, "recordLifecycleActionHeartbeat": {
					failedBy("AutoScaling.AutoScalingException"),
				},
			},
			path: "Check the node > " + trouble + wait + "The node is Ready", status: asl.Succeeded,
		},
		"the function returns an unknown outcome": {
			script: answers{"join": {says("Perhaps"), says(events.JoinReady)}, "recordLifecycleActionHeartbeat": {map[string]any{}}},
			path:   wait + trouble + wait + "The node is Ready", status: asl.Succeeded,
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
			if c.known != nil {
				require.Equal(t, c.known, []any{last["node"], last["missingSince"]})
			}
			if c.paused > 0 {
				require.Equal(t, c.paused, last["pausedSeconds"])
			}
			require.NotEmpty(t, first["started"])
			require.NotContains(t, first, "missingSince")
			require.Len(t, got.sent["completeLifecycleAction"], c.abandons)
			for _, sent := range got.sent["completeLifecycleAction"] {
				require.Equal(t, map[string]any{
					"AutoScalingGroupName": "drover-demo-pool-a", "LifecycleHookName": "launch", "InstanceId": "i-1", "LifecycleActionResult": "ABANDON",
				}, sent)
			}
		})
	}
}
