package account

// One cluster with pools of AL2023, of AL2023 for NVIDIA and of Bottlerocket, whose nodes join real control planes.

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// One upgrade moves the pools of every family.
func TestUpgradeMovesEveryFamily(t *testing.T) {
	t.Parallel()
	const name = "families"
	cloud.retire(t, name)
	pools := []object{
		{"name": "workers", "instanceTypes": []string{"m7i.large"}, "minSize": 1, "maxSize": 2},
		{
			"name": "gpu", "instanceTypes": []string{"g6.xlarge"}, "minSize": 1, "maxSize": 2, "image": object{"variant": "Nvidia"},
			"taints": []object{{"key": "nvidia.com/gpu", "effect": "NoSchedule"}},
		},
		{
			"name": "safe", "instanceTypes": []string{"m7i.large"}, "minSize": 1, "maxSize": 2, "maxPods": 40,
			"image": object{
				"family": "Bottlerocket", "variant": "FIPS", "settings": object{"kernel": object{"lockdown": "integrity"}},
			},
			"kubelet": object{"evictionHard": object{"memory.available": "5%"}},
			"labels":  object{"example.com/safe": "true"}, "taints": []object{{"key": "safe", "value": "yes", "effect": "NoSchedule"}},
		},
	}
	spec := cloud.older(t, name, nil, pools...)
	cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))
	check := func(version string) {
		t.Helper()
		kinds := map[string]string{"workers": "amd64", "gpu": "amd64-nvidia", "safe": "bottlerocket-amd64-fips"}
		seen := map[string]bool{}
		for _, node := range nodesOf(t, name) {
			pool := node.Labels[names.LabelPool]
			seen[pool] = true
			require.Contains(t, node.Status.NodeInfo.KubeletVersion, "v"+version+".", pool)
			id := node.Spec.ProviderID[strings.LastIndex(node.Spec.ProviderID, "/")+1:]
			instance, err := cloud.EC2.Instance(id)
			require.NoError(t, err)
			require.Equal(t, ec2.ImageID(version, kinds[pool]), instance.ImageID, pool)
			if pool == "safe" {
				require.Contains(t, node.Status.NodeInfo.OSImage, "Bottlerocket OS")
				require.Equal(t, "true", node.Labels["example.com/safe"])
				require.EqualValues(t, 40, node.Status.Allocatable.Pods().Value())
				require.Equal(t, "yes", node.Spec.Taints[0].Value)
			}
		}
		require.Len(t, seen, len(kinds))
	}
	check("1.35")

	spec["spec"].(object)["release"] = object{"name": "1.36-1"}
	version := cloud.upload(t, name, text(t, spec))
	s := cloud.awaitWithin(t, 5*patience, name, "upgraded", func(s status.Status) bool {
		return s.PlannedVersion == version && s.Phase == status.Ready && s.Upgrade != nil && s.Upgrade.Phase == string(upgrade.Done)
	})
	requireCompleted(t, s.Upgrade, upgrade.OriginSpec)
	check("1.36")
}
