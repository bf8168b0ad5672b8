package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/states/asl"
	drains "github.com/drover-run/drover/shared/drain"
)

// Answers of the functions, in turn; the last one stays. Keys are a function's name without the prefix, "change <stack>" for
// what becomes of a stack, and the action of a call to AWS.
type answers map[string][]any

// called is an error of the function itself, not of what it was asked to wait for.
type called struct{ *asl.Failure }

// silence is an event that never comes.
type silence struct{}

func failedBy(name string) *asl.Failure { return &asl.Failure{Name: name, Cause: "because"} }

// play is an execution of a synthesized machine by the local account's interpreter.
type play struct {
	asl.Outcome
	// path of the machine's own states; those within Maps run at the same time.
	path string
	// sent are the payloads of each function, in order.
	sent map[string][]map[string]any
	took time.Duration
}

func execute(t *testing.T, machine, input string, script answers) play {
	t.Helper()
	definition := definition(t, machine)
	parsed, err := asl.Parse(definition)
	require.NoError(t, err)
	var own struct{ States map[string]any }
	require.NoError(t, json.Unmarshal(definition, &own))

	out := play{sent: map[string][]map[string]any{}}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var path []string
		var tokens asl.Tokens
		next := func(key string, payload map[string]any) any {
			mu.Lock()
			defer mu.Unlock()
			turns := script[key]
			if len(turns) == 0 {
				return failedBy("Unscripted: " + key)
			}
			answer := turns[min(len(out.sent[key]), len(turns)-1)]
			out.sent[key] = append(out.sent[key], payload)
			return answer
		}
		started := time.Now()
		out.Outcome = parsed.Run(t.Context(), asl.Execution{
			ARN: "arn:aws:states:eu-central-1:111122223333:execution:" + machine + ":test", Name: "test", MachineName: machine,
			Input: json.RawMessage(input), Start: started,
		}, asl.Host{
			Tokens: &tokens,
			Random: func() float64 { return 0.5 },
			Record: func(e asl.Event) {
				if _, ok := own.States[e.State]; ok && strings.HasSuffix(e.Type, "StateEntered") {
					mu.Lock()
					defer mu.Unlock()
					path = append(path, e.State)
				}
			},
			Task: func(ctx context.Context, task asl.Task) (json.RawMessage, error) {
				var arguments map[string]any
				if err := json.Unmarshal(task.Arguments, &arguments); err != nil {
					return nil, err
				}
				key, payload := task.Resource.Action, arguments
				if arn, ok := arguments["FunctionName"].(string); ok {
					key = strings.TrimPrefix(arn[strings.LastIndex(arn, ":")+1:], "drover-")
					payload = arguments["Payload"].(map[string]any)
				}
				if task.Token == "" {
					return direct(next(key, payload))
				}
				switch answer := next(fmt.Sprintf("%s %s", key, payload["stack"]), payload).(type) {
				case called:
					return nil, answer.Failure
				case silence:
				case *asl.Failure:
					return nil, tokens.Fail(payload["taskToken"].(string), answer.Name, answer.Cause)
				default:
					body, err := json.Marshal(answer)
					if err != nil {
						return nil, err
					}
					if err := tokens.Succeed(payload["taskToken"].(string), body); err != nil {
						return nil, err
					}
				}
				return json.RawMessage(`{"StatusCode": 200, "Payload": null}`), nil
			},
		})
		out.took = time.Since(started)
		out.path = strings.Join(path, " > ")
	})
	return out
}

// direct is the result of a call whose answer comes at once.
func direct(answer any) (json.RawMessage, error) {
	switch answer := answer.(type) {
	case called:
		return nil, answer.Failure
	case *asl.Failure:
		return nil, answer
	}
	return json.Marshal(map[string]any{"StatusCode": 200, "Payload": answer})
}

