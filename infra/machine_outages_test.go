package main

// Outages: every invocation fails for an hour, because the account is at its limit, or because Lambda or AWS is down.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
)

// TestMachinesWaitForLambda runs each machine through an outage with each error. Afterwards every execution ends as it would have without
// the outage: no hook is abandoned, no drain fails, and no upgrade stops. A machine without a life here fails the test.
func TestMachinesWaitForLambda(t *testing.T) {
	// hook is the input of an instance's hook. byHand is a drain without a hook.
	lives := map[string]map[string]struct {
		script answers
		last   string
		// reports means that crashes and faults of the function end the execution with a report, and drover starts another one later.
		reports bool
	}{
		convergeMachine: {`{"cluster": "demo"}`: {script: good(), last: "Done", reports: true}},
		joinMachine: {lifecycle: {
			script: answers{
				"join":                           {events.JoinResult{Outcome: events.JoinReady}},
				"recordLifecycleActionHeartbeat": {map[string]any{}}, "completeLifecycleAction": {map[string]any{}},
			}, last: "The node is Ready",
		}},
		drainMachine: {
			lifecycle: {
				script: answers{
					"drain":                          {events.DrainResult{DrainReport: events.DrainReport{Outcome: events.DrainDone}}},
					"recordLifecycleActionHeartbeat": {map[string]any{}}, "completeLifecycleAction": {map[string]any{}},
				}, last: "The node has been drained",
			},
			`{"cluster": "demo", "node": "n1"}`: {
				script: answers{"drain": {events.DrainResult{DrainReport: events.DrainReport{Outcome: events.DrainDone}}}},
				last:   "The node has been drained",
			},
		},
		upgradeMachine: {`{"cluster": "demo", "release": "r2"}`: {
			script: answers{
				"Check the cluster":  {events.UpgradeResult{Outcome: events.UpgradeGo}},
				"Silence the alarms": {events.UpgradeResult{Outcome: events.UpgradeDone}},
				"Check the result":   {events.UpgradeResult{Outcome: events.UpgradeDone}},
			}, last: "Upgraded",
		}},
	}
	for machine := range machineGoldens {
		require.NotEmpty(t, lives[machine], "how does %s wait for Lambda?", machine)
		for input, life := range lives[machine] {
			byHand := machine == drainMachine && !strings.Contains(input, "LifecycleHookName")
			for _, name := range passing(false) {
				isService := strings.HasPrefix(name, "Lambda.") && name != "Lambda.Unknown"
				if !isService && (life.reports || byHand) {
					continue
				}
				t.Run(machine+" "+name, func(t *testing.T) {
					got := executeDuring(t, machine, input, life.script, outage{time.Hour, name})
					require.Equal(t, asl.Succeeded, got.Status, "%s: %s\n%s", got.Error, got.Cause, got.path)
					require.True(t, strings.HasSuffix(got.path, life.last), got.path)
					require.Empty(t, got.sent["completeLifecycleAction"], "the function completes the hook")
					require.LessOrEqual(t, got.took, 65*time.Minute, "the work continues within five minutes")
				})
			}
		}
	}
}

// A hook is kept open for a day, with heartbeats before it times out, and within the events of an execution.
func TestJoinKeepsTheHookOpen(t *testing.T) {
	for _, name := range append(passing(false), "Internal", "errorString") {
		t.Run(name, func(t *testing.T) {
			script := answers{
				"join": {events.JoinResult{Outcome: events.JoinAbandoned}}, "completeLifecycleAction": {map[string]any{}},
				"recordLifecycleActionHeartbeat": {map[string]any{}},
			}
			got := executeDuring(t, joinMachine, lifecycle, script, outage{24*time.Hour + 30*time.Minute, name})
			require.Equal(t, asl.Failed, got.Status)
			require.True(t, strings.HasSuffix(got.path, "Abandon the instance > Record the failed join > The node did not join"),
				got.path[len(got.path)-200:])
			require.Len(t, got.sent["completeLifecycleAction"], 1)
			require.InDelta(t, 24*time.Hour, got.took, float64(time.Hour))
			require.Greater(t, len(got.sent["recordLifecycleActionHeartbeat"]), 24, "the hook times out after two hours")
			require.Less(t, got.events, 25_000)
		})
	}
}
