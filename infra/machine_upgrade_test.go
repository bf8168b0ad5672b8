package main

// Executions of the upgrade machine.

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/shared/upgrade"
)

const (
	upgradeInput = `{"cluster": "demo", "release": "r2"}`

	pathCheck = "Check the cluster > May the upgrade begin? > "
	pathBegin = pathCheck + "Silence the alarms > What is the next step? > "
	pathProve = "Verify the step > What is the next step? > "
	pathEnd   = "Check the result > Did the checks pass? > "
	pathStop  = "Stop the upgrade > The upgrade stopped"
)

// openedStep is the result that opens a step.
func openedStep(kind upgrade.StepKind) events.UpgradeResult {
	return events.UpgradeResult{Outcome: events.UpgradeGo, Message: "as returned", Kind: string(kind), Name: "demo-" + string(kind)}
}

func upgradeResult(o events.UpgradeOutcome) events.UpgradeResult {
	return events.UpgradeResult{Outcome: o, Message: "as returned"}
}

// upgradeWaits is a result that requests another call after a pause.
func upgradeWaits(seconds int) events.UpgradeResult {
	return events.UpgradeResult{Outcome: events.UpgradeBusy, Message: "as returned", WaitSeconds: seconds}
}

// allPhases is a successful upgrade with a step of every kind.
func allPhases() (script answers, path string) {
	script = answers{
		"Check the cluster": {upgradeResult(events.UpgradeGo)}, "Check the result": {upgradeResult(events.UpgradeDone)},
		"Stop the upgrade": {upgradeResult(events.UpgradeStopped)},
	}
	path = pathBegin
	var steps []any
	for _, p := range stepTable() {
		steps = append(steps, openedStep(p.kind))
		script[p.title] = []any{map[string]any{"Status": "SUCCEEDED"}}
		path += p.title + " > " + pathProve
	}
	script["Silence the alarms"], script["Verify the step"] = steps[:1], append(steps[1:], upgradeResult(events.UpgradeDone))
	return script, path + pathEnd + "Upgraded"
}

// controlPlaneOnly is a successful upgrade of the control plane alone.
func controlPlaneOnly() answers {
	script, _ := allPhases()
	return script.but("Silence the alarms", openedStep(upgrade.StepControlPlane)).but("Verify the step", upgradeResult(events.UpgradeDone))
}

