package lambdaruntime

import (
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
