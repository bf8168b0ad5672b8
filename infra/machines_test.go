package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	change "github.com/drover-run/drover/functions/change/handler"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/fault"
)

// machineGoldens are in testdata/machines, with the tests' ARNs. Tests of the local account's interpreter use them too.
var machineGoldens = map[string]string{
	convergeMachine: "converge",
	joinMachine:     "join-node",
	drainMachine:    "drain-node",
	upgradeMachine:  "upgrade",
}

// aslState has the fields of a state that the tests read.
type aslState struct {
	Type, Resource string
	Next, Default  string
	End            bool
	TimeoutSeconds int
	Arguments      map[string]any
	Retry          []struct {
		ErrorEquals     []string
		JitterStrategy  string
		MaxDelaySeconds int
		MaxAttempts     int
	}
	Catch []struct {
		ErrorEquals []string
		Next        string
		Assign      map[string]any
	}
	Choices       []struct{ Next string }
	Assign        map[string]any
	Error         string
	ItemProcessor struct{ States map[string]aslState }
}

// definition of a machine with the tests' ARNs, indented.
func definition(t *testing.T, machine string) []byte {
	t.Helper()
	properties := synthesizedStacks.resourceNamed(t, "AWS::StepFunctions::StateMachine", "StateMachineName", machine)
	var out bytes.Buffer
	require.NoError(t, json.Indent(&out, []byte(properties["DefinitionString"].(string)), "", "  "))
	out.WriteByte('\n')
	return out.Bytes()
}

// eachState visits the states of a machine. outer is the Map that contains the state, or nil.
func eachState(t *testing.T, machine string, visit func(name string, s aslState, outer *aslState)) {
	t.Helper()
	var parsed struct{ States map[string]aslState }
	require.NoError(t, json.Unmarshal(definition(t, machine), &parsed))
	for _, name := range slices.Sorted(maps.Keys(parsed.States)) {
		s := parsed.States[name]
		visit(name, s, nil)
		for _, inner := range slices.Sorted(maps.Keys(s.ItemProcessor.States)) {
			visit(inner, s.ItemProcessor.States[inner], &s)
		}
	}
}

