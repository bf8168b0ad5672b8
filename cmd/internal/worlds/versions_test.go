package worlds

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/cmd/internal/clitest"
)

// showVersions tests the table for a Ready cluster at 1.36-1, before and after its channel changes to a newer release.
func showVersions(t *testing.T) {
	mark := cloud.Calls.Mark()
	out := ok(t, "versions")
	require.Regexp(t, `(?m)^CLUSTER +RELEASE +KUBERNETES +CHANGES +DUE +SUPPORTED UNTIL\ndemo +1\.36-1 +1\.36 +- +- +2027-08-03$`, out)
	out = ok(t, "versions", "-o", "wide")
	for _, row := range []string{
		`(?m)^CLUSTER +PART +CURRENT +TARGET +DUE +SUPPORTED UNTIL$`,
		`(?m)^demo +release +1\.36-1 +- +- +-$`,
		`(?m)^demo +control plane +1\.36 +- +- +2027-08-03, extended 2028-08-03$`,
		`(?m)^demo +pool spot +1\.36 \(ami-00000000000013601\) +- +- +-$`,
		`(?m)^demo +add-on kube-proxy +v1\.36\.1-eksbuild\.2 +- +- +-$`,
	} {
		require.Regexp(t, row, out)
	}
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 1+1+1+2+5,
		"a row for the release, the control plane, each pool and each add-on")
	for _, call := range cloud.Calls.Since(mark) {
		require.False(t, call.Mutating, "versions called %s %s", call.Service, call.Action)
	}

	// The cluster follows a channel that changes. Its window opens in years.
	require.Contains(t, ok(t, "apply", "examples/releases/1.37-1.yaml"), "uploaded release 1.37-1")
	require.Contains(t, ok(t, "apply", "examples/releases/channels.yaml"), "uploaded the channels")
	followed := example(t, "clusters/demo.yaml", "  tags:\n", "  upgrade: {channel: Rapid, window: {cron: \"0 1 1 1 ? 2090\", duration: "+
		"4h}}\n  tags:\n")
	ok(t, "apply", clitest.Write(t, "demo.yaml", followed), "--watch")
	var fleet []cli.ClusterVersions
	require.NoError(t, json.Unmarshal([]byte(ok(t, "versions", "-o", "json")), &fleet))
	require.Len(t, fleet, 1)
	v := fleet[0]
	require.Equal(t, "Rapid", v.Channel)
	require.JSONEq(t, `{"current":"1.36-1","target":"1.37-1"}`, document(t, v.Release))
	require.JSONEq(t, `{"current":"1.36","target":"1.37"}`, document(t, v.ControlPlane))
	require.Contains(t, v.Due, "2090-01-01T01:00:00Z")
	require.JSONEq(t, `[
		{"name":"spot","current":"ami-00000000000013601","target":"ami-00000000000013701","kubernetesVersion":"1.36"},
		{"name":"workers","current":"ami-00000000000013601","target":"ami-00000000000013701","kubernetesVersion":"1.36"}
	]`, document(t, v.Pools))
	require.Contains(t, document(t, v.Addons), `{"name":"coredns","current":"v1.13.2-eksbuild.1","target":"v1.14.0-eksbuild.1"}`)
	require.Contains(t, document(t, v.Addons), `{"name":"vpc-cni","current":"v1.21.1-eksbuild.1"}`)
	ok(t, "apply", "examples/clusters/demo.yaml", "--watch")
}

// document returns the JSON of a value, as the commands print it.
func document(t *testing.T, value any) string {
	t.Helper()
	body, err := json.Marshal(value)
	require.NoError(t, err)
	return string(body)
}
