package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

func TestEffect(t *testing.T) {
	tests := map[string]struct {
		stack  string
		op     Operation
		fields []string
		want   status.Effect
	}{
		"an image":     {"pool-a", Update, []string{"spec.pools[a].imageID"}, status.ReplacesNodes},
		"a label":      {"pool-a", Update, []string{"spec.pools[a].labels.team"}, status.ReplacesNodes},
		"a roll":       {"pool-a", Update, []string{"spec.pools[a].rollAt"}, status.ReplacesNodes},
		"a tag of all": {"pool-a", Update, []string{"spec.tags.team"}, status.ReplacesNodes},
		"a size": {
			"pool-a", Update, []string{"spec.pools[a].maxSize", "spec.pools[a].drain.timeout"}, status.InPlace,
		},
		"a size and an image": {
			"pool-a", Update, []string{"spec.pools[a].maxSize", "spec.pools[a].imageID"}, status.ReplacesNodes,
		},
		"a size and a template":            {"pool-a", Update, []string{"spec.pools[a].maxSize", "spec.templateVersion"}, ""},
		"an unknown effect":                {"pool-a", Update, []string{"checksum.pool-a"}, ""},
		"a removed tag":                    {"pool-a", Update, []string{"tags.pool-a.team"}, ""},
		"protection":                       {"pool-a", Update, []string{"terminationProtection.pool-a"}, status.InPlace},
		"a version of the control plane":   {"control-plane", Update, []string{"spec.kubernetesVersion"}, status.InPlace},
		"a new pool":                       {"pool-a", Create, []string{"spec.pools[a]"}, ""},
		"a deleted pool":                   {"pool-a", Delete, []string{"spec.pools[a]"}, ""},
		"a pool with the name as a prefix": {"pool-a", Update, []string{"spec.pools[ab].maxSize"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			change := Change{Stack: test.stack, Operation: test.op}
			for _, field := range test.fields {
				change.Reasons = append(change.Reasons, status.Reason{Field: field})
			}
			require.Equal(t, test.want, change.Effect())
		})
	}
}
