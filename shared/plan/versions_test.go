package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
)

func TestDeployedVersions(t *testing.T) {
	deployed := map[string]stack.Deployed{
		names.ControlPlane: {Tags: map[string]string{names.TagRelease: "r1@abc"}, Outputs: map[string]string{"KubernetesVersion": "1.36"}},
		names.Addons:       {Outputs: map[string]string{"KubeProxyVersion": "v1.36.1"}},
		names.NodeAddons:   {Outputs: map[string]string{"CorednsVersion": "v1.12.4"}},
		"pool-a":           {Outputs: map[string]string{"ImageId": "ami-1"}},
		"pool-new":         {},
	}
	release, sha := plan.Pin(deployed)
	require.Equal(t, []string{"r1", "abc", "1.36"}, []string{release, sha, plan.KubernetesVersion(deployed)})
	require.Equal(t, map[string]string{"a": "ami-1"}, plan.Images(deployed))
	require.Equal(t, map[string]string{"a": "v1"}, plan.TemplateVersions(deployed))
	addons := []api.Addon{{Name: "coredns"}, {Name: "kube-proxy"}, {Name: "vpc-cni"}}
	require.Equal(t, map[string]string{"coredns": "v1.12.4", "kube-proxy": "v1.36.1"}, plan.AddonVersions(deployed, addons))
	release, sha = plan.Pin(nil)
	require.Empty(t, release+sha+plan.KubernetesVersion(nil))
}
