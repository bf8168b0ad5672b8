package worlds

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/overview"
)

// showFleet tests the table of all clusters for a Ready cluster. admit has written the labels of its spec to its status.
func showFleet(t *testing.T) {
	mark := cloud.Calls.Mark()
	require.Regexp(t,
		`(?m)^NAME +HEALTH +KUBERNETES +RELEASE +REASON +CHANGED +WAITS FOR\ndemo +\w+ +1\.36 +1\.36-1 +\w+ +\S+ `, ok(t, "fleet"))
	require.Contains(t, ok(t, "fleet", "-o", "wide"), "environment=demo,stage=canary")
	document := ok(t, "fleet", "-l", "stage in (canary, late)", "--kubernetes", "1.36", "-o", "json")
	var one overview.Document
	require.NoError(t, json.Unmarshal([]byte(document), &one))
	require.Len(t, one.Clusters, 1)
	require.Equal(t, "canary", one.Clusters[0].Labels["stage"])
	require.NotZero(t, one.Clusters[0].UpdatedAt)
	require.Equal(t, "NAME  HEALTH  KUBERNETES  RELEASE  REASON  CHANGED  WAITS FOR\n", ok(t, "fleet", "-l", "stage notin (canary)"))
	require.Contains(t, fails(t, "fleet", "-l", "stage in"), "--selector \"stage in\" is invalid")
	require.Contains(t, fails(t, "fleet", "--health", "Sick"), "--health \"Sick\" is invalid: use Healthy, Changing")
	for _, call := range cloud.Calls.Since(mark) {
		require.False(t, call.Mutating, "fleet called %s %s", call.Service, call.Action)
	}
}