// Plans of a cluster with two pools.
var (
	changes = events.PlanResult{
		Cluster: "demo", Outcome: events.OutcomeChanges, SpecVersion: "v1", Fence: 7, PlanKey: "plans/1.json",
		Stages: events.Stages{
			Network: []string{"network"}, ControlPlane: []string{"control-plane"}, Addons: []string{"addons"},
			Pools: [][]string{{"pool-a", "pool-b"}}, NodeAddons: []string{"node-addons"},
		},
	}
	unchanged = events.PlanResult{Cluster: "demo", Outcome: events.OutcomeUnchanged, Fence: 7, Stages: noStages}
	noStages  = events.Stages{Network: []string{}, ControlPlane: []string{}, Addons: []string{}, Pools: [][]string{}, NodeAddons: []string{}}
)

func done(stack string) events.ChangeResult {
	return events.ChangeResult{Stack: stack, Status: "CREATE_COMPLETE"}
}

// good is an execution in which everything works.
func good() answers {
	script := answers{
		"plan": {changes, unchanged}, "prepare": {map[string]any{}}, "report": {events.ReportResult{}},
	}
	for _, stack := range []string{"network", "control-plane", "addons", "pool-a", "pool-b", "node-addons"} {
		script["change "+stack] = []any{done(stack)}
	}
	return script
}

// but changes some answers of a script.
func (a answers) but(key string, turns ...any) answers {
	a[key] = turns
	return a
}