func TestMachinesAreTheirGoldens(t *testing.T) {
	for machine, golden := range machineGoldens {
		t.Run(machine, func(t *testing.T) {
			path := filepath.Join("testdata", "machines", golden+".asl.json")
			got := definition(t, machine)
			if *update {
				require.NoError(t, os.WriteFile(path, got, 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run make golden and review the difference (-golden +synthesized):\n%s", diff)
			}
		})
	}
}

func TestMachinesAreValidASL(t *testing.T) {
	validator := filepath.Join("node_modules", ".bin", "asl-validator")
	require.FileExists(t, validator, "the Node tools are missing: npm ci --prefix infra")
	for machine := range machineGoldens {
		path := filepath.Join(t.TempDir(), "machine.json")
		require.NoError(t, os.WriteFile(path, definition(t, machine), 0o600))
		out, err := exec.Command(validator, "--json-path", path).CombinedOutput()
		require.NoError(t, err, "%s: %s", machine, out)
	}
}

func TestTasksHaveTimeoutsAndCatches(t *testing.T) {
	catches := func(s *aslState) bool {
		return s != nil && slices.ContainsFunc(s.Catch, func(c struct {
			ErrorEquals []string
			Next        string
			Assign      map[string]any
		}) bool {
			return slices.Equal(c.ErrorEquals, []string{"States.ALL"}) && c.Next != ""
		})
	}
	for machine := range machineGoldens {
		eachState(t, machine, func(name string, s aslState, outer *aslState) {
			switch s.Type {
			case "Task":
				require.Positive(t, s.TimeoutSeconds, "%s has no timeout", name)
				require.True(t, catches(&s) || catches(outer), "%s: its errors are not caught", name)
			case "Map":
				require.True(t, catches(&s), "%s: its errors are not caught", name)
			}
		})
	}
}

func TestTasksGiveFunctionsTheirTime(t *testing.T) {
	timeouts := make(map[string]float64)
	for _, f := range synthesizedStacks.ofType("AWS::Lambda::Function") {
		timeouts[f["FunctionName"].(string)] = f["Timeout"].(float64)
	}
	for machine := range machineGoldens {
		eachState(t, machine, func(name string, s aslState, _ *aslState) {
			if arn, ok := s.Arguments["FunctionName"].(string); ok {
				function := arn[strings.LastIndex(arn, ":")+1:]
				require.Greater(t, float64(s.TimeoutSeconds), timeouts[function], "%s ends before Lambda stops %s", name, function)
			}
		})
	}
}

// If Lambda stopped change early, the next attempt would create all change sets again.
func TestLambdaGivesChangeTheTimeOfItsChangeSets(t *testing.T) {
	for _, f := range synthesizedStacks.ofType("AWS::Lambda::Function") {
		if f["FunctionName"] == "drover-change" {
			changeSets := change.MaxChangeSets * cloudformation.ChangeSetPatience
			require.Greater(t, f["Timeout"].(float64), changeSets.Seconds()+60, "and a minute for the rest")
			return
		}
	}
	require.Fail(t, "there is no such function")
}

// passing are the errors after which the same invocation may succeed: temporary faults, errors of the Lambda service, and crashes. A task
// that waits for a token has a timeout of its own.
func passing(token bool) []string {
	all := append(fault.Retryable(),
		"Lambda.TooManyRequestsException", "Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException",
		"Lambda.ClientExecutionTimeoutException", "Lambda.EC2ThrottledException", "Lambda.EC2UnexpectedException",
		"Lambda.ResourceConflictException", "Lambda.ResourceNotReadyException",
		"Lambda.Unknown", "Runtime.ExitError", "Sandbox.Timedout")
	if token {
		return all
	}
	return append(all, "States.Timeout")
}

// Every task retries what may pass. Those that invoke functions retry each such error.
func TestRetries(t *testing.T) {
	for machine := range machineGoldens {
		eachState(t, machine, func(name string, s aslState, _ *aslState) {
			if s.Type != "Task" {
				require.Empty(t, s.Retry, name)
				return
			}
			var retried []string
			for _, r := range s.Retry {
				require.Equal(t, "FULL", r.JitterStrategy, name)
				require.Positive(t, r.MaxDelaySeconds, name)
				require.Positive(t, r.MaxAttempts, name)
				retried = append(retried, r.ErrorEquals...)
			}
			switch {
			case strings.Contains(s.Resource, ":aws-sdk:"):
				// These tasks call Auto Scaling, whose errors have no names of faults.
				require.Equal(t, []string{"States.TaskFailed", "States.Timeout"}, retried)
			case strings.Contains(s.Resource, ":startExecution"):
				require.Equal(t, startErrors, retried)
			default:
				require.ElementsMatch(t, passing(strings.Contains(s.Resource, "waitForTaskToken")), retried, name)
			}
		})
	}
}

// The error names in the machines are the names of the faults. A renamed type must not leave a Retry or Fail that never matches.
func TestErrorNamesAreFaults(t *testing.T) {
	known := map[string]bool{notConverged: true, upgradeBlocked: true, upgradeStopped: true}
	for _, f := range fault.All() {
		known[fault.Name(f)] = true
		require.Equal(t, reflect.TypeOf(f).Elem().Name(), fault.Name(f))
	}
	used := make(map[string]bool)
	use := func(where string, names ...string) {
		for _, name := range names {
			if name == "" || strings.HasPrefix(name, "States.") || slices.Contains(slices.Concat(serviceErrors, crashes), name) ||
				slices.Contains(startErrors, name) ||
				slices.Contains(startedBefore, name) {
				continue
			}
			require.Contains(t, known, name, "%s names an error that is no fault", where)
			used[name] = true
		}
	}
	for machine := range machineGoldens {
		eachState(t, machine, func(name string, s aslState, _ *aslState) {
			for _, r := range s.Retry {
				use(name, r.ErrorEquals...)
			}
			for _, c := range s.Catch {
				use(name, c.ErrorEquals...)
			}
			use(name, s.Error)
		})
	}
	for _, f := range fault.Retryable() {
		require.Contains(t, used, f, "a retryable fault that no machine retries")
	}
}

// The machines send the fields that the functions read.
func TestPayloadsAreTheEvents(t *testing.T) {
	fields := func(v any) []string {
		var out []string
		for i := range reflect.TypeOf(v).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(v).Field(i).Tag.Get("json"), ",")
			out = append(out, name)
		}
		slices.Sort(out)
		return out
	}
	want := map[string][]string{
		"drover-plan":    fields(events.PlanRequest{}),
		"drover-change":  fields(events.ChangeRequest{}),
		"drover-prepare": fields(events.PrepareRequest{}),
		"drover-clean":   fields(events.CleanRequest{}),
		"drover-report":  fields(events.ReportRequest{}),
	}
	var stages []string
	eachState(t, convergeMachine, func(name string, s aslState, outer *aslState) {
		if payload, ok := s.Arguments["Payload"].(map[string]any); ok {
			arn := s.Arguments["FunctionName"].(string)
			read := slices.Clone(want[arn[strings.LastIndex(arn, ":")+1:]])
			if payload["waitedSeconds"] == nil { // stages that do not wait for drains
				read = slices.DeleteFunc(read, func(field string) bool { return field == "waitedSeconds" || field == "repeats" })
			}
			require.Equal(t, read, slices.Sorted(maps.Keys(payload)), name)
		}
	})
	for _, s := range stageTable() {
		stages = append(stages, s.list)
	}
	slices.Sort(stages)
	require.Equal(t, fields(events.Stages{}), stages, "each stage of a plan has its Map")
	for _, field := range []string{"outcome", "fence", "planKey", "stages"} {
		require.Contains(t, fields(events.PlanResult{}), field)
		require.Contains(t, string(definition(t, convergeMachine)), "$plan."+field)
	}
	for _, field := range []string{"again", "failed", "reason"} {
		require.Contains(t, fields(events.ReportResult{}), field)
	}
	for _, outcome := range []events.JoinOutcome{events.JoinReady, events.JoinWaiting, events.JoinGone, events.JoinAbandoned} {
		require.Contains(t, string(definition(t, joinMachine)), "outcome = '"+string(outcome)+"'")
	}
}

