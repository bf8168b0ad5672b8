package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestWarningsOfKubelets(t *testing.T) {
	warnings := api.Warnings(&api.Cluster{Spec: api.ClusterSpec{Pools: []api.Pool{
		{Name: "a", MaxSize: 1, Kubelet: map[string]any{"evictionHard": map[string]any{"memory.available": "5%"}, "seccompDefault": true}},
		{Name: "b", MaxSize: 1, Kubelet: map[string]any{"evictionHart": map[string]any{}, "quiteNew": 1, "seccompdefault": true}},
	}}}, nil)
	const noField = "KubeletConfiguration of Kubernetes 1.36 has no such field"
	require.Equal(t, []string{
		"spec.pools[1].kubelet.evictionHart: " + noField + `, did you mean "evictionHard"?: a kubelet ignores fields that it does not know`,
		"spec.pools[1].kubelet.quiteNew: " + noField + ": a kubelet ignores fields that it does not know",
		"spec.pools[1].kubelet.seccompdefault: " + noField + `, did you mean "seccompDefault"?: a kubelet ignores fields that it does not know`,
	}, warnings.Kubelet)
	require.Equal(t, append(warnings.Access, warnings.Kubelet...), warnings.Lines())
}
