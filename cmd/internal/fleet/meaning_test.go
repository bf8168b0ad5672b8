package fleet

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/rollout"
)

// Each state and reason has a sentence, and docs/fleet.md has the same one.
func TestMeanings(t *testing.T) {
	page, err := os.ReadFile("../../../docs/fleet.md")
	require.NoError(t, err)
	count := 0
	for _, state := range rollout.States() {
		reasons := rollout.Reasons(state)
		if len(reasons) == 0 {
			reasons = []rollout.Reason{""}
		}
		for _, reason := range reasons {
			count++
			cell := ""
			if reason != "" {
				cell = "`" + string(reason) + "`"
			}
			require.NotEmpty(t, Meaning(state, reason), "%s %s", state, reason)
			row := "| `" + string(state) + "` | " + cell + " | " + Meaning(state, reason) + " |"
			require.True(t, strings.Contains(string(page), row), "docs/fleet.md does not have the row %s", row)
		}
	}
	require.Len(t, Meanings(), count)
	require.True(t, strings.HasPrefix(Meanings()["Waiting Approval"], "The stage needs an approval"))
	require.NotEmpty(t, Meanings()["Good"])
}
