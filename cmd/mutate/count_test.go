package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCount(t *testing.T) {
	c, err := parse("shared/drain", []byte(`{"files":[{"file_name":"decide.go","mutations":[
		{"type":"INVERT_LOGICAL","status":"LIVED","line":9,"column":3},
		{"type":"CONDITIONALS_NEGATION","status":"KILLED","line":1,"column":1},
		{"type":"CONDITIONALS_NEGATION","status":"KILLED","line":2,"column":1},
		{"type":"ARITHMETIC_BASE","status":"NOT VIABLE","line":3,"column":1},
		{"type":"INCREMENT_DECREMENT","status":"TIMED OUT","line":4,"column":1},
		{"type":"CONDITIONALS_BOUNDARY","status":"NOT COVERED","line":5,"column":1}]}]}`))
	require.NoError(t, err)
	require.Equal(t, count{name: "shared/drain", killed: 2, lived: 1, notCovered: 1, timedOut: 1, notViable: 1, unnoticed: []string{
		"shared/drain/decide.go:5:1: CONDITIONALS_BOUNDARY NOT COVERED", "shared/drain/decide.go:9:3: INVERT_LOGICAL LIVED",
	}}, c)

	t.Run("rejects an unknown status", func(t *testing.T) {
		_, err := parse("shared/drain", []byte(`{"files":[{"file_name":"a.go","mutations":[{"status":"RUNNABLE"}]}]}`))
		require.ErrorContains(t, err, `unknown status "RUNNABLE"`)
	})
	t.Run("has a line for each package", func(t *testing.T) {
		var out bytes.Buffer
		printTable(&out, []count{c, {name: "shared/plan", killed: 10}})
		require.Contains(t, out.String(), "decide.go:9:3: INVERT_LOGICAL LIVED\n")
		require.Regexp(t, `2 +1 +1 +1 +1 +66\.7 % +shared/drain\n`, out.String())
		require.Regexp(t, `10 +0 +0 +0 +0 +100\.0 % +shared/plan\n`, out.String())
	})
	t.Run("names packages below the limit only", func(t *testing.T) {
		require.NoError(t, belowLimit([]count{{name: "shared/plan", killed: 9, lived: 1}}))
		err := belowLimit([]count{{name: "shared/plan", killed: 9, lived: 1}, c, {name: "shared/roll"}})
		require.ErrorContains(t, err, "efficacy below 90 %: shared/drain 66.7 %, shared/roll 0.0 %: ")
		require.NotContains(t, err.Error(), "shared/plan")
	})
}
