package lambdaruntime

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// A function that was not deployed by drover exits before its first event and names the missing variable.
func TestMustExitsWithoutItsVariable(t *testing.T) {
	if os.Getenv("CHILD") == "yes" {
		Process().Must(SpecsBucket)
		return
	}
	child := exec.Command(os.Args[0], "-test.run", "^TestMustExitsWithoutItsVariable$")
	child.Env = []string{"CHILD=yes"}
	output, err := child.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Equal(t, "DROVER_SPECS_BUCKET is not set: the function was not deployed by drover's CDK app\n", string(output))
}

func TestMustReturnsTheValue(t *testing.T) {
	t.Setenv(StateBucket, "b")
	require.Equal(t, "b", Process().Must(StateBucket))
}

func TestCount(t *testing.T) {
	if value, isChild := os.LookupEnv("CHILD_LIMIT"); isChild {
		Env{Variables: map[string]string{CellLimit: value}}.Count(CellLimit)
		return
	}
	for _, value := range []string{"many", "0", "-1", "1.5", " 3"} {
		t.Run("exits with the value "+value, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run", "^TestCount$")
			child.Env = []string{"CHILD_LIMIT=" + value}
			output, err := child.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 1, exit.ExitCode())
			require.Equal(t, fmt.Sprintf("DROVER_CELL_LIMIT is %q: must be a number from 1 on\n", value), string(output))
		})
	}
	require.Equal(t, 12, Env{Variables: map[string]string{CellLimit: "12"}}.Count(CellLimit))
	require.Zero(t, Env{}.Count(CellLimit))
}
