package preflight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/upgrade"
)

func TestARollbackMendsWhatItsOwnStepsTakeBack(t *testing.T) {
	found := func(name string, steps ...upgrade.Step) bool {
		r := report{name: Insights}
		insights(&r, &Facts{Insights: []Insight{{Name: name, Status: "ERROR", Reason: "why"}}}, &Plan{Rollback: true, Steps: steps})
		require.Len(t, r.found, 1, "it is told in any case")
		return r.found[0].Blocks
	}
	back, addons := upgrade.Step{Kind: upgrade.StepNodesBack}, upgrade.Step{Kind: upgrade.StepAddonsFirst}
	require.False(t, found("Kubelet version rollback compatibility", back))
	require.True(t, found("Kubelet version rollback compatibility", addons))
	require.False(t, found("kube-proxy version skew", back, addons))
	require.True(t, found("EKS add-on version compatibility", back))
	require.True(t, found("Incompatible API usage", back, addons))
}
