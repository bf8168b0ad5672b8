package pool

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSuspendedByUpdateIsThatOfTheTemplate(t *testing.T) {
	body, err := os.ReadFile("../../templates/v1/pool.yaml.tmpl")
	require.NoError(t, err)
	require.Contains(t, string(body), "SuspendProcesses: ["+strings.Join(SuspendedByUpdate, ", ")+"]")
	for _, process := range NeededToReplace {
		require.NotContains(t, SuspendedByUpdate, process)
	}
}
