package ec2

// How instances read their user data.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const nodeConfigPart = `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: "drover-demo"
    apiServerEndpoint: "https://127.0.0.1:1"
    certificateAuthority: "Y2E="
    cidr: "172.20.0.0/16"
  kubelet:
    config:
      maxPods: 17
    flags:
      - "--node-labels=drover.run/pool=workers,tier=web"
      - "--register-with-taints=a=b:NoSchedule,spot=:PreferNoSchedule"
      - "--v=2"
`

func multipartData(parts ...string) string {
	var b strings.Builder
	b.WriteString("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"drover\"\n\n")
	for _, p := range parts {
		typ := "application/node.eks.aws"
		if strings.HasPrefix(p, "#!") {
			typ = "text/x-shellscript; charset=\"us-ascii\""
		}
		b.WriteString("--drover\nContent-Type: " + typ + "\n\n" + p)
	}
	return b.String() + "--drover--\n"
}

// The user data that drover renders is read back with the same settings.
func TestRenderedUserData(t *testing.T) {
	pools, err := filepath.Glob("../../../shared/render/testdata/golden/v1/*/pool-*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, pools)
	for _, path := range pools {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			body, err := os.ReadFile(path)
			require.NoError(t, err)
			var stack struct {
				Resources struct {
					LaunchTemplate struct {
						Properties struct {
							LaunchTemplateData struct {
								UserData struct {
									Base64 struct {
										Join []any `yaml:"Fn::Join"`
									} `yaml:"Fn::Base64"`
								} `yaml:"UserData"`
							} `yaml:"LaunchTemplateData"`
						} `yaml:"Properties"`
					} `yaml:"LaunchTemplate"`
				} `yaml:"Resources"`
			}
			require.NoError(t, yaml.Unmarshal(body, &stack))
			join := stack.Resources.LaunchTemplate.Properties.LaunchTemplateData.UserData.Base64.Join
			require.Len(t, join, 2)
			var userData strings.Builder
			for _, part := range join[1].([]any) {
				if text, ok := part.(string); ok {
					userData.WriteString(text)
				} else {
					userData.WriteString("value-of-" + part.(map[string]any)["Ref"].(string))
				}
			}
			if text := userData.String(); strings.HasPrefix(text, "[settings") {
				r, err := Image{Family: Bottlerocket}.parseSettings([]byte(text))
				require.NoError(t, err)
				require.Equal(t, "value-of-ClusterEndpoint", r.endpoint)
				require.Contains(t, r.labels, "drover.run/pool")
				return
			}
			config, err := parseUserData([]byte(userData.String()))
			require.NoError(t, err)
			require.NotNil(t, config.node)
			require.NoError(t, config.node.validate())
			require.Equal(t, "value-of-ClusterEndpoint", config.node.Spec.Cluster.APIServerEndpoint)
			for _, script := range config.scripts {
				found := fetches(script)
				if strings.Contains(script, "update-ca-trust") {
					require.Empty(t, found)
					continue
				}
				require.Len(t, found, 1)
				rendered, err := filepath.Glob(filepath.Join(filepath.Dir(path), "userdata-"+found[0].sha256[:12]+"*"))
				require.NoError(t, err)
				require.Len(t, rendered, 1, "the script fetches a configuration that was rendered")
				body, err := os.ReadFile(rendered[0])
				require.NoError(t, err)
				for _, content := range placedConfigs(string(body)) {
					require.NoError(t, config.addNodeConfig([]byte(content)))
				}
			}
			k, err := config.node.kubelet()
			require.NoError(t, err)
			require.Contains(t, k.labels, "drover.run/pool")
		})
	}
}

func TestPlacedConfigurations(t *testing.T) {
	script := "#!/bin/bash\nplace() {\n  :\n}\n\nplace '/etc/motd' '0644' 'it'\\''s\nplace /etc/eks/nodeadm.d/x.yaml'\n" +
		"place '/etc/eks/nodeadm.d/drover.yaml' '0600' 'a: '\\''b'\\''\n'\nrun '1' 'echo\nplace '\\''/etc/eks/nodeadm.d/y.yaml'\\'' " +
		"'\\''1'\\'' " +
		"'\\''z'\\'''\n"
	require.Equal(t, map[string]string{"/etc/eks/nodeadm.d/drover.yaml": "a: 'b'\n"}, placedConfigs(script))
}

func FuzzUserData(f *testing.F) {
	f.Add([]byte(multipartData(nodeConfigPart, "#!/bin/bash\ntrue\n")))
	f.Add([]byte(nodeConfigPart))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := parseUserData(data)
		if err == nil && config.node != nil && config.node.validate() == nil {
			_, _ = config.node.kubelet() // an error is fine, a panic is not
		}
		placedConfigs(string(data))
	})
}
