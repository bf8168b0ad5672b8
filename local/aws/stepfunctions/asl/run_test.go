package asl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// world runs machines under synctest. A task calls the function of its name.
type world struct {
	mu     sync.Mutex
	tasks  map[string]func(ctx context.Context, payload map[string]any) (any, error)
	tokens Tokens
	events []Event
	path   []string // states entered
	// answered is the number of pending answers when a task reported its end.
	answered int
}

func (w *world) task(ctx context.Context, t Task) (json.RawMessage, error) {
	var in struct {
		FunctionName string
		Payload      map[string]any
	}
	if err := json.Unmarshal(t.Arguments, &in); err != nil {
		return nil, err
	}
	if t.Resource.Service != "lambda" {
		in.FunctionName = t.Resource.Action
		_ = json.Unmarshal(t.Arguments, &in.Payload)
	}
	in.FunctionName = in.FunctionName[strings.LastIndex(in.FunctionName, ":")+1:]
	do := w.tasks[in.FunctionName]
	if do == nil {
		return nil, fmt.Errorf("no task %s", in.FunctionName)
	}
	out, err := do(ctx, in.Payload)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"Payload": out})
}

func (w *world) run(t *testing.T, definition, input string) Outcome {
	t.Helper()
	return w.runContext(t.Context(), t, definition, input)
}

func (w *world) runContext(ctx context.Context, t *testing.T, definition, input string) Outcome {
	t.Helper()
	m, err := Parse([]byte(definition))
	require.NoError(t, err)
	return m.Run(ctx, Execution{
		ARN: "arn:aws:states:eu-central-1:111122223333:execution:m:x", Name: "x",
		MachineARN:  "arn:aws:states:eu-central-1:111122223333:stateMachine:m",
		MachineName: "m", RoleARN: "arn:aws:iam::111122223333:role/r", Input: json.RawMessage(input), Start: time.Now(),
	}, Host{Task: w.task, Tokens: &w.tokens, Random: func() float64 { return 0.5 }, Record: func(e Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
		if strings.HasSuffix(e.Type, "StateEntered") {
			w.path = append(w.path, e.State)
		}
		if e.Type == "TaskSucceeded" || e.Type == "TaskFailed" {
			w.answered += w.tokens.PendingAnswers()
		}
	}})
}

func (w *world) types() []string {
	var all []string
	for _, e := range w.events {
		all = append(all, e.Type)
	}
	return all
}

