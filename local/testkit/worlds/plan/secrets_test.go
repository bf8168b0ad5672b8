package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

// Files, commands and configurations of a spec may hold secrets. User data and templates contain them, because nodes and add-ons need them.
// Statuses, notices, logs, plans and executions do not.
func TestSecretsAreNotDisclosed(t *testing.T) {
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
		// A status shows that secrets changed, and not their values.
		spec("hunter3"),
		// Nor does it show the values in an invalid or refused spec.
		strings.Replace(spec("hunter4"), "minSize: 1", "minSize: 9", 1),
		strings.Replace(spec("hunter5"), `content: "`, `mode: "9", contents: "`, 1),
		strings.Replace(spec("hunter6"), "commands: [", "commands: [{}, ", 1),
		strings.Replace(spec("hunter7"), "10.0.0.0/16", "10.9.0.0/16", 1),
	} {
		a.Upload("clusters/demo.yaml", upload)
		a.Settle()
		body, err := json.Marshal(a.Status("demo"))
		require.NoError(t, err)
		require.NotContains(t, string(body), "hunter")
	}
	require.Equal(t, status.ReasonChangeRefused, a.Status("demo").Condition(status.Converged).Reason)
	require.NotContains(t, a.Log(), "hunter")
	require.NotContains(t, strings.Join(a.Notices(), "\n"), "hunter")
	// The plans hold the reasons that statuses show while changes are made.
	plans, err := a.State().List(t.Context(), "plans/")
	require.NoError(t, err)
	bodies := ""
	for _, entry := range plans {
		plan, err := a.State().Get(t.Context(), entry.Key, 1<<20)
		require.NoError(t, err)
		bodies += string(plan.Body)
	}
	require.NotContains(t, bodies, "hunter")
	require.Contains(t, bodies, "spec.pools[a].commands")
	require.Contains(t, bodies, "spec.addons[coredns].configuration.token")
	executions, err := json.Marshal(a.StepFunctions.Executions())
	require.NoError(t, err)
	require.NotContains(t, string(executions), "hunter")
	require.Contains(t, string(executions), "drover-converge")
}
