package overview

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/rollout"
)

// The runbook names each reason of a member, so that a search for the word leads to its explanation.
func TestRunbookHasEveryReasonOfMembers(t *testing.T) {
	page, err := os.ReadFile("../../../docs/runbook.md")
	require.NoError(t, err)
	_, entry, found := strings.Cut(string(page), "\n### A reason of a member, ")
	require.True(t, found)
	entry, _, _ = strings.Cut(entry, "\n### ")
	entry = strings.ReplaceAll(entry, "\n  ", " ")
	require.Contains(t, entry, "(fleet.md#states-and-reasons)")
	for _, state := range rollout.States() {
		var reasons []string
		for _, reason := range rollout.Reasons(state) {
			reasons = append(reasons, "`"+string(reason)+"`")
		}
		if len(reasons) > 0 {
			require.Contains(t, entry, "\n- "+string(state)+": "+strings.Join(reasons, ", ")+".\n")
		}
	}
}

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
