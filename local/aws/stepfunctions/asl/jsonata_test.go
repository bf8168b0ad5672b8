package asl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// oracleCases are expressions with their results in JSONata 2.0.6.
type oracleCases struct {
	Worlds map[string]struct {
		States    json.RawMessage
		Variables map[string]json.RawMessage
	}
	Cases []struct {
		World, Expression string
		Want              oracleAnswer
	}
}

type oracleAnswer struct {
	Result    json.RawMessage
	Undefined bool
	Error     bool
}

// differences of gnata that remain. No expression in drover's machines depends on one.
var differences = map[string]string{
	`$states.input.nested.**.b`: "the array around the only element that a descendant has is lost",
	`$match("abab", /b/).index`: "a path right behind $match without its limit finds nothing; behind a variable it does",
}

func readOracle(t *testing.T) oracleCases {
	t.Helper()
	raw, err := os.ReadFile("testdata/jsonata.json")
	require.NoError(t, err)
	var o oracleCases
	require.NoError(t, json.Unmarshal(raw, &o))
	return o
}

// evaluate evaluates an expression as a state would. nil without an error is undefined.
func evaluate(t *testing.T, q *query, source string) (json.RawMessage, error) {
	t.Helper()
	x, err := compileExpression(source)
	if err != nil {
		return nil, err
	}
	q.ctx = t.Context()
	return q.value(&template{expr: x, at: "Output"})
}

func TestExpressions(t *testing.T) {
	o := readOracle(t)
	for _, c := range o.Cases {
		t.Run(c.World+"/"+c.Expression, func(t *testing.T) {
			w := o.Worlds[c.World]
			got, err := evaluate(t, &query{states: func(memberSet) json.RawMessage { return w.States }, variables: w.Variables}, c.Expression)
			if why, differs := differences[c.Expression]; differs {
				require.NotEqual(t, string(compact(c.Want.Result)), string(got), "the difference no longer exists: "+why)
				return
			}
			var f *Failure
			if c.Want.Error || c.Want.Undefined {
				require.Error(t, err, "%s", got)
				if errors.As(err, &f) && c.Want.Undefined {
					require.Contains(t, f.Cause, "returned nothing (undefined).")
				}
				return
			}
			require.NoError(t, err)
			require.JSONEq(t, string(c.Want.Result), string(got))
		})
	}
}

func TestGoldenAnswers(t *testing.T) {
	const library = "../../../../infra/node_modules/jsonata"
	if _, err := os.Stat(library); err != nil {
		t.Skip("npm's jsonata is not installed in infra/node_modules; only the golden answers were checked")
	}
	out, err := exec.Command("node", "testdata/oracle.js", library, "testdata/jsonata.json").Output()
	require.NoError(t, err)
	o := readOracle(t)
	lines := bufio.NewScanner(bytes.NewReader(out))
	for _, c := range o.Cases {
		require.True(t, lines.Scan())
		var answer oracleAnswer
		require.NoError(t, json.Unmarshal(lines.Bytes(), &answer))
		want, got := c.Want, answer
		require.Equal(t, string(compact(want.Result)), string(compact(got.Result)), c.Expression)
		require.Equal(t, want.Error, got.Error, c.Expression)
		require.Equal(t, want.Undefined, got.Undefined, c.Expression)
	}
}
