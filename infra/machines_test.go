package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// machineNames and their goldens in testdata/machines, which the interpreter's tests run.
var machineGoldens = map[string]string{
	convergeMachine: "converge",
	joinMachine:     "join-node",
}

// definition of a machine with the tests' ARNs, indented.
func definition(t *testing.T, machine string) []byte {
	t.Helper()
	properties := synthesized.named(t, "AWS::StepFunctions::StateMachine", "StateMachineName", machine)
	var out bytes.Buffer
	require.NoError(t, json.Indent(&out, []byte(properties["DefinitionString"].(string)), "", "  "))
	out.WriteByte('\n')
	return out.Bytes()
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