// asl-validator does not find a variable that no state assigns, nor an inner state that assigns an outer variable.
// https://docs.aws.amazon.com/step-functions/latest/dg/workflow-variables.html
func TestVariablesAreAssigned(t *testing.T) {
	variable := regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)(\s*\()?`)
	for machine := range machineGoldens {
		assigned := make(map[string]bool)
		eachState(t, machine, func(name string, s aslState, outer *aslState) {
			for v := range s.Assign {
				require.Nil(t, outer, "%s assigns $%s, which is read outside of its Map", name, v)
				assigned[v] = true
			}
			for _, c := range s.Catch {
				for v := range c.Assign {
					require.Nil(t, outer, "%s assigns $%s, which is read outside of its Map", name, v)
					assigned[v] = true
				}
			}
		})
		for _, match := range variable.FindAllStringSubmatch(string(definition(t, machine)), -1) {
			if match[1] != "states" && match[2] == "" {
				require.Contains(t, assigned, match[1], "%s reads $%s, which nothing assigns", machine, match[1])
			}
		}
	}
}

// jsonata runs JSONata's reference implementation in the version that Step Functions follows.
func jsonata(t *testing.T, script string, input any) []byte {
	t.Helper()
	require.DirExists(t, filepath.Join("node_modules", "jsonata"), "the Node tools are missing: npm ci --prefix infra")
	body, err := json.Marshal(input)
	require.NoError(t, err)
	cmd := exec.Command("node", "-e", script)
	cmd.Stdin = bytes.NewReader(body)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	require.NoError(t, err, complaint.String())
	return out
}

func TestExpressionsAreJSONata(t *testing.T) {
	expression := regexp.MustCompile(`"\{% (.*?) %\}"`)
	var all []string
	for machine := range machineGoldens {
		for _, match := range expression.FindAllStringSubmatch(string(definition(t, machine)), -1) {
			var text string
			require.NoError(t, json.Unmarshal([]byte(`"`+match[1]+`"`), &text))
			all = append(all, text)
			for _, unknown := range []string{"??", "?:", "$eval("} {
				require.NotContains(t, text, unknown, "Step Functions does not know it")
			}
		}
	}
	require.NotEmpty(t, all)
	jsonata(t, `
		const jsonata = require('jsonata')
		for (const text of JSON.parse(require('fs').readFileSync(0)))
			try { jsonata(text) } catch (e) { console.error(text + ': ' + e.message); process.exitCode = 1 }
	`, all)
}

// JSONata unwraps lists of one element and drops absent values. The expressions are those of the synthesized definitions.
func TestExpressionsOnOneAndNone(t *testing.T) {
	one := []any{map[string]any{"stack": "network", "again": false, "status": "CREATE_COMPLETE"}}
	failed := []any{map[string]any{"stack": "pool-a", "again": false, "error": "StackFailed", "cause": "no capacity"}}
	pools, higher := "$exists($plan.stages.pools[$group]) ? $plan.stages.pools[$group] : []",
		"$exists($plan.stages.pools[$group]) and $not("+anyStopped+")"
	of := func(stack, err string) map[string]any {
		return map[string]any{"results": append([]any{map[string]any{"stack": stack, "error": err}}, one...)}
	}
	pooled := func(group int, pools ...any) map[string]any {
		return map[string]any{
			"group": group, "results": one, "plan": map[string]any{"stages": map[string]any{"pools": append([]any{}, pools...)}},
		}
	}
	for name, c := range map[string]struct {
		expression string
		variables  map[string]any
		want       any
	}{
		"the first outcome of a stack is a list of one": {
			"$append($results, $states.result)", map[string]any{"results": []any{}, "states": map[string]any{"result": one}}, one,
		},
		"a stage without stacks adds nothing": {
			"$append($results, $states.result)", map[string]any{"results": one, "states": map[string]any{"result": []any{}}}, one,
		},
		"no outcome at all is an empty list": {
			"$append($results, $states.result)", map[string]any{"results": []any{}, "states": map[string]any{"result": []any{}}}, []any{},
		},
		"one stack of a stage is a list": {
			"$plan.stages.network", map[string]any{"plan": map[string]any{"stages": map[string]any{"network": []any{"network"}}}}, []any{"network"},
		},
		"no stack of a stage is a list": {
			"$plan.stages.addons", map[string]any{"plan": map[string]any{"stages": map[string]any{"addons": []any{}}}}, []any{},
		},
		"one pool of one order is a list": {pools, pooled(0, []any{"pool-a"}), []any{"pool-a"}},
		"the pools of the second order":   {pools, pooled(1, []any{"pool-a"}, []any{"pool-b", "pool-c"}), []any{"pool-b", "pool-c"}},
		"no pools of any order":           {pools, pooled(0), []any{}},
		"there is a second order":         {higher, pooled(1, []any{"pool-a"}, []any{"pool-b"}), true},
		"there is no third":               {higher, pooled(2, []any{"pool-a"}, []any{"pool-b"}), false},
		"no roll is requested": {
			"[$states.input.roll]", map[string]any{"states": map[string]any{"input": map[string]any{}}}, []any{},
		},
		"a roll of one pool": {
			"[$states.input.roll]", map[string]any{"states": map[string]any{"input": map[string]any{"roll": "a"}}}, []any{"a"},
		},
		"a roll of a list of one": {
			"[$states.input.roll]", map[string]any{"states": map[string]any{"input": map[string]any{"roll": []any{"a"}}}}, []any{"a"},
		},
		"success is no failure":                 {"$exists($results[error])", map[string]any{"results": one}, false},
		"no result is no failure":               {"$exists($results[error])", map[string]any{"results": []any{}}, false},
		"a failure is one":                      {"$exists($results[error])", map[string]any{"results": append(failed, one...)}, true},
		"a failure of add-ons stops the rest":   {anyStopped, of("addons", "StackFailed"), true},
		"a failure of identities stops nothing": {anyStopped, of("identities", "StackFailed"), false},
		"a failure of capabilities is alike":    {anyStopped, of("capabilities", "StackFailed"), false},
		"a newer spec at identities stops it":   {anyStopped, of("identities", "Superseded"), true},
		"success stops nothing":                 {anyStopped, map[string]any{"results": one}, false},
		"no result stops nothing":               {anyStopped, map[string]any{"results": []any{}}, false},
		"a timeout has an error, no cause": {
			strings.Trim(causeOf, "{%} "), map[string]any{"states": map[string]any{"errorOutput": map[string]any{"Error": "States.Timeout"}}}, "",
		},
		"an outcome keeps its stack": {
			"$merge([$states.result, {'stack': $states.input.stack}])",
			map[string]any{"states": map[string]any{"result": map[string]any{"again": true}, "input": map[string]any{"stack": "pool-a"}}},
			map[string]any{"again": true, "stack": "pool-a"},
		},
		"an answer without again is none": {
			"$states.input.again = true", map[string]any{"states": map[string]any{"input": map[string]any{}}}, false,
		},
		"no plan is null": {"null", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			for machine := range machineGoldens {
				found = found || bytes.Contains(definition(t, machine), []byte("{% "+c.expression+" %}"))
			}
			require.True(t, found, "no machine has this expression")
			out := jsonata(t, `
				const {expression, variables} = JSON.parse(require('fs').readFileSync(0))
				require('jsonata')(expression).evaluate({}, variables ?? {}).then(v => process.stdout.write(JSON.stringify({v})))
			`, map[string]any{"expression": c.expression, "variables": c.variables})
			var got map[string]any
			require.NoError(t, json.Unmarshal(out, &got))
			require.Contains(t, got, "v", "the expression has no result: Step Functions fails the state")
			if diff := cmp.Diff(c.want, got["v"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
