package storm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The random lives have both: an operator deletes a control plane, or disables termination protection, before the spec
// is deleted.
func TestLivesDeleteUnlistedVolumes(t *testing.T) {
	found := map[string]bool{}
	for seed := uint64(1); seed <= 300; seed++ {
		acts := plotOf(seed).acts
		for i, a := range acts {
			for _, what := range []string{"lose control-plane", "turn termination protection off"} {
				for _, later := range acts[i:] {
					if strings.HasPrefix(a.what, what) && later.cluster == a.cluster && later.remove {
						found[what] = true
					}
				}
			}
		}
	}
	require.Len(t, found, 2, "%v", found)
}
