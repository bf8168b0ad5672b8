package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

// taintedCluster is a cluster whose only pool has a taint.
func taintedCluster(more string) string {
	return strings.Replace(harness.Spec("demo", more), "maxSize: 3",
		"maxSize: 3, taints: [{key: dedicated, value: batch, effect: NoSchedule}]", 1)
}

func TestWarnings(t *testing.T) {
	t.Run("an upload records them before it is planned", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("clusters/demo.yaml", taintedCluster("")) // whose release is not there
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, status.ReasonReleaseUnusable, s.Condition(status.SpecAccepted).Reason)
		warned := s.Condition(status.AddonsSchedulable)
		require.Equal(t, "False NoPoolForAddons", warned.Status+" "+warned.Reason)
		require.Contains(t, warned.Message, "the pods of coredns, which")
	})
	t.Run("they survive planning, with what the release adds, and go with the next spec", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("releases/r1.yaml", strings.Replace(harness.Release(), "  templateVersion",
			"    - {name: metrics-server, version: v0.8.1-eksbuild.1}\n  templateVersion", 1))
		s := awaitConverged(t, a, taintedCluster(""))
		require.Contains(t, s.Condition(status.AddonsSchedulable).Message, "the pods of coredns, metrics-server, which")
		require.Equal(t, "True", s.Condition(status.SpecAccepted).Status)
		mark := a.Calls.Mark()
		a.Converge("demo")
		a.Settle()
		require.Empty(t, mutatingCalls(a, mark), "a warning costs nothing")

		s = awaitConverged(t, a, harness.Spec("demo", ""))
		require.Nil(t, s.Condition(status.AddonsSchedulable))
	})
	t.Run("tolerations in the configuration count", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("releases/r1.yaml", harness.Release())
		s := awaitConverged(t, a, taintedCluster("  addons: [{name: coredns, configuration: {tolerations: [{operator: Exists}]}}]\n"))
		require.Nil(t, s.Condition(status.AddonsSchedulable))
	})
}
