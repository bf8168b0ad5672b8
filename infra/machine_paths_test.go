package main

// Executions of the synthesized machines with the local account's interpreter and scripted functions. The tests of each machine use it.

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
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
)

// answers of the functions in sequence. The last one repeats. A key is one of, in order of precedence:
//   - the name of a state,
//   - a function's name without the prefix,
//   - "change <stack>", for the result of a stack's operation,
//   - the action of an AWS API call.
type answers map[string][]any

// callError is an error of the function itself, and not of the operation that it started.
type callError struct{ *asl.Failure }

// silence is an event or a response that never arrives.
type silence struct{}

func failedBy(name string) *asl.Failure { return &asl.Failure{Name: name, Cause: "because"} }

// play is the result of an execution.
type play struct {
	asl.Outcome
	// path of the states outside of Maps, whose states run in parallel.
	path string
	// sent are the payloads of each function, in order.
	sent map[string][]map[string]any
	took time.Duration
	// events of the execution.
	events int
}

func execute(t *testing.T, machine, input string, script answers) play {
	t.Helper()
	return executeDuring(t, machine, input, script, outage{})
}

// outage is a time during which every invocation of a function fails with an error.
type outage struct {
	lasts time.Duration
	name  string
}

// executeDuring executes a machine. The outage begins with the execution.
func executeDuring(t *testing.T, machine, input string, script answers, bad outage) play {
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
				out.events++
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
				if task.Resource.Service == "lambda" && time.Since(started) < bad.lasts {
					if bad.name == "States.Timeout" {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return nil, failedBy(bad.name)
				}
				mu.Lock()
				if here := path[len(path)-1]; script[here] != nil {
					key = here
				}
				mu.Unlock()
				if task.Token == "" {
					return direct(ctx, next(key, payload), task.Resource.Job)
				}
				switch answer := next(fmt.Sprintf("%s %s", key, payload["stack"]), payload).(type) {
				case callError:
					return nil, answer.Failure
				case silence:
				case *asl.Failure:
					if err := tokens.Fail(payload["taskToken"].(string), answer.Name, answer.Cause); err != nil {
						return nil, err
					}
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

// direct returns the result of a task without a token. The result of a job is its description.
func direct(ctx context.Context, answer any, job bool) (json.RawMessage, error) {
	switch answer := answer.(type) {
	case callError:
		return nil, answer.Failure
	case *asl.Failure:
		return nil, answer
	case silence:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if job {
		return json.Marshal(answer)
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
	unchangedPlan = events.PlanResult{Cluster: "demo", Outcome: events.OutcomeUnchanged, Fence: 7, Stages: noStages}
	noStages      = events.Stages{
		Network: []string{}, ControlPlane: []string{}, Addons: []string{}, Pools: [][]string{}, NodeAddons: []string{},
	}
)

func doneResult(stack string) events.ChangeResult {
	return events.ChangeResult{Stack: stack, Status: "CREATE_COMPLETE"}
}

// good is a script in which every call succeeds.
func good() answers {
	script := answers{
		"plan": {changes, unchangedPlan}, "prepare": {map[string]any{}}, "report": {events.ReportResult{}},
	}
	for _, stack := range []string{"network", "control-plane", "addons", "pool-a", "pool-b", "node-addons"} {
		script["change "+stack] = []any{doneResult(stack)}
	}
	return script
}

// but replaces the answers of a key.
func (a answers) but(key string, turns ...any) answers {
	a[key] = turns
	return a
}

func repeat(v any, n int) []any {
	var out []any
	for range n {
		out = append(out, v)
	}
	return out
}