// The cases together take every transition of the machine.
func TestUpgrade(t *testing.T) {
	const move = pathBegin + "Upgrade the control plane > "
	every, whole := allPhases()
	taken := map[string]bool{}
	take := func(path string) {
		states := strings.Split(path, " > ")
		for i, next := range states[1:] {
			taken[states[i]+" > "+next] = true
		}
	}
	for name, c := range map[string]struct {
		script answers
		path   string
		// failed is the error of the execution, and cause its cause; empty when it succeeds.
		failed, cause string
		// reported are the error and cause in the payload of the stop; nil without a stop.
		reported []any
		took     time.Duration
	}{
		"step by step": {script: every, path: whole},
		"the cluster runs the release already": {
			script: controlPlaneOnly().but("Check the cluster", upgradeResult(events.UpgradeNothing)), path: pathCheck + "Nothing to upgrade",
		},
		"a manual request is refused": {
			script: controlPlaneOnly().but("Check the cluster", upgradeResult(events.UpgradeRefused)), path: pathCheck + "Request refused",
		},
		"the checks found something": {
			script: controlPlaneOnly().but("Check the cluster", upgradeResult(events.UpgradeBlocked)),
			path:   pathCheck + "The checks failed",
			failed: upgradeBlocked, cause: "as returned",
		},
		"every step was made already": {
			script: controlPlaneOnly().but("Silence the alarms", upgradeResult(events.UpgradeDone)), path: pathBegin + pathEnd + "Upgraded",
		},
		"the cluster is busy for a while": {
			script: controlPlaneOnly().but("Check the cluster", upgradeWaits(300), upgradeWaits(300), upgradeResult(events.UpgradeGo)),
			path:   strings.Repeat(pathCheck+"Wait for the cluster > ", 2) + move + pathProve + pathEnd + "Upgraded", took: 10 * time.Minute,
		},
		"the cluster is busy for too long": {
			script: controlPlaneOnly().but("Check the cluster", upgradeWaits(300), upgradeResult(events.UpgradeStopped)),
			path:   pathCheck + "Wait for the cluster > " + pathCheck + pathStop, reported: []any{upgradeStopped, "as returned"},
		},
		"it cannot be checked": {
			script: controlPlaneOnly().but("Check the cluster", failedBy("Internal")), path: "Check the cluster > " + pathStop,
			reported: []any{"Internal", "because"},
		},
		"the alarms cannot be silenced": {
			script: controlPlaneOnly().but("Silence the alarms", failedBy("Internal")), path: pathCheck + "Silence the alarms > " + pathStop,
			reported: []any{"Internal", "because"},
		},
		"another execution makes the step": {
			script: controlPlaneOnly().but("Verify the step", upgradeWaits(60), upgradeResult(events.UpgradeDone)),
			path:   move + pathProve + "Wait for the step > " + pathProve + pathEnd + "Upgraded", took: time.Minute,
		},
		"a step is made again": {
			script: controlPlaneOnly().but("Verify the step", openedStep(upgrade.StepControlPlane), upgradeResult(events.UpgradeDone)),
			path:   move + pathProve + "Upgrade the control plane > " + pathProve + pathEnd + "Upgraded",
		},
		"converging fails": {
			script: controlPlaneOnly().but("Upgrade the control plane", failedBy("States.TaskFailed")), path: move + pathStop,
			reported: []any{"States.TaskFailed", "because"},
		},
		"a step cannot be verified": {
			script: controlPlaneOnly().but("Verify the step", failedBy("LeaseLost")), path: move + "Verify the step > " + pathStop,
			reported: []any{"LeaseLost", "because"},
		},
		"the spec changed": {
			script: controlPlaneOnly().but("Verify the step", upgradeResult(events.UpgradeStopped)), path: move + pathProve + pathStop,
			reported: []any{upgradeStopped, "as returned"},
		},
		"a step of an unknown kind": {
			script: controlPlaneOnly().but("Verify the step", openedStep("Perhaps")),
			path:   move + pathProve + pathStop, reported: []any{upgradeStopped, "as returned"},
		},
		"the function returns an unknown outcome": {
			script: controlPlaneOnly().but("Check the cluster", upgradeResult("Perhaps")),
			path:   pathCheck + pathStop, reported: []any{upgradeStopped, "as returned"},
		},
		"the function returns no message": {
			script: controlPlaneOnly().but("Verify the step", events.UpgradeResult{Outcome: "Perhaps"}), path: move + pathProve + pathStop,
			reported: []any{upgradeStopped, ""},
		},
		"the checks pass after a while": {
			script: controlPlaneOnly().but("Check the result", upgradeWaits(60), upgradeWaits(180), upgradeResult(events.UpgradeDone)),
			path:   move + pathProve + strings.Repeat(pathEnd+"Wait for the checks > ", 2) + pathEnd + "Upgraded", took: 4 * time.Minute,
		},
		"the checks fail": {
			script: controlPlaneOnly().but("Check the result", upgradeResult(events.UpgradeStopped)), path: move + pathProve + pathEnd + pathStop,
			reported: []any{upgradeStopped, "as returned"},
		},
		"the result cannot be checked": {
			script: controlPlaneOnly().but("Check the result", failedBy("Internal")), path: move + pathProve + "Check the result > " + pathStop,
			reported: []any{"Internal", "because"},
		},
		"recording the stop fails too": {
			script: controlPlaneOnly().but("Verify the step", failedBy("LeaseLost")).but("Stop the upgrade", failedBy("Internal")),
			path:   move + "Verify the step > Stop the upgrade > Recording the stop failed", failed: upgradeStopped, cause: "Internal: because",
			reported: []any{"LeaseLost", "because"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.reported != nil && c.failed == "" {
				c.failed, c.cause = upgradeStopped, "as returned"
			}
			got := execute(t, upgradeMachine, upgradeInput, c.script)
			require.Equal(t, c.path, got.path)
			require.Equal(t, []string{c.failed, c.cause}, []string{got.Error, got.Cause})
			require.Equal(t, c.failed == "", got.Status == asl.Succeeded)
			if c.took > 0 {
				require.Equal(t, c.took, got.took)
			}
			require.Equal(t, c.reported == nil, len(got.sent["Stop the upgrade"]) == 0)
			for _, sent := range got.sent["Stop the upgrade"] {
				require.Equal(t, c.reported, []any{sent["error"], sent["cause"]})
			}
			take(got.path)
		})
	}
	for _, p := range stepTable() {
		script, _ := allPhases()
		got := execute(t, upgradeMachine, upgradeInput, script.but(p.title, failedBy("States.TaskFailed")))
		before, _, _ := strings.Cut(whole, p.title)
		require.Equal(t, before+p.title+" > "+pathStop, got.path)
		take(got.path)
	}
	eachState(t, upgradeMachine, func(name string, s aslState, _ *aslState) {
		var ways []string
		for _, c := range s.Choices {
			ways = append(ways, c.Next)
		}
		for _, c := range s.Catch {
			ways = append(ways, c.Next)
		}
		if s.Next != "" {
			ways = append(ways, s.Next)
		}
		for _, next := range ways {
			require.Contains(t, taken, name+" > "+next, "no case takes this transition")
		}
	})
}

