package asl

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExpressionMembers(t *testing.T) {
	for source, want := range map[string]memberSet{
		`1 + 1`:                                   0,
		`$states.input.a & $states.result`:        ofInput | ofResult,
		`$states.errorOutput.Cause`:               ofErrorOutput,
		`$states.context.Execution.Input.cluster`: ofContext,
		`$states`:                   ofAll,
		`($s := $states; $s.input)`: ofAll,
		`$states .input`:            ofAll,
		`$states.inputs`:            ofAll,
		`$states.*`:                 ofAll,
		`$statesman`:                ofAll,
		`$merge([$states.result, {"a": $states}])`: ofAll,
	} {
		require.Equal(t, want, membersOf(source), source)
	}
	var given []memberSet
	q := &query{states: func(of memberSet) json.RawMessage {
		given = append(given, of)
		return json.RawMessage(`{"input":1,"result":2}`)
	}}
	for _, c := range [][2]string{
		{`$states.input`, `1`}, {
			`$states.input + 1`, `2`,
		}, {`$states.result`, `2`}, {`$states.input`, `1`}, {`$keys($states)`, `["input","result"]`}, {`$states.result`, `2`},
	} {
		got, err := evaluate(t, q, c[0])
		require.NoError(t, err)
		require.Equal(t, c[1], string(got), c[0])
	}
	require.Equal(t, []memberSet{ofInput, ofInput | ofResult, ofAll}, given)
}
