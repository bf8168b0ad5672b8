package render

// What nodes do with their user data. The tests run the scripts with an aws and a systemctl that record their arguments.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

func TestNodeConfigHasThePoolsFields(t *testing.T) {
	data := readUserData(t, userDataOf(t, stackOf(t, render(t, resolve(t, fullCluster())), "pool-workers")))
	require.Equal(t, "node.eks.aws/v1alpha1", data.Config["apiVersion"])
	require.Equal(t, map[string]any{
		"name": "drover-full", "cidr": "172.21.0.0/16",
		"apiServerEndpoint": parameterValues["ClusterEndpoint"], "certificateAuthority": parameterValues["ClusterCertificateAuthority"],
	}, at(t, data.Config, "spec", "cluster"))
	require.Equal(t, map[string]any{
		"maxPods": 58, "evictionHard": map[string]any{"memory.available": "5%"}, "imageGCLowThresholdPercent": 60, "seccompDefault": true,
		"reservedMemory": []any{map[string]any{"numaNode": 0, "limits": map[string]any{"memory": "1Gi"}}},
	}, at(t, data.Config, "spec", "kubelet", "config"))
	labels, taints, flags := kubeletOf(t, data.Config)
	require.Equal(t, map[string]string{"drover.run/pool": "workers", "example.com/team": "shop", "tier": "web"}, labels)
	require.Equal(t, []string{"example.com/dedicated=shop:NoSchedule", "spot=:PreferNoSchedule"}, taints)
	require.Equal(t, []string{"--v=2", "--image-gc-high-threshold=70"}, flags)
	require.NotEmpty(t, data.Script)
}

func TestPlainPoolHasNoScript(t *testing.T) {
	out := render(t, resolve(t, smallCluster()))
	data := readUserData(t, userDataOf(t, stackOf(t, out, "pool-workers")))
	require.Empty(t, data.Script)
	require.NotContains(t, at(t, data.Config, "spec", "kubelet"), "config")
	require.Empty(t, out.UserData)
}

func TestConfigurationScript(t *testing.T) {
	const mask = "mask --runtime --now nodeadm-run.service\n"
	tests := map[string]struct {
		commands []string
		// spoil changes the configuration in the bucket. nil is one that cannot be fetched.
		spoil  func(string) string
		done   string
		joins  bool
		prints string
	}{
		"writes files and runs commands in order": {
			commands: []string{`echo one >>"` + filesRoot + `/done"`, "cd /\nif true; then\n  echo \"two\" >>'" + filesRoot + "/done'\nfi"},
			spoil:    func(s string) string { return s }, done: "one\ntwo\n", joins: true,
		},
		"stops and does not join when a command fails": {
			commands: []string{"false\ntrue", `echo two >>"` + filesRoot + `/done"`},
			spoil:    func(s string) string { return s }, prints: "command 1 failed with status 1",
		},
		"does not join when part of a pipe fails": {
			commands: []string{"false | true"}, spoil: func(s string) string { return s }, prints: "command 1 failed with status 1",
		},
		"does not join with a changed configuration": {
			commands: []string{"true"}, spoil: func(s string) string {
				return s + `echo owned >>"` + filesRoot + `/done"` + "\n"
			}, prints: "does not join",
		},
		"does not join without its configuration": {commands: []string{"true"}, prints: "does not join"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(filesRoot))
			t.Cleanup(func() { os.RemoveAll(filesRoot) })
			c := smallCluster()
			c.Spec.Pools[0].Files = []api.File{{Path: filesRoot + "/etc/drover.conf", Mode: "0640", Content: "a 'quoted' \"$HOME\"\n"}}
			c.Spec.Pools[0].Commands = tt.commands
			in := resolve(t, c)
			out := render(t, in)
			require.Len(t, out.UserData, 1)

			bin, bucket, notes := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "notes")
			for key, body := range out.UserData {
				require.Equal(t, names.UserData(body), key)
				if tt.spoil == nil {
					continue
				}
				file := filepath.Join(bucket, in.Cell.StateBucket, key)
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
				require.NoError(t, os.WriteFile(file, []byte(tt.spoil(string(body))), 0o600))
			}
			executable(t, bin, "systemctl", `echo "$@" >>"`+notes+`"`)
			executable(t, bin, "sleep", "")
			// aws s3 cp --no-progress --region R s3://bucket/key FILE
			executable(t, bin, "aws", `[ "$1 $2 $3 $4 $5" = "s3 cp --no-progress --region `+in.Cell.Region+`" ] && cp "`+bucket+`/${6#s3://}" "$7"`)

			data := readUserData(t, userDataOf(t, stackOf(t, out, "pool-workers")))
			printed, err := runScript(t, bin, []byte(data.Script))
			masked, _ := os.ReadFile(notes)
			done, _ := os.ReadFile(filesRoot + "/done")
			require.Equal(t, tt.done, string(done))
			require.Contains(t, printed, tt.prints)
			if !tt.joins {
				require.Error(t, err)
				require.Equal(t, mask, string(masked))
				return
			}
			require.NoError(t, err, printed)
			require.Empty(t, string(masked))
			info, err := os.Stat(filesRoot + "/etc/drover.conf")
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o640), info.Mode())
			body, err := os.ReadFile(filesRoot + "/etc/drover.conf")
			require.NoError(t, err)
			require.Equal(t, c.Spec.Pools[0].Files[0].Content, string(body))
		})
	}
}

