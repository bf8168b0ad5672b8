package render

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/shared/api"
)

// references collects the names of Ref and Fn::GetAtt in decoded YAML.
func references(v any) (list []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if name, ok := value.(string); ok && key == "Ref" {
				list = append(list, name)
			}
			list = append(list, references(value)...)
		}
	case []any:
		for _, value := range v {
			list = append(list, references(value)...)
		}
	}
	return list
}

// The fingerprint covers all of the launch template data but tags and monitoring, in every golden.
func TestFingerprintCoversTheLaunchTemplate(t *testing.T) {
	for name, change := range goldens {
		for _, stack := range render(t, goldenInput(t, change)).Stacks {
			if stack.Pace == nil {
				require.Nil(t, stack.Nodes, stack.Name)
				continue
			}
			var lines bytes.Buffer
			require.NoError(t, writeLaunchData(&lines, stack.Template))
			var covered map[string]any
			require.NoError(t, yaml.Unmarshal(lines.Bytes(), &covered))
			data := at(t, resources(t, stack)["LaunchTemplate"], "Properties", "LaunchTemplateData").(map[string]any)
			delete(data, "TagSpecifications")
			require.Contains(t, data, "Monitoring")
			data["Monitoring"] = map[string]any{"Enabled": true} // whatever the spec states
			require.Equal(t, data, covered, name)
			for _, ref := range references(data) {
				require.Contains(t, stack.Nodes.Parameters, ref, name)
			}
		}
	}
	require.Error(t, writeLaunchData(&bytes.Buffer{}, []byte("Resources:\n")))
}

func TestFingerprint(t *testing.T) {
	values := map[string]string{"ClusterEndpoint": "https://a", "SubnetIds": "subnet-1"}
	sum := func(in Cluster) string { return stackOf(t, render(t, in), "pool-workers").Nodes.Sum(values) }
	before := sum(resolve(t, smallCluster()))
	for name, test := range map[string]struct {
		change func(*Cluster)
		same   bool
	}{
		"is kept by a tag":               {func(in *Cluster) { in.Resolved.Spec.Tags = map[string]string{"a": "b"} }, true},
		"is kept by a tag of the pool":   {func(in *Cluster) { in.Resolved.Spec.Pools[0].Tags = map[string]string{"a": "b"} }, true},
		"is kept by a zone":              {func(in *Cluster) { in.Resolved.Spec.Network.Zones = zonesOf("us-east-1", "abcde") }, true},
		"is kept by a size":              {func(in *Cluster) { in.Resolved.Spec.Pools[0].MaxSize = 9 }, true},
		"is kept by an instance type":    {func(in *Cluster) { in.Resolved.Spec.Pools[0].InstanceTypes = []string{"m7g.xlarge"} }, true},
		"is kept by monitoring":          {func(in *Cluster) { in.Resolved.Spec.Pools[0].DetailedMonitoring = true }, true},
		"is kept by spot":                {func(in *Cluster) { in.Resolved.Spec.Pools[0].Spot = &api.Spot{} }, true},
		"changes with an image":          {func(in *Cluster) { in.Resolved.Spec.Pools[0].ImageID = "ami-0fedcba9876543210" }, false},
		"changes with a label":           {func(in *Cluster) { in.Resolved.Spec.Pools[0].Labels = map[string]string{"a": "b"} }, false},
		"changes with a command":         {func(in *Cluster) { in.Resolved.Spec.Pools[0].Commands = []string{"swapoff --all"} }, false},
		"changes with the volume's size": {func(in *Cluster) { in.Resolved.Spec.Pools[0].RootVolume.SizeGiB = 99 }, false},
		"changes with a volume": {func(in *Cluster) {
			in.Resolved.Spec.Pools[0].Volumes = []api.Volume{{Device: "/dev/xvdb", SizeGiB: 1, Type: "gp3"}}
		}, false},
		"changes with a roll": {func(in *Cluster) {
			in.RollAt = map[string]time.Time{"workers": time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := resolve(t, smallCluster())
			test.change(&in)
			require.Equal(t, test.same, sum(in) == before)
		})
	}
	t.Run("changes with a parameter of the launch template", func(t *testing.T) {
		nodes := stackOf(t, render(t, resolve(t, smallCluster())), "pool-workers").Nodes
		require.True(t, slices.IsSorted(nodes.Parameters))
		for _, name := range nodes.Parameters {
			require.NotEqual(t, nodes.Sum(nil), nodes.Sum(map[string]string{name: "other"}), name)
		}
		require.Equal(t, nodes.Sum(nil), nodes.Sum(map[string]string{SubnetIDs: "subnet-2"}))
	})
	t.Run("is that of pools from before the field of monitoring", func(t *testing.T) {
		stack := stackOf(t, render(t, resolve(t, smallCluster())), "pool-workers")
		off, on := "Monitoring:\n          Enabled: false\n", "Monitoring:\n          Enabled: true\n"
		require.Equal(t, 1, strings.Count(string(stack.Template), off))
		stack.Template = []byte(strings.Replace(string(stack.Template), off, on, 1))
		again, err := newFingerprint(&stack, "")
		require.NoError(t, err)
		require.Equal(t, stack.Nodes.Data, again.Data)
	})
	t.Run("ignores comments of the template", func(t *testing.T) {
		stack := stackOf(t, render(t, resolve(t, smallCluster())), "pool-workers")
		stack.Template = []byte(strings.Replace(string(stack.Template), "Tokens only", "Only tokens", 1))
		again, err := newFingerprint(&stack, "")
		require.NoError(t, err)
		require.Equal(t, stack.Nodes.Data, again.Data)
	})
}