func TestConverge(t *testing.T) {
	const (
		begin  = "Read the input > Plan > What is to be done? > "
		round  = "Change the network > Change the control plane > Prepare the cluster > Change the add-ons > Change the pools > Pools of a higher order? > Change the node add-ons > Did every stack succeed? > "
		again  = "Plan > What is to be done? > "
		report = "Report > A newer spec? > "
		higher = "Pools of a higher order? > "
		failed = "The cluster did not converge"
	)
	bad := events.ReportResult{Failed: true, Reason: "the network could not be made"}
	for name, c := range map[string]struct {
		script answers
		path   string
		status asl.Status
		// transitions, when they matter: creating the cluster of the example must cost at most 60 with those of its nodes.
		transitions int
		// reported are fields of the last report.
		reported map[string]any
	}{
		"a new cluster is made and planned once more": {
			script: good(), path: begin + round + again + report + "Done", status: asl.Succeeded, transitions: 34,
			reported: map[string]any{"error": "", "cause": ""},
		},
		"nothing is to be done": {
			script: good().but("plan", unchanged), path: begin + report + "Done", status: asl.Succeeded, transitions: 6,
		},
		"somebody else converges it": {
			script: answers{"plan": {events.PlanResult{Outcome: events.OutcomeBusy, Stages: noStages}}},
			path:   begin + "Another execution converges this cluster", status: asl.Succeeded, transitions: 4,
		},
		"nothing may be done": {
			script: good().but("plan", events.PlanResult{Outcome: events.OutcomeStopped, Reason: "Paused", Stages: noStages}),
			path:   begin + report + "Done", status: asl.Succeeded,
		},
		"a newer spec came meanwhile": {
			script: good().but("plan", unchanged).but("report", events.ReportResult{Again: true}, events.ReportResult{}),
			path:   begin + report + again + report + "Done", status: asl.Succeeded,
		},
		"planning fails": {
			script: good().but("plan", failedBy("Internal")).but("report", bad),
			path:   "Read the input > Plan > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "Internal", "cause": "because", "plan": nil},
		},
		"planning is throttled for a while": {
			script: good().but("plan", failedBy("Throttled"), failedBy("Transient"), unchanged),
			path:   begin + report + "Done", status: asl.Succeeded,
		},
		"the network fails": {
			script: good().but("change network", failedBy("StackFailed")).but("report", bad),
			path:   begin + "Change the network > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "StackFailed", "cause": "because"},
		},
		"the control plane is refused": {
			script: good().but("change control-plane", failedBy("ChangeRefused")).but("report", bad),
			path:   begin + "Change the network > Change the control plane > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "ChangeRefused"},
		},
		"the change function itself fails": {
			script: good().but("change network", called{failedBy("LeaseLost")}).but("report", bad),
			path:   begin + "Change the network > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "LeaseLost"},
		},
		"a newer spec comes while the network changes": {
			script: good().but("plan", changes, unchanged).but("change control-plane", called{failedBy("Superseded")}),
			path:   begin + "Change the network > Change the control plane > " + again + report + "Done", status: asl.Succeeded,
			reported: map[string]any{"error": "", "cause": "", "results": []any{}},
		},
		"a newer spec comes before the last pool": {
			script: good().but("change pool-a", failedBy("StackFailed")).but("change pool-b", called{failedBy("Superseded")}),
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
			path:   begin + "Change the network > Change the control plane > Prepare the cluster > Change the add-ons > " + report + failed, status: asl.Failed,
		},
		"one pool fails and holds up nothing": {
			script: good().but("change pool-a", failedBy("StackFailed")).but("report", bad),
			path:   begin + round + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "", "results": []any{
				result("network"), result("control-plane"), result("addons"),
				map[string]any{"stack": "pool-a", "again": false, "error": "StackFailed", "cause": "because"},
				result("pool-b"), result("node-addons"),
			}},
		},
		"pools are changed in their order": {
			script: good().but("plan", ordered("pool-a", "pool-b"), unchanged), status: asl.Succeeded,
			path: begin + strings.Replace(round, higher, higher+"Change the pools > "+higher, 1) + again + report + "Done",
		},
		"a pool of a higher order stays when one of a lower failed": {
			script: good().but("plan", ordered("pool-a", "pool-b")).but("change pool-a", failedBy("StackFailed"), done("pool-a")).but("report", bad),
			path:   begin + round + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "", "results": []any{
				result("network"), result("control-plane"), result("addons"),
				map[string]any{"stack": "pool-a", "again": false, "error": "StackFailed", "cause": "because"}, result("node-addons"),
			}},
		},
		"no pool is to be changed": {
			script: good().but("plan", ordered(), unchanged), path: begin + round + again + report + "Done", status: asl.Succeeded,
		},
		"a node add-on fails": {
			script: good().but("change node-addons", failedBy("StackFailed")).but("report", bad),
			path:   begin + strings.TrimSuffix(round, "Did every stack succeed? > ") + report + failed, status: asl.Failed,
		},
		"something was in the way of a stack": {
			script: good().but("change network", events.ChangeResult{Stack: "network", Again: true, Status: "DELETE_COMPLETE"}, done("network")),
			path:   begin + round + again + report + "Done", status: asl.Succeeded,
		},
		"the plan never settles": {
			script: good().but("plan", changes).but("report", bad),
			path:   "Read the input > " + strings.Repeat(again+round, maxRounds) + "The plan never settles > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": notConverged, "cause": "10 rounds of changes did not bring the cluster to its spec"},
		},
		"reporting is throttled for a while": {
			script: good().but("plan", unchanged).but("report", failedBy("Throttled"), failedBy("Lambda.TooManyRequestsException"), events.ReportResult{}),
			path:   begin + report + "Done", status: asl.Succeeded,
		},
		"the status cannot be written": {
			script: good().but("plan", unchanged).but("report", failedBy("Internal")),
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

// deletes is a plan that deletes.
func deletes(d events.Deletion) events.PlanResult {
	if d.Stacks == nil {
		d.Stacks = []string{}
	}
	return events.PlanResult{Cluster: "demo", Outcome: events.OutcomeDeletes, Fence: 7, PlanKey: "plans/2.json", Stages: noStages, Deletion: &d}
}

func TestConvergeDeletes(t *testing.T) {
	const (
		begin   = "Read the input > "
		plan    = "Plan > What is to be done? > What goes first? > "
		stacks  = "Delete the stacks > Did every stack go? > "
		survey  = "Ask which volumes are to be kept > "
		clean   = "Remove what Kubernetes made > Is it gone? > "
		pause   = "Wait until it is let go > "
		retry   = "Wait before the next try > "
		report  = "Report > A newer spec? > "
		failed  = "The cluster did not converge"
		whole   = begin + plan + stacks + plan + survey + stacks + plan + clean + stacks + plan + clean + report + "Done"
		nothing = plan + clean + report + "Done"
	)
	gone := func(stack string) any { return events.ChangeResult{Stack: stack, Status: "DELETE_COMPLETE"} }
	pools := deletes(events.Deletion{Stacks: []string{"pool-a", "pool-b"}})
	control := deletes(events.Deletion{Survey: true, Stacks: []string{"control-plane"}})
	network := deletes(events.Deletion{Leftovers: true, Stacks: []string{"network"}})
	last := deletes(events.Deletion{Leftovers: true})
	done, waiting := events.CleanResult{Outcome: events.CleanDone}, events.CleanResult{Outcome: events.CleanWaiting, Message: "security group sg-1: in use"}
	bad := events.ReportResult{Failed: true, Reason: "as it is"}
	script := func() answers {
		a := answers{"plan": {pools, control, network, last}, "prepare": {map[string]any{}}, "clean": {done}, "report": {events.ReportResult{}}}
		for _, stack := range []string{"pool-a", "pool-b", "control-plane", "network"} {
			a["change "+stack] = []any{gone(stack)}
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
		"step by step, and a last look": {script: script(), path: whole, status: asl.Succeeded},
		"its API does not answer": {
			script: script().but("prepare", failedBy("ClusterUnreachable")), path: whole, status: asl.Succeeded,
		},
		"nothing was deployed": {script: script().but("plan", last), path: begin + nothing, status: asl.Succeeded},
		"leftovers take their time": {
			script: script().but("plan", last).but("clean", waiting, waiting, done),
			path:   begin + plan + clean + pause + clean + pause + clean + report + "Done", status: asl.Succeeded, took: 30 * time.Second,
		},
		"leftovers that never go": {
			script: script().but("plan", network).but("clean", waiting).but("report", bad),
			path:   begin + plan + strings.Repeat(clean+pause, maxLooks-1) + clean + "It cannot be removed > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "LeftoversRemain", "cause": "security group sg-1: in use"},
		},
		"removing them fails": {
			script: script().but("plan", network).but("clean", failedBy("LeaseLost")).but("report", bad),
			path:   begin + plan + "Remove what Kubernetes made > " + report + failed, status: asl.Failed,
			reported: map[string]any{"error": "LeaseLost"},
		},
		"the spec is back while they are removed": {
			script: script().but("plan", network, unchanged).but("clean", events.CleanResult{Outcome: events.CleanSuperseded}),
			path:   begin + plan + clean + "Plan > What is to be done? > " + report + "Done", status: asl.Succeeded,
		},
		"the spec is back before a stack goes": {
			script: script().but("plan", pools, unchanged).but("change pool-b", called{failedBy("Superseded")}),
			path:   begin + plan + stacks + "Plan > What is to be done? > " + report + "Done", status: asl.Succeeded,
		},
		"a stack fails twice": {
			script: script().but("plan", pools, pools, pools, last).but("change pool-a", failedBy("StackFailed"), failedBy("StackFailed"), gone("pool-a")),
			path:   begin + plan + stacks + retry + plan + stacks + retry + plan + stacks + nothing, status: asl.Succeeded, took: 3 * time.Minute,
		},
		"a stack that never goes": {
			script: script().but("plan", pools).but("change pool-a", failedBy("StackFailed")).but("report", bad),
			path:   begin + strings.Repeat(plan+stacks+retry, maxTries) + plan + stacks + report + failed, status: asl.Failed, took: 63 * time.Minute,
			reported: map[string]any{"results": []any{
				map[string]any{"stack": "pool-a", "again": false, "error": "StackFailed", "cause": "because"},
				map[string]any{"stack": "pool-b", "again": false, "status": "DELETE_COMPLETE"},
			}},
		},
		"it is gone already": {
			script: script().but("plan", events.PlanResult{Outcome: events.OutcomeGone, Stages: noStages}),
			path:   begin + "Plan > What is to be done? > " + report + "Done", status: asl.Succeeded,
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

// result is a good outcome as a report carries it.
func result(stack string) map[string]any {
	return map[string]any{"stack": stack, "again": false, "status": "CREATE_COMPLETE"}
}

func TestConvergeAsksForEachStackOnceAndWithItsLease(t *testing.T) {
	got := execute(t, convergeMachine, `{"cluster": "demo"}`, good())
	for _, stack := range []string{"network", "control-plane", "addons", "pool-a", "pool-b", "node-addons"} {
		sent := got.sent["change "+stack]
		require.Len(t, sent, 1)
		require.NotEmpty(t, sent[0]["taskToken"])
		delete(sent[0], "taskToken")
		require.Equal(t, map[string]any{
			"cluster": "demo", "execution": "arn:aws:states:eu-central-1:111122223333:execution:drover-converge:test",
			"fence": 7.0, "planKey": "plans/1.json", "stack": stack,
		}, sent[0])
	}
}

// ordered is a plan of pools that are changed one after the other.
func ordered(pools ...string) events.PlanResult {
	plan := changes
	plan.Stages.Pools = [][]string{}
	for _, pool := range pools {
		plan.Stages.Pools = append(plan.Stages.Pools, []string{pool})
	}
	return plan
}

// Pools to be rolled are asked for by the first plan only, with the time of the execution; a person may name one or several.
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

func TestARollOfWhatThereIsNotFails(t *testing.T) {
	refused := events.PlanResult{Cluster: "demo", Outcome: events.OutcomeRefused, Message: "no pool b", Stages: noStages}
	got := execute(t, convergeMachine, `{"cluster": "demo", "roll": ["b"]}`, good().but("plan", refused))
	require.Equal(t, asl.Failed, got.Status)
	require.Equal(t, "RollRefused", got.Error)
	require.Equal(t, "no pool b", got.Cause)
	require.Empty(t, got.sent["report"], "the cluster's status is not concerned")
}

func TestConvergeWithoutAClusterFails(t *testing.T) {
	got := execute(t, convergeMachine, `{}`, good())
	require.Equal(t, asl.Failed, got.Status)
	require.Empty(t, got.sent)
}

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
			path:   "Wait for the node > " + abandon, status: asl.Failed, cause: "ClusterUnreachable: because", abandons: 1, told: "ClusterUnreachable: because",
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

// The machine must outlive the hook, or a node that comes late is abandoned by a timeout nobody sees.
func TestMachinesOutliveWhatTheyWaitFor(t *testing.T) {
	got := execute(t, convergeMachine, `{"cluster": "demo"}`, good().but("change pool-a", silence{}).but("report", events.ReportResult{Failed: true, Reason: "late"}))
	require.Equal(t, "late", got.Cause, "the machine's own timeout came first")
	require.GreaterOrEqual(t, got.took, 24*time.Hour)
}

func TestDrainNode(t *testing.T) {
	const (
		begin  = "Begin > "
		drain  = "Drain the node > Is it drained? > "
		wait   = "Wait > "
		failed = "Drain the node > Try again? > Wait for better times > "
		end    = "The node was not drained"
		hook   = `{"AutoScalingGroupName": "drover-demo-pool-a", "LifecycleHookName": "terminate", "EC2InstanceId": "i-1", "LifecycleActionToken": "t"}`
		byHand = `{"cluster": "demo", "node": "n1"}`
		spot   = `{"instance-id": "i-1", "instance-action": "terminate"}`
	)
	says := func(outcome drains.Outcome, wait int64, forced ...string) any {
		return events.DrainResult{DrainReport: drains.Report{Outcome: outcome, Message: "as it is", Forced: forced}, WaitSeconds: wait}
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
			input: hook, script: answers{"drain": {says(drains.Done, 0)}}, path: begin + drain + "The node is drained", status: asl.Succeeded,
		},
		"drained in slices, each after as long as the last one says": {
			input: hook, script: answers{"drain": {says(drains.Remaining, 1), says(drains.Remaining, 120), says(drains.Done, 0)}},
			path: begin + drain + wait + drain + wait + drain + "The node is drained", status: asl.Succeeded, took: 121 * time.Second,
		},
		"nothing to drain": {
			input: spot, script: answers{"drain": {says(drains.Gone, 0)}}, path: begin + drain + "The node is drained", status: asl.Succeeded,
		},
		"its time is over": {
			input: hook, script: answers{"drain": {says(drains.TimedOut, 0)}}, path: begin + drain + "The node is drained", status: asl.Succeeded,
		},
		"every pod that was forced is named": {
			input: hook, script: answers{"drain": {says(drains.Remaining, 1, "a/b"), says(drains.Remaining, 1), says(drains.Remaining, 1, "c/d", "e/f"), says(drains.Done, 0)}},
			path: begin + strings.Repeat(drain+wait, 3) + drain + "The node is drained", status: asl.Succeeded, took: 3 * time.Second, forced: []any{"a/b", "c/d", "e/f"},
		},
		"nobody knows what is meant": {
			input: `{}`, script: answers{"drain": {says(events.DrainRefused, 0)}}, path: begin + drain + end, status: asl.Failed, cause: "as it is",
		},
		"the function fails for a while": {
			input: hook, script: answers{"drain": {failedBy("Internal"), failedBy("Internal"), says(drains.Done, 0)}},
			path: begin + failed + failed + drain + "The node is drained", status: asl.Succeeded, took: 2 * time.Minute,
		},
		"the function fails for good: the instance goes": {
			input: hook, script: answers{"drain": {failedBy("Internal")}, "completeLifecycleAction": {map[string]any{}}},
			path:   begin + strings.Repeat(failed, maxTroubles-1) + "Drain the node > Try again? > Is there a hook? > Let the instance go > " + end,
			status: asl.Failed, cause: "Internal: because", took: (maxTroubles - 1) * time.Minute, completions: 1,
		},
		"a success forgets the failures before": {
			input: hook, script: answers{"drain": append(append(repeat(failedBy("Internal"), maxTroubles-1), says(drains.Remaining, 1)), append(repeat(failedBy("Internal"), maxTroubles-1), says(drains.Done, 0))...)},
			path:   begin + strings.Repeat(failed, maxTroubles-1) + drain + wait + strings.Repeat(failed, maxTroubles-1) + drain + "The node is drained",
			status: asl.Succeeded, took: (2*maxTroubles-2)*time.Minute + time.Second,
		},
		"the hook ended meanwhile": {
			input: hook, script: answers{"drain": {failedBy("Internal")}, "completeLifecycleAction": {failedBy("AutoScaling.AutoScalingException")}},
			path:   begin + strings.Repeat(failed, maxTroubles-1) + "Drain the node > Try again? > Is there a hook? > Let the instance go > " + end,
			status: asl.Failed, cause: "Internal: because", completions: 6,
		},
		"by hand, it fails for good: the node is given back": {
			input: byHand, script: answers{"drain": append(repeat(failedBy("Internal"), maxTroubles), says(drains.Done, 0))},
			path:   begin + strings.Repeat(failed, maxTroubles-1) + "Drain the node > Try again? > Is there a hook? > Release the node > " + end,
			status: asl.Failed, cause: "Internal: because", took: (maxTroubles - 1) * time.Minute,
		},
		"not even that": {
			input: byHand, script: answers{"drain": {failedBy("Internal")}},
			path:   begin + strings.Repeat(failed, maxTroubles-1) + "Drain the node > Try again? > Is there a hook? > Release the node > " + end,
			status: asl.Failed, cause: "Internal: because", took: (maxTroubles - 1) * time.Minute,
		},
		"the function answers what nobody knows": {
			input: hook, script: answers{"drain": {says("Perhaps", 0)}, "completeLifecycleAction": {map[string]any{}}},
			path: begin + drain + "Is there a hook? > Let the instance go > " + end, status: asl.Failed, cause: "as it is", completions: 1,
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
			require.Equal(t, strings.Contains(c.path, "Release"), last["release"] == true)
			require.Len(t, got.sent["completeLifecycleAction"], c.completions)
			if c.completions > 0 {
				require.Equal(t, map[string]any{
					"AutoScalingGroupName": "drover-demo-pool-a", "LifecycleHookName": "terminate", "InstanceId": "i-1", "LifecycleActionResult": "CONTINUE",
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

func repeat(v any, n int) []any {
	var out []any
	for range n {
		out = append(out, v)
	}
	return out
}

// A drain of 48 hours must not run out of the events that an execution may have.
// https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
func TestALongDrainFitsIntoAnExecution(t *testing.T) {
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
