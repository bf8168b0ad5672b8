package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

// What people put into files, commands and configurations may be secret: it is in user data and templates, where nodes and
// add-ons need it, and in nothing that is written to be read.
func TestSecretsAreToldToNobody(t *testing.T) {
	a := harness.Start(t)
	spec := func(secret string) string {
		return strings.Replace(harness.Spec("demo", `  addons:
    - name: coredns
      configuration: {token: "`+secret+`-configuration"}
`), "maxSize: 3}", `maxSize: 3, commands: ["login --password `+secret+`-command"],
       files: [{path: /etc/token, content: "`+secret+`-content"}]}`, 1)
	}
	a.Upload("releases/r1.yaml", harness.Release())
	for _, upload := range []string{
		spec("hunter2"),
		// A change of secrets is told, not what they are.
		spec("hunter3"),
		// Nor when they are wrong, or in the way of something that is.
		strings.Replace(spec("hunter4"), "minSize: 1", "minSize: 9", 1),
		strings.Replace(spec("hunter5"), `content: "`, `mode: "9", contents: "`, 1),
		strings.Replace(spec("hunter6"), "commands: [", "commands: [{}, ", 1),
		strings.Replace(spec("hunter7"), "10.0.0.0/16", "10.9.0.0/16", 1),
	} {
		a.Upload("clusters/demo.yaml", upload)
		a.Settle()
		told, err := json.Marshal(a.Status("demo"))
		require.NoError(t, err)
		require.NotContains(t, string(told), "hunter")
	}
	require.Equal(t, status.ReasonChangeRefused, a.Status("demo").Condition(status.Converged).Reason)
	require.NotContains(t, a.Log(), "hunter")
	require.NotContains(t, strings.Join(a.Notices(), "\n"), "hunter")
	// The plans hold the reasons that statuses show while changes are made.
	plans, err := a.State().List(t.Context(), "plans/")
	require.NoError(t, err)
	told := ""
	for _, entry := range plans {
		plan, err := a.State().Get(t.Context(), entry.Key, 1<<20)
		require.NoError(t, err)
		told += string(plan.Body)
	}
	require.NotContains(t, told, "hunter")
	require.Contains(t, told, "spec.pools[a].commands")
	require.Contains(t, told, "spec.addons[coredns].configuration.token")
	executions, err := json.Marshal(a.States.Executions())
	require.NoError(t, err)
	require.NotContains(t, string(executions), "hunter")
	require.Contains(t, string(executions), "drover-converge")
}