func TestOutcomes(t *testing.T) {
	invoke := func(more string) string {
		return `{` + lambdaTask + `,"Arguments":{"FunctionName":"f","Payload":{"in":"{% $states.input %}"}}` + more + `}`
	}
	fail := func(name string) func(context.Context, map[string]any) (any, error) {
		return func(context.Context, map[string]any) (any, error) { return nil, &Failure{Name: name, Cause: "why"} }
	}
	for name, test := range map[string]struct {
		states, input string
		f             func(context.Context, map[string]any) (any, error)
		output        string // of a success
		fault, cause  string // of a failure
	}{
		"a Pass hands its input on": {states: `"A":{"Type":"Pass","End":true}`, input: `{"a": 1}`, output: `{"a":1}`},
		"Output replaces it": {
			states: `"A":{"Type":"Pass","End":true,"Output":{"b":"{% $states.input.a + 1 %}","c":["{% 'x' %}",null]}}`, input: `{"a":1}`,
			output: `{"b":2,"c":["x",null]}`,
		},
		"text is not escaped for HTML": {
			states: `"A":{"Type":"Pass","End":true,"Output":{"<b>":"{% $states.input.a & '&' %}"}}`, input: `{"a":"<"}`, output: `{"<b>":"<&"}`,
		},
		"large integers stay": {
			states: `"A":{"Type":"Pass","End":true,"Output":"{% $states.input.n %}"}`, input: `{"n":12345678901234567}`, output: `12345678901234567`,
		},
		"Assign is seen by the next state, not by its own": {
			states: `"A":{"Type":"Pass","Next":"B","Assign":{"x":1}},"B":{"Type":"Pass","Next":"C","Assign":{"x":"{% $x + 1 %}",` +
				`"y":"{% $x %}"},"Output":"{% $x %}"},"C":{"Type":"Pass","End":true,"Output":["{% $states.input %}","{% $x %}",` +
				`"{% $y %}"]}`, input: `{}`, output: `[1,2,1]`,
		},
		"what is undefined is an error": {
			states: `"A":{"Type":"Pass","End":true,"Output":{"a":{"b":"{% $states.input.nope %}"}}}`, input: `{}`,
			fault: "States.QueryEvaluationError", cause: "The JSONata expression '$states.input.nope' specified for the field 'Output/a/b' " +
				"returned nothing (undefined).",
		},
		"an unknown variable is undefined": {
			states: `"A":{"Type":"Pass","End":true,"Output":"{% $nope %}"}`, input: `{}`, fault: "States.QueryEvaluationError",
			cause: "The JSONata expression '$nope' specified for the field 'Output' returned nothing (undefined).",
		},
		"a function is no output": {
			states: `"A":{"Type":"Pass","End":true,"Output":"{% $sum %}"}`, input: `{}`, fault: "States.QueryEvaluationError",
			cause: "The JSONata expression '$sum' specified for the field 'Output' returned an unsupported result type: a function or " +
				"a regular expression.",
		},
		"the first rule that holds": {
			states: `"A":{"Type":"Choice","Choices":[{"Condition":"{% $states.input.n > 5 %}","Next":"B"},` +
				`{"Condition":"{% $states.input.n > 1 %}","Next":"C","Output":"{% 'c' %}","Assign":{"x":7}}],"Default":"B"},` +
				`"B":{"Type":"Succeed"},"C":{"Type":"Succeed","Output":["{% $states.input %}","{% $x %}"]}`, input: `{"n":2}`, output: `["c",7]`,
		},
		"the default": {
			states: `"A":{"Type":"Choice","Choices":[{"Condition":"{% false %}","Next":"B"}],"Default":"C","Output":"{% 'd' %}"},` +
				`"B":{"Type":"Succeed"},"C":{"Type":"Succeed"}`, input: `{}`, output: `"d"`,
		},
		"no rule and no default": {
			states: `"A":{"Type":"Choice","Choices":[{"Condition":"{% false %}","Next":"B"}]},"B":{"Type":"Succeed"}`, input: `{}`,
			fault: "States.NoChoiceMatched",
		},
		"a condition that is no boolean": {
			states: `"A":{"Type":"Choice","Choices":[{"Condition":"{% 1 %}","Next":"B"}]},"B":{"Type":"Succeed"}`, input: `{}`,
			fault: "States.QueryEvaluationError",
		},
		"Fail with expressions": {
			states: `"A":{"Type":"Fail","Error":"E","Cause":"{% 'because ' & $states.input.a %}"}`, input: `{"a":"x"}`, fault: "E",
			cause: "because x",
		},
		"a cause that is no string": {
			states: `"A":{"Type":"Fail","Error":"E","Cause":"{% 1 %}"}`, input: `{}`, fault: "States.QueryEvaluationError",
		},
		"a task's result": {
			states: `"A":` + invoke(`,"End":true,"Output":"{% $states.result.Payload.in.a %}"`), input: `{"a":5}`, f: echo, output: `5`,
		},
		"a task's whole result is its output": {
			states: `"A":` + invoke(`,"End":true`), input: `{"a":5}`, f: echo, output: `{"Payload":{"in":{"a":5}}}`,
		},
		"a failed task": {
			states: `"A":` + invoke(`,"End":true`), input: `{}`, f: fail("Oops"), fault: "Oops", cause: "why",
		},
		"any other error of a task": {states: `"A":` + invoke(`,"End":true`), input: `{}`, f: func(context.Context, map[string]any) (any, error) {
			return nil, errors.New("plain")
		}, fault: "States.TaskFailed", cause: "plain"},
		"a catch by name": {
			states: `"A":` +
				invoke(`,"End":true,"Catch":[{"ErrorEquals":["Other"],"Next":"C"},`+
					`{"ErrorEquals":["Oops"],"Next":"B","Assign":{"e":"{% $states.errorOutput.Error %}"},`+
					`"Output":"{% $states.errorOutput.Cause & $states.input.a %}"}]`) + `,"B":{"Type":"Succeed","Output":["{% $e %}",` +
				`"{% $states.input %}"]},"C":{"Type":"Succeed"}`, input: `{"a":"!"}`, f: fail("Oops"), output: `["Oops","why!"]`,
		},
		"a catch without Output": {
			states: `"A":` + invoke(`,"End":true,"Catch":[{"ErrorEquals":["States.ALL"],"Next":"B"}]`) + `,"B":{"Type":"Succeed"}`, input: `{}`,
			f: fail("Oops"), output: `{"Error":"Oops","Cause":"why"}`,
		},
		"States.TaskFailed catches any but a timeout": {
			states: `"A":` + invoke(`,"End":true,"Catch":[{"ErrorEquals":["States.TaskFailed"],"Next":"B"}]`) +
				`,"B":{"Type":"Succeed","Output":1}`, input: `{}`, f: fail("Oops"), output: `1`,
		},
		"States.Timeout is no States.TaskFailed": {
			states: `"A":` + invoke(`,"End":true,"Catch":[{"ErrorEquals":["States.TaskFailed"],"Next":"B"}]`) + `,"B":{"Type":"Succeed"}`,
			input:  `{}`, f: fail("States.Timeout"), fault: "States.Timeout", cause: "why",
		},
		"States.ALL does not catch States.Runtime": {
			states: `"A":` + invoke(`,"End":true,"Catch":[{"ErrorEquals":["States.ALL"],"Next":"B"}]`) + `,"B":{"Type":"Succeed"}`, input: `{}`,
			f: fail("States.Runtime"), fault: "States.Runtime", cause: "why",
		},
		"a failed expression of a task is caught": {
			states: `"A":` +
				invoke(`,"End":true,"Output":"{% $nope %}","Catch":[{"ErrorEquals":["States.QueryEvaluationError"],`+
					`"Next":"B","Output":"{% $states.errorOutput.Error %}"}]`) + `,"B":{"Type":"Succeed"}`, input: `{}`, f: echo,
			output: `"States.QueryEvaluationError"`,
		},
		"a result over 256 KiB": {
			states: `"A":` + invoke(`,"End":true,"Catch":[{"ErrorEquals":["States.ALL"],"Next":"B"}]`) + `,"B":{"Type":"Succeed"}`, input: `{}`,
			f: large, fault: "States.DataLimitExceeded",
		},
		"a result over 256 KiB, caught by name": {
			states: `"A":` + invoke(`,"End":true,"Catch":[{"ErrorEquals":["States.DataLimitExceeded"],"Next":"B","Output":"{% 1 %}"}]`) +
				`,"B":{"Type":"Succeed"}`, input: `{}`, f: large, output: `1`,
		},
		"a Parallel's outputs in order": {
			states: `"A":{"Type":"Parallel","End":true,"Arguments":{"n":"{% $states.input.n %}"},` +
				`"Branches":[{"StartAt":"B","States":{"B":{"Type":"Wait","Seconds":5,"End":true}}},` +
				`{"StartAt":"C","States":{"C":{"Type":"Pass","End":true,"Output":"{% $states.input.n + 1 %}"}}}]}`,
			input: `{"n":1,"m":2}`, output: `[{"n":1},2]`,
		},
		"a failed branch ends the others": {
			states: `"A":{"Type":"Parallel","End":true,"Branches":[{"StartAt":"B","States":{"B":{"Type":"Wait",` +
				`"Seconds":99999999,"End":true}}},{"StartAt":"C","States":{"C":{"Type":"Fail","Error":"X"}}}]}`, input: `{}`, fault: "X",
		},
		"a Map over its input": {
			states: `"A":{"Type":"Map","End":true,"ItemProcessor":{"StartAt":"B","States":{"B":{"Type":"Pass",` +
				`"End":true,"Output":"{% $states.input * 2 %}"}}}}`, input: `[1,2,3]`, output: `[2,4,6]`,
		},
		"a Map over nothing": {
			states: `"A":{"Type":"Map","End":true,"ItemProcessor":{"StartAt":"B","States":{"B":{"Type":"Fail","Error":"X"}}}}`, input: `[]`,
			output: `[]`,
		},
		"a Map with selector and context": {
			states: `"A":{"Type":"Map","End":true,"Items":"{% $states.input.list %}",` +
				`"ItemSelector":{"i":"{% $states.context.Map.Item.Index %}","v":"{% $states.context.Map.Item.Value %}",` +
				`"n":"{% $states.input.n %}"},"ItemProcessor":{"StartAt":"B","States":{"B":{"Type":"Pass",` +
				`"End":true,"Output":["{% $states.input.i %}","{% $states.input.v %}","{% $states.input.n %}",` +
				`"{% $states.context.Map.Item.Value %}"]}}}}`, input: `{"list":["a","b"],"n":1}`, output: `[[0,"a",1,"a"],[1,"b",1,"b"]]`,
		},
		"a Map over a literal": {
			states: `"A":{"Type":"Map","End":true,"Items":[1,"{% 1+1 %}"],"ItemProcessor":{"StartAt":"B","States":{"B":{"Type":"Succeed"}}}}`,
			input:  `{}`, output: `[1,2]`,
		},
		"a Map over what is no array": {
			states: `"A":{"Type":"Map","End":true,"Items":"{% $states.input %}","ItemProcessor":{"StartAt":"B",` +
				`"States":{"B":{"Type":"Succeed"}}}}`, input: `{"a":1}`, fault: "States.QueryEvaluationError",
		},
		"variables inside are read and not written": {
			states: `"A":{"Type":"Pass","Next":"B","Assign":{"x":1}},"B":{"Type":"Map","Items":[1,2],` +
				`"Next":"D","ItemProcessor":{"StartAt":"C","States":{"C":{"Type":"Pass","Next":"C2",` +
				`"Assign":{"y":"{% $x + $states.input %}"}},"C2":{"Type":"Pass","End":true,"Output":"{% $y %}"}}}},` +
				`"D":{"Type":"Pass","End":true,"Output":["{% $states.input %}","{% $x %}","{% $exists($y) %}"]}`, input: `{}`,
			output: `[[2,3],1,false]`,
		},
		"the context": {
			states: `"A":{"Type":"Pass","End":true,"Output":["{% $states.context.Execution.Name %}",` +
				`"{% $states.context.Execution.Input.a %}","{% $states.context.State.Name %}","{% $states.context.State.RetryCount %}",` +
				`"{% $states.context.StateMachine.Name %}","{% $states.context.Execution.StartTime %}",` +
				`"{% $states.context.Execution.RoleArn %}"]}`, input: `{"a":1}`, output: `["x",1,"A",0,"m","2000-01-01T00:00:00.000Z",` +
				`"arn:aws:iam::111122223333:role/r"]`,
		},
		"a token is there only for those who wait": {
			states: `"A":` + strings.Replace(invoke(`,"End":true`), "$states.input", "$states.context.Task.Token", 1), input: `{}`, f: echo,
			fault: "States.QueryEvaluationError",
		},
		"no result outside of tasks": {
			states: `"A":{"Type":"Pass","End":true,"Output":"{% $states.result %}"}`, input: `{}`, fault: "States.QueryEvaluationError",
		},
		"a wait until a time": {
			states: `"A":{"Type":"Wait","Timestamp":"2000-01-01T00:10:00Z","End":true,"Output":"{% $now() %}"}`, input: `{}`,
			output: `"2000-01-01T00:10:00.000Z"`,
		},
		"a wait until a computed time": {
			states: `"A":{"Type":"Wait","Timestamp":"{% $fromMillis($toMillis($states.context.Execution.StartTime) + 1000) %}",` +
				`"End":true,"Output":"{% $now() %}"}`, input: `{}`, output: `"2000-01-01T00:00:01.000Z"`,
		},
		"a wait of computed seconds": {
			states: `"A":{"Type":"Wait","Seconds":"{% $states.input.n * 2 %}","End":true,"Output":"{% $now() %}"}`, input: `{"n":30}`,
			output: `"2000-01-01T00:01:00.000Z"`,
		},
		"a wait of half a second": {
			states: `"A":{"Type":"Wait","Seconds":"{% 0.5 %}","End":true}`, input: `{}`, fault: "States.QueryEvaluationError",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{tasks: map[string]func(context.Context, map[string]any) (any, error){"f": test.f}}
				o := w.run(t, machineOf(test.states), test.input)
				if test.fault != "" {
					require.Equal(t, Failed, o.Status)
					require.Equal(t, test.fault, o.Error, o.Cause)
					if test.cause != "" {
						require.Equal(t, test.cause, o.Cause)
					}
					return
				}
				require.Equal(t, Succeeded, o.Status, "%s: %s", o.Error, o.Cause)
				require.Equal(t, test.output, string(o.Output))
			})
		})
	}
}

