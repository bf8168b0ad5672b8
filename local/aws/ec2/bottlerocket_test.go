package ec2

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const bottlerocketData = `[settings.kubernetes]
api-server = "https://endpoint"
cluster-certificate = "Y2E="
cluster-name = "demo"
cluster-dns-ip = "172.20.0.10"
max-pods = 42
[settings.kubernetes.node-labels]
"drover.run/pool" = "a"
[settings.kubernetes.node-taints]
"example.com/dedicated" = ["batch:NoSchedule", ":NoExecute"]
`

// Bottlerocket boots from settings in TOML only, and refuses settings that it does not know.
func TestBottlerocketBoots(t *testing.T) {
	for name, test := range map[string]struct {
		data, key, console string
	}{
		"settings": {
			bottlerocketData + "[settings.kernel]\nlockdown = \"integrity\"\n", "bottlerocket-amd64-fips", "Successfully",
		},
		"the user data of AL2023": {multipartData(nodeConfigPart), "bottlerocket-amd64", "user data is no TOML"},
		"an unknown group":        {bottlerocketData + "[settings.kernels]\na = 1\n", "bottlerocket-amd64", "unknown field `kernels`"},
		"an unknown setting": {
			"[settings.kubernetes]\nfail-swap-on = true\n", "bottlerocket-amd64", "unknown field `kubernetes.fail-swap-on`",
		},
		"resources that can be reserved": {
			bottlerocketData + "[settings.kubernetes.kube-reserved]\ncpu = \"10m\"\n", "bottlerocket-amd64", "Successfully",
		},
		"another resource": {
			bottlerocketData + "[settings.kubernetes.system-reserved]\npid = \"100\"\n", "bottlerocket-amd64", "unknown variant `pid`",
		},
		"another table": {bottlerocketData + "[other]\na = 1\n", "bottlerocket-amd64", `user data has "other"`},
		"a group of another variant": {
			bottlerocketData + "[settings.kubelet-device-plugins.nvidia]\na = 1\n", "bottlerocket-amd64", "unknown field `kubelet-device-plugins`",
		},
		"that group in its variant": {
			bottlerocketData + "[settings.kubelet-device-plugins.nvidia]\na = 1\n", "bottlerocket-amd64-nvidia", "Successfully",
		},
		"no cluster":            {"[settings]\nmotd = \"hello\"\n", "bottlerocket-amd64", "is missing: the kubelet is not started"},
		"settings with AL2023":  {bottlerocketData, "amd64", "nodeadm: fatal"},
		"a kubelet that ends":   {bottlerocketData, "silent", "kubelet.service: Main process exited"},
		"a number as the limit": {bottlerocketData + "[settings.kernel]\na = \n", "bottlerocket-amd64", "user data is no TOML"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				defer w.Close()
				_, subnet, group := w.network()
				w.role("node", "")
				image := SilentImageID("1.36", "bottlerocket-amd64")
				if test.key != "silent" {
					image = ImageID("1.36", test.key)
				}
				i, err := w.Launch(LaunchRequest{Template: w.template(test.data, image, group, "node", nil), SubnetID: subnet})
				require.NoError(t, err)
				time.Sleep(pendingWork + bootWork)
				synctest.Wait()
				console, err := w.Console(i.ID)
				require.NoError(t, err)
				require.Contains(t, console, test.console)
				if test.console != "Successfully" {
					require.Empty(t, w.nodes)
					return
				}
				require.Len(t, w.nodes, 1)
				for _, node := range w.nodes {
					require.Equal(t, []any{"demo", "https://endpoint", "Y2E=", 42}, []any{
						node.Cluster, node.Endpoint, node.CertificateAuthority, node.MaxPods,
					})
					require.Equal(t, map[string]string{"drover.run/pool": "a"}, node.Labels)
					require.Equal(t, []Taint{{"example.com/dedicated", "batch", "NoSchedule"}, {"example.com/dedicated", "", "NoExecute"}}, node.Taints)
					require.Contains(t, node.OSImage, "Bottlerocket OS")
					require.Equal(t, 20, node.DiskGiB, "the data disk of the image")
				}
			})
		})
	}
}