// Each task retries temporary errors. Every other error stops the upgrade and enables the alarms.
func TestFailedUpgradeStopsAndEnablesAlarms(t *testing.T) {
	_, whole := allPhases()
	fails := func(t *testing.T, state string, turns ...any) play {
		t.Helper()
		script, _ := allPhases()
		return execute(t, upgradeMachine, upgradeInput, script.but(state, turns...))
	}
	tried := 0
	eachState(t, upgradeMachine, func(name string, s aslState, _ *aslState) {
		if s.Type != "Task" || name == "Stop the upgrade" {
			return
		}
		t.Run(name, func(t *testing.T) {
			tried++
			before, _, reached := strings.Cut(whole, name)
			require.True(t, reached)
			stopped := before + name + " > " + pathStop
			script, _ := allPhases()
			for _, passing := range s.Retry[0].ErrorEquals {
				got := fails(t, name, append([]any{failedBy(passing)}, script[name]...)...)
				require.Equal(t, whole, got.path, passing)
				got = fails(t, name, failedBy(passing))
				require.Equal(t, stopped, got.path, passing)
				require.Len(t, got.sent[name], 1+s.Retry[0].MaxAttempts)
			}
			got := fails(t, name, failedBy("Internal"))
			require.Equal(t, stopped, got.path)
			require.Len(t, got.sent[name], 1)
			if slices.Contains(s.Retry[0].ErrorEquals, "States.Timeout") { // a function that does not answer is called again
				got = fails(t, name, append([]any{silence{}}, script[name]...)...)
				require.Equal(t, whole, got.path)
				return
			}
			got = fails(t, name, silence{})
			require.Equal(t, stopped, got.path)
			require.Equal(t, []any{"States.Timeout", ""}, []any{got.sent["Stop the upgrade"][0]["error"], got.sent["Stop the upgrade"][0]["cause"]})
			require.Equal(t, time.Duration(s.TimeoutSeconds)*time.Second, got.took)
		})
	})
	require.Equal(t, 4+len(stepTable()), tried)

	// Stopping is retried too.
	script, _ := allPhases()
	got := execute(t, upgradeMachine, upgradeInput, script.but("Check the result", failedBy("Internal")).but("Stop the upgrade",
		append(repeat(failedBy("Throttled"), attempts), upgradeResult(events.UpgradeStopped))...))
	require.True(t, strings.HasSuffix(got.path, pathStop), got.path)
}