func echo(_ context.Context, payload map[string]any) (any, error) { return payload, nil }

func large(context.Context, map[string]any) (any, error) { return strings.Repeat("x", maxPayload), nil }

func TestRetries(t *testing.T) {
	const definition = `{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{` + lambdaTask +
		`,"Arguments":{"FunctionName":"f","Payload":{"n":"{% $states.context.State.RetryCount %}"}},
		"Retry":[{"ErrorEquals":["Throttled"],"IntervalSeconds":2,"MaxAttempts":4,"BackoffRate":3,"MaxDelaySeconds":10},` +
		`{"ErrorEquals":["Jitter"],"IntervalSeconds":8,"MaxAttempts":1,"JitterStrategy":"FULL"},{"ErrorEquals":["Never"],"MaxAttempts":0}],
		"Catch":[{"ErrorEquals":["States.ALL"],"Next":"B"}],"End":true},"B":{"Type":"Succeed"}}}`
	for name, test := range map[string]struct {
		errors      []string // of the first attempts
		attempts    int
		took        time.Duration
		transitions int
		output      string
	}{
		"none needed":   {attempts: 1, transitions: 1, output: `{"Payload":{"n":0}}`},
		"one is enough": {errors: []string{"Throttled"}, attempts: 2, took: 2 * time.Second, transitions: 2, output: `{"Payload":{"n":1}}`},
		"delays grow up to the longest": {
			errors: []string{"Throttled", "Throttled", "Throttled", "Throttled"}, attempts: 5, took: (2 + 6 + 10 + 10) * time.Second,
			transitions: 5, output: `{"Payload":{"n":4}}`,
		},
		"when they are used up the error stays": {
			errors: []string{"Throttled", "Throttled", "Throttled", "Throttled", "Throttled"}, attempts: 5, took: 28 * time.Second,
			transitions: 6, output: `{"Error":"Throttled"}`,
		},
		"jitter takes a part of the delay": {
			errors: []string{"Jitter"}, attempts: 2, took: 4 * time.Second, transitions: 2, output: `{"Payload":{"n":1}}`,
		},
		"each retrier counts for itself": {
			errors: []string{"Throttled", "Jitter", "Throttled"}, attempts: 4, took: (2 + 4 + 6) * time.Second, transitions: 4,
			output: `{"Payload":{"n":3}}`,
		},
		"none at all":                    {errors: []string{"Never"}, attempts: 1, transitions: 2, output: `{"Error":"Never"}`},
		"an error that no retrier names": {errors: []string{"Other"}, attempts: 1, transitions: 2, output: `{"Error":"Other"}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				w := &world{tasks: map[string]func(context.Context, map[string]any) (any,
					error){"f": func(_ context.Context, payload map[string]any) (any, error) {
					attempts++
					if attempts <= len(test.errors) {
						return nil, &Failure{Name: test.errors[attempts-1]}
					}
					return payload, nil
				}}}
				begin := time.Now()
				o := w.run(t, definition, `{}`)
				require.Equal(t, Succeeded, o.Status)
				require.Equal(t, test.attempts, attempts)
				require.Equal(t, test.took, time.Since(begin))
				require.Equal(t, test.transitions, o.Transitions, "every state entered and every retry is one")
				require.Equal(t, test.output, string(o.Output))
			})
		})
	}
}

const waiting = `{"QueryLanguage":"JSONata","StartAt":"A","TimeoutSeconds":1000,"States":{"A":{"Type":"Task",` +
	`"Resource":"arn:aws:states:::lambda:invoke.waitForTaskToken",
	"Arguments":{"FunctionName":"f","Payload":{"token":"{% $states.context.Task.Token %}"}},` +
	`"TimeoutSeconds":600,"HeartbeatSeconds":"{% 60 %}","End":true,
	"Catch":[{"ErrorEquals":["States.Timeout"],"Next":"B"}]},"B":{"Type":"Pass","End":true,"Output":["{% $states.input %}"]}}}`

func TestTaskTokens(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(w *world, token string)
		status Status
		output string
		fault  string
		took   time.Duration
		// pending answers until their task has reported its end
		answers int
	}{
		"the answer is the result": {answer: func(w *world, token string) {
			must(w.tokens.Succeed(token, json.RawMessage(`{"ok": true}`)))
		}, status: Succeeded, output: `{"ok":true}`, answers: 1},
		"a failure is the failure": {answer: func(w *world, token string) {
			must(w.tokens.Fail(token, "StackFailed", "no"))
		}, status: Failed, fault: "StackFailed", answers: 1},
		"silence is a timeout": {
			answer: func(*world, string) {}, status: Succeeded, output: `[{"Error":"States.HeartbeatTimeout"}]`, took: time.Minute,
		},
		"heartbeats put it off": {answer: func(w *world, token string) {
			beat(w, token, 3)
			must(w.tokens.Succeed(token, json.RawMessage(`1`)))
		}, status: Succeeded, output: `1`, took: 150 * time.Second, answers: 1},
		"not beyond the timeout": {answer: func(w *world, token string) {
			beat(w, token, 12)
		}, status: Succeeded, output: `[{"Error":"States.Timeout"}]`, took: 600 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var token string
				w := &world{}
				w.tasks = map[string]func(context.Context, map[string]any) (any,
					error){"f": func(_ context.Context, payload map[string]any) (any, error) {
					token = payload["token"].(string)
					go test.answer(w, token)
					return nil, nil
				}}
				begin := time.Now()
				o := w.run(t, waiting, `{}`)
				require.Equal(t, test.status, o.Status, o.Cause)
				require.Equal(t, test.took, time.Since(begin))
				require.Equal(t, test.output, string(o.Output))
				require.Equal(t, test.fault, o.Error)
				require.ErrorIs(t, w.tokens.Succeed(token, json.RawMessage(`1`)), ErrTaskTimedOut, "a second answer")
				require.ErrorIs(t, w.tokens.Heartbeat(token), ErrTaskTimedOut)
				require.Equal(t, test.answers, w.answered)
				require.Zero(t, w.tokens.PendingAnswers())
				synctest.Wait()
				time.Sleep(time.Hour) // a task that still sends heartbeats learns that it ended
			})
		})
	}
	var tokens Tokens
	require.ErrorIs(t, tokens.Succeed("nonsense", nil), ErrInvalidToken)
	require.ErrorIs(t, tokens.Fail(strings.Repeat("A", 64), "", ""), ErrTaskDoesNotExist)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func beat(w *world, token string, n int) {
	for range n {
		time.Sleep(50 * time.Second)
		if w.tokens.Heartbeat(token) != nil {
			return
		}
	}
}

func TestTaskFailsBeforeItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{tasks: map[string]func(context.Context, map[string]any) (any, error){
			"f": func(context.Context, map[string]any) (any, error) { return nil, &Failure{Name: "Boom"} },
		}}
		o := w.run(t, waiting, `{}`)
		require.Equal(t, "Boom", o.Error)
	})
}

func TestEnds(t *testing.T) {
	const forever = `{"QueryLanguage":"JSONata","StartAt":"A","TimeoutSeconds":3600,"States":{"A":{"Type":"Map","Items":[1,2],` +
		`"End":true,"Catch":[{"ErrorEquals":["States.ALL"],"Next":"C"}],
		"ItemProcessor":{"StartAt":"B","States":{"B":{` + lambdaTask + `,"Arguments":{"FunctionName":"f"},` +
		`"End":true,"Catch":[{"ErrorEquals":["States.ALL"],"Next":"D"}]},"D":{"Type":"Succeed"}}}},"C":{"Type":"Succeed"}}}`
	hang := map[string]func(context.Context, map[string]any) (any, error){"f": func(ctx context.Context, _ map[string]any) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	t.Run("times out and catches nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{tasks: hang}
			begin := time.Now()
			o := w.run(t, forever, `{}`)
			require.Equal(t, Outcome{Status: TimedOut, Error: "States.Timeout", Transitions: 3}, o)
			require.Equal(t, time.Hour, time.Since(begin))
			require.Equal(t, "ExecutionTimedOut", w.events[len(w.events)-1].Type)
		})
	})
	t.Run("aborts when it is stopped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{tasks: hang}
			ctx, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Minute, func() { stop(&Failure{Name: "Operator", Cause: "enough"}) })
			o := w.runContext(ctx, t, forever, `{}`)
			require.Equal(t, Outcome{Status: Aborted, Error: "Operator", Cause: "enough", Transitions: 3}, o)
			require.Equal(t, "ExecutionAborted", w.events[len(w.events)-1].Type)
		})
	})
	t.Run("times out although the task never returns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			w := &world{tasks: map[string]func(context.Context, map[string]any) (any,
				error){"f": func(context.Context, map[string]any) (any, error) {
				<-release
				return nil, nil
			}}}
			o := w.run(t, machineOf(`"A":{`+lambdaTask+`,"Arguments":{"FunctionName":"f"},"TimeoutSeconds":10,"End":true}`), `{}`)
			require.Equal(t, "States.Timeout", o.Error)
			close(release)
		})
	})
}

func TestMaxConcurrency(t *testing.T) {
	for limit, want := range map[string]int{`1`: 1, `"{% 3 %}"`: 3, `0`: 40} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			now, most := 0, 0
			w := &world{tasks: map[string]func(context.Context, map[string]any) (any,
				error){"f": func(context.Context, map[string]any) (any, error) {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				now--
				mu.Unlock()
				return nil, nil
			}}}
			o := w.run(t, machineOf(`"A":{"Type":"Map","Items":"{% [1..100] %}","MaxConcurrency":`+limit+
				`,"End":true,"Output":"{% $count($states.result) %}",
				"ItemProcessor":{"StartAt":"B","States":{"B":{`+lambdaTask+`,"Arguments":{"FunctionName":"f"},"End":true}}}}`), `{}`)
			require.Equal(t, "100", string(o.Output), o.Cause)
			require.Equal(t, want, most, "limit %s", limit)
		})
	}
}

func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{tasks: map[string]func(context.Context, map[string]any) (any,
			error){"f": func(_ context.Context, p map[string]any) (any, error) {
			if p["n"] == 0.0 {
				return nil, &Failure{Name: "Throttled", Cause: "slow"}
			}
			return 1, nil
		}}}
		w.run(t, machineOf(`"A":{`+lambdaTask+
			`,"Arguments":{"FunctionName":"f","Payload":{"n":"{% $states.context.State.RetryCount %}"}},"TimeoutSeconds":30,
			"Retry":[{"ErrorEquals":["Throttled"]}],"Assign":{"x":1},"Next":"B"},"B":{"Type":"Succeed"}`), `{"a":1}`)
		require.Equal(t, []string{
			"ExecutionStarted", "TaskStateEntered", "TaskScheduled", "TaskStarted", "TaskFailed", "TaskScheduled", "TaskStarted", "TaskSucceeded",
			"TaskStateExited", "SucceedStateEntered", "SucceedStateExited", "ExecutionSucceeded",
		}, w.types())
		for i, e := range w.events {
			require.EqualValues(t, i+1, e.ID)
			require.EqualValues(t, i, e.PreviousID)
		}
		require.Equal(t, map[string]any{"name": "A", "input": `{"a":1}`}, w.events[1].Details)
		require.Equal(t, "stateEnteredEventDetails", w.events[1].DetailsName())
		require.Equal(t, map[string]any{
			"resourceType": "lambda", "resource": "invoke", "parameters": `{"FunctionName":"f","Payload":{"n":0}}`, "timeoutInSeconds": int64(30),
		}, w.events[2].Details)
		require.Equal(t, map[string]any{
			"resourceType": "lambda", "resource": "invoke", "error": "Throttled", "cause": "slow",
		}, w.events[4].Details)
		require.Equal(t, map[string]string{"x": "1"}, w.events[8].Details["assignedVariables"])
		require.Equal(t, "executionSucceededEventDetails", w.events[11].DetailsName())
	})
}

func TestHistoryLimit(t *testing.T) {
	w := &world{}
	o := w.run(t, machineOf(`"A":{"Type":"Pass","Next":"A2"},"A2":{"Type":"Pass","Next":"A"}`), `{}`)
	require.Equal(t, Failed, o.Status)
	require.Equal(t, "States.Runtime", o.Error)
	require.Contains(t, o.Cause, "25000")
	require.Len(t, w.events, maxEvents)
	require.Equal(t, "ExecutionFailed", w.events[maxEvents-1].Type)
}

func TestHistoryOfFailedExpression(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		w.run(t, machineOf(
			`"A":{"Type":"Map","Items":[1],"End":true,"ItemProcessor":{"StartAt":"B","States":{"B":{"Type":"Pass",`+
				`"End":true,"Output":"{% $nope %}"}}}}`), `{}`)
		require.Equal(t, 1, strings.Count(strings.Join(w.types(), " "), "EvaluationFailed"))
		require.Equal(t, []string{
			"ExecutionStarted", "MapStateEntered", "MapStateStarted", "MapIterationStarted", "PassStateEntered", "EvaluationFailed",
			"MapIterationFailed",
			"MapStateFailed", "ExecutionFailed",
		}, w.types())
	})
}
