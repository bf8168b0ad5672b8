package autoscaling

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/engine/resource"
)

// resolve replaces intrinsic functions by values: numbers, text and lists as in the schema.
func resolve(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			if branches, _ := v["Fn::If"].([]any); len(branches) == 3 {
				return resolve(key, branches[1])
			}
			if len(v) == 1 && (name == "Ref" || len(name) > 4 && name[:4] == "Fn::") {
				switch key {
				case "VPCZoneIdentifier":
					return []any{"subnet-1"}
				case "MaxSize", "MaxBatchSize", "MinInstancesInService", "MinHealthyPercentage", "MaxHealthyPercentage":
					return "100"
				}
				return "dmFsdWU="
			}
		}
		for name, x := range v {
			v[name] = resolve(name, x)
		}
	case []any:
		for i, x := range v {
			v[i] = resolve("", x)
		}
	}
	return v
}

// The local account knows every property of the EC2 and Auto Scaling resources that drover renders.
func TestRenderedTemplates(t *testing.T) {
	paths, err := filepath.Glob("../../../shared/render/testdata/golden/v1/*/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	network := ec2.New(ec2.Config{Account: account, Region: region})
	defer network.Close()
	providers := network.Resources()
	for typ, p := range (&Service{}).Resources() {
		providers[typ] = p
	}
	checked := 0
	for _, path := range paths {
		body, err := os.ReadFile(path)
		require.NoError(t, err)
		var stack struct {
			Resources map[string]struct {
				Type         string         `yaml:"Type"`
				Properties   map[string]any `yaml:"Properties"`
				UpdatePolicy map[string]any `yaml:"UpdatePolicy"`
			} `yaml:"Resources"`
		}
		require.NoError(t, yaml.Unmarshal(body, &stack), path)
		for name, r := range stack.Resources {
			p, ok := providers[r.Type]
			if !ok {
				continue
			}
			checked++
			for property := range r.Properties {
				require.Contains(t, p.Schema().Properties, property, "%s: %s of %s", path, property, name)
			}
			resolved := resolve("", r.Properties).(map[string]any)
			var policy updatePolicy
			require.NoError(t, resource.Decode(resolve("", r.UpdatePolicy).(map[string]any), &policy), path)
			switch r.Type {
			case "AWS::AutoScaling::AutoScalingGroup":
				var in properties
				require.NoError(t, resource.Decode(resolved, &in), path)
				g := &group{settings: in.settings()}
				require.NoError(t, g.checkSettings(), path)
				for _, h := range in.LifecycleHookSpecificationList {
					require.NoError(t, g.putHook(h), path)
				}
			case "AWS::EC2::LaunchTemplate":
				var in struct {
					LaunchTemplateData ec2.TemplateData
					TagSpecifications  []ec2.TagSpecification
				}
				require.NoError(t, resource.Decode(resolved, &in), path)
			}
		}
	}
	require.Greater(t, checked, 100)
}
