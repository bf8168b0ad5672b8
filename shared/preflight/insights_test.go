package preflight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestRollbackResolvesInsights(t *testing.T) {
	found := func(name string, steps ...upgrade.Step) bool {
		r := report{name: Insights}
		insights(&r, &Facts{Insights: []Insight{{Name: name, Status: "ERROR", Reason: "why"}}}, &Plan{Rollback: true, Steps: steps})
		require.Len(t, r.found, 1, "it is reported in any case")
		return r.found[0].Blocks
	}
	back, addons := upgrade.Step{Kind: upgrade.StepNodesBack}, upgrade.Step{Kind: upgrade.StepAddonsFirst}
	require.False(t, found("Kubelet version rollback compatibility", back))
	require.True(t, found("Kubelet version rollback compatibility", addons))
	require.False(t, found("kube-proxy version skew", back, addons))
	require.True(t, found("EKS add-on version compatibility", back))
	require.True(t, found("Incompatible API usage", back, addons))
}

// EKS finds add-ons that are incompatible with the next version. Those that the upgrade itself updates do not block it.
func TestUpgradeResolvesInsights(t *testing.T) {
	after := &api.Cluster{}
	after.Spec.Addons = []api.Addon{{Name: "coredns", Version: "v2"}, {Name: "kube-proxy", Version: "v1.36.0"}}
	first := upgrade.Step{
		Kind: upgrade.StepAddonsFirst, KubernetesVersion: "1.35", Addons: map[string]string{"coredns": "v2", "kube-proxy": "v1.35.0"},
	}
	control := upgrade.Step{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36"}
	compat := upgrade.Compat{
		"coredns": {{Version: "v2", Kubernetes: []string{"1.35", "1.36"}}, {Version: "v1", Kubernetes: []string{"1.35"}}},
		"theirs":  {{Version: "v1", Kubernetes: []string{"1.35"}}},
	}
	blocks := func(name string, addons []Addon, steps ...upgrade.Step) bool {
		r := report{name: Insights}
		plan := &Plan{From: upgrade.Target{KubernetesVersion: "1.35"}, To: upgrade.Target{KubernetesVersion: "1.36"}, Steps: steps, After: after}
		insights(&r, &Facts{
			Addons: addons, Compat: compat, Insights: []Insight{{Name: name, KubernetesVersion: "1.36", Status: "ERROR", Reason: "why"}},
		}, plan)
		require.Len(t, r.found, 1, "it is reported in any case")
		return r.found[0].Blocks
	}
	const addons, proxy = "EKS add-on version compatibility", "kube-proxy version skew"
	old, theirs := Addon{Name: "coredns", Version: "v1"}, Addon{Name: "theirs", Version: "v1"}
	require.False(t, blocks(addons, []Addon{old}, first, control))
	require.False(t, blocks(addons, []Addon{old}, control), "it is updated right afterwards, which AddonsCompatible reports")
	require.True(t, blocks(addons, []Addon{old, theirs}, first, control), "its owner must update it")
	require.True(t, blocks(addons, []Addon{{Name: "coredns", Version: "v2"}}, first, control), "EKS has a reason that drover does not know")
	require.False(t, blocks(proxy, nil, first, control))
	require.True(t, blocks(proxy, nil, control))
	require.True(t, blocks(proxy, nil, control, first))
	require.True(t, blocks("Kubelet version skew", nil, first, control))
}