// A step is also verified if an earlier call, whose response was lost, started its execution.
func TestUpgradeVerifiesStepStartedBefore(t *testing.T) {
	for _, p := range stepTable() {
		for _, name := range startedBefore {
			script, whole := allPhases()
			got := execute(t, upgradeMachine, upgradeInput, script.but(p.title, failedBy(name)))
			require.Equal(t, whole, got.path, "%s: %s", p.title, name)
		}
	}
}

// Each phase has a timeout. The timeout of the machine covers the initial wait and all phases of the longest upgrade.
func TestEachPhaseOfAnUpgradeHasItsTime(t *testing.T) {
	times := map[string]time.Duration{}
	eachState(t, upgradeMachine, func(name string, s aslState, _ *aslState) {
		times[name] = time.Duration(s.TimeoutSeconds) * time.Second
	})
	total := 2 * time.Hour
	for _, p := range stepTable() {
		many := 1
		if p.kind == upgrade.StepAddonsFirst || p.kind == upgrade.StepControlPlane {
			many = upgrade.Skew
		}
		total += time.Duration(many) * times[p.title]
		script, _ := allPhases()
		got := execute(t, upgradeMachine, upgradeInput, script.but(p.title, silence{}))
		require.Equal(t, times[p.title], got.took, p.title)
		require.True(t, strings.HasSuffix(got.path, p.title+" > "+pathStop), got.path)
	}
	require.Equal(t, 4*time.Hour, times["Upgrade the control plane"], "as the runbook says")
	require.Equal(t, 3*time.Hour, times["Upgrade the add-ons"])
	require.Equal(t, 5*24*time.Hour, times["Replace the nodes"])
	var machine struct{ TimeoutSeconds int }
	require.NoError(t, json.Unmarshal(definition(t, upgradeMachine), &machine))
	require.Less(t, total, time.Duration(machine.TimeoutSeconds)*time.Second)
}

// The function receives the execution's input and the action of each state. The converge machine receives only the cluster.
func TestUpgradeRequests(t *testing.T) {
	actions := map[string]events.UpgradeAction{
		"Check the cluster": events.UpgradeCheck, "Silence the alarms": events.UpgradeBegin, "Verify the step": events.UpgradeNext,
		"Check the result": events.UpgradeFinish, "Stop the upgrade": events.UpgradeStop,
	}
	in := events.Upgrade{Cluster: "demo", Release: "r2", KubernetesVersion: "1.37", Origin: "Spec", Key: "spec v1"}
	input, err := json.Marshal(in)
	require.NoError(t, err)
	script, _ := allPhases()
	got := execute(t, upgradeMachine, string(input), script.but("Check the result", failedBy("Internal")))
	for state, action := range actions {
		require.NotEmpty(t, got.sent[state], state)
		for _, sent := range got.sent[state] {
			body, err := json.Marshal(sent)
			require.NoError(t, err)
			var request events.UpgradeRequest
			decoder := json.NewDecoder(bytes.NewReader(body))
			decoder.DisallowUnknownFields()
			require.NoError(t, decoder.Decode(&request))
			require.Equal(t, action, request.Action)
			require.Equal(t, in, request.Upgrade)
			require.Equal(t, "arn:aws:states:eu-central-1:111122223333:execution:drover-upgrade:test", request.Execution)
			require.False(t, request.Started.IsZero())
		}
	}
	for _, p := range stepTable() {
		require.Equal(t, []map[string]any{{
			"StateMachineArn": "arn:aws:states:eu-central-1:111122223333:stateMachine:drover-converge", "Name": "demo-" + string(p.kind),
			"Input": map[string]any{"cluster": "demo"},
		}}, got.sent[p.title])
	}
	require.ElementsMatch(t, append(slices.Collect(maps.Keys(actions)), titles()...), slices.Collect(maps.Keys(got.sent)))
}

func titles() (all []string) {
	for _, p := range stepTable() {
		all = append(all, p.title)
	}
	return all
}
