package asl

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machineOf wraps states in a definition that begins with "A".
func machineOf(states string) string {
	return `{"QueryLanguage":"JSONata","StartAt":"A","States":{` + states + `}}`
}

// noInput is a $states without members.
func noInput(memberSet) json.RawMessage { return json.RawMessage(`{}`) }

const lambdaTask = `"Type":"Task","Resource":"arn:aws:states:::lambda:invoke"`

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct{ definition, want string }{
		"no JSON":                   {`{`, "INVALID_JSON_DESCRIPTION"},
		"a list":                    {`[]`, "is not an object"},
		"a key that is there twice": {`{"QueryLanguage":"JSONata","StartAt":"A","StartAt":"B","States":{}}`, `duplicate key "StartAt"`},
		"a JSONPath machine":        {`{"StartAt":"A","States":{"A":{"Type":"Succeed"}}}`, `QueryLanguage "JSONPath": only JSONata`},
		"a JSONPath state": {
			machineOf(`"A":{"Type":"Succeed","QueryLanguage":"JSONPath"}`),
			"only JSONata is supported by the local account at /States/A/QueryLanguage",
		},
		"a JSONPath field": {machineOf(`"A":{"Type":"Pass","End":true,"ResultPath":"$.a"}`), `The JSONPath field "ResultPath"`},
		"an unknown field": {
			machineOf(`"A":{"Type":"Pass","End":true,"Outputs":1}`), `The field "Outputs" is not supported at /States/A/Outputs`,
		},
		"an unknown type":          {machineOf(`"A":{"Type":"Sleep","End":true}`), `"Sleep" is no type of state`},
		"a state before the first": {machineOf(`"B":{"Type":"Succeed"}`), `Missing target state "A" at /StartAt`},
		"a way to nowhere":         {machineOf(`"A":{"Type":"Pass","Next":"B"}`), `Missing target state "B" at /States/A/Next`},
		"a catch to nowhere": {
			machineOf(`"A":{` + lambdaTask + `,"End":true,"Catch":[{"ErrorEquals":["States.ALL"],"Next":"B"}]}`), "/States/A/Catch[0]/Next",
		},
		"a state without a way to it": {machineOf(`"A":{"Type":"Succeed"},"B":{"Type":"Succeed"}`), `State "B" is not reachable`},
		"neither Next nor End":        {machineOf(`"A":{"Type":"Pass"}`), `either "Next" or "End"`},
		"both Next and End": {
			machineOf(`"A":{"Type":"Pass","Next":"B","End":true},"B":{"Type":"Succeed"}`), `either "Next" or "End"`,
		},
		"a name over 80 characters": {
			machineOf(`"A":{"Type":"Pass","Next":"` + strings.Repeat("x", 81) + `"},"` + strings.Repeat("x", 81) + `":{"Type":"Succeed"}`),
			"1 to 80 characters",
		},
		"a name that is there twice": {
			machineOf(`"A":{"Type":"Parallel","End":true,"Branches":[{"StartAt":"B","States":{"B":{"Type":"Succeed"}}},` +
				`{"StartAt":"B","States":{"B":{"Type":"Succeed"}}}]}`), `State name "B" is already used`,
		},
		"no states":                 {`{"QueryLanguage":"JSONata","StartAt":"A"}`, `The field "States" is required`},
		"a task without a resource": {machineOf(`"A":{"Type":"Task","End":true}`), `"Resource" is required`},
		"a function's ARN": {
			machineOf(`"A":{"Type":"Task","End":true,"Resource":"arn:aws:lambda:eu-central-1:111122223333:function:f"}`),
			"only arn:aws:states:::service:action",
		},
		"a task that waits for a job": {
			machineOf(`"A":{"Type":"Task","End":true,"Resource":"arn:aws:states:::ecs:runTask.sync"}`), ".sync is not supported",
		},
		"an expression that is not closed": {machineOf(`"A":{"Type":"Pass","End":true,"Output":"{% 1"}`), "begins with {% and ends with %}"},
		"text before an expression":        {machineOf(`"A":{"Type":"Pass","End":true,"Output":{"a":"x {% 1 %}"}}`), "at /States/A/Output/a"},
		"an empty expression":              {machineOf(`"A":{"Type":"Pass","End":true,"Output":"{% %}"}`), "the expression is empty"},
		"a wrong expression":               {machineOf(`"A":{"Type":"Pass","End":true,"Output":"{% 1 + %}"}`), "INVALID_JSONATA"},
		"an operator that AWS lacks, ??": {
			machineOf(`"A":{"Type":"Pass","End":true,"Output":"{% $a ?? 1 %}"}`), "?? is not part of the JSONata of Step Functions",
		},
		"an operator that AWS lacks, ?:": {
			machineOf(`"A":{"Type":"Pass","End":true,"Output":"{% $a ?: 1 %}"}`), "?: is not part of the JSONata of Step Functions",
		},
		"$eval": {
			machineOf(`"A":{"Type":"Pass","End":true,"Output":"{% $eval('1') %}"}`), "$eval is not part of the JSONata of Step Functions",
		},
		"a reserved variable": {
			machineOf(`"A":{"Type":"Pass","End":true,"Assign":{"states":1}}`), `"states" is no name for a variable`,
		},
		"a variable with a dash":      {machineOf(`"A":{"Type":"Pass","End":true,"Assign":{"a-b":1}}`), `"a-b" is no name for a variable`},
		"an Assign that is no object": {machineOf(`"A":{"Type":"Pass","End":true,"Assign":[1]}`), "Assign is not an object"},
		"an outer variable written inside": {
			machineOf(`"A":{"Type":"Map","Next":"C","Assign":{"x":1},"ItemProcessor":{"StartAt":"B","States":{"B":{"Type":"Pass",` +
				`"End":true,"Assign":{"x":2}}}}},"C":{"Type":"Succeed"}`), `Variable "x" belongs to an enclosing flow`,
		},
		"a choice without rules": {machineOf(`"A":{"Type":"Choice","Choices":[]}`), "at least one rule"},
		"a condition that is a string": {
			machineOf(`"A":{"Type":"Choice","Choices":[{"Condition":"yes","Next":"B"}]},"B":{"Type":"Succeed"}`),
			"neither a JSONata expression nor a boolean",
		},
		"a JSONPath rule": {
			machineOf(`"A":{"Type":"Choice","Choices":[{"Variable":"$.a","BooleanEquals":true,"Next":"B"}]},"B":{"Type":"Succeed"}`),
			`The JSONPath field "Variable"`,
		},
		"a wait for nothing":         {machineOf(`"A":{"Type":"Wait","End":true}`), "exactly one of Seconds and Timestamp"},
		"a wait for a wrong time":    {machineOf(`"A":{"Type":"Wait","End":true,"Timestamp":"tomorrow"}`), "not an RFC3339 timestamp"},
		"a wait for a negative time": {machineOf(`"A":{"Type":"Wait","End":true,"Seconds":-1}`), "integer between 0 and"},
		"a timeout of zero":          {machineOf(`"A":{` + lambdaTask + `,"End":true,"TimeoutSeconds":0}`), "integer between 1 and"},
		"a distributed map": {
			machineOf(`"A":{"Type":"Map","End":true,"ItemProcessor":{"ProcessorConfig":{"Mode":"DISTRIBUTED",` +
				`"ExecutionType":"STANDARD"},"StartAt":"B","States":{"B":{"Type":"Succeed"}}}}`), "Map in mode DISTRIBUTED is not supported",
		},
		"a tolerated failure": {
			machineOf(`"A":{"Type":"Map","End":true,"ToleratedFailurePercentage":5,"ItemProcessor":{"StartAt":"B",` +
				`"States":{"B":{"Type":"Succeed"}}}}`), `"ToleratedFailurePercentage" belongs to a distributed Map`,
		},
		"items that are an object": {
			machineOf(`"A":{"Type":"Map","End":true,"Items":{"a":1},"ItemProcessor":{"StartAt":"B","States":{"B":{"Type":"Succeed"}}}}`),
			"neither an array nor an expression",
		},
		"a map without a processor":   {machineOf(`"A":{"Type":"Map","End":true}`), `"ItemProcessor" is required`},
		"a parallel without branches": {machineOf(`"A":{"Type":"Parallel","End":true,"Branches":[]}`), "at least one branch"},
		"States.ALL with others": {
			machineOf(`"A":{` + lambdaTask + `,"End":true,"Retry":[{"ErrorEquals":["States.ALL","X"]}]}`), "States.ALL must appear alone",
		},
		"States.ALL before others": {
			machineOf(`"A":{` + lambdaTask + `,"End":true,"Retry":[{"ErrorEquals":["States.ALL"]},{"ErrorEquals":["X"]}]}`), "in the last entry",
		},
		"an unknown reserved error": {
			machineOf(`"A":{` + lambdaTask + `,"End":true,"Retry":[{"ErrorEquals":["States.Nonsense"]}]}`), "no reserved error name",
		},
		"a backoff below one": {
			machineOf(`"A":{` + lambdaTask + `,"End":true,"Retry":[{"ErrorEquals":["X"],"BackoffRate":0.5}]}`), "at least 1.0",
		},
		"a longest delay below the first": {
			machineOf(`"A":{` + lambdaTask + `,"End":true,"Retry":[{"ErrorEquals":["X"],"IntervalSeconds":5,"MaxDelaySeconds":5}]}`),
			"greater than IntervalSeconds",
		},
		"an unknown jitter strategy": {
			machineOf(`"A":{` + lambdaTask + `,"End":true,"Retry":[{"ErrorEquals":["X"],"JitterStrategy":"HALF"}]}`), "neither FULL nor NONE",
		},
		"a retry on a pass": {machineOf(`"A":{"Type":"Pass","End":true,"Retry":[]}`), `The field "Retry" is not supported`},
		"credentials of another account": {
			machineOf(`"A":{` + lambdaTask + `,"End":true,"Credentials":{"RoleArn":"x"}}`), `The field "Credentials" is not supported`,
		},
		"a cause that is a number": {machineOf(`"A":{"Type":"Fail","Cause":1}`), "Cause is not a string"},
		"a timeout of the whole of zero": {
			`{"QueryLanguage":"JSONata","TimeoutSeconds":0,"StartAt":"A","States":{"A":{"Type":"Succeed"}}}`, "TimeoutSeconds must be",
		},
		"another version": {`{"QueryLanguage":"JSONata","Version":"2.0","StartAt":"A","States":{"A":{"Type":"Succeed"}}}`, `Version "2.0"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.definition))
			var problems InvalidDefinition
			require.ErrorAs(t, err, &problems)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestParseReportsEveryProblem(t *testing.T) {
	_, err := Parse([]byte(machineOf(`"A":{"Type":"Pass","Next":"B","Output":"{% $a ?? 1 %}"},"C":{"Type":"Succeed"}`)))
	var problems InvalidDefinition
	require.ErrorAs(t, err, &problems)
	require.Len(t, problems, 3)
}

func TestParseAllowsStringsThatOnlyLookForeign(t *testing.T) {
	for _, source := range []string{
		`'what ?? now'`, "$x.`?:`", `$replace("a", /(?:a)/, "b")`, `/* $eval */ 1`, `$evaluate`, `a ? b : c`, `[1][0] ? 1 : 2`,
		`6/2 /* ?? */ /3`, `"\"??"`,
	} {
		for _, token := range []string{"??", "?:", "$eval"} {
			require.False(t, containsToken(source, token), "%s in %s", token, source)
		}
	}
	require.True(t, containsToken(`(4)/2 ?? /x/`, "??"))
	require.True(t, containsToken(`$eval ("1")`, "$eval"))
}

func TestResources(t *testing.T) {
	m, err := Parse([]byte(machineOf(`
		"A":{` + lambdaTask + `,"Next":"B"},
		"B":{"Type":"Task","Resource":"arn:aws:states:::aws-sdk:autoscaling:completeLifecycleAction","Next":"C"},
		"C":{"Type":"Map","End":true,"ItemProcessor":{"StartAt":"D","States":{"D":{"Type":"Task",` +
		`"Resource":"arn:aws:states:::lambda:invoke.waitForTaskToken","Next":"E"},
			"E":{"Type":"Task","Resource":"arn:aws:states:::states:startExecution.sync:2","End":true}}}}`)))
	require.NoError(t, err)
	require.Equal(t, []Resource{
		{ARN: "arn:aws:states:::aws-sdk:autoscaling:completeLifecycleAction", Service: "aws-sdk:autoscaling", Action: "completeLifecycleAction"},
		{ARN: "arn:aws:states:::lambda:invoke", Service: "lambda", Action: "invoke"},
		{ARN: "arn:aws:states:::lambda:invoke.waitForTaskToken", Service: "lambda", Action: "invoke", Token: true},
		{ARN: "arn:aws:states:::states:startExecution.sync:2", Service: "states", Action: "startExecution", Job: true},
	}, m.Resources())
}

func TestStepFunctionsFunctions(t *testing.T) {
	for source, want := range map[string]string{
		`$partition([1,2,3,4,5], 2)`:             `[[1,2],[3,4],[5]]`,
		`$partition([], 2)`:                      `[]`,
		`$range(1, 9, 2)`:                        `[1,3,5,7,9]`,
		`$range(3, 1, -1)`:                       `[3,2,1]`,
		`$range(1, 1, 1)`:                        `[1]`,
		`$hash("Hello World", "SHA-256")`:        `"a591a6d40bf420404a011733cfb7b190d62c65bf0bcda32b57b277d9ad9f146e"`,
		`$hash("a", "MD5")`:                      `"0cc175b9c0f1b6a831c399e269772661"`,
		`$random(7) = $random(7)`:                `true`,
		`$random() < 1`:                          `true`,
		`$length($uuid())`:                       `36`,
		`$uuid() = $uuid()`:                      `false`,
		`$parse('{"b": [1, null], "a": "<x>"}')`: `{"b":[1,null],"a":"<x>"}`,
		`$parse('{"b": {"c": 2}}').b.c`:          `2`,
	} {
		t.Run(source, func(t *testing.T) {
			got, err := evaluate(t, &query{states: noInput}, source)
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		})
	}
	for _, source := range []string{
		`$partition([1], 0)`, `$range(1, 2000, 1)`, `$range(1, 2, 0)`, `$hash("a", "CRC")`, `$hash(1, "MD5")`, `$parse("{")`, `$random("x")`,
		`$flatten([[1]])`, `$values({"a":1})`, `($e := $states; $lookup({"f": 1}, "f")) ~> $eval`,
	} {
		_, err := evaluate(t, &query{states: noInput}, source)
		require.Error(t, err, source)
	}
}

// The expressions of a query share their inputs. None sees a variable that another assigns.
func TestExpressionsOfOneQuery(t *testing.T) {
	q := &query{states: func(memberSet) json.RawMessage {
		return json.RawMessage(`{"input":[3,1,2]}`)
	}, variables: map[string]json.RawMessage{"v": json.RawMessage(`{"n":1}`), "vv": json.RawMessage(`2`)}}
	for _, c := range [][2]string{
		{`$sort($states.input)`, `[1,2,3]`},
		{`$states.input`, `[3,1,2]`},
		{`$append($states.input, 4)`, `[3,1,2,4]`},
		{`$append($states.input, 5)`, `[3,1,2,5]`},
		{`($v := 5; $x := 6; $v + $x)`, `11`},
		{`$v.n + $vv`, `3`},
		{`$v ~> |$|{"n":7}|`, `{"n":7}`},
		{`$v`, `{"n":1}`},
		{`$exists($x)`, `false`},
	} {
		got, err := evaluate(t, q, c[0])
		require.NoError(t, err, c[0])
		require.Equal(t, c[1], string(got), c[0])
	}
}