func TestLongKubeletFlagsMoveToAFile(t *testing.T) {
	c := smallCluster()
	c.Spec.Pools[0].KubeletFlags = longFlags()
	c.Spec.Pools[0].Commands = []string{"true"}
	out := render(t, resolve(t, c))
	require.Len(t, out.UserData, 1)
	data := readUserData(t, userDataOf(t, stackOf(t, out, "pool-workers")))
	require.NotContains(t, at(t, data.Config, "spec"), "kubelet")
	for _, body := range out.UserData {
		text := string(body)
		start := strings.Index(text, "apiVersion: node.eks.aws")
		require.Contains(t, text[:start], "place '"+kubeletConfigPath+"' '0600' '")
		var config map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text[start:start+strings.Index(text[start:], "'")]), &config))
		labels, _, flags := kubeletOf(t, config)
		require.Equal(t, map[string]string{"drover.run/pool": "workers"}, labels)
		require.Equal(t, longFlags(), flags)
	}
}

func TestInvalidNodes(t *testing.T) {
	tests := map[string]struct {
		change func(*api.ClusterSpec)
		says   string
	}{
		"a zone that the network does not have": {
			func(s *api.ClusterSpec) { s.Pools[0].Zones = []string{"eu-central-1c"} },
			`spec.pools[workers].zones[0]: "eu-central-1c" is none of spec.network.zones`,
		},
		"subnets in a network that drover creates": {
			func(s *api.ClusterSpec) { s.Pools[0].Subnets = []string{"subnet-0123456789abcdef0"} },
			"spec.pools[workers].subnets: only an existing network has them",
		},
		"zones in an existing network": {func(s *api.ClusterSpec) {
			s.Network, s.Pools[0].Zones = existingNetwork(), []string{"eu-central-1a"}
		}, "spec.pools[workers].zones: an existing network has no zones"},
		"pods of the kubelet's configuration": {
			func(s *api.ClusterSpec) { s.Pools[0].Kubelet = map[string]any{"maxPods": 5} },
			"spec.pools[workers]: kubelet.maxPods: it has a field of its own",
		},
		"a dynamic reference in the kubelet's configuration": {
			func(s *api.ClusterSpec) { s.Pools[0].Kubelet = map[string]any{"resolvConf": "{{resolve:ssm:/secret}}"} },
			"{{resolve:",
		},
		"flags of two words": {
			func(s *api.ClusterSpec) {
				s.Pools[0].KubeletFlags = []string{"--v=2 --anonymous-auth"}
			}, "spec.pools[workers]: \"--v=2 --anonymous-auth\" cannot be a flag",
		},
		"flags that would end the line": {func(s *api.ClusterSpec) {
			s.Pools[0].KubeletFlags = []string{"--v=2\nLD_PRELOAD=x"}
		}, "cannot be a flag"},
		"quoted flags":             {func(s *api.ClusterSpec) { s.Pools[0].KubeletFlags = []string{`--v="2"`} }, "cannot be a flag"},
		"empty flags":              {func(s *api.ClusterSpec) { s.Pools[0].KubeletFlags = []string{""} }, "cannot be a flag"},
		"labels that would be two": {func(s *api.ClusterSpec) { s.Pools[0].Labels = map[string]string{"a": "b,c=d"} }, `labels["a"]`},
		"taints that would be two": {
			func(s *api.ClusterSpec) {
				s.Pools[0].Taints = []api.Taint{{Key: "a", Effect: "NoSchedule,b=c:NoExecute"}}
			}, "taints[0]",
		},
		"files with NUL": {
			func(s *api.ClusterSpec) { s.Pools[0].Files = []api.File{{Path: "/a", Mode: "0644", Content: "\x00"}} }, "NUL",
		},
		"files with a mode that is none": {
			func(s *api.ClusterSpec) { s.Pools[0].Files = []api.File{{Path: "/a", Mode: "u+x", Content: ""}} }, `files[0].mode: "u+x"`,
		},
		"user data that is too long": {
			func(s *api.ClusterSpec) { s.ControlPlane.ServiceCIDR = strings.Repeat("1", MaxUserData) },
			"spec.pools[workers]: its user data has 2",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := resolve(t, smallCluster())
			tt.change(&in.Resolved.Spec)
			_, err := Render(in)
			require.ErrorContains(t, err, tt.says)
		})
	}
}
